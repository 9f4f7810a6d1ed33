"""The common part of all back ends that confine commands on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar, TypedDict

from toolcrib.command.sandbox.files.changed_executed_files import watch_executed_files
from toolcrib.command.sandbox.files.executed_files import PROTECTED
from toolcrib.command.sandbox.files.file_view import FileView, file_view_of
from toolcrib.command.sandbox.files.folder_walk import FolderListings
from toolcrib.command.sandbox.files.git_repositories import GitRepositories
from toolcrib.command.sandbox.files.own_files import own_program_in
from toolcrib.command.sandbox.files.running_records import records_of
from toolcrib.command.sandbox.interface import Denial, Launch, SandboxReport
from toolcrib.command.sandbox.lease import ScratchFolder
from toolcrib.command.sandbox.level import Files, Level, Limits, Network, SandboxError
from toolcrib.command.sandbox.packages import variables
from toolcrib.errors import as_tuple

if TYPE_CHECKING:
    from typing import Self, Unpack

    from toolcrib.command.sandbox.egress import Resolver

DESCRIPTORS = 16  # file descriptors that a launch and its process may need at one time
CHECKING = threading.Lock()  # held so that parallel launches do not take each other's descriptors


class BackendOptions(TypedDict, total=False):
    """Options of every back end.

    `readable` are folders outside the workspace that are otherwise hidden and that commands may read. `protected`
    replaces the table of protected files. `unix_sockets` lets programs use unix sockets, also those of daemons that can
    be seen. `resolve` looks up the hosts of an allowlist; without it the network guard does. `home` stands for the home
    folder, and `why_not_better` says for the report why stronger back ends were not taken.
    """

    readable: Sequence[str | os.PathLike[str]]
    protected: Sequence[str] | None
    limits: Limits | None
    unix_sockets: bool
    resolve: Resolver | None
    home: str | None
    why_not_better: Sequence[str]


class ConfiningSandbox:
    """A back end that confines commands. A subclass says how in `confine`, and what that is worth in `report`."""

    name: ClassVar[str]
    keeps_allowlist: ClassVar[bool] = False
    conceals: ClassVar[bool] = False
    """Whether commands cannot see if anything exists where something is hidden."""

    def __init__(
        self, workspace: str | os.PathLike[str], level: Level | None = None, **options: Unpack[BackendOptions]
    ) -> None:
        if unknown := options.keys() - BackendOptions.__annotations__.keys():
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}")
        self.level = level or Level()
        self.check_level(self.level)
        self.workspace = os.path.realpath(workspace)
        if self.workspace == "/":
            raise SandboxError("the workspace is /, so there is nothing outside it to protect")
        self.readable = tuple(os.fspath(path) for path in as_tuple("readable", options.get("readable", ())))
        protected = options.get("protected")
        self.protected = PROTECTED if protected is None else as_tuple("protected", protected)
        self.limits = options.get("limits") or Limits()
        self.unix_sockets = options.get("unix_sockets", False)
        self.resolve = options.get("resolve")
        self.home = options.get("home")
        self.why_not_better = tuple(options.get("why_not_better", ()))
        self.scratch, self.caches = ScratchFolder(), ScratchFolder()
        self.listings = FolderListings()
        self.repositories = GitRepositories(self.listings, records_of(self.workspace))

    def check_level(self, level: Level) -> None:
        """Raises SandboxError if this back end cannot keep to a level."""
        if level.files is Files.OFF:
            raise SandboxError(f"{self.name} confines; for no sandbox at all use NoSandbox")
        if level.network is Network.ALLOWLIST and not self.keeps_allowlist:
            raise SandboxError(f"{self.name} cannot keep to an allowlist of hosts; bubblewrap, on Linux, can")

    @property
    def own_temporary(self) -> tuple[str, ...]:
        """Folders in whose place commands see others, for temporary files, that end with the sandbox."""
        return ()

    def check_available(self) -> None:
        """Raises SandboxError if this back end cannot work on this machine; asked before each launch."""

    def confine(self, launch: Launch, view: FileView, level: Level) -> None:
        """Changes a launch, which holds the bare command, so that the command runs confined.

        May change `argv` and `env`, add clean-up steps to `on_close` and descriptors to `inherited`. If it raises, the
        launch is closed.
        """
        raise NotImplementedError

    def report(self) -> SandboxReport:
        raise NotImplementedError

    def at(self, level: Level) -> Self:
        other = copy(self)
        other.check_level(level)
        other.level = level
        return other

    def view(self, level: Level | None = None) -> FileView:
        """The files that a command sees at a level, now."""
        view = file_view_of(
            self.workspace,
            home=self.home,
            readable=self.readable,
            protected=self.protected,
            listings=self.listings,
        )
        return view.at(level or self.level)

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        level = level or self.level
        if not self.level.covers(level):
            raise SandboxError("a command cannot be given more than its sandbox was made for")
        self.check_available()
        _check_descriptors()
        level = level.without_links()
        view = self.view(level)
        launch = Launch(list(argv), dict(env), cwd)
        launch.on_close += [self.scratch.keep_alive, self.caches.keep_alive]
        try:
            roots = view.writable(level)
            # Large folders in which no command can change anything: Landlock, which cannot keep them, is not used then.
            fixed = {path for path in own_program_in(self.workspace) if path in view.protected}
            launch.on_close += watch_executed_files(roots, self.workspace)
            # Its step comes before the one above, as it opens folders that the command shut.
            launch.on_close += self.repositories.watch(roots, self.workspace, fixed)
            launch.env |= variables(view, level, launch.env)
            self.confine(launch, view, level)
        except BaseException:
            launch.close()
            raise
        launch.pass_fds = tuple(launch.inherited)
        return launch

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        from toolcrib.command.sandbox.denials import find_denial  # which compiles large expressions

        return find_denial(
            returncode, output, launch, view=self.view, level=self.level, conceals=self.conceals
        )


def _check_descriptors() -> None:
    """Raises OSError where too few descriptors are left.

    A folder that cannot be opened counts as one that nobody may enter, and would not be protected.
    """
    spare: list[int] = []
    with CHECKING:
        try:
            spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            while len(spare) < DESCRIPTORS:
                spare.append(os.dup(spare[0]))
        finally:
            for fd in spare:
                os.close(fd)
