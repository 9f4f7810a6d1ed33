"""How much of a result a model is shown: long texts are cut in the middle, and kept whole in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.content import Json, Text
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.visible import counted

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.call import CallKey
    from toolcrib.facts import MaxOutput

__all__ = ["cap", "cut_middle"]

MAX_OFFLOAD = 10_000_000  # bytes of a long output that are kept in its file
ROOM_LEFT = 16 << 20  # bytes that long outputs leave free on the disk; on a small disk, a twentieth of it
HEAD_SHARE = 2 / 3  # of what may be shown, the part that comes from the beginning


def cap(result: ToolResult, limit: MaxOutput, name: str, folder: Path | None, key: CallKey) -> ToolResult:
    """A result whose texts fit the limit. A text that is cut is kept whole in a file of `folder`, if there is one.

    Structured data and media are never cut: structured data that is too large becomes an error, which
    says so.
    """
    budget, lines = limit.bytes, limit.lines
    text = result._text
    if text is not None and len(text) <= min(budget, lines - 1) and text.isascii():
        return result  # no such character is more than one byte, or more than one line
    result.parts = tuple(_sendable(part) for part in result.parts)
    shown = [part for part in result.parts if isinstance(part, Text | Json)]
    texts = [part.as_text() for part in shown]
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    is_data = result.is_data or any(isinstance(part, Json) for part in shown)
    if size <= budget and (is_data or sum(text.count("\n") for text in texts) < lines):
        return result
    full = _offload("\n".join(texts), folder, stem_of(name, key))
    if is_data:
        return model_messages.too_large(name, size, budget, full)
    share = max(len(texts), 1)
    cut = [
        Text(cut_middle(part.text, budget // share, max(lines // share, 2), full), part.extras)
        if isinstance(part, Text)
        else part
        for part in result.parts
    ]
    result.parts = tuple(cut)
    result.full_output = full
    return result


def _sendable(part: Any) -> Any:
    """A text without half surrogate pairs, which UTF-8 cannot encode."""
    if isinstance(part, Text) and not part.text.isascii():
        text = part.text.encode("utf-8", "replace").decode()
        return part if text == part.text else Text(text, part.extras)
    return part


def cut_middle(text: str, max_bytes: int, max_lines: int, full: str = "") -> str:
    """A text cut in the middle, at lines or code points, with a note of how much was cut and where the whole is."""
    size = len(text.encode("utf-8", "replace"))
    lines = text.splitlines(keepends=True)
    if size <= max_bytes and len(lines) <= max_lines:
        return text
    head = _take(lines, int(max_bytes * HEAD_SHARE), max(int(max_lines * HEAD_SHARE), 1))
    tail = _take(
        lines[::-1], max_bytes - int(max_bytes * HEAD_SHARE), max_lines - max(int(max_lines * HEAD_SHARE), 1)
    )
    kept_head, kept_tail = lines[: len(head)], lines[len(lines) - len(tail) :] if tail else []
    start = "".join(kept_head)
    end = "".join(kept_tail)
    if not kept_head:  # one line longer than all that may be shown
        start = _bytes_cut(text, int(max_bytes * HEAD_SHARE))
    if not kept_tail:
        end = _bytes_cut(text[len(start) :], max_bytes - int(max_bytes * HEAD_SHARE), from_end=True)
    cut_bytes = size - len(start.encode("utf-8", "replace")) - len(end.encode("utf-8", "replace"))
    cut_lines = max(len(lines) - len(kept_head) - len(kept_tail), 0)
    where = f"; the whole is in {full}, which can be read in pages" if full else ""
    note = f"[… {counted(cut_bytes, 'byte')} ({counted(cut_lines, 'line')}) cut here{where} …]"
    separator = "" if not start or start.endswith("\n") else "\n"
    return f"{start}{separator}{note}\n{end}"


def _take(lines: Iterable[str], max_bytes: int, max_lines: int) -> list[str]:
    taken: list[str] = []
    used = 0
    for line in lines:
        used += len(line.encode("utf-8", "replace"))
        if used > max_bytes or len(taken) >= max_lines:
            break
        taken.append(line)
    return taken


def _bytes_cut(text: str, size: int, *, from_end: bool = False) -> str:
    data = text[-size:] if from_end and size else text[:size]
    encoded = data.encode("utf-8", "replace")
    encoded = encoded[len(encoded) - size :] if from_end and len(encoded) > size else encoded[:size]
    return encoded.decode("utf-8", "ignore")


def stem_of(name: str, key: CallKey) -> str:
    """The name of the file for one call's long output: readable, and safe whatever the run is called."""
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in f"{key.run}-{name}")
    return f"{safe[:80]}-{key.turn}-{key.index}"


def _offload(text: str, folder: Path | None, stem: str) -> str:
    """Write a long output to a file of its own; its path, or "" when it cannot be kept."""
    if folder is None:
        return ""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_OFFLOAD:
        note = f"\n[only the first {MAX_OFFLOAD:,} of {len(data):,} bytes were kept]\n".encode()
        data = data[:MAX_OFFLOAD].decode("utf-8", "ignore").encode() + note
    from toolcrib.private_files import write_new_private_file

    path = folder / f"{stem}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _has_room(folder, len(data)):
            return ""
        write_new_private_file(path, data)
    except OSError:
        return ""
    return str(path)


def _has_room(folder: Path, size: int) -> bool:
    """Whether the disk has room for a file, and for those who write after it, such as an audit log."""
    import shutil

    disk = shutil.disk_usage(folder)
    return disk.free - size >= min(ROOM_LEFT, disk.total // 20)
