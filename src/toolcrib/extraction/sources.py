"""What values are read out of: texts, messages, pictures, documents, files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from toolcrib.content import PARTS, Audio, File, Image, Text
from toolcrib.messages import Message

if TYPE_CHECKING:
    from toolcrib.content import Part

__all__ = ["Source", "conversation_of", "file_source"]

MAX_FILE = 50_000_000  # bytes
PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
SOUNDS = {".mp3": "audio/mpeg", ".wav": "audio/wav"}

Source: TypeAlias = Union[str, Path, "Part", Message, Sequence[Any]]
"""A text, the path of a file, a content part (`Image`, `File`, ...), a Message, or several of these."""


def file_source(path: Path | str, *, as_text: bool = False) -> list[Part]:
    """A file as content parts: a picture, a sound, a PDF, or text in UTF-8.

    With `as_text`, a PDF is read here, for models that take none. OSError for a file that cannot be read, ValueError
    for one that is no text, too large, or a PDF where the extra for it is missing.
    """
    path = Path(path)
    kind = path.suffix.lower()
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)  # a pipe or a device does not say how much it has
    if len(data) > MAX_FILE:
        raise ValueError(f"{path.name} has more than {MAX_FILE:,} bytes")
    if kind in PICTURES:
        return [Image.of(data, PICTURES[kind], name=path.name)]
    if kind in SOUNDS:
        return [Audio.of(data, SOUNDS[kind], name=path.name)]
    if kind == ".pdf" or data.startswith(b"%PDF-"):
        return _pdf_parts(data, path.name) if as_text else [File.of(data, "application/pdf", name=path.name)]
    try:
        return [Text(data.decode("utf-8-sig"))]
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is no text in UTF-8, no picture, no sound and no PDF") from None


def _pdf_parts(data: bytes, name: str) -> list[Part]:
    from toolcrib.errors import ToolError
    from toolcrib.tools.documents import read_pdf

    try:
        document = read_pdf(data, name)
    except ToolError as problem:
        raise ValueError(problem.message) from problem
    return [Text(document.text), *document.pictures]


def conversation_of(source: Any, *, as_text: bool = False) -> tuple[list[Message], Message]:
    """A source as the messages before, and the user's message that a run begins with.

    TypeError for what is no source, ValueError for one in which there is nothing to read.

    Several parts are one message; messages stay what they are, and the last one has to be the user's.
    """
    items = [source] if isinstance(source, (str, Path, Message, *PARTS)) else source
    if not isinstance(items, Iterable):
        raise TypeError(
            f"a source is a text, a Path, a content part, a Message, or a list of these; got {source!r:.80}"
        )
    messages: list[Message] = []
    parts: list[Part] = []
    for item in items:
        if isinstance(item, Message):
            if parts:
                messages.append(Message.user(*parts))
                parts = []
            messages.append(item)
        elif isinstance(item, str):
            parts.append(Text(item))
        elif isinstance(item, Path):
            parts += file_source(item, as_text=as_text)
        elif isinstance(item, PARTS):
            parts.append(item)
        else:
            raise TypeError(f"a source is a text, a Path, a content part or a Message; got {item!r:.80}")
    if parts:
        messages.append(Message.user(*parts))
    if not messages or messages[-1].role != "user":
        raise TypeError("a source ends with something to read, or with a message of the user")
    if all(
        isinstance(part, Text) and not part.text.strip() for message in messages for part in message.parts
    ):
        raise ValueError("it is empty: there is nothing to read")
    return messages[:-1], messages[-1]


def reads_documents(model: Any) -> bool:
    """Whether a model takes documents, as far as its format says; a model that says nothing takes them."""
    models = getattr(model, "models", None) or (model,)
    features = [getattr(getattr(one, "codec", None), "features", None) for one in models]
    return all(known is None or known.files for known in features)
