"""The parameters of `grep`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
MAX_CONTEXT = 20


class LinesAround(BaseModel):
    """The matching lines, with lines around each."""

    before: int = Field(0, ge=0, le=MAX_CONTEXT, description="Lines to show before each matching line.")
    after: int = Field(0, ge=0, le=MAX_CONTEXT, description="Lines to show after each matching line.")


class GrepParams(BaseModel):
    pattern: str = Field(
        description="Regular expression in Python's syntax, compared with each line. In front of . * + ? ( ) [ ] { } "
        "| ^ $ write a backslash to look for the character itself."
    )
    path: str = Field(".", description="File or folder to search, relative to the workspace.")
    include: str | None = Field(
        None, description='Only files that fit this pattern, such as "*.py", "*.{ts,tsx}" or "src/**/*.c".'
    )
    type: str | None = Field(
        None, description='Only files of this type, such as "py", "js", "ts", "go", "rust", "java" or "md".'
    )
    output: Literal["content", "files", "count"] | LinesAround = Field(
        "content",
        description="What to give: the matching lines with their numbers, the files that have any, or how "
        'many lines match in each file. {"before": 2, "after": 5} gives the matching lines with lines around them.',
    )
    ignore_case: bool = Field(False, description="Take upper and lower case as equal.")
    multiline: bool = Field(
        False,
        description="Compare the pattern with the whole text, so that it may span lines; . is any character.",
    )
    offset: int = Field(1, ge=1, description="Matching line or file to begin at, counted from 1.")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many lines or files at most.")
    include_ignored: bool = Field(
        False, description="Also search what .gitignore names, and .git, node_modules, .venv and such."
    )
