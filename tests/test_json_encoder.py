"""Encoders that are made once write what the standard library writes."""

from __future__ import annotations

import json
import json.encoder
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib.json_text.encoder import json_encoder

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.booleans(), st.sampled_from([(",", ":"), (", ", ": ")]))
@examples(200)
def test_it_writes_what_dumps_writes(
    value: Any, ascii_only: bool, sort_keys: bool, separators: tuple[str, str]
) -> None:
    encode = json_encoder(ascii_only=ascii_only, sort_keys=sort_keys, separators=separators)
    assert encode(value) == json.dumps(
        value, ensure_ascii=ascii_only, sort_keys=sort_keys, separators=separators, default=str
    )


def test_it_needs_no_encoder_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    encode = json_encoder(ascii_only=True, sort_keys=True, separators=(",", ":"))
    assert encode({"b": date(2026, 1, 2), "a": "ü"}) == '{"a":"\\u00fc","b":"2026-01-02"}'


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(RecursionError):
        json_encoder(ascii_only=True, sort_keys=True, separators=(",", ":"))(value)
