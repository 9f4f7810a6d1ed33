"""Finds every command in a text, wherever it stands and however it is quoted, also where the text cannot be parsed.

Nothing is allowed because of what is found here. Denials, accesses for rules and the names of programs in a question
are made from it. `UNKNOWN` stands for the part of a word that only a shell would know.
"""

from __future__ import annotations

import base64
import binascii
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from toolcrib.command.judge.syntax import (
    Node,
    commands_at,
    is_redirection,
    join_lines,
    joined_tree,
    unparsed_scripts,
)
from toolcrib.command.judge.tokens import DESCRIPTOR
from toolcrib.command.not_proved import NotProved
from toolcrib.command.programs.destructive import HOME
from toolcrib.dataclass import dataclass, field

UNKNOWN = "\ufffd"
SPLIT = "\x1f"  # what $IFS stands for
MAX_LENGTH = 120_000  # characters read; the shell tool refuses longer commands
BEFORE = 8  # stages of a pipeline that are remembered for the next
MAX_EXPANDED = 500  # words of a command; behind these, braces are left as they stand
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
ESCAPES = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|0?([0-7]{1,3})|(.))", re.DOTALL
)
NAMED = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
PRINTERS = {"echo", "printf"}
EXPANDED = {"simple_expansion", "expansion", "command_substitution"}
ONE_WORD = {"concatenation", "number", "raw_string", "string", "string_content", "word"}
COMMANDS = {"command", "redirected_statement", "variable_assignments"}
HOLD_ASSIGNMENTS = {"command", "declaration_command", "variable_assignments"}
CLOSES = {"<&-", ">&-"}
EXPANDS = re.compile(r"[*?\[\]{}$`]")
NOT_EXPANDED = re.compile(r"\\.|\{\}", re.DOTALL)
ENCODED = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
BETWEEN = re.compile(r"(?:[;|()\n`]|(?<![<>])&(?!>))+|\$\(")


@dataclass(slots=True)
class FoundCommand:
    """One command: its arguments, the commands before it in a pipeline, its input if that is written out, and the files
    that its output goes to."""

    argv: list[str]
    before: list[list[str]] = field(default_factory=list)
    given: str = ""
    writes: list[str] = field(default_factory=list)


def find_commands(text: str, *, guess: bool = True) -> list[FoundCommand]:
    """Every command that can be recognised in a text.

    With `guess`, variables and substitutions are replaced by what they may stand for. Without it, each word that a
    shell would expand is `UNKNOWN`.
    """
    text = text[:MAX_LENGTH]
    try:
        root, has_error = joined_tree(text)
    except NotProved:
        return _split_in_all_ways(text, text)
    found = _Reader(guess=guess).read(root)
    found += [one for script in unparsed_scripts(root) for one in find_commands(script, guess=guess)]
    return [*found, *_split_in_all_ways(text, join_lines(text))] if has_error else found


def word_of(node: Node) -> str:
    """The text of a word of a syntax tree, with `UNKNOWN` for what only a shell would know."""
    return _Reader(guess=True).text(node, 0)


def programs_in(text: str) -> tuple[str, ...]:
    """The names of all programs that a text runs, as far as they can be recognised."""
    names = (command.argv[0].rpartition("/")[2] for command in find_commands(text) if command.argv)
    return tuple(dict.fromkeys(name for name in names if name and UNKNOWN not in name))


def _split_in_all_ways(text: str, joined: str) -> list[FoundCommand]:
    """The commands of a text that cannot be parsed, so that nobody knows which of its lines continue others."""
    readings = dict.fromkeys((joined, text.replace("\\\n", ""), text))
    return [one for reading in readings for one in _split_at_operators(reading)]


@lru_cache(maxsize=8)  # as for `tree_of`
def _split_at_operators(text: str) -> tuple[FoundCommand, ...]:
    split = [_split(piece) for piece in BETWEEN.split(text)]
    return tuple(
        FoundCommand([piece for word in words for piece in _expanded(word)]) for words in split if words
    )


def _split(piece: str) -> list[str]:
    try:
        words = shlex.split(piece, comments=True)
    except ValueError:
        words = piece.replace("'", "").replace('"', "").replace("\\", "").split()
    while words and (
        re.fullmatch(r"\w+=.*", words[0]) or words[0] in ("{", "}", "do", "then", "else", "!", "time")
    ):
        words.pop(0)
    return words


def unescaped(text: str) -> str:
    """A text with its escapes (`\\x72`, `\\162`) replaced by the characters that they stand for."""

    def sign(found: re.Match[str]) -> str:
        hexes = found[1] or found[2] or found[3]
        if hexes or found[4]:
            number = int(hexes, 16) if hexes else int(found[4], 8)
            return chr(number) if number < 0x110000 else UNKNOWN
        return NAMED.get(found[5], found[5])

    return ESCAPES.sub(sign, text)


def printed(argv: list[str]) -> str | None:
    """What `echo`, `printf` or `ls -d` would print, approximately; None for any other program."""
    name = argv[0].rpartition("/")[2] if argv else ""
    if name == "ls" and any(word.startswith("-") and "d" in word for word in argv[1:]):
        return "\n".join(word for word in argv[1:] if not word.startswith("-"))
    if name not in PRINTERS:
        return None
    words = [word for word in argv[1:] if not re.fullmatch(r"-[neE]+|--", word)]
    if name == "printf" and words and "%" in words[0]:
        shape, *values = words
        pieces = iter(values)
        text = re.sub(r"%[-#0 +\d.]*[sbdq]", lambda _: next(pieces, ""), shape)
        words = [text, *pieces]
    return unescaped(" ".join(words))


def piped_texts(stages: list[list[str]], given: str = "") -> list[str]:
    """What the stages of a pipeline may print, decoded where one of them decodes."""
    texts = [given] if given else []
    texts += [text for argv in stages if (text := printed(argv)) is not None]
    names = {argv[0].rpartition("/")[2] for argv in stages if argv}
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


class _Reader:
    __slots__ = ("characters", "commands", "guess", "variables")

    def __init__(self, *, guess: bool) -> None:
        self.guess = guess
        self.variables: dict[str, str] = {"HOME": HOME, "IFS": SPLIT}
        self.characters = MAX_LENGTH  # of values that are still put in the place of variables
        self.commands: list[FoundCommand] = []

    def read(self, root: Node) -> list[FoundCommand]:
        waiting: list[tuple[Node, list[list[str]], str, list[str]]] = [(root, [], "", [])]
        while waiting:
            node, before, given, writes = waiting.pop()
            if node.kind == "variable_assignment":
                self._assign(node)
            if node.kind == "for_statement":
                self._assign_each(node)
            body = node.field("body") if node.kind == "redirected_statement" else None
            if body is not None and body is not node.children[-1]:
                redirected = self._commands_at(node.children[body.place + 1])[0]
                given, writes = redirected.given or given, writes + redirected.writes
            elif _begins_command(node):
                self.commands += (
                    FoundCommand(one.argv, before, one.given or given, writes + one.writes)
                    for one in self._commands_at(node)
                    if one.argv or one.writes
                )
            if node.kind == "pipeline":
                inner_before = list(before)
                children: list[tuple[Node, list[list[str]], str, list[str]]] = []
                for child in node.named_children:
                    children.append((child, inner_before[-BEFORE:], given, writes))
                    inner_before += self._argvs_of_stage(child)
                waiting += reversed(children)
                continue
            waiting += [(child, before, given, writes) for child in reversed(node.named_children)]
        return self.commands

    def _argvs_of_stage(self, node: Node) -> list[list[str]]:
        """The commands of one stage of a pipeline, without those nested in their words."""
        if node.kind == "command":
            return [one.argv for one in self._commands_at(node)]
        if node.kind in ("redirected_statement", "subshell", "list", "compound_statement", "negated_command"):
            return [argv for child in node.named_children[:20] for argv in self._argvs_of_stage(child)]
        return []

    def _assign(self, node: Node) -> None:
        name, value = node.field("name"), node.field("value")
        if name is not None:
            self.variables[name.text] = self.text(value, 0) if value is not None else ""

    def _assign_each(self, node: Node) -> None:
        """Assigns all words of a loop to its variable."""
        name = node.field("variable")
        if name is not None:
            self.variables[name.text] = SPLIT.join(self.text(value, 0) for value in node.all_of("value"))

    def _value(self, name: str) -> str:
        """The value of a variable. `b=$a$a; c=$b$b; …` would fill all memory, so values are put in up to a limit."""
        value = self.variables.get(name, UNKNOWN)
        self.characters -= len(value)
        return value if self.characters >= 0 else UNKNOWN

    def _commands_at(self, node: Node) -> list[FoundCommand]:
        return [self._command_of(parts) for parts in commands_at(node)]

    def _command_of(self, parts: Sequence[Sequence[Node]]) -> FoundCommand:
        """The command of words and signs of redirections, each given as the nodes that it consists of."""
        words: list[str] = []
        given: list[str] = []
        writes: list[str] = []
        into = words  # the list for the next word: behind the sign of a redirection, the one for its operands
        for part in parts:
            first = part[0]
            if is_redirection(first):
                operands = given if first.kind == "<<<" else writes if ">" in first.kind else []
                into = words if first.kind in CLOSES else operands
                if first.kind in ("<<", "<<-") and first.parent is not None:
                    given += [body.text for body in first.parent.children if body.kind == "heredoc_body"]
                continue
            is_set_before = first.kind == "variable_assignment" and into is words and not words
            if is_set_before or _names_descriptor(part):
                continue
            found = self._words_of(part)
            if first.kind == "process_substitution":
                given += (text for text in found if text != UNKNOWN)
            into += found
            into = words
        argv: list[str] = []
        for word in words:
            argv += _expanded(word) if len(argv) < MAX_EXPANDED else [word]
        return FoundCommand(argv, [], "\n".join(given), writes)

    def _words_of(self, nodes: Sequence[Node]) -> list[str]:
        """The words of nodes that touch each other: one, or more where an expansion is split at blanks."""
        if len(nodes) == 1 and nodes[0].text in ("{", "}"):
            return [nodes[0].text]
        words: list[str] = []
        for node in nodes:
            text = self.text(node, 0)
            pieces = text.split() if node.kind in EXPANDED and UNKNOWN not in text else [text]
            if words and pieces:
                words[-1] += pieces.pop(0)
            words += pieces
        return words

    def text(self, node: Node, depth: int) -> str:
        """What a word stands for."""
        kind = node.kind
        if depth > 12 or not (self.guess or _is_one_word(node)):
            return UNKNOWN
        if kind == "raw_string":
            return node.text[1:-1]
        if kind == "ansi_c_string":
            return unescaped(node.text[2:-1])
        if kind in ("simple_expansion", "expansion"):
            names = [child.text for child in node.named_children if child.kind == "variable_name"]
            simple = len(node.text) <= len(names[0]) + 3 if names else False
            return self._value(names[0]) if simple else UNKNOWN
        if kind in ("command_substitution", "process_substitution"):
            inner = [
                argv
                for child in node.named_children
                for stage in _stages(child)
                for argv in self._argvs_of_stage(stage)
            ]
            text = piped_texts(inner)[-1:]
            return text[0] if text and len(inner) < BEFORE else UNKNOWN
        if kind == "string":
            return "".join(self._pieces(node, depth, quoted=True))[1:-1]
        if not node.named_children:
            return re.sub(r"\\(.)", r"\1", node.text, flags=re.DOTALL)
        return "".join(self._pieces(node, depth, quoted=False))

    def _pieces(self, node: Node, depth: int, *, quoted: bool) -> Iterator[str]:
        """The texts of the children of a node and the texts between them."""
        raw, at = node.raw[node.start : node.end], node.start
        for child in node.named_children:
            if child.kind == "string_content":
                continue
            yield _plain(raw[at - node.start : child.start - node.start], quoted)
            yield self.text(child, depth + 1)
            at = child.end
        yield _plain(raw[at - node.start :], quoted)


def _is_one_word(node: Node) -> bool:
    """Whether no shell makes anything else of a word than what is written there."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.kind not in ONE_WORD or (
            one.kind == "word" and EXPANDS.search(NOT_EXPANDED.sub("", one.text))
        ):
            return False
        waiting += one.named_children
    return True


def _begins_command(node: Node) -> bool:
    """Whether a command begins where a node does; it may have no words, only redirections or assignments."""
    if node.kind != "variable_assignment":
        return node.kind in COMMANDS
    return node.parent is not None and node.parent.kind not in HOLD_ASSIGNMENTS


def _names_descriptor(nodes: Sequence[Node]) -> bool:
    """Whether a word belongs to the redirection behind it: `{name}>file`."""
    first, last = nodes[0], nodes[-1]
    touches = last.raw[last.end : last.end + 1] in (b"<", b">")
    return touches and DESCRIPTOR.fullmatch(first.raw, first.start, last.end) is not None


def _stages(node: Node) -> list[Node]:
    return list(node.named_children) if node.kind == "pipeline" else [node]


def _plain(raw: bytes, quoted: bool) -> str:
    text = raw.decode("utf-8", "replace")
    return re.sub(r"\\([$`\"\\])" if quoted else r"\\(.)", r"\1", text, flags=re.DOTALL)


def _expanded(word: str) -> list[str]:
    """The words that a word becomes when its braces are expanded and it is split at $IFS."""
    words = [word]
    for _ in range(4):
        if len(words) > 64 or not any("{" in one and BRACES.search(one) for one in words):
            break
        words = [
            one[: match.start()] + piece + one[match.end() :]
            for one in words
            for match in [BRACES.search(one)]
            if match
            for piece in match[1].split(",")
        ] + [one for one in words if not BRACES.search(one)]
    return [
        piece
        for one in words
        for piece in ([one] if SPLIT not in one else one.split(SPLIT))
        if piece or not SPLIT
    ]
