"""JSON encoders that are made once.

`json.JSONEncoder.encode` makes its C encoder anew at each call, which takes a quarter of the time of a small record.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any

__all__ = ["json_encoder"]


def json_encoder(*, ascii_only: bool, sort_keys: bool, separators: tuple[str, str]) -> Callable[[Any], str]:
    """A function that writes a value as JSON text, and what JSON has no form for as its `str`.

    `separators` stand between items and behind keys. RecursionError is raised for a value that contains itself.
    """
    made = json.JSONEncoder(ensure_ascii=ascii_only, sort_keys=sort_keys, separators=separators, default=str)
    string = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    in_c: Any = getattr(json.encoder, "c_make_encoder", None)
    try:
        encode = in_c(None, str, string, None, separators[1], separators[0], sort_keys, False, True)
    except TypeError:  # it is no documented function: other interpreters have none, or take other arguments
        return made.encode
    return lambda value: "".join(encode(value, 0))
