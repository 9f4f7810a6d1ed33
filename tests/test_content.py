"""Content parts: frozen, and pictures and documents as people hand them over, with their type or without."""

from __future__ import annotations

import copy
import dataclasses
import json
import operator
import pickle
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from toolcrib import ToolCall
from toolcrib.content import Audio, File, Image, Json, Text, part_from_dict, part_to_dict
from toolcrib.messages import Message, Reasoning, messages_from_json, messages_to_json

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
DATA = b64encode(PNG).decode()
WHOLE = Image(data=DATA, media_type="image/png")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (Image.of(PNG), WHOLE),
        (Image(DATA), WHOLE),
        (Image.of(PNG, "image/png"), WHOLE),
        (Image(DATA, "image/png"), WHOLE),
        (Image(f"data:image/png;base64,{DATA}"), WHOLE),
        (Image(url=f"data:image/png;charset=x;base64,{DATA}"), WHOLE),
        (Image.of(b"\xff\xd8\xff\xe0").media_type, "image/jpeg"),
        (Image.of(b"GIF87a...").media_type, "image/gif"),
        (Image.of(b"RIFF\x07\xff\0\x01WEBPVP8 ").media_type, "image/webp"),
        (Audio.of(b"RIFF\x07\xff\0\x01WAVEfmt ").media_type, ""),
        (File.of(b"%PDF-1.7").media_type, "application/pdf"),
        (Image(DATA, media_type="image/x-mine").media_type, "image/x-mine"),
        (Image(DATA, "https://example.org/a/b").url, "https://example.org/a/b"),
        (Image(url="https://example.org/plan.png"), Image("", "https://example.org/plan.png", "")),
        (Image(url="data:,not base64").url, "data:,not base64"),
    ],
)
def test_what_was_meant(given: object, meant: object) -> None:
    assert given == meant


@given(
    st.sampled_from([Image, Audio, File]),
    st.text()
    | st.binary()
    | st.sampled_from(["data:", "data:;base64,", "UklGR", "data:a;base64,data:b;base64,c"]),
    st.text() | st.sampled_from(["image/png", "data:x;base64,", "https://x/y"]),
)
def test_whatever_is_handed_over_can_be_saved(cls: type[Image | Audio | File], data: str, url: str) -> None:
    part = cls(data, url)
    assert part_from_dict(part_to_dict(part)) == part


@dataclasses.dataclass(frozen=True)
class _Marked(ToolCall):
    mark: str = ""


class _Note(Text):
    """A subclass with a `__dict__`, unlike its base."""


def test_values_that_are_made_for_each_call_are_frozen_dataclasses_like_any() -> None:
    for value, field in ((ToolCall("add", "{}", id="1"), "name"), (Text("a"), "text")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, "b")
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(value, field)
        for made in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), dataclasses.replace(value)):
            assert (made, type(made), repr(made)) == (value, type(value), repr(value))
        assert value.extras == {} and not hasattr(value, "__dict__")
    assert _Marked("add", mark="x") == _Marked("add", "", "", {}, "", "x")
    assert _Note("a").text == "a" and _Note(text="b", extras={"x": 1}).extras == {"x": 1}
    with pytest.raises(TypeError):
        ToolCall()  # type: ignore[call-arg]


EXTRAS_GIVEN_LATE: dict[str, Callable[[Any], object]] = {
    "set": lambda extras: operator.setitem(extras, "openai", {}),
    "update": lambda extras: extras.update(openai={}),
    "setdefault": lambda extras: extras.setdefault("openai", {}),
    "|=": lambda extras: operator.ior(extras, {"openai": {}}),
    "pop": lambda extras: extras.pop("openai", None),
    "clear": lambda extras: extras.clear(),
}


@each("value", [Text("a"), Json(1), Image("a"), ToolCall("add"), Reasoning("a"), Message.user("a")], ids=repr)
def test_extras_that_were_not_given_cannot_be_filled_later(value: Any) -> None:
    for change in EXTRAS_GIVEN_LATE.values():
        with pytest.raises(TypeError, match="replace"):
            change(value.extras)
    with_extras = dataclasses.replace(value, extras={"openai": {"x": 1}})
    assert (value.extras, with_extras.extras) == ({}, {"openai": {"x": 1}})


def test_extras_that_were_not_given_are_a_dict_like_any() -> None:
    value = Text("a")
    assert value == Text("a", {}) and Text("a", {}) == value
    assert value.extras is copy.deepcopy(value).extras is pickle.loads(pickle.dumps(value)).extras
    assert isinstance(value.extras, dict) and json.dumps(value.extras) == repr(value.extras) == "{}"
    copies: list[Any] = [
        value.extras.copy(),
        value.extras | {},
        {**value.extras},
        dataclasses.asdict(value)["extras"],
    ]
    for number, own in enumerate(copies):
        own["openai"] = number
    assert [own["openai"] for own in copies] == [0, 1, 2, 3] and value.extras == {}
    saved = messages_to_json([Message.assistant(Reasoning("a"), ToolCall("add"))])
    saved["messages"][0]["parts"][0]["extras"]["openai"] = {}
    assert messages_from_json(saved)[0].parts[0].extras == {"openai": {}}
