"""Masks secrets in a text that comes in pieces: what may be the beginning of a secret is held back."""

from __future__ import annotations

import re

from toolcrib.secrets.decodings import decodings, start_of_unfinished_escape
from toolcrib.secrets.encodings import flatten
from toolcrib.secrets.secret_finder import FlattenedText, SecretFinder, mark, merged

__all__ = ["RedactedStream", "SuccessiveTexts"]

ALWAYS_SEARCHED = 64  # bytes of held text that are searched again with every piece
GROWTH = 1.5  # more held text is searched only when it has grown by half, so that the whole stays linear

# A cut must not fall into an escape, nor into an escape that is itself escaped.
_INSIDE_ESCAPE = re.compile(rb"(?:[%\\&][%\\&#;{}0-9A-Za-z]{0,80}|\x1b[\[\]][0-9;?]{0,80})\Z")
_INSIDE_TERMINAL_ESCAPE = re.compile(rb"\x1b[\[\]][0-9;?]{0,80}\Z")

MIN_BEGINNING = 4  # letters of a secret's beginning that are left out; ordinary words end with fewer
MAX_REMEMBERED = 4096  # bytes of the texts before
LEFT_OUT = "…"


class RedactedStream:
    """Redacts one stream. The results of `feed` and `finish`, joined, are the whole text redacted.

    Only known secrets are masked. Tokens in known formats are not: it is not known how much of them to hold back.
    """

    def __init__(self, finder: SecretFinder) -> None:
        self._finder = finder
        self._held = b""
        self._masked = 0  # bytes at the start of the held text whose mark was given already
        self._due = 0
        self.longest = max(matches.longest for matches in finder.unfinished)
        self._found: dict[str, None] = {}

    @property
    def found(self) -> tuple[str, ...]:
        """The names of the secrets masked so far."""
        return tuple(self._found)

    def feed(self, piece: str) -> str:
        """Take the next piece of the text, and give what may be shown by now."""
        return self.feed_bytes(piece.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def finish(self) -> str:
        """Give what was held back; the text has ended."""
        return self.finish_bytes().decode("utf-8", "surrogatepass")

    def feed_bytes(self, piece: bytes) -> bytes:
        """The same for bytes. A stream is fed either texts or bytes."""
        self._held += piece
        if len(self._held) < self._due or not self.longest:
            return b"" if self.longest else self.finish_bytes()
        spans = self._finder.spans(self._held)
        size = len(self._held)
        flat = self._finder.unfinished[0]
        cut = min(
            [
                size,
                self.start_of_unfinished(self._held),
                *(at for at, end, _ in spans if flat.may_go_on(self._held[end:])),
            ]
        )
        return self._give(merged(spans), self._settled(cut))

    def finish_bytes(self) -> bytes:
        """The same for bytes."""
        return self._give(merged(self._finder.spans(self._held)), len(self._held))

    def start_of_unfinished(self, data: bytes) -> int:
        """The position from which the end of a text may begin an encoding, in any decoding; else the text's length.

        An escape that is cut off is held back, and left out of the next decoding: it may become anything.
        """
        first = len(data)
        for decoding in decodings(data):
            size, open_ = len(decoding.data), start_of_unfinished_escape(decoding.data)
            begun = min(open_, self._start_in_decoding(decoding.data))
            if open_ < size:
                decoding.data = decoding.data[:open_]
                begun = min(begun, self._start_in_decoding(decoding.data))
            if begun < size:
                first = min(first, decoding.origin(begun))
        return first

    def _start_in_decoding(self, data: bytes) -> int:
        flat, exact = self._finder.unfinished
        text = FlattenedText(data)
        begin = flat.hold(text.text)
        held = text.origin(begin) if begin < len(text.text) else len(data)
        return min(exact.hold(data), flat.with_before(data, held))

    def _settled(self, cut: int) -> int:
        """A cut, moved in front of an escape or a character that it would fall into."""
        limit = 8 * self.longest + 4096
        if len(self._held) - cut > limit:
            cut = len(self._held) - limit
        inside = _INSIDE_ESCAPE.search(self._held, max(0, cut - 80), cut)
        if inside and cut < len(self._held):
            cut = inside.start()
            while cut and self._held[cut - 1 : cut + 1] == b"\\\\":
                cut -= 1
            # The backslash may be the last character of a terminal's escape.
            terminal = _INSIDE_TERMINAL_ESCAPE.search(self._held, max(0, cut - 82), cut)
            cut = terminal.start() if terminal else cut
        while 0 < cut < len(self._held) and self._held[cut] & 0xC0 == 0x80:
            cut -= 1
        return cut

    def _give(self, spans: list[tuple[int, int, str]], cut: int) -> bytes:
        data, out, at = self._held, list[bytes](), min(self._masked, cut)
        masked = self._masked
        for start, end, name in spans:
            if start >= cut:
                break
            if start < masked:  # the rest of a secret whose mark was given already
                masked = max(masked, end)
            else:
                out += (data[at:start], mark(name).encode())
                self._found[name] = None
                masked = end
            at = min(masked, cut)
        out.append(data[at:cut])
        self._held = data[cut:]
        self._masked = max(0, masked - cut)
        size = len(self._held)
        self._due = int(size * GROWTH) if size > ALWAYS_SEARCHED else 0
        return b"".join(out)


class SuccessiveTexts:
    """Masks texts that are shown one after another, each at once, so that a secret in parts is not shown either.

    The end of a text is left out if it may be the beginning of a secret; it is not given later.
    """

    def __init__(self) -> None:
        self._before = b""

    def show(self, finder: SecretFinder, text: str) -> str:
        """The next text, without what must not be shown."""
        start = len(self._before)
        whole = self._before + text.encode("utf-8", "surrogatepass")
        stream = RedactedStream(finder)
        begun = stream.start_of_unfinished(whole)
        end = max(start, begun) if len(flatten(whole[begun:])) >= MIN_BEGINNING else len(whole)
        out: list[bytes] = []
        at = start
        for first, last, name in merged(finder.spans(whole)):
            if last > start and first < end:
                out += (whole[at : max(first, start)], mark(name).encode())
                at = last
        if at < end:
            out.append(whole[at:end])
        if max(at, end) < len(whole):
            out.append(LEFT_OUT.encode())
        self._before = whole[-min(MAX_REMEMBERED, 2 * stream.longest + ALWAYS_SEARCHED) :]
        return b"".join(out).decode("utf-8", "replace")
