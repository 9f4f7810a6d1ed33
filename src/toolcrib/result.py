"""The result of a call, as the model is told it: content parts, whether it is an error, a structured value."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from toolcrib.content import Part, Text, new_text, part_from_dict, part_to_dict
from toolcrib.errors import ErrorCode
from toolcrib.frozen import SET_CLASS, open_class

if TYPE_CHECKING:
    from toolcrib.repair import Edit

__all__ = ["ToolResult"]

SHOWN = frozenset({"parts", "is_error", "extras"})  # the fields of a result that a request may show
_WATCHING = threading.Lock()


class ResultChanges:
    """Shows that a result of a conversation that was sent has changed: `last` is a new object after each change."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = object()


class ToolResult:
    """What the model is told about a call. A tool may also return a ToolResult itself.

    `parts` are the content; a text counts as one part. `structured` is the value as JSON data, if the tool has an
    output schema and the value fits it. `code` says why a call failed. `edits` are the repairs that its arguments
    needed. `full_output` is the path of the file with the whole output, if the model was shown a part. `is_data`
    says that the text is JSON, which is never cut in the middle. `outside` says that strangers may have written the
    content; it is set only if the policy looks at that.
    """

    __slots__ = (
        "_changes",  # a ResultChanges once the result was sent, empty before
        "_json",
        "_parts",  # None until somebody looks at the parts of a result of one text
        "_structured",
        "_text",  # the text of a result of one text, None for any other
        "code",
        "edits",
        "extras",
        "full_output",
        "is_data",
        "is_error",
        "outside",
    )

    def __init__(
        self,
        parts: tuple[Part, ...] | str = (),
        *,
        is_error: bool = False,
        code: ErrorCode | None = None,
        structured: Any = None,
        edits: tuple[Edit, ...] = (),
        full_output: str = "",
        extras: dict[str, Any] | None = None,
        is_data: bool = False,
        outside: bool = False,
    ) -> None:
        kind, given = type(self), parts if type(parts) is tuple else _as_parts(parts)
        if kind is ToolResult:
            SET_CLASS(self, OpenResult)  # its fields are assigned in less time
        self._parts: tuple[Part, ...] | None = given
        self._text = _only_text(given)
        self.is_error = is_error
        self.code = code
        self._structured = structured
        self._json: str | None = None  # the text of `structured` until its data is needed, which it seldom is
        self.edits = edits
        self.full_output = full_output
        self.extras = extras
        self.is_data = is_data
        self.outside = outside
        if kind is ToolResult:
            SET_CLASS(self, kind)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, _as_parts(value) if name == "parts" else value)
        if name in SHOWN and (changes := getattr(self, "_changes", None)) is not None:
            changes.last = object()

    def __getstate__(self) -> object:
        state: Any = super().__getstate__()
        state[1].pop("_changes", None)  # a copy is in no conversation
        return state

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content. Most results are one text, whose part is made when it is first read."""
        parts = self._parts
        if parts is None:
            assert self._text is not None
            object.__setattr__(self, "_parts", parts := (new_text(self._text),))
        return parts

    @parts.setter
    def parts(self, parts: tuple[Part, ...]) -> None:
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_text", _only_text(parts))

    @property
    def structured(self) -> Any:
        """The value as JSON data; None without an output schema, or if the value does not fit it."""
        text = self._json
        if text is not None:
            self._structured = json.loads(text)
            self._json = None
        return self._structured

    @classmethod
    def of(cls, text: str, *, code: ErrorCode | None = None) -> ToolResult:
        """A result of one text. With a code it is an error. What UTF-8 cannot encode becomes `?`."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        if cls is ToolResult:
            return new_text_result(text, code=code)
        return cls(text, is_error=code is not None, code=code)

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks; JSON parts as compact JSON."""
        text = self._text
        return "\n".join(part.as_text() for part in self.parts) if text is None else text

    def copy(self) -> ToolResult:
        """The same result as an object of its own."""
        text = self._json  # read first: another thread may read the text just now
        made = ToolResult(
            tuple(self.parts),
            is_error=self.is_error,
            code=self.code,
            structured=self._structured,
            edits=self.edits,
            full_output=self.full_output,
            extras=self.extras,
            is_data=self.is_data,
            outside=self.outside,
        )
        made._json = text
        return made

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON data."""
        data: dict[str, Any] = {
            "parts": [part_to_dict(part) for part in self.parts],
            "is_error": self.is_error,
        }
        if self.code is not None:
            data["code"] = str(self.code)
        if self.structured is not None:
            data["structured"] = self.structured
        if self.edits:
            data["edits"] = [edit.to_dict() for edit in self.edits]
        if self.full_output:
            data["full_output"] = self.full_output
        if self.outside:
            data["outside"] = True
        if self.extras:
            data["extras"] = self.extras
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ToolResult:
        """The result that `to_dict` wrote, without the repairs, which the model was told before."""
        return cls(
            parts=tuple(part_from_dict(part) for part in data.get("parts", ())),
            is_error=bool(data.get("is_error")),
            code=ErrorCode(data["code"]) if data.get("code") else None,
            structured=data.get("structured"),
            full_output=str(data.get("full_output", "")),
            extras=data.get("extras"),
            outside=bool(data.get("outside")),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolResult) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:60] + "…"
        return f"ToolResult({shown!r}{f', code={self.code.value!r}' if self.code else ''})"


OpenResult = open_class(ToolResult)


def new_text_result(
    text: str, *, is_data: bool = False, json: str | None = None, code: ErrorCode | None = None
) -> ToolResult:
    """A result of one text, made in half the time: most calls end with one. With a `code` it is an error.

    `json` is the text of its structured value.
    """
    filled = OpenResult()
    filled._text, filled._parts = text, None
    filled.is_error = code is not None
    filled.outside = False
    filled.is_data = is_data
    filled.code = code
    filled.extras = filled._structured = None
    filled._json = json
    filled.edits = ()
    filled.full_output = ""
    filled.__class__ = ToolResult
    made: ToolResult = filled
    return made


def changes_of(result: ToolResult, own: ResultChanges) -> ResultChanges:
    """Where a result notes its changes from now on: in `own`, unless another conversation has sent it before."""
    with _WATCHING:
        changes: ResultChanges | None = getattr(result, "_changes", None)
        if changes is None:
            object.__setattr__(result, "_changes", changes := own)
    return changes


def _only_text(parts: Any) -> str | None:
    """The text of parts that are a single text; None for any others."""
    if type(parts) is tuple and len(parts) == 1 and type(only := parts[0]) is Text:
        return only.text
    return None


def _as_parts(given: Any) -> Any:
    """A text or list as a tuple of parts. Anything else is returned as given; reading the result refuses it."""
    return (Text(given),) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given
