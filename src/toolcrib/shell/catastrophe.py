"""What would destroy the host, however it is written: in quotes, behind wrappers, in a script inside a script,
piped into a shell. Such a command is denied at every level; nothing is allowed for not being found here.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Sequence

from toolcrib.shell.loose import LONGEST, Loose, loose_commands, printed, unescaped
from toolcrib.shell.programs.table import FAMILIES, FORMS
from toolcrib.shell.programs.wrappers import SHELLS, WRAPPERS
from toolcrib.shell.ruin import CHECKS, DISK_TOOLS, ENDS, is_ruinous, overwrites_device, program, ruined_by

DEEPEST = 4  # scripts inside scripts
MOST_TRIES = 60  # places in one command where another may begin
# Their arguments hold commands in some form.
RUNNERS = SHELLS | set(WRAPPERS) | {
    "eval", "trap", "ssh", "script", "chroot", "nsenter", "unshare", "systemd-run", "at", "batch", "runuser", "su",
    "expect", "tmux", "screen", "bwrap", "firejail", "fish", "csh", "tcsh", "source", ".", "awk", "gawk", "mawk", "sed",
    "perl", "python", "python2", "python3", "ruby", "node", "php", "lua", "deno", "bun", "osascript", "find", "make",
}  # fmt: skip
INTERPRETERS = {
    "awk",
    "gawk",
    "mawk",
    "sed",
    "perl",
    "python",
    "python2",
    "python3",
    "ruby",
    "node",
    "php",
    "lua",
    "deno",
    "bun",
}
LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`")
REMOVES = re.compile(
    r"(?:rmtree|rm_rf|rm_r|rmSync|rmdirSync|remove_dir_all|removeSync|remove_tree)\s*\(?\s*\(?\s*[rbu]?[\"'](/[^\"']*|~[^\"']*)[\"']"
)
BOMB = re.compile(
    r"([\w:.@!-]+)\s*\(\s*\)\s*[{(]\s*[^{}()]*?(?<![\w:])\1\s*\|\s*&?\s*\1\s*&[^{}()]*[})]", re.DOTALL
)
BOMB_NAMED = re.compile(
    r"function\s+([\w:.@!-]+)[^{]{0,20}\{[^{}]*?(?<![\w:])\1\s*\|\s*&?\s*\1\s*&", re.DOTALL
)
ENCODED = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")


def catastrophe(text: str, depth: int = 0) -> str | None:
    """What the text would destroy, in a few words; None where nothing such is found."""
    text = text[:LONGEST]
    squeezed = text.replace("\\\n", "").replace("\n", " ; ")
    if BOMB.search(squeezed[:2000]) or BOMB_NAMED.search(squeezed[:2000]):
        return "a fork bomb"
    folder = ""
    for command in loose_commands(text):
        if command.argv[:1] in (["cd"], ["pushd"]) and command.argv[1:]:
            folder = posixpath.join(folder, command.argv[-1])
        found = _of_command(_from(folder, command), depth)
        if found is not None:
            return found
    return None


def _from(folder: str, command: Loose) -> Loose:
    """After `cd /`, what a command deletes by a relative name lies there."""
    if (
        not folder.startswith(("/", "~"))
        or not command.argv
        or program(command.argv) not in ("rm", "chmod", "chown", "find")
    ):
        return command
    name, *words = command.argv
    placed = [word if word.startswith("-") else posixpath.join(folder, word) for word in words]
    return Loose([name, *placed], command.before, command.given, command.writes)


def _of_command(command: Loose, depth: int) -> str | None:
    for target in command.writes:
        if overwrites_device(target):
            return f"overwrites {target}"
    argv = command.argv
    if not argv:
        return None
    name = program(argv)
    if (found := ruined_by(argv)) is not None:
        return found
    holds_commands = name in RUNNERS or (name not in FORMS and name not in FAMILIES)
    if holds_commands and (found := _inside(argv, name, depth)) is not None:
        return found
    if depth < DEEPEST and _reads_a_script(argv):
        for script in _handed(command):
            if (found := catastrophe(script, depth + 1)) is not None:
                return found
    return None


def _inside(argv: Sequence[str], name: str, depth: int) -> str | None:
    """Another command among the arguments, or a script in one of them."""
    tries = 0
    for at in range(1, len(argv)):
        word = argv[at]
        bare = word.rpartition("/")[2].lower()
        if tries < MOST_TRIES and (bare in CHECKS or DISK_TOOLS.fullmatch(bare) or bare in ENDS):
            tries += 1
            if (name not in INTERPRETERS) and (found := ruined_by(argv[at:])) is not None:
                return found
        if name in RUNNERS and depth < DEEPEST and tries < MOST_TRIES and re.search(r"[\s;|&(]", word):
            tries += 1
            for script in _scripts(word, name):
                if (found := catastrophe(script, depth + 1)) is not None:
                    return found
            if (match := REMOVES.search(word)) and is_ruinous(match[1]):
                return f"deletes {match[1]}"
    if name == "eval" and depth < DEEPEST:
        return catastrophe(" ".join(argv[1:]), depth + 1)
    return None


def _scripts(word: str, name: str) -> list[str]:
    if name in INTERPRETERS:
        literals = [next(filter(None, match.groups()), "") for match in LITERAL.finditer(word)]
        listed = [" ".join(literals)] if len(literals) > 1 else []
        return [unescaped(text) for text in literals[:20]] + listed + re.findall(r"\be\s+(.*)", word)[:3]
    return [word]


def _reads_a_script(argv: Sequence[str]) -> bool:
    """A shell that takes its script from its input."""
    for at, word in enumerate(argv[:8]):
        if word.rpartition("/")[2].lower() in SHELLS | {"at", "batch", "fish", "csh", "tcsh"}:
            return not any(not later.startswith("-") for later in argv[at + 1 :]) or "-s" in argv[at + 1 :]
        if at == 0 and program(argv) not in WRAPPERS:
            return False
    return False


def _handed(command: Loose) -> list[str]:
    """What comes in by the pipe or a here-document, decoded where it is encoded."""
    texts = [command.given] if command.given else []
    texts += [text for argv in command.before if (text := printed(argv)) is not None]
    names = {program(argv) for argv in command.before if argv}
    if names & {"base64", "openssl", "basenc"}:
        texts += [_base64(match) for text in list(texts) for match in ENCODED.findall(text)[:5]]
    if "xxd" in names:
        texts += [_hex(text) for text in list(texts)]
    if "rev" in names:
        texts += ["\n".join(line[::-1] for line in text.split("\n")) for text in list(texts)]
    return texts


def _base64(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _hex(text: str) -> str:
    try:
        return bytes.fromhex(re.sub(r"[^0-9A-Fa-f]", "", text)).decode("utf-8", "replace")
    except ValueError:
        return ""
