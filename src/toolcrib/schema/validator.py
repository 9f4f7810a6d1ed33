"""A validator of a raw JSON Schema that never opens a file or a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["offline_validator", "why_unusable"]


def offline_validator(schema: Mapping[str, Any], *, formats: bool | None = None) -> Any:
    """The validator of a schema. A reference that leaves the schema is an error; it is never fetched.

    A foreign schema may name an address of the network or a file of this machine. `formats` says whether a `format` is
    a constraint; without it, its draft decides.
    """
    import jsonschema_rs

    own = dict(schema)
    if "$schema" in own:
        try:
            jsonschema_rs.validator_for({"$schema": own["$schema"]}, retriever=_refuse)
        except Exception:  # a meta-schema that only its author knows
            del own["$schema"]
    return jsonschema_rs.validator_for(own, retriever=_refuse, validate_formats=formats)


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} lies outside of the schema and is never fetched")


def why_unusable(problem: Exception) -> str:
    """What is wrong with a schema, and where in it. `problem` was raised when its validator was made."""
    place = ".".join(map(str, getattr(problem, "instance_path", ())))
    return f"{place and place + ': '}{getattr(problem, 'message', problem)}"
