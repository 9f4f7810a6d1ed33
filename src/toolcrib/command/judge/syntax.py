"""The syntax tree of a command line, by tree-sitter-bash: the only place where text enters that parser.

The scanner of tree-sitter-bash calls C functions like `isdigit`, which are defined for bytes only, on whole code
points: `echo {X..9}` with X = U+10FFFF reads far outside their table and ends the process. So the parser is given
another text, in which no character lies above U+00FF and every byte offset is the same. What is judged is the real
text, cut out by these offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from toolcrib.command.judge.screen import MAX_LENGTH
from toolcrib.command.not_proved import NotProved

if TYPE_CHECKING:
    from tree_sitter import Language, TreeCursor

MAX_OPERATORS = 2_000
MAX_DEPTH = 300  # nodes in each other
MAX_READINGS = 8  # of one text, which is corrected after each
TOO_INTRICATE = "too long or too intricate to review"
OPERATOR = re.compile(r"[|&;(){}<>`$[]")
ABOVE = re.compile("[^\x00-\xff]")
AFTER_HEREDOC = re.compile(r"<<[^\n]*")
BYTE_ORDER_MARK = "\ufeff"
QUOTES = re.compile(r"['\"\\]")
SUBSTITUTION = re.compile(rb"\\.|`|[$<>]\(", re.DOTALL)
# Where the parser may read a backslash, a # or an operator in another way than bash.
SUSPICIOUS = re.compile(rb"\n\\|[^\n\t ;|&(){]#|\\[ \t]#|=[=~]")
SEPARATES = b" \t;|&()<>`"
CONTINUED = re.compile(rb"(?<!\\)((?:\\\\)*)\\\n")
BACKTICKED = re.compile(rb"`((?:\\.|[^`\\])*)", re.DOTALL)
QUOTED_OR_PARENTHESIS = re.compile(rb"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[()]", re.DOTALL)
SUBSTITUTING = ("command_substitution", "process_substitution")
QUOTING = ("arithmetic_expansion", "expansion", "heredoc_body", "string", "subscript")
REDIRECTION = re.compile(r"&?[<>]+[&|]?-?")
# Nodes that are words, or parts of words, whatever stands in them; and nodes that stand between words.
WHOLE = {
    "ansi_c_string", "arithmetic_expansion", "array", "brace_expression", "command_substitution", "concatenation",
    "expansion", "extglob_pattern", "process_substitution", "raw_string", "simple_expansion", "string",
    "translated_string", "variable_assignment",
}  # fmt: skip
NO_WORDS = {"comment", "heredoc_body", "heredoc_end"}
LETTERS = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ"


class Node:
    """A node of the tree: its kind, the bytes of the text that it stands on, and its children."""

    __slots__ = (
        "children", "end", "fields", "has_error", "is_missing", "is_named", "kind", "parent", "place", "raw", "start",
    )  # fmt: skip

    def __init__(self, cursor: TreeCursor, raw: bytes, parent: Node | None) -> None:
        node = cursor.node
        assert node is not None
        self.kind = node.type
        self.start = node.start_byte
        self.end = node.end_byte
        self.is_named = node.is_named
        self.is_missing = node.is_missing
        self.has_error = node.has_error
        self.raw = raw
        self.parent = parent
        self.children: list[Node] = []
        self.fields: list[tuple[str, Node]] = []
        self.place = 0  # its index among the children of its parent
        if parent is not None:
            self.place = len(parent.children)
            parent.children.append(self)
            if cursor.field_name is not None:
                parent.fields.append((cursor.field_name, self))

    @property
    def text(self) -> str:
        """The part of the judged text that the node covers."""
        return self.raw[self.start : self.end].decode("utf-8", "replace")

    @property
    def named_children(self) -> list[Node]:
        return [child for child in self.children if child.is_named]

    def field(self, name: str) -> Node | None:
        """The first child in a role, as the grammar names it."""
        return next((child for role, child in self.fields if role == name), None)

    def all_of(self, name: str) -> Sequence[Node]:
        """All children in a role."""
        return [child for role, child in self.fields if role == name]


@lru_cache(maxsize=8)  # the same text is read for what it destroys, for its plan, and for its programs
def tree_of(text: str) -> Node:
    """The syntax tree, whatever its errors. Raises NotProved where tree-sitter-bash cannot be imported, and for a
    text that would keep it busy: its time grows with the square of the operators in a row."""
    if len(text) > MAX_LENGTH or len(OPERATOR.findall(text)) > MAX_OPERATORS:
        raise NotProved(TOO_INTRICATE)
    try:
        import tree_sitter

        language = _language()
    except ImportError:
        raise NotProved(
            "commands cannot be read, since the package tree-sitter-bash cannot be imported here: "
            "pip install tree-sitter tree-sitter-bash"
        ) from None
    # A parser for each text: one must not be used by two threads.
    raw = text.encode("utf-8", "replace")
    parsed = bytearray(stand_in(raw.decode()).encode())
    suspicious = SUSPICIOUS.search(raw) is not None
    for _ in range(MAX_READINGS):
        root = _nodes(tree_sitter.Parser(language).parse(bytes(parsed)).walk(), raw)
        misread = [at for node in below(root) if (at := _misread_at(node)) is not None] if suspicious else []
        if not misread:
            root.has_error = root.has_error or (b"<<" in raw and any(map(_misplaces_body, below(root))))
            return root
        for at in misread:
            _make_plain(parsed, at)
    raise NotProved(TOO_INTRICATE)


def _misread_at(node: Node) -> int | None:
    """The place in a node of a sign that the parser reads in another way than bash; None if there is no such sign.

    The parser joins a line that begins with a backslash to the line before it, takes a # in a word for a comment, and
    joins the line behind `==` or `=~` to a command that ends with it.
    """
    raw, at = node.raw, node.start
    if node.kind in ("==", "=~"):
        return at if node.parent is not None and node.parent.kind == "command" else None
    if node.kind == "comment":
        return None if _begins_word(raw, at) else at
    if node.kind != "word" or not raw.startswith(b"\n", at) or _is_quoted(node):
        return None
    while raw.startswith(b"\n", at):
        at += 1
    return at if raw.startswith(b"\\", at) else None


def _misplaces_body(node: Node) -> bool:
    """Whether the parser reads on behind the line of a here-document, where bash reads its body: `cat <<E |`."""
    start = next((child for child in node.children if child.kind == "heredoc_start"), None)
    if start is None:
        return False
    line_end = node.raw.find(b"\n", start.end)
    others = (child for child in node.children if child.kind not in ("heredoc_body", "heredoc_end"))
    return 0 <= line_end < max(child.end for child in others)


def _begins_word(raw: bytes, at: int) -> bool:
    """Whether bash may begin a word at a place: at the beginning of a line, or behind a separator that is not escaped.

    A line that continues the one before it is no matter here: `join_lines` joins the two.
    """
    if at == 0 or raw[at - 1 : at] == b"\n":
        return True
    first = at - 1
    while first > 0 and raw[first - 1 : first] == b"\\":
        first -= 1
    return raw[at - 1] in SEPARATES and (at - 1 - first) % 2 == 0


def _is_quoted(node: Node) -> bool:
    around = node.parent
    while around is not None and around.kind not in SUBSTITUTING:
        if around.kind in QUOTING:
            return True
        around = around.parent
    return False


def _make_plain(parsed: bytearray, at: int) -> None:
    """Replaces the sign at a place, and one that it escapes, by `_`; a backslash before a line end by a blank."""
    escaped = parsed[at + 1 : at + 2] if parsed[at : at + 1] == b"\\" else b""
    if escaped == b"\n":
        parsed[at : at + 1] = b" "
        return
    parsed[at : at + 1] = b"_"
    if escaped and escaped < b"\x80" and not escaped.isalnum():
        parsed[at + 1 : at + 2] = b"_"


@cache
def _language() -> Language:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def _nodes(cursor: TreeCursor, raw: bytes) -> Node:
    """The whole tree. A node whose edge lies inside a character counts as an error."""
    root = at = Node(cursor, raw, None)
    depth = 0
    while True:
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if at.parent is None or not cursor.goto_parent():
                    return root
                at = at.parent
                depth -= 1
            depth -= 1
            assert at.parent is not None
            at = at.parent
        at = Node(cursor, raw, at)
        depth += 1
        if depth > MAX_DEPTH:
            raise NotProved(TOO_INTRICATE)
        if _inside_character(raw, at.start) or _inside_character(raw, at.end):
            root.has_error = True


def _inside_character(raw: bytes, at: int) -> bool:
    return at < len(raw) and raw[at] & 0xC0 == 0x80


def stand_in(text: str) -> str:
    """A text with the same meaning to the parser and the same byte offsets, without characters above U+00FF.

    A letter takes the place of a character, because the parser is strictest with letters: they may belong to the
    name of a variable, so more is an assignment or an expansion than in bash. Unusual spaces stay blanks, and so
    does a byte order mark at the beginning, which the parser skips. A here-document ends at the line that is equal
    to its delimiter, so each character of a line with `<<` gets a letter of its own.

    >>> stand_in("echo {\\U0010ffff..9}"), stand_in("é 字 \\u0416\\u3000x")
    ('echo {àà..9}', 'é à_ à   x')
    """
    if text.isascii() or not ABOVE.search(text):
        return text
    letters = [letter for letter in LETTERS if letter not in text]
    told_apart = dict.fromkeys(ABOVE.findall("".join(AFTER_HEREDOC.findall(text))))
    if len(told_apart) >= len(letters):
        raise NotProved("too many different characters to review")
    by_sign = dict(zip(told_apart, letters[1:], strict=False))

    def replaced(found: re.Match[str]) -> str:
        sign = found[0]
        length = len(sign.encode())
        letter = by_sign.get(sign, letters[0])
        is_blank = sign.isspace() or (sign == BYTE_ORDER_MARK and not found.start())
        return " " * length if is_blank else letter * (length // 2) + "_" * (length % 2)

    return ABOVE.sub(replaced, text)


def below(root: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children


def commands_at(node: Node) -> list[list[list[Node]]]:
    """The commands that begin where a node does: words and signs of redirections, each as the nodes that make it up.

    They are read in the order of the text, because the tree is wrong about them: it binds redirections to a whole list,
    takes the words behind them for parts of them, and begins a new word within one (`>"a"\\b`). It also joins lines,
    so that there may be several commands.
    """
    commands: list[list[list[Node]]] = [[]]
    end = node.start
    for token in _tokens_from(node):
        sign = is_redirection(token)
        if not (token.is_named or sign or token.kind == "$"):
            break
        if token.kind in NO_WORDS:
            continue
        if b"\n" in token.raw[end : token.start]:
            if token.start >= node.end:
                break
            commands.append([])
        parts = commands[-1]
        if parts and token.start == end and not (sign or is_redirection(parts[-1][0])):
            parts[-1].append(token)
        else:
            parts.append([token])
        end = token.end
    return commands


def is_redirection(node: Node) -> bool:
    """Whether a token is the sign of a redirection."""
    return not node.is_named and REDIRECTION.fullmatch(node.kind) is not None


def _tokens_from(node: Node) -> Iterator[Node]:
    """The words and signs of a text, from where a node begins."""
    while True:
        while node.children and node.kind not in WHOLE:
            node = node.children[0]
        yield node
        while node.parent is not None and node.place == len(node.parent.children) - 1:
            node = node.parent
        if node.parent is None:
            return
        node = node.parent.children[node.place + 1]


@lru_cache(maxsize=8)
def join_lines(text: str) -> str:
    """A text with its continued lines joined as bash joins them: not in comments, nor in quotes that keep backslashes.

    Where a word goes on in the next line, the parser begins a new word, and may take its # for a comment. So the joined
    text is read again until nothing changes. Raises NotProved as `tree_of` does.
    """
    for _ in range(MAX_READINGS):
        if "\\\n" not in text:
            return text
        root = tree_of(text)
        pieces, at = [], 0
        for start, end in sorted((node.start, node.end) for node in below(root) if _is_literal(node)):
            if start >= at:
                pieces += [CONTINUED.sub(rb"\1", root.raw[at:start]), root.raw[start:end]]
                at = end
        joined = b"".join([*pieces, CONTINUED.sub(rb"\1", root.raw[at:])]).decode()
        if joined == text:
            return text
        text = joined
    raise NotProved(TOO_INTRICATE)


def joined_tree(text: str) -> tuple[Node, bool]:
    """The syntax tree of a text with its continued lines joined, and whether it may be wrong. Raises as `tree_of` does.

    It may be wrong where the text cannot be parsed: then lines may have been joined that bash does not join.
    """
    root = tree_of(join_lines(text))
    return root, root.has_error or tree_of(text.removesuffix("\\\n")).has_error


def unparsed_scripts(root: Node) -> Iterator[str]:
    """The scripts in substitutions that bash runs and the parser does not read.

    These are backticks in a here-document, in `${x:-…}` and within other backticks, and `$(…)` and `<(…)` in `${x#…}`.
    Beside one whose end is unknown, a text that cannot be parsed is given: of the last ones, and where the parser takes
    two backticks for one sign.
    """
    if not any(sign in root.raw for sign in (b"`", b"$(", b"<(", b">(")):
        return
    # 1 for each byte of a token of the parser, and of text that bash takes as it stands or that is given.
    known = bytearray(len(root.raw))
    split: set[int] = set()  # where substitutions begin that were split at their backticks
    waiting = [root]
    while waiting:
        node = waiting.pop()
        script = _escaped_script(node)
        if script is not None:
            yield script
        if node.kind == "``":  # the end of a substitution and the beginning of another, taken for one token
            yield ")"
            around = _substitution_around(node)
            if around.start not in split:
                split.add(around.start)
                yield from around.text.split("`")[1::2]
        if script is not None or (not node.is_named and node.kind not in "<>") or _is_literal(node):
            known[node.start : node.end] = b"\1" * (node.end - node.start)
        else:
            waiting += node.children
    end = 0
    for found in SUBSTITUTION.finditer(root.raw):
        at = found.start()
        if at < end or known[at] or found[0][:1] == b"\\":
            continue
        if quoted := BACKTICKED.match(root.raw, at):
            end = quoted.end() + 1
            yield _in_backticks(quoted[1].decode("utf-8", "replace"))
        else:
            end = _closing(root.raw, at)
            # The pattern of a `case` ends with a parenthesis too, so with one, all up to the last parenthesis is given.
            to = root.raw.rfind(b")") if b"case" in root.raw[at:end] else end
            yield from (")", root.raw[at + 2 : to].decode("utf-8", "replace"))


def _substitution_around(node: Node) -> Node:
    """The innermost substitution that a node stands in, or the whole text."""
    while node.parent is not None and node.kind not in SUBSTITUTING:
        node = node.parent
    return node


def _closing(raw: bytes, at: int) -> int:
    """Where the first unquoted parenthesis behind a place is closed, or the end of the text."""
    depth = 0
    for found in QUOTED_OR_PARENTHESIS.finditer(raw, at):
        depth += (found[0] == b"(") - (found[0] == b")")
        if not depth:
            return found.start()
    return len(raw)


def _escaped_script(node: Node) -> str | None:
    """What stands in backticks, if it has other commands than the parser found there, because of its backslashes."""
    if node.kind != "command_substitution" or "`" not in node.children[0].kind:
        return None
    written = node.text.partition("`")[2].removesuffix("`")
    script = _in_backticks(written)
    return script if script != written else None


def _in_backticks(text: str) -> str:
    return re.sub(r"\\([`$\\])", r"\1", text)


def _is_literal(node: Node) -> bool:
    """Whether bash expands nothing in the text of a node: it is quoted, or a comment."""
    if node.kind == "heredoc_body" and node.parent is not None:
        starts = [child.text for child in node.parent.children if child.kind == "heredoc_start"]
        return any(map(QUOTES.search, starts))
    if node.kind not in ("ansi_c_string", "comment", "raw_string"):
        return False
    around = node.parent
    while around is not None and around.kind not in SUBSTITUTING:
        if around.kind in QUOTING or (around.children and around.children[0].kind == "(("):
            return False  # there, a quote or # is a character
        around = around.parent
    return True
