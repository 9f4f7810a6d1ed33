"""One approval, a remembered answer of "always": which calls it covers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any

from toolcrib.access import Access, Reach
from toolcrib.credentials import arguments_on_one_line
from toolcrib.dataclass import dataclass, replace
from toolcrib.effect import Effect
from toolcrib.fingerprint import fingerprint
from toolcrib.json_text.values import same_json
from toolcrib.prepared import Ready
from toolcrib.question import Lasting, Question, Scope

__all__ = [
    "Approval",
    "approval_mark",
    "as_shown",
    "commands_begin_with",
    "folders_of",
    "may_go_by_folder",
    "prefixes_of",
    "what_was_approved",
    "with_targets",
]


@dataclass(frozen=True, slots=True)
class Approval:
    """One remembered answer. `where` is the run or the project's path; "" if it holds for a user everywhere.

    `identity` is the tool's: a tool whose description or schema changed is another tool. `at` and `expires`
    are seconds since the epoch.
    """

    id: str
    tool: str
    identity: str
    scope: Scope
    lasting: Lasting
    where: str = ""
    fingerprint: str = ""
    prefixes: tuple[tuple[str, ...], ...] = ()
    by: str = ""
    at: float = 0.0
    expires: float | None = None
    shown: str = ""
    patterns: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def covers(self, identity: str, mark: str, accesses: Iterable[Access] | None) -> bool:
        """Whether the answer covers a call with this fingerprint (`mark`) and these accesses."""
        if self.identity != identity:
            return False
        if self.scope is Scope.TOOL:
            return True
        if self.scope is Scope.PREFIX:
            return commands_begin_with(self.prefixes, accesses)
        if self.scope is Scope.FOLDER:
            return files_lie_below(self.folders, accesses)
        return self.fingerprint == mark


def prefixes_of(accesses: Iterable[Access] | None) -> tuple[tuple[str, ...], ...]:
    """The prefixes of a call's commands that an approval would remember; empty where one of them has no prefix."""
    commands = _commands_to_approve(accesses)
    prefixes = tuple(dict.fromkeys(access.prefix for access in commands))
    return prefixes if commands and all(prefixes) else ()


def commands_begin_with(prefixes: Iterable[tuple[str, ...]], accesses: Iterable[Access] | None) -> bool:
    """Whether every command of a call that needs approval has known words and begins with an approved prefix."""
    commands = _commands_to_approve(accesses)
    known = tuple(prefixes)
    return bool(commands) and all(
        access.argv and access.prefix and any(access.argv[: len(prefix)] == prefix for prefix in known)
        for access in commands
    )


def folders_of(ready: Ready) -> tuple[str, ...]:
    """The folders that an approval by folder would remember of a call; empty where it writes no file below one.

    Only files of the workspace count, never the workspace itself, and no hidden files or folders: other programs obey
    what stands in many of those.
    """
    if not may_go_by_folder(ready):
        return ()
    listed = tuple(ready.accesses or ())
    folders = tuple(dict.fromkeys(posixpath.dirname(access.target) for access in _not_free(listed)))
    return folders if files_lie_below(folders, listed) else ()


def files_lie_below(folders: Iterable[str], accesses: Iterable[Access] | None) -> bool:
    """Whether a call reads and writes files below approved folders of the workspace, and reaches nothing else."""
    listed = tuple(accesses or ())
    files, known = _not_free(listed), tuple(folders)
    return (
        any(access.reach is Reach.WRITE for access in files)
        and not any(access.real for access in listed)
        and all(_is_plain_file(access) and _lies_below(access.target, known) for access in files)
    )


def may_go_by_folder(ready: Ready) -> bool:
    """Whether an approval for a folder may cover this call: it covers no destructive call, and none that must ask."""
    return ready.effect <= Effect.WRITE and not ready.must_ask


def _not_free(accesses: Iterable[Access]) -> list[Access]:
    return [access for access in accesses if not access.free]


def _is_plain_file(access: Access) -> bool:
    hidden = any(part.startswith(".") for part in access.target.split("/"))
    return access.reach in (Reach.READ, Reach.WRITE) and not (access.subtree or access.secret or hidden)


def _lies_below(path: str, folders: tuple[str, ...]) -> bool:
    return not path.startswith("/") and any(folder and path.startswith(f"{folder}/") for folder in folders)


def approval_mark(ready: Ready) -> str:
    """The fingerprint that an approval of exactly these arguments is remembered by.

    Arguments that have their default count as left out, and those that the tool lists in `approval_ignores` do not
    count: the same command with another timeout is the same command.
    """
    definition, arguments = ready.tool.definition, ready.arguments
    if not isinstance(arguments, dict):
        return ready.fingerprint
    ignored, declared = definition.facts.approval_ignores, definition.params.schema.get("properties", {})
    given = {name: value for name, value in arguments.items() if not _is_default(declared.get(name), value)}
    if len(given) < len(arguments) and not _means_the_same(ready, given):
        given = arguments
    counted = {name: value for name, value in given.items() if name not in ignored}
    if len(counted) == len(arguments) and ready.fingerprint:
        return ready.fingerprint
    return fingerprint(definition.identity, with_targets(ready.accesses, counted))


def _is_default(schema: Any, value: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema and same_json(schema["default"], value)


def _means_the_same(ready: Ready, given: dict[str, Any]) -> bool:
    """Whether the tool gets the same params if arguments that equal their defaults are left out.

    False for a foreign schema: what its tool does without an argument is unknown. A function fills in its defaults.
    """
    from pydantic_core import to_json

    from toolcrib.compiling.schema_params import SchemaParams

    params = ready.tool.definition.params
    if isinstance(params, SchemaParams):
        return False
    try:
        return isinstance(ready.params, dict) or bool(params.parse(to_json(given)) == ready.params)
    except Exception:
        return False


def with_targets(accesses: Iterable[Access] | None, arguments: Any) -> Any:
    """Arguments with the files that links lead to and the code that commands run: an answer holds for these alone."""
    leads = [access.code or access.target for access in accesses or () if access.real or access.code]
    return [*leads, arguments] if leads else arguments


def _commands_to_approve(accesses: Iterable[Access] | None) -> list[Access]:
    return [access for access in accesses or () if access.reach is Reach.RUN and not access.free]


def as_shown(fresh: Question, shown: Question) -> Question:
    """The question about a person's own arguments. An "always" covers no command and no folder that was not shown."""
    return replace(
        fresh,
        prefixes=fresh.prefixes if set(fresh.prefixes) <= set(shown.prefixes) else (),
        folders=fresh.folders if set(fresh.folders) <= set(shown.folders) else (),
    )


def what_was_approved(question: Question, scope: Scope) -> str:
    """What was approved, as a list of approvals shows it."""
    if scope is Scope.TOOL:
        return f"every call of {question.tool}"
    if scope is Scope.PREFIX:
        return ", ".join(" ".join(prefix) + " *" for prefix in question.prefixes)
    if scope is Scope.FOLDER:
        return ", ".join(f"{folder}/**" for folder in question.folders)
    return (
        arguments_on_one_line(question.arguments)
        if question.arguments or not question.patterns
        else question.action
    )
