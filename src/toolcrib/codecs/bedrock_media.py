"""Media (images, documents, audio, video) as blocks of Bedrock Converse."""

from __future__ import annotations

import re
from typing import Any

from toolcrib.content import Image, Media

# Media type to the kind of block and its `format`:
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
FORMATS = {
    "image/png": ("image", "png"),
    "image/jpeg": ("image", "jpeg"),
    "image/jpg": ("image", "jpeg"),
    "image/gif": ("image", "gif"),
    "image/webp": ("image", "webp"),
    "application/pdf": ("document", "pdf"),
    "text/csv": ("document", "csv"),
    "text/html": ("document", "html"),
    "text/markdown": ("document", "md"),
    "application/json": ("document", "txt"),
    "application/xml": ("document", "txt"),
    "application/msword": ("document", "doc"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ("document", "docx"),
    "application/vnd.ms-excel": ("document", "xls"),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ("document", "xlsx"),
    "audio/mpeg": ("audio", "mp3"),
    "audio/mp3": ("audio", "mp3"),
    "audio/wav": ("audio", "wav"),
    "audio/x-wav": ("audio", "wav"),
    "audio/ogg": ("audio", "ogg"),
    "audio/opus": ("audio", "opus"),
    "audio/flac": ("audio", "flac"),
    "audio/aac": ("audio", "aac"),
    "audio/mp4": ("audio", "m4a"),
    "audio/webm": ("audio", "webm"),
    "video/mp4": ("video", "mp4"),
    "video/webm": ("video", "webm"),
    "video/quicktime": ("video", "mov"),
    "video/x-matroska": ("video", "mkv"),
    "video/mpeg": ("video", "mpeg"),
    "video/3gpp": ("video", "three_gp"),
}
BY_ENDING = {format: (kind, format) for kind, format in FORMATS.values() if kind == "document"}
ENDING = re.compile(r"\.([A-Za-z0-9]{1,8})$")
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9()\[\]-]+")
LONGEST_NAME = 190  # of 200: a number may follow
NO_NAME = "document"


class Documents:
    """Unique legal names for the documents of one request, without file extensions.

    The service takes letters, digits, single spaces, hyphens, parentheses and brackets only, and refuses a
    repeated name.
    """

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def name(self, given: str) -> str:
        stem = ENDING.sub("", re.split(r"[/\\]", given)[-1])
        name = NOT_IN_A_NAME.sub(" ", stem).strip()[:LONGEST_NAME].strip() or NO_NAME
        while True:
            count = self._count[name] = self._count.get(name, 0) + 1
            if count == 1:
                return name
            name = f"{name} ({count})"


def media_block(part: Media, documents: Documents, own: dict[str, Any]) -> dict[str, Any] | None:
    """The media block; None where the format can carry only the label."""
    found = _format(part)
    if found is None:
        return None
    if part.data:
        source: dict[str, Any] = {"bytes": part.data}
    elif part.url.startswith("s3://"):
        source = {"s3Location": {"uri": part.url}}
    else:
        return None
    kind, format = found
    block = {"format": format, "source": source}
    if kind == "document":
        block = {"format": format, "name": documents.name(part.name), "source": source}
    return {kind: {**block, **{name: value for name, value in own.items() if name != "cachePoint"}}}


def _format(part: Media) -> tuple[str, str] | None:
    media_type = part.media_type.partition(";")[0].strip().lower()
    if media_type in FORMATS:
        return FORMATS[media_type]
    if media_type.startswith("text/"):
        return ("document", "txt")
    ending = ENDING.search(part.name or part.url)
    if media_type or ending is None or isinstance(part, Image):
        return None
    return BY_ENDING.get(ending.group(1).lower())
