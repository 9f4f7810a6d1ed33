"""Decodes a word as it is written into the argument that a program gets: exactly one reading, or none.

Quotes, escapes, `$'…'`, pattern signs, `$( … )` and `<( … )` are understood. Whatever else a shell would expand
(variables, braces, `~`, arithmetic, backticks) stops here, so that nothing is left to be guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from toolcrib.command.judge.syntax import Node
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import (
    Command,
    Glob,
    LoopName,
    Pipeline,
    Plan,
    Step,
    Substitution,
    Word,
    WordPart,
    last_status,
)
from toolcrib.command.programs.checks import VARIABLES
from toolcrib.dataclass import replace

Inner = Callable[[Node], Plan]  # reads the inside of a substitution
# Values, the pattern that a loop goes over, or what has printed the value by then.
Variables = Mapping[str, str | Glob | Substitution]
NONE: Variables = {}
VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
PRINTED = re.compile(rf"\$(?:({'|'.join(VARIABLES)})|\{{({'|'.join(VARIABLES)})\}})")
UNSPLIT = re.compile(r"[A-Za-z0-9_./:@%+,=-]+")  # a value that stays one word outside quotes too

UNEXPANDED = {
    "simple_expansion": "a variable",
    "expansion": "a variable",
    "arithmetic_expansion": "arithmetic",
    "process_substitution": "a process substitution",
    "brace_expression": "a brace expansion",
    "translated_string": 'a translated string ($"…")',
    "extglob_pattern": "an extended pattern",
    "variable_assignment": "an assignment in the middle of a command",
}
BARE = {"word", "number", "test_operator", "special_variable_name", "variable_name"}
META = set("$`\"'|&;<>()")
CLASS = re.compile(r"\[[!^]?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_.])+\]")
RANGE = re.compile(r"(?=(.)-(.))")
BRACES = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)
TILDE = re.compile(r"(?:^|[=:])~")
DOUBLE_ESCAPE = re.compile(r"\\([$`\"\\\n])")
ANSI = re.compile(
    r"\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|[abeEfnrtv\\'\"?]|.)|[^\\]",
    re.DOTALL,
)
ANSI_NAMED = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "?": "?"}


def decode(node: Node, inner: Inner, variables: Variables = NONE) -> Word:
    """The word that a node of the tree stands for, with known variables replaced.

    Raises NotProved if the word has more than one reading.
    """
    raw = node.text
    if node.kind in BARE and UNSPLIT.fullmatch(raw):
        return Word((raw,))  # most words
    if node.kind == "process_substitution" and raw.startswith("<("):
        return Word((Substitution(inner(node), quoted=True, piped=True),))
    pieces = _pieces(node, inner, variables)
    if TILDE.search(raw):
        raise NotProved("a ~ that the shell would expand")
    if "{" in raw and "}" in raw and BRACES.search(raw) and _bare_brace(node):
        raise NotProved("a brace expansion")
    word = Word(_joined(pieces))
    if word.is_glob:
        _check_glob(word)
    return word


def bare_word(text: str) -> Word:
    """Read a text as an unquoted word: its `*`, `?` and `[` are patterns."""
    word = Word(_joined(_bare(text)))
    if word.is_glob:
        _check_glob(word)
    return word


def _pieces(node: Node, inner: Inner, variables: Variables) -> list[WordPart]:
    kind = node.kind
    if kind in BARE:
        if node.named_children:
            raise NotProved("an expansion inside a word")
        return _bare(node.text)
    if kind == "raw_string":
        return [node.text[1:-1]]
    if kind == "string":
        return _double(node, inner, variables)
    if kind == "ansi_c_string":
        return [_ansi(node.text[2:-1])]
    if kind == "command_substitution":
        return [_substitution(node, inner, quoted=False)]
    if kind == "concatenation":
        return _concatenation(node, inner, variables)
    value = _known(node, variables, quoted=False)
    if isinstance(value, Glob | Substitution) or (value is not None and UNSPLIT.fullmatch(value)):
        return [value]
    if (printed := _printed(node, quoted=False)) is not None:
        return [printed]
    raise NotProved(UNEXPANDED.get(kind, f"{kind.replace('_', ' ')} in a word"))


def _known(node: Node, variables: Variables, *, quoted: bool) -> str | LoopName | Substitution | None:
    """The value of `$name` or `${name}`, or what sets it when the command runs. None where that is not known."""
    match = VARIABLE.fullmatch(node.text) if node.kind in ("simple_expansion", "expansion") else None
    if match is None:
        return None
    name = match[1] or match[2]
    value = variables.get(name)
    if isinstance(value, Substitution):
        return replace(value, quoted=quoted)
    return LoopName(value.sign, name, quoted) if isinstance(value, Glob) else value


def _printed(node: Node, *, quoted: bool) -> Substitution | None:
    """`$?`; `$PWD` as `$(pwd)`; `$PATH` and other variables that every command has, as `$(printenv PATH)`."""
    if node.kind not in ("simple_expansion", "expansion"):
        return None
    if node.text in ("$?", "${?}"):
        return last_status(quoted=quoted)
    match = PRINTED.fullmatch(node.text)
    if match is None and node.text not in ("$PWD", "${PWD}"):
        return None
    words = (Word(("pwd",)),) if match is None else (Word(("printenv",)), Word((match[1] or match[2],)))
    return Substitution(Plan((Step(";", Pipeline((Command(words),))),)), quoted)


def _concatenation(node: Node, inner: Inner, variables: Variables) -> list[WordPart]:
    """The parts of a word made of several. Its children must follow each other without gaps."""
    at = node.start
    found: list[WordPart] = []
    for child in node.children:
        if child.start != at or not child.is_named:
            raise NotProved("a word with a gap in it")
        found += _pieces(child, inner, variables)
        at = child.end
    if at != node.end:
        raise NotProved("a word with a gap in it")
    return found


def _bare(text: str) -> list[WordPart]:
    found: list[WordPart] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            if at + 1 == len(text):
                raise NotProved("a backslash at the end")
            if text[at + 1] != "\n":
                found.append(text[at + 1])
            at += 2
            continue
        if sign in " \t\n":
            raise NotProved("white space inside a word")
        if sign in META or (sign == "#" and at == 0):
            raise NotProved(f"an unquoted {sign}")
        found.append(Glob(sign) if sign in "*?[]" else sign)
        at += 1
    return found


def _double(node: Node, inner: Inner, variables: Variables) -> list[WordPart]:
    raw = node.raw[node.start : node.end]
    if len(raw) < 2 or raw[:1] != b'"' or raw[-1:] != b'"':
        raise NotProved("an odd string")
    found: list[WordPart] = []
    at = 1
    for child in node.named_children:
        if child.kind == "string_content":
            continue
        value: WordPart | None = _known(child, variables, quoted=True)
        if value is None:
            value = _printed(child, quoted=True)
        if value is None and child.kind != "command_substitution":
            raise NotProved(UNEXPANDED.get(child.kind, child.kind.replace("_", " ")) + " in double quotes")
        start = child.start - node.start
        found += [
            _double_text(raw[at:start]),
            value if value is not None else _substitution(child, inner, quoted=True),
        ]
        at = child.end - node.start
    return [*found, _double_text(raw[at:-1])]


def _double_text(raw: bytes) -> str:
    text = raw.decode()
    plain = re.sub(r"\\.", "", text, flags=re.DOTALL)
    if "$" in re.sub(r"\$(?=[ \n\t.,:;)\]}/|%^+=~'\\]|$)", "", plain) or "`" in plain or '"' in plain:
        raise NotProved("a $ or ` in double quotes")
    if plain.endswith("\\"):
        raise NotProved("an odd string")
    return DOUBLE_ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def _ansi(text: str) -> str:
    decoded: list[str] = []
    signs = ANSI.findall(text)
    if "".join(signs) != text:
        raise NotProved("an odd $'…'")  # it ends with a backslash: its quote was not the end
    for sign in signs:
        if sign[0] != "\\":
            decoded.append(sign)
        elif sign[1] in ANSI_NAMED and len(sign) == 2:
            decoded.append(ANSI_NAMED[sign[1]])
        elif sign[1] in "xuU01234567" and len(sign) > (2 if sign[1] in "xuU" else 1):
            number = int(sign[2:], 16) if sign[1] in "xuU" else int(sign[1:], 8)
            if not (32 <= number < 127 or number in (9, 10)):
                raise NotProved("a character in $'…' that cannot be shown")
            decoded.append(chr(number))
        else:
            raise NotProved(f"the escape {sign} in $'…'")
    return "".join(decoded)


def _substitution(node: Node, inner: Inner, *, quoted: bool) -> Substitution:
    text = node.text
    if not text.startswith("$(") and ("\\" in text or '"' in text):
        raise NotProved("a backtick substitution with quotes in it")  # they are read twice there
    return Substitution(inner(node), quoted)


def _joined(pieces: list[WordPart]) -> tuple[WordPart, ...]:
    """Joins neighbouring texts into one part, and the signs of a `[` … `]` pattern into one."""
    joined: list[WordPart] = []
    bracket = False
    for piece in pieces:
        if isinstance(piece, Glob) and piece.sign == "[":
            if bracket:
                raise NotProved("a complicated pattern")
            bracket = True
            joined.append(piece)
        elif isinstance(piece, Glob) and piece.sign == "]" and bracket:
            bracket = False
            joined[-1] = Glob(_sign_of(joined[-1]) + "]")
        elif bracket:
            if not isinstance(piece, str) or not isinstance(joined[-1], Glob):
                raise NotProved("a complicated pattern")
            joined[-1] = Glob(joined[-1].sign + piece)
        elif isinstance(piece, Glob) and piece.sign == "]":
            _append_text(joined, "]")
        elif isinstance(piece, str):
            _append_text(joined, piece)
        else:
            joined.append(piece)
    if bracket:
        raise NotProved("an unfinished [ … ] pattern")
    return tuple(joined)


def _sign_of(part: WordPart) -> str:
    return part.sign if isinstance(part, Glob) else ""


def _append_text(joined: list[WordPart], text: str) -> None:
    if joined and isinstance(last := joined[-1], str):
        joined[-1] = last + text
    elif text:
        joined.append(text)


def _check_glob(word: Word) -> None:
    """Raises NotProved for a pattern that does not say how its matches begin: one could be an option or `..`."""
    if word.names_of_loops:
        _check_names(word)
        return
    for part in word.parts:
        if isinstance(part, Substitution):
            raise NotProved("a pattern with a substitution in it")
        if isinstance(part, Glob) and part.sign[0] == "[" and not _is_plain_class(part.sign):
            raise NotProved("a complicated pattern")
    if word.prefix in (".", "./.") or word.prefix.endswith("/."):
        raise NotProved("a pattern that can match names beginning with - or a dot")
    if any(isinstance(part, str) and set(part) & set("\\[]*?") for part in word.parts):
        raise NotProved("a pattern with quoted pattern signs")


def _is_plain_class(sign: str) -> bool:
    """Whether `[…]` holds letters, digits and ranges of them that mean the same in every locale."""
    ascend = all(first <= last for first, last in RANGE.findall(sign[1:-1].lstrip("!^")))
    return ascend and CLASS.fullmatch(sign) is not None


def _check_names(word: Word) -> None:
    """Raises NotProved for names of a loop beside another pattern or what may become several words, or behind a dot."""
    if word.splits or not all(isinstance(part, str | LoopName | Substitution) for part in word.parts):
        raise NotProved("a name of a loop beside a pattern or a substitution without quotes")
    if word.prefix.endswith("."):
        raise NotProved("a name of a loop behind a dot")


def _bare_brace(node: Node) -> bool:
    """Whether a brace stands outside quotes, where a shell expands it."""
    if node.kind in BARE:
        return "{" in re.sub(r"\\.", "", node.text)
    return node.kind == "concatenation" and any(map(_bare_brace, node.named_children))
