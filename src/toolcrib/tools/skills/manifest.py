"""A skill: a folder with a SKILL.md, which says in its front matter what it is for.

The format is that of agentskills.io: YAML between two lines of `---`, with `name` and `description`; then Markdown.
"""

from __future__ import annotations

import re

from toolcrib.dataclass import dataclass

__all__ = ["SkillError", "SkillText", "read_manifest"]

MAX_FRONT = 16_000  # characters of the front matter
MAX_DESCRIPTION = 1_024
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME = 64
FENCE = "---"


class SkillError(ValueError):
    """A SKILL.md that cannot be used. The message says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class SkillText:
    """What a SKILL.md says."""

    name: str
    description: str
    body: str


def read_manifest(text: str) -> SkillText:
    """The parts of a SKILL.md. Raises SkillError.

    >>> read_manifest("---\\nname: greet\\ndescription: Say hello.\\n---\\nWave first.").body
    'Wave first.'
    """
    import yaml

    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].strip() != FENCE:
        raise SkillError("the first line must be ---, before the front matter")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise SkillError("the front matter has no end: a second line of --- is missing")
    front = "".join(lines[1:end])
    if len(front) > MAX_FRONT:
        raise SkillError(f"the front matter is longer than {MAX_FRONT:,} characters")
    try:
        # An alias stands for a value that may hold further ones: some lines could become more than memory holds.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(front)):
            raise SkillError("the front matter must have no aliases (*name)")
        fields = yaml.safe_load(front)
    except SkillError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark is not None else ""
        raise SkillError(f"the front matter is no YAML{where}") from problem
    if not isinstance(fields, dict):
        raise SkillError("the front matter must have the lines name: and description:")
    name, description = _text(fields, "name"), _text(fields, "description")
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise SkillError(
            f"name must be small letters, digits and single hyphens, {MAX_NAME} at most, got {name[:80]!r}"
        )
    if len(description) > MAX_DESCRIPTION:
        raise SkillError(f"description is longer than {MAX_DESCRIPTION:,} characters")
    return SkillText(name, description, "".join(lines[end + 1 :]).strip())


def _text(fields: dict[object, object], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        came = "nothing" if value is None or value == "" else repr(value)[:60]
        raise SkillError(f"{key} must be a text, got {came}")
    return " ".join(value.split())
