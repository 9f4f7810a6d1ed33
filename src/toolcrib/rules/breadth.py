"""Which rules allow too much: those that would let anything run, be reached or be spoken to.

A rule that allows `bash *` allows every command there is, whatever else it says; so do `env *`, `timeout 5 *`
and `git -c *`. Its author is told to write out the words that may follow.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from toolcrib.access import Reach
from toolcrib.effect import Effect
from toolcrib.rules.patterns import CommandPattern, PatternError, any_matches
from toolcrib.rules.policy import Rule
from toolcrib.shell.programs.wrappers import SHELLS, WRAPPERS, inner_at
from toolcrib.toolbox.policy import Verb

WILD = re.compile(r"[*?\[]")
ANYTHING = re.compile(r"[*?]+")
VERSION = re.compile(r"[\d.]*(?:\.exe)?\Z")
AS_ANOTHER = frozenset(
    {"chroot", "doas", "nsenter", "pkexec", "runuser", "su", "sudo", "unshare", "systemd-run"}
)
# These run a file or the code that they are given.
INTERPRETERS = SHELLS | {
    "awk", "cmd", "csh", "fish", "gawk", "groovy", "julia", "lua", "luajit", "mawk", "nawk", "node",
    "nodejs", "osascript", "perl", "php", "powershell", "pwsh", "py", "pypy", "python", "pythonw", "pyw", "r",
    "rscript", "ruby", "sed", "tclsh", "tcsh",
}  # fmt: skip
# What these run stands anywhere among their arguments.
ANYWHERE = frozenset({
    ".", "at", "batch", "crontab", "ed", "emacs", "eval", "ex", "expect", "fd", "find", "gdb", "lldb",
    "nvim", "rsync", "screen", "script", "socat", "source", "ssh", "tar", "tmux", "vi", "vim",
})  # fmt: skip
# Of these a rule names the action; some run whatever comes behind `run` or `exec`.
BY_ACTION = frozenset({
    "bun", "bunx", "cargo", "conda", "deno", "docker", "gmake", "git", "go", "hatch", "just", "kubectl",
    "make", "nix", "npm", "npx", "pdm", "pipenv", "pipx", "pnpm", "podman", "poetry", "rake", "uv",
    "uvx", "yarn",
})  # fmt: skip
PROJECTS_OWN = frozenset({"npm", "pnpm", "yarn", "bun", "cargo"})  # `run` means what the project names
RUN = frozenset({"dlx", "eval", "exec", "run", "shell", "x"})
LIKE_THEIR_COMMAND = frozenset({"conda", "hatch", "pdm", "pipenv", "pipx", "poetry", "uv"})
SHELL = "shell"
NARROWER = "Write out the words that may follow"


def check_breadth(rule: Rule) -> None:
    """Raises PatternError, saying what to write instead, for a rule that allows anything at all."""
    if rule.verb is not Verb.ALLOW:
        return
    for command in rule.commands:
        _check_command(command)
    for host in rule.hosts:
        if not re.search(r"[^*?.:\d]\.[^*?.:]", host) and WILD.search(host):
            raise PatternError(f"host {host!r} is too broad: name a host, or a domain such as *.example.org")
    named = any(not ANYTHING.fullmatch(name) for name in (*rule.tools, *rule.servers))
    if any(pattern.covers("/") for pattern in rule.paths) and not named:
        raise PatternError("a path that is everything is too broad: name a tool or a folder")
    if rule.paths or rule.commands or rule.hosts:
        return
    shell = named and not rule.servers and any_matches(rule.tools, SHELL)
    if (shell or not named) and (wide := _of_a_command(rule)):
        raise PatternError(wide)
    if any(wanted != "*" for wanted in rule.arguments.values()):
        return
    if rule.reach and not named:
        raise PatternError(
            f"reach {', '.join(sorted(rule.reach))} alone is too broad: name paths, commands, hosts or a tool"
        )
    if shell and rule.reach != {Reach.RUN}:
        raise PatternError(
            'tool "shell" alone is too broad, it is every command: name commands. If every command is meant, '
            'add reach = "run", or use autonomy = "full" with rules that deny'
        )
    if not named and (not rule.effects or Effect.DESTRUCTIVE in rule.effects):
        raise PatternError(
            "a rule that allows everything is too broad: name a tool, a path, a command, …; "
            'autonomy = "full" is there if that is meant'
        )


def _of_a_command(rule: Rule) -> str:
    """Why what a rule says of arguments still means any command; "" where it does not, or says nothing of them."""
    said = rule.arguments.get("command")
    if isinstance(said, str) and WILD.search(said):
        return (
            f"argument command {said!r} is too broad: in a text, anything may come where the sign stands, "
            "such as `; rm -r .`. Write command = ..., which looks at words"
        )
    if rule.arguments and said is None and set(rule.arguments) <= {"timeout", "workdir"}:
        only = ", ".join(sorted(rule.arguments))
        return f"arguments {only} alone are too broad, they mean every command: name commands"
    return ""


def _check_command(command: CommandPattern) -> None:
    program = _name(command.words[0]) if command.words else "*"
    if WILD.search(program):
        raise PatternError(f"command {command.text!r} is too broad: name the program")
    given = list(itertools.takewhile(lambda word: not ANYTHING.fullmatch(word), command.words))
    if (command.open or len(given) < len(command.words)) and _runs_anything(given):
        raise PatternError(
            f"command {command.text!r} is too broad: {program} runs whatever it is told to. {NARROWER}"
        )


def _runs_anything(words: Sequence[str]) -> bool:
    """Whether a command that begins with these words, and goes on in any way, may run any program."""
    if not words:
        return True
    name, rest = _name(words[0]), list(words[1:])
    if WILD.search(name) or name in AS_ANOTHER or name in ANYWHERE:
        return True
    if name in WRAPPERS:
        at = inner_at([name, *rest])
        return at is None or _runs_anything([name, *rest][at:])
    if name in INTERPRETERS:
        given = rest[1:] if rest[:1] == ["-m"] and name in ("python", "py", "pypy") else rest
        return not given or given[0].startswith("-") or WILD.search(given[0]) is not None
    if name in BY_ACTION:
        if not rest or rest[0].startswith("-") or WILD.search(rest[0]):
            return True
        if rest[0] in RUN and not (rest[0] == "run" and name in PROJECTS_OWN):
            inner = rest[2:] if rest[1:2] == ["--"] else rest[1:]
            if not inner or inner[0].startswith("-") or WILD.search(inner[0]):
                return True
            return name in LIKE_THEIR_COMMAND and _runs_anything(inner)
    return False


def _name(word: str) -> str:
    """A program's name without its folder and its version, as far as that is one we know."""
    name = word.rpartition("/")[2].lower()
    plain = VERSION.sub("", name)
    return plain if plain in INTERPRETERS or plain in WRAPPERS else name
