"""Content parts: what messages and results are made of, the same for every provider."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar


@dataclass(slots=True)
class Text:
    """A piece of text. `extras` are opaque provider data, by provider name."""

    text: str
    extras: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "text"

    def as_text(self) -> str:
        return self.text


@dataclass(slots=True)
class Json:
    """A structured value, shown to a model as compact JSON."""

    value: Any
    extras: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "json"

    def as_text(self) -> str:
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(slots=True)
class Media:
    """Bytes or an address of something that is not text; `data` is base64, `url` an address."""

    data: str = ""
    url: str = ""
    media_type: str = ""
    name: str = ""
    extras: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "media"

    def as_text(self) -> str:
        label = " ".join(word for word in (self.kind, self.media_type, self.name or self.url) if word)
        return f"[{label}]"


class Image(Media):
    """A picture."""

    __slots__ = ()
    kind = "image"


class Audio(Media):
    """A sound."""

    __slots__ = ()
    kind = "audio"


class File(Media):
    """A document, such as a PDF."""

    __slots__ = ()
    kind = "file"


Part = Text | Json | Image | Audio | File

PART_TYPES: dict[str, type[Text | Json | Media]] = {cls.kind: cls for cls in (Text, Json, Image, Audio, File)}


def part_to_dict(part: Any) -> dict[str, Any]:
    """A part as plain JSON data, with its kind; empty fields are left out."""
    data = {f.name: getattr(part, f.name) for f in fields(part)}
    return {"kind": part.kind, **{name: value for name, value in data.items() if value not in ("", {}, None)}}


def part_from_dict(data: dict[str, Any]) -> Any:
    """The part that `part_to_dict` described; ValueError for an unknown kind."""
    cls = PART_TYPES.get(data.get("kind", ""))
    if cls is None:
        raise ValueError(f"unknown kind of content part {data.get('kind')!r}; known are {sorted(PART_TYPES)}")
    named: dict[str, Any] = {name: value for name, value in data.items() if name != "kind"}
    if cls is Text:
        named.setdefault("text", "")
    if cls is Json:
        named.setdefault("value", None)
    return cls(**named)
