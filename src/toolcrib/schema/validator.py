"""A validator of a raw JSON Schema that never opens a file or a connection, and ends in bounded time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.schema.checks import Checks

__all__ = ["OfflineValidator", "TooManyChecks", "offline_validator", "why_unusable"]

MOST = 100_000  # applications of a schema or a part of it to a value or a part of it, in one validation
MOST_EXPLAINED = 10_000  # of which each failure is described, which takes a thousand times as long


class TooManyChecks(ValueError):
    """A schema applies to a value so often that it is not checked."""

    def __init__(self) -> None:
        super().__init__("it is not checked, because the schema has too many ways to apply to it")


class OfflineValidator:
    """Validates JSON data. Made by `offline_validator`. Raises ValueError for a number that it cannot hold."""

    __slots__ = ("_checks", "_validator")

    def __init__(self, validator: Any, checks: Checks) -> None:
        self._validator = validator
        self._checks = checks

    def is_valid(self, value: Any) -> bool:
        """Whether a value fits the schema. Raises TooManyChecks."""
        if not self._checks.is_quick and self._checks.more_than(MOST, value):
            raise TooManyChecks
        return bool(self._validator.is_valid(value))

    def iter_errors(self, value: Any) -> Any:
        """Why a value does not fit the schema: the errors of jsonschema-rs. Raises TooManyChecks."""
        if self._checks.more_than(MOST_EXPLAINED, value):
            raise TooManyChecks
        return self._validator.iter_errors(value)


def offline_validator(schema: Mapping[str, Any], *, formats: bool | None = None) -> OfflineValidator:
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
    validator = jsonschema_rs.validator_for(own, retriever=_refuse, validate_formats=formats)
    return OfflineValidator(validator, Checks(own))


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} lies outside of the schema and is never fetched")


def why_unusable(problem: Exception) -> str:
    """What is wrong with a schema, and where in it. `problem` was raised when its validator was made."""
    place = ".".join(map(str, getattr(problem, "instance_path", ())))
    return f"{place and place + ': '}{getattr(problem, 'message', problem)}"
