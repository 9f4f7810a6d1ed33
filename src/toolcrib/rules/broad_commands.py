"""Which patterns of commands would allow any program to run.

An allow rule for `bash *` allows every command there is; so does one for `env *`, `timeout 5 *` or `git -c *`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from toolcrib.command.programs.traits import SHELLS
from toolcrib.command.programs.wrappers import WRAPPERS, inner_at
from toolcrib.rules.command_patterns import CommandPattern
from toolcrib.rules.name_patterns import ANYTHING, WILDCARD

__all__ = ["why_commands_too_broad"]

VERSION = re.compile(r"[\d.]*(?:\.exe)?\Z")
RUN_AS_ANOTHER_USER = frozenset(
    {"chroot", "doas", "nsenter", "pkexec", "runuser", "su", "sudo", "unshare", "systemd-run"}
)
# Programs that run a file or the code that they are given.
INTERPRETERS = SHELLS | {
    "awk", "cmd", "csh", "fish", "gawk", "groovy", "julia", "lua", "luajit", "mawk", "nawk", "node",
    "nodejs", "osascript", "perl", "php", "powershell", "pwsh", "py", "pypy", "python", "pythonw", "pyw", "r",
    "rscript", "ruby", "sed", "tclsh", "tcsh",
}  # fmt: skip
# Programs whose arguments may hold a command or code in any place.
COMMAND_ANYWHERE = frozenset({
    ".", "at", "batch", "crontab", "ed", "emacs", "eval", "ex", "expect", "fd", "find", "gdb", "lldb",
    "nvim", "rsync", "screen", "script", "socat", "source", "ssh", "tar", "tmux", "vi", "vim",
})  # fmt: skip
# Programs with actions (`git status`), which a rule must name; some actions, such as `run` and `exec`, run a command.
WITH_ACTIONS = frozenset({
    "bun", "bunx", "cargo", "conda", "deno", "docker", "gmake", "git", "go", "hatch", "just", "kubectl",
    "make", "nix", "npm", "npx", "pdm", "pipenv", "pipx", "pnpm", "podman", "poetry", "rake", "uv",
    "uvx", "yarn",
})  # fmt: skip
RUN_OWN_SCRIPTS = frozenset(
    {"npm", "pnpm", "yarn", "bun", "cargo"}
)  # `run` runs a script that the project defines
RUN_ACTIONS = frozenset({"dlx", "eval", "exec", "run", "shell", "x"})
AS_BROAD_AS_THEIR_COMMAND = frozenset({"conda", "hatch", "pdm", "pipenv", "pipx", "poetry", "uv"})


def why_commands_too_broad(patterns: Sequence[CommandPattern]) -> str:
    """Why an allow rule must not have these patterns, and what to write instead; "" if it may."""
    for pattern in patterns:
        program = _program(pattern.words[0]) if pattern.words else "*"
        if WILDCARD.search(program):
            return f"command {pattern.text!r} is too broad: name the program"
        known = list(itertools.takewhile(lambda word: not ANYTHING.fullmatch(word), pattern.words))
        if (pattern.open or len(known) < len(pattern.words)) and _may_run_anything(known):
            return (
                f"command {pattern.text!r} is too broad: {program} runs whatever it is told to. "
                "Write out the words that may follow"
            )
    return ""


def _may_run_anything(words: Sequence[str]) -> bool:
    """Whether a command that begins with these words and may continue in any way can run any program."""
    if not words:
        return True
    name, rest = _program(words[0]), list(words[1:])
    if WILDCARD.search(name) or name in RUN_AS_ANOTHER_USER or name in COMMAND_ANYWHERE:
        return True
    if name in WRAPPERS:
        at = inner_at([name, *rest])
        return at is None or _may_run_anything([name, *rest][at:])
    if name in INTERPRETERS:
        given = rest[1:] if rest[:1] == ["-m"] and name in ("python", "py", "pypy") else rest
        return not given or given[0].startswith("-") or WILDCARD.search(given[0]) is not None
    if name in WITH_ACTIONS:
        if not rest or rest[0].startswith("-") or WILDCARD.search(rest[0]):
            return True
        if rest[0] in RUN_ACTIONS and not (rest[0] == "run" and name in RUN_OWN_SCRIPTS):
            inner = rest[2:] if rest[1:2] == ["--"] else rest[1:]
            if not inner or inner[0].startswith("-") or WILDCARD.search(inner[0]):
                return True
            return name in AS_BROAD_AS_THEIR_COMMAND and _may_run_anything(inner)
    return False


def _program(word: str) -> str:
    """A program's name without its folder, and without its version if the rest is a program of our tables."""
    name = word.rpartition("/")[2].lower()
    plain = VERSION.sub("", name)
    return plain if plain in INTERPRETERS or plain in WRAPPERS else name
