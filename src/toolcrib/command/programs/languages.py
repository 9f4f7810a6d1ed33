"""Checks of the small languages inside arguments: sed, awk, jq, date formats, the letters of tar. Each is a positive list."""

from __future__ import annotations

import re

from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Word
from toolcrib.command.programs.listing import is_number
from toolcrib.command.programs.options import Arguments
from toolcrib.command.programs.sed import read_script

# awk needs no blank behind a number: `1system("x")` runs x.
AWK_WORDS = re.compile(
    r"(?<![A-Za-z_])(?:system|getline|close|fflush|ENVIRON|PROCINFO|ARGV|ARGC|SYMTAB|FUNCTAB|extension|load|include)\b|@"
)
# A bracket whose first sign is ] or which holds [ or \\ ends elsewhere for other awks; / ends a pattern in some.
AWK_REGEX = re.compile(
    r"(?:[^][/\\\n]|\\[^\n]|\[\^?(?:\[:[a-z]+:\]|\\[a-z.*+?(){}|$/-]|[^]\[\\/\n^])(?:\[:[a-z]+:\]|\\[a-z.*+?(){}|$/-]|[^]\[\\/\n])*\])*/"
)
AWK_STRING = re.compile(r"(?:[^\"\\\n]|\\.)*\"")
AWK_KEYWORDS = {"print", "printf", "return", "in", "do", "else", "case", "exit", "delete", "getline", "next"}
AWK_HEADS = {"if", "while", "for", "switch"}  # what stands in parentheses after these is no operand
AWK_WORD = re.compile(r"[0-9.]+|[A-Za-z_]\w*")
# jq before 1.7 allows blanks and comments between a $ and its name.
JQ_WORDS = re.compile(
    r"(?<![.A-Za-z_\"])env\b|\$(?:[\s#]|ENV\b|__prog_args\b)|(?<![A-Za-z_])(?:import|include|modulemeta|get_search_list)\b"
)
TAR_LETTERS = re.compile(r"[vzjJZa]*t[vzjJZa]*f?")


def _scripts(found: Arguments, *options: str) -> list[str]:
    """The program texts that are given, by an option or as the first operand."""
    words = [word for option, word in found.values if option in options]
    if not words:
        words = [word for word, kind in found.operands if kind == "data"][:1]
    if any(word.literal is None for word in words):
        raise NotProved("a program text that is only known when it runs")
    return [word.literal or "" for word in words]


def sed(found: Arguments) -> None:
    """`-l` takes a number for GNU; for BSD nothing, so that its value would be the script."""
    lengths = [word.literal or "" for option, word in found.values if option in ("-l", "--line-length")]
    if not all(map(str.isdecimal, lengths)):
        raise NotProved("sed: a length of lines that is no number")
    if not all(read_script(script).only_edits for script in _scripts(found, "-e", "--expression")):
        raise NotProved("sed: a script that may do more than print and substitute")


def any_awk(found: Arguments) -> None:
    """As `awk`, for whatever awk is installed. Some know no long options, and run the word after one as their program."""
    if any(word is apart for option, word in found.values if option[:2] == "--" for apart in found.apart):
        raise NotProved("awk: a long option whose value stands in a word of its own (write -F or -v)")
    awk(found)


def awk(found: Arguments) -> None:
    for script in _scripts(found):
        if AWK_WORDS.search(script) or not _awk_only_prints(script):
            raise NotProved("awk: a program that may do more than print")
    if any("=" in text for text in found.of("awk")):
        raise NotProved("awk: an assignment among its files")
    found.operands = [(word, "read" if kind == "awk" else kind) for word, kind in found.operands]


def _awk_only_prints(script: str) -> bool:
    """Whether an awk program has no `>` after a print and no pipe. Text is skipped only if it surely is a string or pattern."""
    braces = at = 0
    heads: list[bool] = []  # of each open parenthesis, whether it belongs to an if or a loop
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
            end = (AWK_STRING if sign == '"' else AWK_REGEX).match(script, at + 1)
            if end is None:
                return False
            before, at = sign * 2, end.end()  # after these a / cannot be told either
            continue
        word = AWK_WORD.match(script, at)
        if word is not None:
            if heads and word[0].startswith("print"):
                return False
            before, at = word[0], word.end()
            continue
        braces += (sign == "{") - (sign == "}")
        if sign == "(":
            heads.append(before in AWK_HEADS)
        elif sign == ")":
            if not heads:
                return False
            if heads.pop():
                before, at = ";", at + 1  # a statement begins
                continue
        elif not _awk_sign(script, at, nested=bool(heads), braces=braces):
            return False
        at += 2 if script[at : at + 2] == "||" else 1
        before = sign if not sign.isspace() or sign == "\n" else before
    return not heads and braces == 0


def _awk_sign(script: str, at: int, *, nested: bool, braces: int) -> bool:
    """Whether a sign outside of strings and patterns can only compare or compute."""
    sign = script[at]
    if sign == ">":
        return nested or braces == 0
    if sign == "<":
        return nested or braces == 0
    return sign != "|" or script[at + 1 : at + 2] == "|"


def _regex_may_begin(before: str) -> bool:
    return before == "" or before in tuple("(,{};!~&|\n")


CHARACTER_SETS = re.compile(r"[A-Za-z0-9_.:-]*(?://(?:TRANSLIT|IGNORE|NON_IDENTICAL_DISCARD)?)*")


def character_sets(found: Arguments) -> None:
    """A character set of iconv that is no plain name is a file that describes one."""
    for _, word in found.values:
        if word.literal is None or not CHARACTER_SETS.fullmatch(word.literal):
            found.operands.append((word, "read"))


def data_files(found: Arguments) -> None:
    """`@FILE` as the value of an option of curl is what the file holds."""
    for _, word in found.values:
        if (word.literal or "").startswith("@"):
            found.operands.append((Word(((word.literal or "")[1:],)), "read"))


def dd(found: Arguments) -> None:
    for text in found.of("data"):
        name, _, path = text.partition("=")
        if name in ("if", "of"):
            found.operands.append((Word((path,)), "read" if name == "if" else "write"))


MAN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:-]*")


def man(found: Arguments) -> None:
    """Accepts only names of pages: a path could be a page that anybody wrote."""
    if not found.of("data") and found.options and found.options <= {"-w", "--where", "--path", "--location"}:
        return
    if not found.of("data") or not all(MAN_NAME.fullmatch(text) for text in found.of("data")):
        raise NotProved("man: what is not the name of a page")


def jq(found: Arguments) -> None:
    for script in _scripts(found):
        if JQ_WORDS.search(script):
            raise NotProved("jq: a program that reads the environment or other files")


def date(found: Arguments) -> None:
    if not all(text.startswith("+") for text in found.of("data")):
        raise NotProved("date: an operand that would set the clock")


PS_BSD = re.compile(r"[auxfwjlv]+")
PS_COLUMN = re.compile(
    r"(?:p?pid|pgid|sid|tty|tt|user|uid|group|gid|comm|cmd|args|command|stat|state|etimes?|time|lstart|start|%?cpu|pcpu"
    r"|%?mem|pmem|rss|rsz|vsz|vsize|size|sz|nice|ni|pri|psr|nlwp|wchan|ucmd)(?:=[A-Za-z]*)?"
)


def ps(found: Arguments) -> None:
    """In BSD style, `e` shows the variables of every process; and an option that cannot be read, or a user
    that does not exist, makes the whole line be read in that style."""
    words = found.of("data")
    if not all(PS_BSD.fullmatch(text) for text in words) or (words and found.options & {"-e"}):
        raise NotProved("ps: letters that are not on its list")
    if found.options & {"-o", "--format"} and found.options & {"-f", "-F", "-l"}:
        raise NotProved("ps: formats that contradict each other")
    for option, word in found.values:
        text = "0" if is_number(word) else word.literal or ""
        if option in ("-o", "--sort", "--format"):
            good = all(PS_COLUMN.fullmatch(column.lstrip("+-")) for column in text.split(","))
        else:
            numbers = re.fullmatch(r"\d{1,9}(?:,\d{1,9})*", text) is not None
            good = (option in ("-p", "--pid", "--ppid", "-u", "-U", "--user", "--User") and numbers) or (
                option in ("-u", "-U", "--user", "--User") and text == "root"
            )
            good = good or (option == "-C" and re.fullmatch(r"[\w.-]+", text) is not None)
        if not good:
            raise NotProved(f"ps: the value of {option} is not on its list")


def printf(found: Arguments) -> None:
    """bash's own printf can assign (-v), and what it assigns to is evaluated."""
    first = found.operands[0][0] if found.operands else None
    if first is not None and not (
        first.literal == "--" or (first.prefix and not first.prefix.startswith("-"))
    ):
        raise NotProved("printf: a format that may be an option")


STATUS = re.compile(r"[0-9]{1,3}")


def exit_status(found: Arguments) -> None:
    """At most one number: with more, a shell goes on after `exit`."""
    words = [word for word, _ in found.operands]
    if len(words) > 1 or not all(is_number(word) or STATUS.fullmatch(word.literal or "") for word in words):
        raise NotProved("exit: a status that is no number")


TEST_FILES = {"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h"}
TEST_NUMBERS = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}


def test(found: Arguments) -> None:
    """One condition, perhaps turned round. A shell's own test would evaluate what it takes for a number or a
    variable's name (-v), so that only plain numbers are compared."""
    words = [word for word, _ in found.operands]
    while words and words[0].literal == "!":
        words.pop(0)
    texts = ["0" if is_number(word) else word.literal for word in words]
    if any(word.is_glob and not word.names_of_loops for word in words):
        raise NotProved("test: a pattern, which may become several words")
    compared = len(texts) == 3 and texts[1] in ("=", "==", "!=")
    tried = len(texts) == 2 and (texts[0] in ("-n", "-z") or texts[0] in TEST_FILES)
    if None in texts and not (
        (compared and not words[0].splits and not words[2].splits)
        or (tried and words[1].names_of_loops)
        or (tried and texts[0] in ("-n", "-z") and not words[1].splits)
    ):
        raise NotProved("test: a condition that is only known when it runs")
    if len(texts) == 2 and texts[0] in TEST_FILES:
        found.operands.append((words[1], "read"))
    elif len(texts) == 3 and texts[1] in ("-nt", "-ot", "-ef"):
        found.operands += [(words[0], "read"), (words[2], "read")]
    elif len(texts) == 3 and texts[1] in TEST_NUMBERS:
        if not all(re.fullmatch(r"-?\d{1,18}", text or "") for text in (texts[0], texts[2])):
            raise NotProved("test: a number that is none")
    elif len(texts) > 1 and not (
        (len(texts) == 2 and texts[0] in ("-n", "-z")) or (len(texts) == 3 and texts[1] in ("=", "==", "!="))
    ):
        raise NotProved("test: a condition that is not on its list")


def tar(found: Arguments) -> None:
    """Listing only: `tar -tf x`, `tar tf x`. A first word without a dash is a bundle of letters whose values
    follow it, whatever options come after."""
    words = found.of("data")
    listing = bool(found.options & {"-t", "--list"})
    if words and not found.starts_with_option:
        if not TAR_LETTERS.fullmatch(words[0]) or found.options:
            raise NotProved("tar: letters that are not on its list")
        listing = True
        if "f" in words[0]:
            at = next(i for i, (_, kind) in enumerate(found.operands) if kind == "data")
            if at + 1 < len(found.operands):
                found.operands[at + 1] = (found.operands[at + 1][0], "read")
    if any(":" in text.partition("/")[0] for text in found.of("read")):
        raise NotProved("tar: an archive on another machine")
    if not listing:
        raise NotProved("tar: only listing (tar -tf FILE) is known to change nothing")


def unzip(found: Arguments) -> None:
    if not found.options & {"-l", "-v", "-Z", "-t", "-p", "-z", "-c"}:
        raise NotProved("unzip: only listing (unzip -l FILE) and printing (-p) are known to change nothing")
