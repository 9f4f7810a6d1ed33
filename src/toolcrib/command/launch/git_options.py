"""Options that are added to a command: they keep git from running programs which a repository's settings name, programs
that list connections from asking a name server about them, and others from obeying settings of the folder.

Git gets -c options and not variables, because it passes those options on to what it starts in submodules. There is no
option against a clean filter in .git/config: `judge/git_filters.py` looks for one before a command is decided on.
Only transports are forbidden by a variable: an option forbids one of them, or only those without a setting in the
repository.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcrib.command.programs.traits import FIRST_OPTIONS
from toolcrib.command.programs.wrappers import inner_at

SETTINGS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.editor=false",
    "core.sshCommand=false", "core.askPass=", "core.gitProxy=", "credential.helper=",
    "gpg.program=false", "gpg.openpgp.program=false", "gpg.x509.program=false", "gpg.ssh.program=false",
    "log.showSignature=false", "log.diffMerges=separate", "diff.submodule=short", "status.submoduleSummary=false",
    "submodule.recurse=false", "sequence.editor=false",
    "safe.bareRepository=explicit", "core.alternateRefsCommand=false",
)  # fmt: skip
# A partial clone fetches what is missing when it is read. Of the transports only those named here are allowed.
VARIABLES = {"GIT_ALLOW_PROTOCOL": "none"}
NO_HELPERS = ("--no-ext-diff", "--no-textconv")
AFTER = {
    "diff": NO_HELPERS, "log": NO_HELPERS, "show": NO_HELPERS, "blame": NO_HELPERS[1:],
    "annotate": NO_HELPERS[1:],
    "diff-tree": NO_HELPERS, "diff-index": NO_HELPERS, "diff-files": NO_HELPERS,
    "reflog": NO_HELPERS, "reflog show": NO_HELPERS, "stash list": NO_HELPERS, "stash show": NO_HELPERS,
}  # fmt: skip
BEFORE = {"--no-pager", "-P", "--no-optional-locks"}


def hardened_env(argv: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command. If the command runs git, also the variables that forbid git to fetch."""
    inner = inner_at(argv)
    if inner is not None:
        return hardened_env(argv[inner:], env)
    return {**env, **VARIABLES} if argv[0].rpartition("/")[2] == "git" else dict(env)


def hardened(argv: Sequence[str]) -> list[str]:
    """The arguments with git's hooks, pagers, monitors and helpers switched off, and with first options of others."""
    argv = list(argv)
    program = argv[0].rpartition("/")[2]
    if (option := FIRST_OPTIONS.get(program)) is not None:
        return [argv[0], option, *argv[1:]]
    if program != "git":
        inner = inner_at(argv)  # timeout 5 git …
        return argv if inner is None else [*argv[:inner], *hardened(argv[inner:])]
    at = 1
    while at < len(argv) and (argv[at] in BEFORE or argv[at] == "-C"):
        at += 2 if argv[at] == "-C" else 1
    off = [piece for setting in SETTINGS for piece in ("-c", setting)]
    words = 2 if " ".join(argv[at : at + 2]) in AFTER else 1
    after = AFTER.get(" ".join(argv[at : at + words]), ())
    return [
        argv[0],
        *off,
        "--no-pager",
        "--no-optional-locks",
        *argv[1 : at + words],
        *after,
        *argv[at + words :],
    ]
