"""Parameters of plain types: as Pydantic has them, and without loading it."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any, Literal, Optional

from pydantic import Field, TypeAdapter

from toolcrib.compiling.plain_types import plain_type


def test_what_is_known_of_plain_types_is_what_pydantic_says() -> None:
    atoms: list[Any] = [str, int, float, bool, Any]
    nullable: list[Any] = [str | None, int | None, float | None, Optional[bool]]  # noqa: UP045 - written so by users
    words: list[Any] = [Literal["a", "b"], Literal["b", "a"], Literal["a", "b"] | None]
    inner = [*atoms, *nullable, *words]
    known = [*inner, *(list[hint] for hint in inner), *(dict[str, hint] for hint in inner)]
    known += [
        list[dict[str, Any]],
        list[list[int]],
        dict[str, list[str]],
        list[str] | None,
        dict[str, int] | None,
    ]
    wrong = [
        hint
        for hint in known
        if plain_type(hint) != (TypeAdapter(hint).core_schema, TypeAdapter(hint).json_schema())
    ]
    assert wrong == []
    others: list[Any] = [
        bytes, list, dict, None, object, Literal["a"], Literal[1, 2], Literal["a", 1], dict[int, str], int | str,
        str | int | None, tuple[int], Annotated[int, Field(gt=1)], list[bytes], Any | None, None | int,
    ]  # fmt: skip
    assert [hint for hint in others if plain_type(hint) is not None] == []


def test_a_tool_of_plain_types_runs_without_pydantic() -> None:
    script = """
import asyncio, sys
from toolcrib import Effect, Toolbox, tool

@tool(effect=Effect.READ, secrets=())
def repeat(text: str, times: int = 1, among: list[str] | None = None) -> dict[str, int]:
    "Count."
    return {text: times}

result = asyncio.run(Toolbox([repeat]).call("repeat", {"text": "a", "times": 2}))
print(result.text, *sorted({"pydantic", "opentelemetry", "toolcrib.messages", "toolcrib.schema.lower"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == '{"a":2}\n', done
