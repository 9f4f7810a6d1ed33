"""The input that was typed into a process and that a shell has not run yet: several calls may type one command."""

from __future__ import annotations

import re

from toolcrib.dataclass import dataclass

MAX_KEPT = 20_000  # characters
# What begins a here-document, with the word that ends it. Before a number, `<<` is the shift operator of a language.
HERE_DOCUMENT = re.compile(r"<<(-?)[ \t]*(?!\d+\b)((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;|&<>()'\"\\])+)")
QUOTING = re.compile(r"\\(.)|['\"]")


@dataclass(slots=True)
class TypedLine:
    """The text of a command that is not finished. `changed`: keys changed it, so the real text is not known."""

    text: str = ""
    changed: bool = False

    def type(self, text: str) -> None:
        whole = self.text + text
        rest = unfinished(whole)
        self.changed = (self.changed and len(rest) == len(whole)) or len(rest) > MAX_KEPT
        self.text = rest[-MAX_KEPT:]

    def press(self, key: str) -> None:
        if key == "enter":
            self.type("\n")
        elif key == "ctrl-c":
            self.text, self.changed = "", False
        elif key == "ctrl-u" and not self.changed:  # only the last line of several goes
            self.text = self.text[: self.text.rfind("\n") + 1]
        elif key != "ctrl-d" or self.text:  # behind a text, ctrl-d ends neither the line nor the input
            self.changed = True


def unfinished(text: str) -> str:
    r"""The end of a text that a shell has not run yet: its last line, with the lines before it that it continues.

    A line goes on behind a backslash, and within quotes, substitutions, parentheses and here-documents.

    >>> unfinished("ls\nrm -r"), unfinished("rm -r \\\n"), unfinished("echo 'a\nb'\n"), unfinished("cat <<E\nit's\n")
    ('rm -r', 'rm -r \\\n', '', "cat <<E\nit's\n")
    """
    begins = at = 0
    inside: list[str] = []  # the sign that closes each open quote or bracket
    documents: list[tuple[str, bool]] = []  # that follow: what ends each, and if tabs may precede it
    while at < len(text):
        sign, closes = text[at], inside[-1] if inside else ""
        if sign == "\\" and closes != "'":
            at += 1
        elif sign == closes[-1:]:
            inside.pop()
        elif closes[-1:] == "'":
            pass
        elif sign == "(" and (closes != '"' or text[at - 1] == "$"):
            inside.append("))" if text[at - 1 : at] == "(" else ")")
        elif sign == "{" and text[at - 1 : at] == "$":
            inside.append("}")
        elif sign == "'" and closes != '"':
            inside.append("$'" if text[at - 1 : at] == "$" else "'")
        elif sign in '"`':
            inside.append(sign)
        elif sign == "#" and closes != '"' and not text[at - 1 : at].strip(" \t\n;&|("):
            end = text.find("\n", at)  # of a comment
            at = end - 1 if end >= 0 else len(text)
        elif sign == "<" and closes in ("", ")"):
            at += _begins_document(text, at, documents)
        elif sign == "\n" and closes in ("", ")", "))"):
            while documents:
                at = _end_of_document(text, at + 1, *documents.pop(0))
                if at < 0:
                    return text[begins:]
            if not inside:
                begins = at + 1
        at += 1
    return text[begins:]


def _begins_document(text: str, at: int, documents: list[tuple[str, bool]]) -> int:
    """Adds the here-document that begins at a place to the others. Returns how many further characters that takes."""
    if text.startswith("<<<", at):
        return 2
    match = HERE_DOCUMENT.match(text, at)
    if match is None:
        return 0
    documents.append((QUOTING.sub(r"\1", match[2]), bool(match[1])))
    return match.end() - at - 1


def _end_of_document(text: str, at: int, last: str, behind_tabs: bool) -> int:
    """The end of the line that closes a here-document whose body begins at `at`; -1 if no line does."""
    while (end := text.find("\n", at)) >= 0:
        line = text[at:end]
        if (line.lstrip("\t") if behind_tabs else line) == last:
            return end
        at = end + 1
    return -1
