"""Judges the commands of a plan one by one, each in the folders that it may run in."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from toolcrib.command.judge import paths, variables
from toolcrib.command.judge.git_filters import COMPARES, NotUnderstood, filter_of, git_folder
from toolcrib.command.judge.git_reads import git_reads_elsewhere
from toolcrib.command.judge.links import Links
from toolcrib.command.judge.paths import Operand
from toolcrib.command.judge.recognise import DOES, Recognised, TouchedPath, recognise, says_which_files
from toolcrib.command.not_proved import NotProved, UnknownProgram
from toolcrib.command.plan import (
    Command,
    Compound,
    Pipeline,
    Plan,
    Redirect,
    Stage,
    Subshell,
    Word,
    show_word,
)
from toolcrib.command.programs.options import Access, Effect, worst
from toolcrib.command.programs.xargs import xargs_form
from toolcrib.command.sandbox.files.paths import within
from toolcrib.dataclass import dataclass

MAX_FOLDERS = 8  # folders that a command might run in, after several cd
STDIN = "/dev/stdin"
STORED_TOO = {"git diff", "git log", "git show", "git whatchanged", "git stash show"}
Folders = tuple[str, ...]  # the first is where it runs if every cd before it worked


@dataclass(frozen=True, slots=True)
class JudgedCommand:
    """One command of a plan: why it asks (empty if it does not), what it does and touches. `name` is its row of
    the tables (`git log`), empty if it has none. `grantable`: it asks only because of its program, so that a yes may
    be remembered; a path, an option or a variable in doubt is asked about each time."""

    program: str
    argv: tuple[str, ...]
    reason: str
    effect: Effect = "exec"
    operands: tuple[Operand, ...] = ()
    proved: bool = False
    name: str = ""
    grantable: bool = False


class PlanJudge:
    """Collects the judged commands of a plan. `workspace` is the absolute path of the workspace, if it is known."""

    __slots__ = ("leads", "links", "parts", "run_by_us", "shows", "workspace")

    def __init__(
        self, workspace: str | None = None, links: Links | None = None, *, run_by_us: bool = True
    ) -> None:
        self.run_by_us = run_by_us  # in a shell, xargs would pass names on unchecked
        self.parts: list[JudgedCommand] = []
        self.workspace = workspace
        self.links = links
        self.leads: list[str] = []  # targets of the links because of which a command asks
        self.shows: list[str] = []  # folders below which a command shows what stands in files

    def plan(self, plan: Plan, folders: Folders) -> None:
        """Judges all commands, beginning in one of these folders. After a cd that may have failed, both count."""
        before: Folders = ()
        for step in plan.steps:
            if step.join != "&&":
                folders, before = tuple(dict.fromkeys(folders + before)), ()
            after = self.pipeline(step.pipeline, folders)
            if after is not None:
                before += folders
                folders = after

    def pipeline(self, pipeline: Pipeline, folders: Folders) -> Folders | None:
        """Judges the commands of a pipeline. Returns the folders after it, if it is a cd."""
        for at, stage in enumerate(pipeline.stages):
            if not isinstance(stage, Command):
                self.redirects_of_group(stage, folders)
                for inner_plan in stage.plans:
                    self.plan(inner_plan, folders)
                if isinstance(stage, Compound) and stage.over is not None:
                    self.substitutions(stage.over, folders)
                continue
            self.parts.append(self.command(stage, folders, pipeline.stages[:at]))
            for word in stage.words:
                self.substitutions(word, folders)
        only = pipeline.stages[0]
        if len(pipeline.stages) == 1 and isinstance(only, Command) and only.words[0].literal == "cd":
            return self._after_cd(only, folders)
        return None

    def substitutions(self, word: Word, folders: Folders) -> None:
        """Judges what stands in `$( … )`; a variable holds what has been judged where it was set."""
        for inner in word.substitutions:
            if not inner.variable:
                self.plan(inner.plan, folders)

    def redirects_of_group(self, group: Subshell | Compound, folders: Folders) -> None:
        if not group.redirects:
            return
        effect, reasons, operands = self._redirects(group.redirects, folders)
        if operands:
            self.parts.append(JudgedCommand("", (), reasons[0] if reasons else "", effect, operands, True))

    def command(self, command: Command, folders: Folders, before: Sequence[Stage]) -> JudgedCommand:
        argv = tuple(
            word.literal if word.literal is not None else show_word(word.as_pattern) for word in command.words
        )
        effect, reasons, touched = self._redirects(command.redirects, folders)
        if len(folders) > MAX_FOLDERS:
            return JudgedCommand(argv[0], argv, "changes its folder too often")
        env = dict(command.env)
        set_up = variables.objection(env)
        if set_up is not None and not variables.may_reach_own_code(env):
            return JudgedCommand(argv[0], argv, set_up, "exec", touched)
        try:
            known = recognise(with_pipes_named(command.words), command, before)
            if not self.run_by_us and xargs_form([word.literal for word in command.words]) is not None:
                raise NotProved("xargs: a shell would hand on names that nobody looked at")
        except UnknownProgram as unknown:
            if set_up is not None:
                return JudgedCommand(argv[0], argv, set_up, "exec", touched)
            inside = not reasons and not any(map(paths.may_leave, argv[1:]))
            return JudgedCommand(argv[0], argv, unknown.reason, "exec", touched, grantable=inside)
        except NotProved as stopped:
            return JudgedCommand(argv[0], argv, set_up or stopped.reason, "exec", touched)
        if set_up is not None and not (known.usage.effect == "exec" and known.usage.runs_unasked):
            return JudgedCommand(argv[0], argv, set_up, "exec", touched)
        operands, troubles = self._placed(known, folders)
        reasons = [*troubles, *reasons]
        if self.links is not None and known.name.startswith("git "):
            elsewhere = (
                git_reads_elsewhere(at, self.links.root) for at in _run_in(self.links, known, folders)
            )
            reasons += [f"{known.name} reads {found}" for found in elsewhere if found]
        if known.name == "cd" and not self._after_cd(command, folders):
            reasons.append("cd to a folder that may be outside the workspace")
        grantable = not reasons
        if known.usage.effect != "read" and any(word.piped for word in command.words):
            reasons.append(f"{known.name}: a process substitution for a program that does more than read")
        if not known.usage.runs_unasked:
            reasons.append(f"{known.name} {DOES[known.usage.effect]}")
        strongest = worst((effect, known.usage.effect))
        if self.links is not None and (filtered := self._filter(self.links, known, folders)):
            strongest = "exec"
            if not self.links.runs_code:
                reasons.append(
                    f"{known.name} may run a filter that the repository's settings name ({filtered})"
                )
        program = argv[0].rpartition("/")[2]
        reason = reasons[0] if reasons else ""
        return JudgedCommand(
            program,
            argv,
            reason,
            strongest,
            operands=(*operands, *touched),
            proved=True,
            name=known.name,
            grantable=grantable,
        )

    def _filter(self, links: Links, known: Recognised, folders: Folders) -> str:
        """The filter that a command of git may run in one of the folders that it may run in."""
        if known.name not in COMPARES:
            return ""
        return next(filter(None, map(filter_of, _run_in(links, known, folders))), "")

    def _redirects(
        self, redirects: Iterable[Redirect], folders: Folders
    ) -> tuple[Effect, list[str], tuple[Operand, ...]]:
        effect: Effect = "read"
        reasons: list[str] = []
        operands: list[Operand] = []
        for redirect in redirects:
            if redirect.kind not in ("read", "write", "append") or not isinstance(redirect.target, Word):
                continue
            target, is_pattern = redirect.target.spelled, redirect.target.is_glob
            access: Access = "read" if redirect.kind == "read" else "write"
            if is_pattern and not says_which_files(target):
                reasons.append("a pattern that can match any name")
            for folder in sorted(folders):
                path = self._place(folder, target, is_pattern=is_pattern)
                operands.append(Operand(path, access, "pattern" if is_pattern else "file"))
                if (wrong := paths.objection(path, pattern=is_pattern)) is not None:
                    reasons.append(wrong)
            if access == "write":
                effect = "write"
                reasons.append(f"writes {target}")
        return effect, reasons, tuple(operands)

    def _placed(self, known: Recognised, folders: Folders) -> tuple[tuple[Operand, ...], list[str]]:
        operands: list[Operand] = []
        reasons: list[str] = []
        stored = known.name in STORED_TOO and not self._compares_files(known, folders)
        for folder in sorted(folders):
            for one in known.operands:
                place = self._place(folder, one.path, is_pattern=one.reach == "pattern")
                operand, contents = Operand(place, one.access, one.reach), one.contents
                if one.in_tree and self.links is not None:
                    at = posixpath.join(self.links.folder, paths.join(folder, known.folder))
                    operands += _in_repository(one, at, self.links)
                if one.guessed and (self.links is None or not self.links.exists(place)):
                    continue
                operands += [] if one.guessed else [operand]
                # git shows what it has stored; with a file hidden it would show that as deleted.
                searches = one.reach == "subtree" and contents and one.access == "read" and not one.listed
                if searches and not stored:
                    self.shows.append("." if one.follows else place)
                if one.access == "read" and place in paths.FACTS:
                    continue
                wrong = paths.objection(place, contents=contents, pattern=one.reach == "pattern")
                if wrong is not None:
                    reasons.append(wrong)
                elif self.links is not None and one.opens:
                    is_pattern = any(sign in place for sign in "*?[")
                    for leads, wrong in self.links.objections(
                        place, contents=contents, pattern=is_pattern, below=one.follows
                    ):
                        self.leads.append(leads)
                        reasons.append(wrong)
        return tuple(dict.fromkeys(operands)), reasons

    def _place(self, folder: str, path: str, *, is_pattern: bool) -> str:
        """A path of a command that runs in a folder, relative to the workspace.

        `..` is taken for the folder above where we run the plan, because our cd follows no link. Not so in a pattern: a
        name with `..` that it becomes is refused when the plan runs.
        """
        while (
            self.run_by_us and not is_pattern and folder != "." and (path == ".." or path.startswith("../"))
        ):
            folder, path = posixpath.dirname(folder) or ".", path[3:]
        return paths.relative(paths.join(folder, path), self.workspace)

    def _after_cd(self, command: Command, folders: Folders) -> Folders | None:
        """Where `cd DIR` or `cd -- DIR` leads from each folder, or None."""
        words = [word.literal for word in command.words[1:]]
        if words[:1] == ["--"]:
            words = words[1:]
        if len(words) != 1 or words[0] is None or words[0].startswith("-"):
            return None
        path = paths.relative(words[0], self.workspace)
        starts = (".",) if path != words[0] else folders
        after = [paths.changed_folder(folder, path) for folder in starts]
        if after[0] is None:
            return None
        # Where an earlier cd failed, this one may lead out of the workspace. A plan's host then makes it fail, too.
        return tuple(dict.fromkeys(folder for folder in after if folder is not None))

    def _compares_files(self, known: Recognised, folders: Folders) -> bool:
        """Whether `git diff` compares files and not versions: outside of a repository, and for a path outside of it."""
        if known.name != "git diff" or self.links is None:
            return False
        for folder in folders:
            at = posixpath.join(self.links.folder, folder)
            try:
                found = git_folder(posixpath.join(at, known.folder))
            except (NotUnderstood, OSError, ValueError):
                continue  # `git_reads_elsewhere` reports it
            if found is None or not all(
                within(posixpath.normpath(posixpath.join(at, one.path)), found[0]) for one in known.operands
            ):
                return True
        return False


def with_pipes_named(words: Iterable[Word]) -> list[Word]:
    """The words, with `/dev/stdin` in the place of each `<( … )`: to the program it is a pipe that it reads."""
    return [word if word.piped is None else Word((STDIN,)) for word in words]


def _in_repository(one: TouchedPath, at: str, links: Links) -> Iterator[Operand]:
    """A path that git looks for from the top of the repository of the folder `at`, if that lies in the workspace."""
    try:
        found = git_folder(at)
    except (NotUnderstood, OSError, ValueError):
        return  # `git_reads_elsewhere` reports it
    if found is not None:
        place = paths.relative(posixpath.normpath(posixpath.join(found[0], one.in_tree)), links.root)
        if not place.startswith("/"):
            yield Operand(place, one.access, one.reach)


def _run_in(links: Links, known: Recognised, folders: Folders) -> Iterator[str]:
    """The folders that git may work in."""
    return (posixpath.join(links.folder, paths.join(folder, known.folder)) for folder in sorted(folders))
