"""The tokens of a command line, and whether anything else stands between them."""

from __future__ import annotations

import re
from typing import Literal

from toolcrib.command.judge.syntax import Node
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Stage, Word
from toolcrib.dataclass import dataclass

# One or more `-` before a here-document, where tree-sitter-bash has no node for them.
STDIN = re.compile(r"[ \t]+(?:-[ \t]+)+")
DESCRIPTOR = re.compile(rb"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")  # of the redirection behind it
Kind = Literal["word", "op", "redirect", "fd", "assign", "newline", "group", "set"]


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a command line, with its offsets in bytes."""

    kind: Kind
    start: int
    end: int
    text: str = ""  # the operator, the digits, or the variable's name; "$" for a word that is a variable
    word: Word | None = None
    more: tuple[Word, ...] = ()  # the other words of a brace expansion
    group: Stage | None = None


class Tokens:
    """Collects the tokens of a text, and the places of what else may stand in it."""

    __slots__ = ("brackets", "found", "raw", "skipped")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.found: list[Token] = []
        self.skipped: list[tuple[int, int]] = []  # where comments stand, and bodies of here-documents
        self.brackets: list[tuple[int, int]] = []  # where tests end

    def add(
        self,
        kind: Kind,
        node: Node,
        text: str = "",
        word: Word | None = None,
        *,
        more: tuple[Word, ...] = (),
        group: Stage | None = None,
    ) -> None:
        self.found.append(Token(kind, node.start, node.end, text, word, more, group))

    def in_order(self, start: int, end: int) -> list[Token]:
        """The tokens between two offsets, in order, with those of newlines. Raises NotProved for any other text."""
        skipped = [Token("newline", a, b, "skip") for a, b in (*self.skipped, *self.brackets)]
        ordered = sorted([*self.found, *skipped], key=lambda token: token.start)
        found: list[Token] = []
        at = start
        last: Token | None = None
        for token in [*ordered, Token("newline", end, end, "skip")]:
            if token.start < at:
                raise NotProved("tokens that overlap")
            gap = self.raw[at : token.start].decode()
            if token.text in ("<<", "<<-") and STDIN.fullmatch(gap):
                dashes = (at + place for place, sign in enumerate(gap) if sign == "-")
                found += (Token("word", dash, dash + 1, word=Word(("-",))) for dash in dashes)
                gap = " "
            self._gap(gap, last, token)
            if "\n" in gap.replace("\\\n", ""):
                found.append(Token("newline", at, token.start))
            if token.text != "skip" or token.kind != "newline":
                found.append(token)
            at, last = token.end, token
        return found

    def _gap(self, gap: str, before: Token | None, after: Token) -> None:
        if gap.replace("\\\n", " ").strip(" \t\n"):
            raise NotProved("text that the parser left out")
        if "\\\n" in gap and gap[0] not in " \t\n" and before is not None:
            raise NotProved("a line continuation inside a word or operator")
        if gap or before is None:
            return
        kinds = {before.kind, after.kind}
        if kinds <= {"word", "assign", "fd", "group", "set"}:
            raise NotProved("words that touch")
        if before.kind == "op" == after.kind and (
            before.text == after.text or not {before.text, after.text} & set("();")
        ):
            raise NotProved("operators that touch")
        if before.kind == "redirect" == after.kind:
            raise NotProved("operators that touch")
        names = before.kind == "word" and DESCRIPTOR.fullmatch(self.raw, before.start, before.end)
        if names and after.kind == "redirect" and self.raw[before.start - 1 : before.start] != b"&":
            raise NotProved("a number or a name that touches a redirection")


def line_end(raw: bytes, at: int) -> int:
    """The offset of the newline that ends the line of `at`; the length of the text in its last line."""
    end = raw.find(b"\n", at)
    return len(raw) if end < 0 else end


def here_document(raw: bytes, at: int, delimiter: bytes, *, tabs: bool) -> tuple[int, int]:
    """The offsets of the body of a here-document that is announced at `at`, with the delimiter at its end.

    With `tabs` (`<<-`) tabs before the delimiter do not count. Raises NotProved if there is no end.
    """
    line = raw[at : line_end(raw, at)]
    if b"'" in line or b'"' in line or b"\\" in line or b"#" in line:
        raise NotProved("quotes on the line of a here-document")
    body = at = line_end(raw, at) + 1
    while at <= len(raw):
        end = line_end(raw, at)
        if (raw[at:end].lstrip(b"\t") if tabs else raw[at:end]) == delimiter:
            return body, end
        at = end + 1
    raise NotProved("a here-document without its end")
