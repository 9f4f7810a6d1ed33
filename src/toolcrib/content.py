"""Content parts: what messages and results consist of, the same for every provider.

A part never changes once it is made: `dataclasses.replace` makes another one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from toolcrib.dataclass import dataclass
from toolcrib.frozen import EMPTY, open_class, quickly_filled

__all__ = ["Audio", "File", "Image", "Json", "Media", "Part", "Text", "part_from_dict", "part_to_dict"]

MEDIA_TYPE = re.compile(r"(image|audio|application|text|video)/[\w.+;=-]+")
BEGINNINGS = {  # of the base64 of a file, and its media type
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGODdh": "image/gif",
    "R0lGODlh": "image/gif",
    "JVBERi0": "application/pdf",
}


@quickly_filled
@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text. `extras` are opaque provider data, by provider name."""

    text: str
    extras: Mapping[str, Any] = EMPTY
    kind: ClassVar[str] = "text"

    def as_text(self) -> str:
        return self.text


OpenText = open_class(Text)


def new_text(text: str) -> Text:
    """`Text(text)`, in half the time."""
    filled = OpenText()
    filled.text = text
    filled.extras = EMPTY
    filled.__class__ = Text
    made: Text = filled
    return made


@dataclass(frozen=True, slots=True)
class Json:
    """A structured value, shown to a model as compact JSON."""

    value: Any
    extras: Mapping[str, Any] = EMPTY
    kind: ClassVar[str] = "json"

    def as_text(self) -> str:
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, sound or document, as `data` (base64) or as a `url`.

    `of` takes bytes. A `data:` URL is turned into data. Without a `media_type`, that of PNG, JPEG, GIF, WebP
    and PDF is recognised from the data.

    >>> Image.of(b"GIF89a, and so on").media_type
    'image/gif'
    """

    data: str = ""
    url: str = ""
    media_type: str = ""
    name: str = ""
    extras: Mapping[str, Any] = EMPTY
    kind: ClassVar[str] = "media"

    @classmethod
    def of(cls, data: bytes | str, media_type: str = "", *, name: str = "") -> Self:
        """A part made of bytes or of their base64."""
        return cls(data if isinstance(data, str) else base64.b64encode(data).decode(), "", media_type, name)

    def __post_init__(self) -> None:
        raw: Any = self.data
        if isinstance(raw, bytes | bytearray):  # wrong for a type checker, but clear enough
            self._fill(data=base64.b64encode(raw).decode())
        for field_name in ("data", "url"):
            address: Any = getattr(self, field_name)
            if isinstance(address, str) and address.startswith("data:"):
                head, mark, data = address.partition(";base64,")
                if mark and "," not in head and not data.startswith("data:"):
                    self._fill(**{field_name: ""})
                    named = self.media_type or head[len("data:") :].partition(";")[0]
                    self._fill(data=data, media_type=named)
        if not self.media_type:
            self._detect_type(self.data, self.url)

    def _fill(self, **fields: str) -> None:
        """Set fields while the part is made."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _detect_type(self, data: Any, url: Any) -> None:
        if not data or not isinstance(data, str):
            return
        if isinstance(url, str) and MEDIA_TYPE.fullmatch(
            url
        ):  # many expect the media type to be the second argument
            self._fill(media_type=url, url="")
        elif data.startswith("UklGR") and data[11:16] == "XRUJQ":  # RIFF....WEBP
            self._fill(media_type="image/webp")
        else:
            kinds = (kind for beginning, kind in BEGINNINGS.items() if data.startswith(beginning))
            self._fill(media_type=next(kinds, ""))

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
"""A piece of a message or of a result."""
PARTS = (Text, Json, Image, Audio, File)  # for `isinstance`, which takes longer with a union

PART_TYPES: dict[str, type[Text | Json | Media]] = {cls.kind: cls for cls in (Text, Json, Image, Audio, File)}


def part_to_dict(part: Any) -> dict[str, Any]:
    """A part as plain JSON data with its kind. Empty fields are left out."""
    data = {f.name: getattr(part, f.name) for f in fields(part)}
    return {"kind": part.kind, **{name: value for name, value in data.items() if value not in ("", {}, None)}}


def part_from_dict(data: dict[str, Any]) -> Any:
    """The part that `part_to_dict` wrote. Raises ValueError for an unknown kind."""
    cls = PART_TYPES.get(data.get("kind", ""))
    if cls is None:
        raise ValueError(f"unknown kind of content part {data.get('kind')!r}; known are {sorted(PART_TYPES)}")
    named: dict[str, Any] = {name: value for name, value in data.items() if name != "kind"}
    if cls is Text:
        named.setdefault("text", "")
    if cls is Json:
        named.setdefault("value", None)
    return cls(**named)
