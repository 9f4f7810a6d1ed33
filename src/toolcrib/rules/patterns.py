"""What rules are written in: patterns of paths, commands and hosts, and what they have in common.

Paths are compared piece by piece and without regard to case, to how a letter is composed and to characters
that nobody sees, as some file systems do: a rule must not be walked around by writing `.GIT`. `*`, `?`,
`[...]` stand within a piece, `**` for any number of pieces, `{a,b}` for either. A pattern without a slash
means that name anywhere.

A path is compared in time that grows with pattern times path: what stands before the last `*` of a piece,
and before the last `**`, is taken where it is met first, and never looked for again.
"""

from __future__ import annotations

import functools
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from toolcrib.access import UNKNOWN_WORD, Access

MAX_ALTERNATIVES = 64
KEPT = 500  # characters of a path up to which its compared form is remembered
BRACES = re.compile(r"\{([^{}]*)\}")
SPECIAL = re.compile(r"[*?\[]")
# What some file systems leave out of a name when they compare it.
UNSEEN = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


class PatternError(ValueError):
    """A pattern that cannot mean what its author thinks; the text says why."""


def folded(text: str) -> str:
    """A text as it is compared: composed, without case, and without what is not seen."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold().translate(UNSEEN))


def normal(path: str) -> tuple[str, ...]:
    """The pieces of a path: `.` and empty ones left out, `~` and `..` resolved as far as they can be."""
    cleaned = posixpath.normpath(posixpath.expanduser(path) if path[:2] in ("~", "~/") else path or ".")
    pieces = [piece for piece in folded(cleaned).split("/") if piece not in ("", ".")]
    return ("/", *pieces) if cleaned.startswith("/") else tuple(pieces)


def compared(path: str) -> str:
    """A path as patterns look at it: each piece with a slash behind it."""
    return _compared(path) if len(path) <= KEPT else _compared.__wrapped__(path)


@functools.lru_cache(4096)
def _compared(path: str) -> str:
    return "".join([piece if piece == "/" else f"{piece}/" for piece in normal(path)])


class PathPattern:
    """A compiled pattern of paths. Raises PatternError for one that cannot be right.

    >>> secrets = PathPattern("config/*.key")
    >>> secrets.matches("config/a.key"), secrets.meets("config", ""), secrets.covers("config")
    (True, True, False)
    """

    __slots__ = ("expression", "match", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        if not text.strip():
            raise PatternError("an empty path pattern matches nothing")
        if "\\" in text:
            raise PatternError(f"{text!r}: write / between the pieces of a path, not \\")
        if ".." in text.split("/"):
            raise PatternError(f"{text!r}: a pattern must not contain '..'")
        if "~" in text.split("/")[1:]:
            raise PatternError(f"{text!r}: '~' means the home folder only at the beginning")
        self.expression = "|".join(_expression(compiled(one)) for one in expanded(text))
        try:
            self.match = re.compile(self.expression).match
        except re.error as problem:
            raise PatternError(f"{text!r} cannot be read: {problem}") from None

    def matches(self, path: str) -> bool:
        """Whether a path, or a folder above it, is meant."""
        return self.match(compared(path)) is not None

    def meets(self, folder: str, inner: str) -> bool:
        """Whether something below a folder (what matches `inner` there, all if it is "") may be meant."""
        meets = _meets if len(folder) + len(inner) <= KEPT else _meets.__wrapped__
        return meets(self.text, folder, inner) or self.matches(folder)

    def covers(self, folder: str) -> bool:
        """Whether everything below a folder is meant, and the folder."""
        return self.matches(folder)  # what is meant is meant with all below it, and `x/**` means x as well

    def within(self, root: str) -> tuple[PathPattern, ...]:
        """What it means of a folder named in full, as patterns of paths from there.

        >>> PathPattern("/home/*/shop/*.key").within("/home/ann/shop"), PathPattern("src/**").within("/home/ann")
        ((PathPattern('./*.key'),), ())
        """
        folder = normal(root)
        rests = {rest for one in expanded(self.text) for rest in _behind(compiled(one), folder)}
        return tuple(PathPattern("./" + "/".join(rest) if rest else "**") for rest in sorted(rests))

    def __repr__(self) -> str:
        return f"PathPattern({self.text!r})"


def reaches(patterns: Iterable[PathPattern], access: Access) -> tuple[bool, bool]:
    """Whether one of some patterns means all that an access reaches, and whether one may mean some of it."""
    path = compared(access.target)
    for pattern in patterns:
        if pattern.match(path) is not None:
            return True, True
    if not access.subtree:
        return False, False
    return False, any(pattern.meets(access.target, access.pattern) for pattern in patterns)


def expanded(text: str) -> list[str]:
    """A pattern without braces, as many as they stand for."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop()
        found = BRACES.search(one)
        if found is None:
            done.append(one)
        else:
            waiting += [one[: found.start()] + part + one[found.end() :] for part in found[1].split(",")]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise PatternError(f"{text!r}: its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return done


def compiled(text: str) -> tuple[str, ...]:
    """The pieces of a pattern, those in which nothing is special as they are compared."""
    trimmed = text.rstrip("/")
    if not trimmed:
        return ("/",)
    pieces = normal(trimmed)
    if "/" not in trimmed and not trimmed.startswith("~"):
        return ("**", *pieces)
    return pieces


def _behind(pieces: tuple[str, ...], folder: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What is left of an absolute pattern behind a folder's own pieces; nothing where all of that is meant."""
    places = {1} if pieces[:1] == ("/",) else set[int]()
    for name in folder[1:]:
        after: set[int] = set()
        for place in sorted(places):
            while pieces[place : place + 1] == ("**",):
                after.add(place)
                place += 1
            if place == len(pieces):
                after.add(place)
            elif fits(pieces[place], name):
                after.add(place + 1)
        places = after
    yield from (pieces[place:] for place in places)


def _inner(pattern: str) -> list[tuple[str, ...]]:
    """What a tool's own pattern may mean below its folder: more rather than less."""
    if not pattern.strip("/"):
        return [("**",)]
    try:
        return [compiled(one) for one in expanded(pattern.lstrip("/"))]
    except PatternError:
        return [("**",)]


@functools.lru_cache(4096)
def _piece(pattern: str) -> re.Pattern[str] | None:
    """A piece's expression; None where nothing in it is special."""
    try:
        return re.compile(_piece_expression(pattern, "."), re.DOTALL) if SPECIAL.search(pattern) else None
    except re.error as problem:
        raise PatternError(f"{pattern!r} cannot be read: {problem}") from None


def _piece_expression(pattern: str, char: str) -> str:
    """A piece as an expression in which `char` is any character."""
    chunks = [""]  # what stands between the stars
    position = 0
    while position < len(pattern):
        mark = pattern[position]
        position += 1
        if mark == "*":
            chunks.append("")
        elif mark == "?":
            chunks[-1] += char
        elif mark == "[" and (end := pattern.find("]", position + 1)) > 0:
            inner = pattern[position:end]
            negated = "^" if inner[:1] in ("!", "^") else ""
            members = inner[1:] if negated else inner
            safe = "".join(one if one.isalnum() or one == "-" else re.escape(one) for one in members)
            chunks[-1] += f"[{negated and '^/'}{safe}]"
            position = end + 1
        else:
            chunks[-1] += re.escape(mark)
    first, *rest = chunks
    if not rest:
        return first
    return first + "".join(f"(?>{char}*?{chunk})" for chunk in rest[:-1] if chunk) + f"{char}*{rest[-1]}"


def _expression(pieces: Sequence[str]) -> str:
    """A pattern's pieces as an expression over `compared` paths, met also by what lies below."""
    chunks = [""]  # what stands between the `**`
    for piece in pieces:
        if piece == "**":
            chunks.append("")
        else:
            chunks[-1] += "/" if piece == "/" else _piece_expression(piece, "[^/]") + "/"
    first, *rest = chunks
    return first + "".join(f"(?>(?:[^/]*/)*?{chunk})" for chunk in rest if chunk)


def fits(pattern: str, name: str) -> bool:
    expression = _piece(pattern)
    return pattern == name if expression is None else expression.fullmatch(name) is not None


@functools.lru_cache(4096)
def _meets(text: str, folder: str, inner: str) -> bool:
    if ".." in inner.split("/"):  # nobody knows where that leads
        return True
    start = normal(folder)
    below = [(*start, *rest) for rest in _inner(inner)]
    return any(_meet(compiled(one), two) for one in expanded(text) for two in below)


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two patterns may mean the same path, or the first a folder above it."""
    reached = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        i, j = waiting.pop()
        if i == len(one):
            return True
        if j == len(other):
            if all(piece == "**" for piece in one[i:]):
                return True
            continue
        a, b = one[i], other[j]
        nexts: list[tuple[int, int]] = []
        if a == "**":
            nexts += [(i + 1, j), (i, j + 1)]
        if b == "**":
            nexts += [(i, j + 1), (i + 1, j)]
        if a != "**" and b != "**" and _pieces_meet(a, b):
            nexts.append((i + 1, j + 1))
        for place in nexts:
            if place not in reached:
                reached.add(place)
                waiting.append(place)
    return False


def _pieces_meet(one: str, other: str) -> bool:
    """Whether two pieces may stand for the same name; where both have wildcards, they are said to."""
    special_one, special_other = SPECIAL.search(one), SPECIAL.search(other)
    if special_one is None:
        return fits(other, one)
    if special_other is None:
        return fits(one, other)
    start_one, start_other = one[: special_one.start()], other[: special_other.start()]
    end_one, end_other = re.split(r"[*?\[\]]", one)[-1], re.split(r"[*?\[\]]", other)[-1]
    starts = start_one.startswith(start_other) or start_other.startswith(start_one)
    return starts and (end_one.endswith(end_other) or end_other.endswith(end_one))


class CommandPattern:
    """The words of a command; a last `*` stands for any further ones, also none, and `**` does so anywhere.

    >>> CommandPattern("git push *").matches(("git", "push", "--force"))
    True
    >>> CommandPattern("git push").matches(("git", "push", "--force"))
    False
    >>> CommandPattern("git push ** --force *").matches(("git", "push", "origin", "--force"))
    True
    """

    __slots__ = ("open", "text", "words")

    def __init__(self, text: str) -> None:
        import shlex

        self.text = text
        try:
            words = shlex.split(text)
        except ValueError as problem:
            raise PatternError(f"{text!r} cannot be read as words of a command: {problem}") from None
        if not words:
            raise PatternError("an empty command pattern matches nothing")
        self.open = words[-1] == "*"
        self.words = tuple(words[:-1] if self.open else words)

    def opened(self) -> CommandPattern:
        """The same with any further words."""
        return self if self.open else CommandPattern(f"{self.text} *")

    def matches(self, argv: Sequence[str]) -> bool:
        return self._after(argv)[len(self.words)]

    def may_match(self, argv: Sequence[str]) -> bool:
        """Whether it matches for some of what the words that are not known may be."""
        if UNKNOWN_WORD not in argv:
            return self.matches(argv)
        return any(self._after(argv[: argv.index(UNKNOWN_WORD)]))

    def surely_matches(self, argv: Sequence[str]) -> bool:
        """Whether it matches whatever the words are that are not known."""
        if UNKNOWN_WORD not in argv:
            return self.matches(argv)
        return self.open and self.matches(argv[: argv.index(UNKNOWN_WORD)])

    def _after(self, argv: Sequence[str]) -> list[bool]:
        """Of each number of the pattern's words, whether these take all of some words."""
        row = [True] + [False] * len(self.words)
        for at, word in enumerate(self.words, 1):
            row[at] = row[at - 1] and word == "**"
        for given in argv:
            new = [False] * len(row)
            for at, word in enumerate(self.words, 1):
                any_number = word == "**"
                new[at] = (row[at] or new[at - 1]) if any_number else (row[at - 1] and fits(word, given))
            new[-1] = new[-1] or (self.open and row[-1])
            if not any(new):
                return new
            row = new
        return row

    def __repr__(self) -> str:
        return f"CommandPattern({self.text!r})"


def check_host(pattern: str) -> None:
    """Raises PatternError for a pattern of hosts that would never match."""
    name = pattern.removeprefix("*.")
    if not name or ("*" in name and name != "*") or "/" in name or "@" in name or not name.isprintable():
        raise PatternError(
            f"host {pattern!r} is none: write example.org, *.example.org for all names below it, an address, or "
            "either with :port"
        )


def host_matches(pattern: str, target: str, *, any_port: bool = False) -> bool:
    """Whether a host is meant: the name itself, or with `*.` in front any name below it, and not the name.

    Names are compared as they are looked up, addresses as numbers. A target whose port nobody knows is meant by
    a pattern with a port only if `any_port`.

    >>> host_matches("*.example.org", "api.example.org:443"), host_matches("*.example.org", "example.org")
    (True, False)
    """
    wanted, port = _host_and_port(pattern)
    host, its_port = _host_and_port(target)
    if port and port != its_port and (its_port or not any_port):
        return False
    if wanted.startswith("*."):
        return host.endswith("." + _spelled(wanted[2:]))
    return wanted in ("*", host)


@functools.lru_cache(4096)
def _host_and_port(text: str) -> tuple[str, str]:
    """A host in its one spelling, and the port if there is one; an address of IPv6 may stand in brackets."""
    text = text.strip()
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    return host if host.startswith("*") else _spelled(host), port


def _spelled(host: str) -> str:
    from toolcrib.net.urls import NetworkRefused, parse_host

    try:
        return parse_host(f"[{host}]" if ":" in host else host).name
    except NetworkRefused:
        return host.lower().rstrip(".")


def any_matches(patterns: Iterable[str], text: str) -> bool:
    """Whether one of some patterns of names means a text, with case."""
    return any(fits(pattern, text) for pattern in patterns)
