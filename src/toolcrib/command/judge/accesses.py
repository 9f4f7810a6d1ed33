"""The accesses of a command line, for rules: its commands, and the paths and hosts that they name.

A rule that allows a command has to match its very words. A rule that denies one may match any form in which the command
could be recognised: without a path before its name, without options before its action, behind a wrapper, in a script.
Those forms are accesses of their own, marked as hints, and only rules that deny or ask look at them.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from toolcrib.access import UNKNOWN_WORD, Access, Reach
from toolcrib.command.judge import paths, variables
from toolcrib.command.judge.find_commands import UNKNOWN, find_commands
from toolcrib.command.judge.inner_commands import (
    Perhaps,
    forms,
    found_in,
    in_input,
    in_texts,
)
from toolcrib.command.judge.judged_commands import JudgedCommand
from toolcrib.command.judge.judgement import Judgement
from toolcrib.command.judge.known_commands import (
    commands_in_value,
    commands_in_values,
    says_all,
    text_says_all,
    variable_says_all,
)
from toolcrib.command.judge.paths import Operand
from toolcrib.command.judge.remember import prefix_of
from toolcrib.command.plan import Command, Word, commands, quoted, show_word
from toolcrib.command.programs.sed import read_words
from toolcrib.command.programs.traits import SHELLS, known_name, traits_of
from toolcrib.command.programs.wrappers import WRAPPERS

MAX_COMMANDS = 300  # commands seen inside of others
MAX_WORDS = 200  # words of a command that are looked at as possible paths
MAX_PIECES = 50  # parts of a word that are looked at
URL = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]{0,30})://(?:[^/\s@?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^/\s:?#@\[\];|&()<>'\"`,{}]+)(?::(\d+))?"
)
BY_SSH = re.compile(r"(?:[\w.-]+@)([A-Za-z0-9][A-Za-z0-9.-]*):(?!//)")
BARE_HOST = re.compile(
    r"(?:[^/\s@?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[\w-]*(?:\.[\w-]+)+\.?)(?::(\d+))?(?:[/?#:].*)?", re.DOTALL
)
# An address that all programs read alike: curl reads `%2e` and `[a-c]` in a host as escape and pattern.
ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?+(?:[\w.~!$&*+=:%-]*@)?(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d*)?(?:[/?#].*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
# Programs that connect to what they are given, and to nothing else: git and wget go where an answer sends them.
CONNECTS = {
    "curl", "dig", "ftp", "host", "nc", "ncat", "nslookup", "ping", "rsync", "scp", "sftp", "ssh", "telnet",
    "traceroute",
}  # fmt: skip
REDIRECTED = re.compile(r"-[A-Za-z]*L.*|--location.*", re.DOTALL)
PORTS = {"http": "80", "https": "443", "ftp": "21", "ssh": "22", "git": "9418", "ws": "80", "wss": "443"}
WORDS = re.compile(r"[\s;|&()<>{}\"'`=,$]+")
EXPANDED = re.compile(r"\$(?![?#$!\s\"']|$)|`|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|(?:^|[\s:=])~[+-]")
INSIDE = re.compile(r"[\s;|&()<>{}\"'`=,$@:]+")
# Links to whatever a process has open, and to the folders that it is in.
LEADS_ANYWHERE = re.compile(r"/(?:proc/(?:[^/]+/)+(?:cwd|root|fd)|dev/fd)(?:/|$)")
GLOB = re.compile(r"[*?\[]")
ACCESS = {"read": Reach.READ, "write": Reach.WRITE, "delete": Reach.DELETE}
CLUSTER = re.compile(r"-[^-]")  # options of one letter; where the value of the last begins is not known
MAX_CLUSTER = 5
FILE_LIST = re.compile(  # an option whose file names more files
    r"--(?:files0?-from|(?:in|ex)clude-from|pathspec-from-file|(?:no-)?(?:from|batch)-file|args?-file)(?:=.*)?|-@",
    re.DOTALL,
)
BASH_QUOTE = "$'"
# Commands that a plan rewrites, or whose input it rewrites. Rules see them as they are written, too.
REWRITTEN = re.compile(r"\b(?:xargs|find|env|command|[a-z]*sh)\b")


def accesses_of(command: str, judgement: Judgement, folder: str, *, unasked: bool) -> tuple[Access, ...]:
    """The accesses of a command that runs in a folder of the workspace.

    `unasked`: whether commands that were proved plain run without a yes here.
    """
    if judgement.plan is None:
        words = WORDS.split(command)
        surely = itertools.chain(found_in(command, guess=False), commands_in_values(command))
        is_all_known = judgement.by_bash and text_says_all(command)
        hints = [*_hints(surely)] if is_all_known else []
        hinted = is_all_known and len(hints) < MAX_COMMANDS
        found = [Access(Reach.RUN, command, hinted=hinted), *hints, *_hints(found_in(command))]
        found += _hosts(command.split())
        if BASH_QUOTE in command:  # a shell that does not know this quote runs what bash takes for a word
            found += _hints(found_in(command.replace(BASH_QUOTE, "'")))
        unknown = _any_path() if EXPANDED.search(command) else ()
        found += [*_possible_paths(words, folder), *unknown, *_of_sed_scripts(found, folder)]
        return tuple(dict.fromkeys(found))
    found = []
    written = commands(judgement.plan)
    grantable = judgement.grantable and judgement.verdict == "ask"
    for part in judgement.parts:
        free = unasked and judgement.verdict != "deny" and not part.reason
        redirected: tuple[str, ...] = ()
        if part.argv:
            command_of = next(written)
            redirected = _redirected_files(command_of)
            found += _of_command(command_of, part, free=free, grantable=grantable)
            if not part.proved:
                found += _of_unrecognised(command_of.words, folder)
            elif part.reason:  # known, but not every word of it
                found += _possible_paths(
                    [word.spelled for word in command_of.words[1:]], folder, inside=False
                )
        for operand in part.operands:
            of_command = bool(part.argv) and not _is_one_of(operand, redirected)
            found += _paths(operand, folder, free or (of_command and paths.objection(operand.path) is None))
    seen = find_commands(command)
    found += _hints(tuple(one.argv) for one in seen if REWRITTEN.search(" ".join(one.argv[:1])))
    if {"|", "<"} & {*command} and any(part.effect != "read" or not part.proved for part in judgement.parts):
        found += _hints(form for one in seen if one.argv for form in in_input(one))
    return tuple(dict.fromkeys([*found, *_of_sed_scripts(found, folder)]))


def _of_command(command: Command, part: JudgedCommand, *, free: bool, grantable: bool) -> Iterator[Access]:
    argv = tuple(UNKNOWN_WORD if word.literal is None else word.literal for word in command.words)
    prefix = prefix_of(part.argv) if grantable and part.grantable else None
    shown = " ".join(
        [*(f"{name}={quoted(value)}" for name, value in command.env), *map(show_word, command.words)]
    )
    # With a variable that changes what runs, the words are no longer all that a rule would have to know.
    known = () if variables.objection(dict(command.env)) else argv
    hinted = known != argv and all(variable_says_all(*variable) for variable in command.env)
    yield Access(Reach.RUN, shown, known, prefix=prefix or (), free=free, hinted=hinted)
    if hinted:
        yield from _hints(form for _, value in command.env for form in commands_in_value(value))
    # What was proved runs nothing that its words do not show.
    texts = () if part.proved else in_texts([_known_text(word) for word in command.words])
    found = itertools.chain(forms(argv, proved=part.proved), texts)
    seen = [*itertools.islice(found, MAX_COMMANDS + 1)]
    yield from _hints(form for form in seen if form != known)
    if len(seen) > MAX_COMMANDS or (not part.proved and not says_all(argv)):
        yield Access(Reach.RUN, shlex.join(argv), free=True, hint=True)
    yield from _hosts(part.argv)
    if part.effect == "network":
        yield from _bare_hosts(part.argv[1:])


def _known_text(word: Word) -> str:
    """The text of a word, with `UNKNOWN` for each part that is only known when the command runs."""
    return "".join(part if isinstance(part, str) else UNKNOWN for part in word.parts)


def _hints(found: Iterator[tuple[str, ...]]) -> Iterator[Access]:
    return (
        Access(
            Reach.RUN, shlex.join(argv), tuple(argv), free=True, hint=True, perhaps=isinstance(argv, Perhaps)
        )
        for argv in itertools.islice(found, MAX_COMMANDS)
    )


def _of_sed_scripts(found: Sequence[Access], folder: str) -> Iterator[Access]:
    """Accesses of the files that sed scripts read and write. A name may follow its command directly: `sed wFILE`."""
    read: tuple[str, ...] = ()
    for argv in (access.argv for access in found if access.argv[:1] == ("sed",)):
        if argv[1:] == read[len(read) - len(argv) + 1 :]:
            continue  # the same command without its first options
        read = argv
        yield from _possible_paths(read_words(argv).files, folder, inside=False)


def _redirected_files(command: Command) -> tuple[str, ...]:
    """The files that redirections of a command write. A rule that allows the command's words does not allow these."""
    targets = (redirect.target for redirect in command.redirects if redirect.kind in ("write", "append"))
    return tuple(target.literal or "" for target in targets if isinstance(target, Word))


def _is_one_of(operand: Operand, targets: Sequence[str]) -> bool:
    path = f"/{operand.path}"
    return operand.access == "write" and any(
        path.endswith(f"/{target}") or f"/{target}".endswith(path) for target in targets
    )


def _paths(operand: Operand, folder: str, free: bool) -> Iterator[Access]:
    """The accesses of an operand, which is relative to the folder that the command runs in."""
    path = operand.path
    if path in paths.HARMLESS_DEVICES or path == "-":
        return
    if "://" in path:
        yield from _hosts([path])
        return
    path = _in_full(paths.join(folder, path))
    if LEADS_ANYWHERE.match(path):
        yield from _any_path()
    reach = ACCESS[operand.access]
    if operand.reach == "file" or (operand.reach == "subtree" and not GLOB.search(path)):
        yield Access(reach, path, subtree=operand.reach == "subtree", free=free)
        return
    pieces = path.split("/")
    at = next((at for at, piece in enumerate(pieces) if GLOB.search(piece)), len(pieces) - 1)
    below = "/".join([*pieces[at:], *(["**"] if operand.reach == "subtree" else [])])
    start = "/".join(pieces[:at]) or ("/" if path.startswith("/") else ".")
    yield Access(reach, start, subtree=True, pattern=f"./{below}", free=free)


def _of_unrecognised(words: Sequence[Word], folder: str) -> Iterator[Access]:
    """Accesses of an unrecognised command: every argument that could be a path counts as read and written."""
    name, given = known_name(words[0].literal or ""), words[1:]
    spelled = [word.spelled for word in given if not word.substitutions]
    yield from _possible_paths(spelled, folder)
    script = traits_of(name).runs not in ("", "code") and any(EXPANDED.search(text) for text in spelled)
    adds_words = name in WRAPPERS and WRAPPERS[name].adds_words
    from_input = adds_words or (name in SHELLS and all(text[:1] == "-" for text in spelled))
    listed = any(map(FILE_LIST.fullmatch, spelled)) or (name == "tar" and "-T" in spelled)
    unread = (
        name == "sed"
        and not read_words([UNKNOWN_WORD if w.literal is None else w.literal for w in words]).understood
    )
    if script or from_input or listed or unread or len(spelled) < len(given):
        yield from _any_path()


def _any_path() -> Iterator[Access]:
    """Accesses of a word that is only known when the command runs: any path may be read and written."""
    for reach in (Reach.READ, Reach.WRITE):
        for start in (".", "/"):
            yield Access(reach, start, subtree=True, free=True)


def _possible_paths(words: Sequence[str], folder: str, *, inside: bool = True) -> Iterator[Access]:
    """Accesses of words of an unrecognised command: each may be a path, or hold one, and be read and written."""
    for path in dict.fromkeys(piece for word in words[:MAX_WORDS] for piece in _pieces(word, inside)):
        whole = posixpath.normpath(_in_full(paths.join(folder, path)))
        if LEADS_ANYWHERE.match(whole):
            yield from _any_path()
        start = "/" if whole.startswith("/") else "."
        below = "**" if whole.strip("/") in ("", ".") else f"{whole.lstrip('/')}/**"
        for reach in (Reach.READ, Reach.WRITE):
            yield Access(reach, start, subtree=True, pattern=f"./{below}", free=True)
    if len(words) > MAX_WORDS:
        yield Access(Reach.WRITE, ".", subtree=True, free=True)


def _in_full(path: str) -> str:
    """A path with its home folder in full, and with one slash at its beginning instead of two."""
    path = posixpath.expanduser(path) if path[:1] == "~" else path
    return f"/{path.lstrip('/')}" if path[:2] == "//" else path


def _pieces(word: str, inside: bool) -> Iterator[str]:
    """The parts of a word that may be paths: `dd if=PATH`, `-fPATH`, `@PATH`; with `inside` those of a script too."""
    cut = word[7:] if word.startswith("file://") else word
    pieces = [
        cut,
        *((word[at:] for at in range(2, MAX_CLUSTER)) if CLUSTER.match(word) else ()),
        cut.partition("=")[2],
        cut.lstrip("@"),
        cut.partition("@")[2],
    ]
    if inside and "://" not in cut:
        pieces += INSIDE.split(cut)[:MAX_PIECES]
    for piece in pieces:
        if piece and piece[0] != "-" and piece not in paths.HARMLESS_DEVICES and "://" not in piece:
            yield piece


def _hosts(words: Sequence[str]) -> Iterator[Access]:
    """The hosts that addresses among the words name. A command may connect to others too."""
    for word in words:
        for scheme, host, port in URL.findall(word):
            number = port or PORTS.get(scheme.lower().partition("+")[2] or scheme.lower(), "")
            name = host.lower()
            if scheme.lower() != "file":
                yield Access(Reach.CONNECT, f"{name}:{number}" if number else name, free=True)
        if (match := BY_SSH.match(word)) is not None:
            yield Access(Reach.CONNECT, f"{match[1].lower()}:22", free=True)


def names_its_hosts(argv: Sequence[str]) -> bool:
    """Whether a program connects only to hosts whose addresses stand among its words."""
    words = [word for word in argv[1:] if word[:1] != "-"]
    if not words or argv[0].rpartition("/")[2] not in CONNECTS or any(map(REDIRECTED.fullmatch, argv[1:])):
        return False
    named = all(URL.match(word) or BARE_HOST.fullmatch(word) for word in words)
    return named and all(map(ADDRESS.fullmatch, words))


def _bare_hosts(words: Sequence[str]) -> Iterator[Access]:
    """The hosts that a program which connects may be given without a scheme: words with a dot."""
    for word in words:
        if (match := BARE_HOST.fullmatch(word)) is not None:
            name, port = match[1].lower(), match[2]
            yield Access(Reach.CONNECT, f"{name}:{port}" if port else name, free=True)
