"""Recorded pages of another agent's fetch tool, served on loopback."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import load_cases

pytest.importorskip("httpx2")

from tests.test_tools_fetch import PAGES, PIXEL, World, port
from toolcrib.content import Image, Text

__all__ = ["port"]


@pytest.mark.parametrize("case", load_cases("cases/opencode/webfetch.json"), ids=lambda case: case["name"])
async def test_a_recorded_page(case: dict[str, Any], port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given, wanted = case["input"], case["expected"]
    # Their picture is the words "png bytes". Ours must be one: a model's provider refuses what is none.
    body = PIXEL if given["content_type"].startswith("image/") else given["body"].encode()
    monkeypatch.setitem(PAGES, "/recorded", (given.get("status", 200), given["content_type"], body))
    result = await World(port).get("/recorded", format=given["format"])
    assert [part.text for part in result.parts if isinstance(part, Text)] == [wanted["output"]]
    pictures = [part for part in result.parts if isinstance(part, Image)]
    assert [picture.media_type for picture in pictures] == (
        [wanted["attachment_mime"]] if wanted.get("attachment_mime") else []
    )
