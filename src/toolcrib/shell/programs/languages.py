"""The small languages inside arguments: sed, awk, jq, date formats, tar's letters. Each is a positive list."""

from __future__ import annotations

import re

from toolcrib.shell.gate import Stopped
from toolcrib.shell.options import Arguments

# One sed command: an address, another, and a command that neither runs nor writes nor reads a file.
# A delimiter inside [ ] ends a pattern for GNU and not for BSD: such a pattern has no single reading.
_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n[]|\\.|\[\^?\]?[^]/\\\n[]*\])*/I?)"
_PATTERN = r"(?:(?!(?P=d))[^\\\n[]|\\.|\[\^?\]?(?:(?!(?P=d))[^]\\\n[])*\])*"
_TEXT = r"(?:(?!(?P=d))[^\\\n]|\\.)*"
_SUBSTITUTE = rf"s(?P<d>[/|,#:!@%]){_PATTERN}(?P=d){_TEXT}(?P=d)[gpiIMm0-9]*"
_LETTERS = _TEXT.replace("=d", "=y")
_TRANSLATE = rf"y(?P<y>[/|,#:]){_LETTERS}(?P=y){_LETTERS}(?P=y)"
SED_COMMAND = re.compile(
    rf"(?:{_ADDRESS}(?:,(?:{_ADDRESS}|[+~]\d+))?)?\s*!?\s*"
    rf"(?:[pdPDnNgGhHx=lz]|[qQ]\d*|{_SUBSTITUTE}|{_TRANSLATE})\s*(?:[;\n]\s*|\Z)"
)
AWK_WORDS = re.compile(
    r"\b(?:system|getline|close|fflush|ENVIRON|PROCINFO|ARGV|ARGC|SYMTAB|FUNCTAB|extension|load|include)\b|@"
)
BRACKETS = re.compile(r"\\.|\[\^?\]?[^]]*\]")
AWK_KEYWORDS = {"print", "printf", "return", "in", "do", "else", "case", "exit", "delete", "getline", "next"}
JQ_WORDS = re.compile(
    r"(?<![.\w\"])env\b|\$ENV|\$__prog_args|\b(?:import|include|modulemeta|get_search_list)\b"
)
TAR_LETTERS = re.compile(r"t[vzjJZa]*f?")


def _scripts(found: Arguments, *options: str) -> list[str]:
    """The programs given, by option or as the first operand."""
    words = [word for option, word in found.values if option in options]
    if not words:
        words = [word for word, kind in found.operands if kind == "data"][:1]
    if any(word.literal is None for word in words):
        raise Stopped("a program text that is only known when it runs")
    return [word.literal or "" for word in words]


def sed(found: Arguments) -> None:
    for script in _scripts(found, "-e", "--expression"):
        at = len(script) - len(script.lstrip())
        while at < len(script):
            command = SED_COMMAND.match(script, at)
            if command is None or command.end() == at:
                raise Stopped("sed: a script that may do more than print and substitute")
            at = command.end()


def awk(found: Arguments) -> None:
    for script in _scripts(found):
        if AWK_WORDS.search(script) or not _awk_only_prints(script):
            raise Stopped("awk: a program that may do more than print")
    if any("=" in text for text in found.of("awk")):
        raise Stopped("awk: an assignment among its files")
    found.operands = [(word, "read" if kind == "awk" else kind) for word, kind in found.operands]


def _awk_only_prints(script: str) -> bool:
    """No `>` of a print, no pipe. Strings and patterns are passed over only where they surely are such."""
    braces = parens = at = 0
    before = ""  # the last thing that was not a blank
    while at < len(script):
        sign = script[at]
        if sign in "#\\":
            return False  # a comment or a continued line: not worth the risk of misreading where it ends
        if sign in '"/':
            if sign == "/" and not _regex_may_begin(before):
                if not re.search(r"[\w)\]]$", before) or before in AWK_KEYWORDS:
                    return False  # a division or a pattern: it cannot be told
                before, at = sign, at + 1
                continue
            end = re.compile(rf"(?:[^{sign}\\\n]|\\.)*{sign}").match(script, at + 1)
            # A / inside [ ] does not end a pattern: what stands after it would be misread.
            if end is None or (sign == "/" and "[" in BRACKETS.sub("", end[0])):
                return False
            before, at = "0)", end.end()
            continue
        word = re.compile(r"\w+").match(script, at)
        if word is not None:
            before, at = word[0], word.end()
            continue
        braces += (sign == "{") - (sign == "}")
        parens += (sign == "(") - (sign == ")")
        if sign == ">" and not (parens > 0 or braces == 0):
            return False
        if sign == "<" and braces > 0 and parens <= 0:
            return False
        if sign == "|":
            if script[at + 1 : at + 2] != "|":
                return False
            at += 1
        before = sign if not sign.isspace() or sign == "\n" else before
        at += 1
    return True


def _regex_may_begin(before: str) -> bool:
    return before == "" or before in "(,{};!~&|\n"


def jq(found: Arguments) -> None:
    for script in _scripts(found):
        if JQ_WORDS.search(script):
            raise Stopped("jq: a program that reads the environment or other files")


def date(found: Arguments) -> None:
    if not all(text.startswith("+") for text in found.of("data")):
        raise Stopped("date: an operand that would set the clock")


def ps(found: Arguments) -> None:
    """In BSD style, `e` shows the variables of every process."""
    if not all(re.fullmatch("[auxfwjlv]+", text) for text in found.of("data")):
        raise Stopped("ps: letters that are not on its list")


def printf(found: Arguments) -> None:
    """bash's own printf can assign (-v), and what it assigns to is evaluated."""
    first = found.operands[0][0] if found.operands else None
    if first is not None and not (
        first.literal == "--" or (first.prefix and not first.prefix.startswith("-"))
    ):
        raise Stopped("printf: a format that may be an option")


def tar(found: Arguments) -> None:
    """Listing only: `tar -tf x`, `tar tf x`."""
    words = found.of("data")
    listing = bool(found.options & {"-t", "--list"})
    if not listing and words and TAR_LETTERS.fullmatch(words[0]):
        listing = True
        if "f" in words[0]:
            at = next(i for i, (_, kind) in enumerate(found.operands) if kind == "data")
            if at + 1 < len(found.operands):
                found.operands[at + 1] = (found.operands[at + 1][0], "read")
    if any(":" in text.partition("/")[0] for text in found.of("read")):
        raise Stopped("tar: an archive on another machine")
    if not listing:
        raise Stopped("tar: only listing (tar -tf FILE) is known to change nothing")


def unzip(found: Arguments) -> None:
    if not found.options & {"-l", "-v", "-Z"}:
        raise Stopped("unzip: only listing (unzip -l FILE) is known to change nothing")
