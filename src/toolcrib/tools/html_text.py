"""Turns an HTML page into Markdown or plain text, tag by tag.

By hand, because pages come from strangers: with 100,000 nested elements, or quotes that never close, the
parsers that were tried took minutes (lexbor, html.parser) or overflowed the stack (markdownify). This is a
single pass.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import urljoin

# A tag with its attributes. What is longer is no tag: a quote that never closes must not be searched for forever.
TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9-]{0,30})(?P<rest>(?:[^<>\"']|\"[^\"<]{0,2000}\"|'[^'<]{0,2000}'){0,400})>"
    r"|<!--(?P<comment>)|<(?P<other>[!?])"
)
ATTRIBUTE = re.compile(r"([A-Za-z-]{1,20})\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
SPACE = re.compile(r"[ \t\r\n\f]+")
UNSEEN = frozenset(
    {
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "iframe",
        "object",
        "textarea",
        "title",
        "select",
        "math",
    }
)
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "dd", "details", "dialog", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend",
    "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})  # fmt: skip
APART = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "ul", "ol", "blockquote"})
MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`"}
DEEPEST = 8  # lists within lists that are shown as such


def page_text(page: str, *, markdown: bool, base: str = "") -> str:
    """The text of a page. In Markdown, relative links are resolved against `base`.

    >>> page_text('<h1>Tea</h1><p>From <a href="/a">here</a>.<script>no()</script>', markdown=True, base="http://x/")
    '# Tea\\n\\nFrom [here](http://x/a).'
    """
    writer = _Writer(markdown, base)
    at = 0
    while (found := TAG.search(page, at)) is not None:
        writer.text(page[at : found.start()])
        at = found.end()
        if found["comment"] is not None:
            at = _after(page, "-->", at)
        elif found["other"] is not None:
            at = _after(page, ">", at)
        else:
            name = found["name"].lower()
            if name in UNSEEN and not found["end"] and not found["rest"].endswith("/"):
                at = _after_element(page, name, at)
            elif found["end"]:
                writer.close(name)
            else:
                writer.open(name, found["rest"])
    writer.text(page[at:])
    return writer.finish()


def _after(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


_ENDS: dict[str, re.Pattern[str]] = {
    name: re.compile(rf"</{name}\b[^>]{{0,200}}>", re.IGNORECASE) for name in UNSEEN
}


def _after_element(page: str, name: str, at: int) -> int:
    """The position after an element that is not shown; an element that never ends hides the rest of the page."""
    found = _ENDS[name].search(page, at)
    return len(page) if found is None else found.end()


class _Writer:
    """Collects the pieces of the text and normalises the white space between them."""

    def __init__(self, markdown: bool, base: str) -> None:
        self.markdown = markdown
        self.base = base
        self.pieces: list[str] = []
        self.breaks = 2  # line ends at the end of what is written
        self.space = False  # a blank that waits for what comes after it
        self.marked = False  # an opening mark was written, which no blank may follow
        self.lists: list[int] = []  # a counter for each open list, 0 for one without numbers
        self.links: list[str] = []
        self.raw = 0  # inside of <pre>
        self.cells = 0
        self.opened: dict[str, Callable[[str], None]] = {
            "a": self._link,
            "br": lambda _: self._break(1),
            "hr": lambda _: self._write("---"),
            "img": self._image,
            "li": lambda _: self._item(),
            "ol": lambda _: self.lists.append(1),
            "pre": lambda _: self._pre(1),
            "td": lambda _: self._cell(),
            "th": lambda _: self._cell(),
            "tr": lambda _: self._row(),
            "ul": lambda _: self.lists.append(0),
        }

    def text(self, raw: str) -> None:
        if not raw:
            return
        text = html.unescape(raw)
        if self.raw:
            self._put(text.replace("\r\n", "\n"))
            return
        text = SPACE.sub(" ", text)
        if text.startswith(" ") and not self.marked:
            self.space = True
        if words := text.strip(" "):
            self._write(words)
            self.space = text.endswith(" ")

    def open(self, name: str, rest: str) -> None:
        if name in BLOCKS and not self.raw:
            self._break(2 if name in APART and not self.lists else 1)
        if name in self.opened:
            self.opened[name](rest)
        elif self.markdown and name in MARKS and not self.raw:
            self._write(MARKS[name])
            self.marked = True
        elif self.markdown and len(name) == 2 and name[0] == "h" and name[1] in "123456":
            self._write("#" * int(name[1]) + " ")

    def close(self, name: str) -> None:
        if name == "a" and self.links:
            if target := self.links.pop():
                self._put(f"]({target})")
        elif self.markdown and name in MARKS and not self.raw:
            self._put(MARKS[name])
        elif name in ("ul", "ol") and self.lists:
            self.lists.pop()
        elif name == "pre" and self.raw:
            self._pre(-1)
        if name in BLOCKS and not self.raw:
            self._break(2 if name in APART and not self.lists else 1)

    def finish(self) -> str:
        return "".join(self.pieces).strip()

    def _link(self, rest: str) -> None:
        target = ""
        href = _attribute(rest, "href").strip()
        if self.markdown and href and not href.startswith(("#", "javascript:", "data:")):
            try:
                target = urljoin(self.base, href)
            except ValueError:  # no URL that anybody could read
                target = href
            target = SPACE.sub("%20", target).replace(")", "%29")
            self._write("[")
        self.links.append(target)

    def _image(self, rest: str) -> None:
        if self.markdown and (alt := SPACE.sub(" ", _attribute(rest, "alt")).strip()):
            self._write(f"[image: {alt}]")

    def _item(self) -> None:
        depth = max(0, min(len(self.lists), DEEPEST) - 1)
        number = self.lists[-1] if self.lists else 0
        if number:
            self.lists[-1] += 1
        self._write("  " * depth + (f"{number}. " if number else "- "))

    def _pre(self, by: int) -> None:
        self.raw = 1 if by > 0 else 0
        if self.markdown:
            if by < 0 and not self.breaks:
                self._break(1)
            self._put("```")
            self._break(1)

    def _row(self) -> None:
        self.cells = 0

    def _cell(self) -> None:
        if self.cells:
            self._write(" | ")
        self.cells += 1

    def _break(self, lines: int) -> None:
        self.space = False
        if self.breaks < lines:
            self._put("\n" * (lines - self.breaks))

    def _write(self, text: str) -> None:
        if self.space and not self.breaks and not (self.pieces and self.pieces[-1].endswith(" ")):
            self.pieces.append(" ")
        self.space = False
        self._put(text)

    def _put(self, text: str) -> None:
        if text:
            self.marked = False
            self.pieces.append(text)
            ends = len(text) - len(text.rstrip("\n"))
            self.breaks = min(2, ends + (self.breaks if ends == len(text) else 0))


def _attribute(rest: str, wanted: str) -> str:
    for found in ATTRIBUTE.finditer(rest):
        if found[1].lower() == wanted:
            return html.unescape(found[2] or found[3] or found[4] or "")
    return ""
