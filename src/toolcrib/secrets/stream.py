"""Secrets masked in a text that comes in pieces: what may be the beginning of one is held back until it is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.secrets.decodings import LEVELS, Decoding, unfinished
from toolcrib.secrets.encodings import flatten
from toolcrib.secrets.redact import Flat, mark, merged

if TYPE_CHECKING:
    from toolcrib.secrets.redact import Redactor

AT_ONCE = 64  # a held piece up to this size is looked at again with every piece that comes
GROWTH = 1.5  # a longer one only when it has grown by half, so that the whole stays linear

# A cut must not fall into an escape, nor into one that an escape stands in.
_INSIDE = re.compile(rb"(?:[%\\&][%\\&#;{}0-9A-Za-z]{0,80}|\x1b[\[\]][0-9;?]{0,80})\Z")


LEAST = 4  # letters of a secret's beginning; fewer end ordinary words too
REMEMBERED = 4096  # bytes of the pieces before, at most
LEFT_OUT = "…"


class RedactedStream:
    """One stream. What `feed` and `finish` give, joined, is what the whole text would have been redacted to.

    Only known secrets are masked, no key formats: those have no known length to hold back.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._masked = 0  # so many of the held bytes belong to a secret whose mark is already out
        self._due = 0
        self.longest = max(prefixes.longest for prefixes in redactor.prefixes)
        self._found: dict[str, None] = {}

    @property
    def found(self) -> tuple[str, ...]:
        """The names of the secrets masked so far."""
        return tuple(self._found)

    def feed(self, piece: str) -> str:
        """The next piece of the text; gives what may be shown by now."""
        return self.feed_bytes(piece.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def finish(self) -> str:
        """What was held back."""
        return self.finish_bytes().decode("utf-8", "surrogatepass")

    def feed_bytes(self, piece: bytes) -> bytes:
        """The same for bytes; not to be mixed with `feed` in one stream."""
        self._held += piece
        if len(self._held) < self._due or not self.longest:
            return b"" if self.longest else self.finish_bytes()
        spans = self._redactor.spans(self._held)
        size = len(self._held)
        flat = self._redactor.prefixes[0]
        cut = min(
            [size, self.begun(self._held), *(at for at, end, _ in spans if flat.may_go_on(self._held[end:]))]
        )
        return self._give(merged(spans), self._settled(cut))

    def finish_bytes(self) -> bytes:
        """What was held back, as bytes."""
        return self._give(merged(self._redactor.spans(self._held)), len(self._held))

    def begun(self, data: bytes) -> int:
        """From where on a text may be the beginning of an encoding, as any decoding shows it; its length if it is not.

        An escape that is cut off is held back, and left out before the next decoding is made: it may yet be anything.
        """
        first = len(data)
        decoding: Decoding | None = Decoding(data)
        for _ in range(LEVELS + 1):
            if decoding is None:
                break
            size, open_ = len(decoding.data), unfinished(decoding.data)
            begun = min(open_, self._begun(decoding.data))
            if open_ < size:
                decoding = Decoding(decoding.data[:open_], decoding.below)
                begun = min(begun, self._begun(decoding.data))
            if begun < size:
                first = min(first, decoding.origin(begun))
            decoding = decoding.undone()
        return first

    def _begun(self, data: bytes) -> int:
        flat, exact = self._redactor.prefixes
        text = Flat(data)
        begin = flat.hold(text.text)
        held = text.origin(begin) if begin < len(text.text) else len(data)
        return min(exact.hold(data), flat.with_before(data, held))

    def _settled(self, cut: int) -> int:
        """The cut moved to the front of the escape that it would fall into, and of a character."""
        limit = 8 * self.longest + 4096
        if len(self._held) - cut > limit:
            cut = len(self._held) - limit
        inside = _INSIDE.search(self._held, max(0, cut - 80), cut)
        if inside and cut < len(self._held):
            cut = inside.start()
            while cut and self._held[cut - 1 : cut + 1] == b"\\\\":
                cut -= 1
        while 0 < cut < len(self._held) and self._held[cut] & 0xC0 == 0x80:
            cut -= 1
        return cut

    def _give(self, spans: list[tuple[int, int, str]], cut: int) -> bytes:
        data, out, at = self._held, list[bytes](), min(self._masked, cut)
        masked = self._masked
        for start, end, name in spans:
            if start >= cut:
                break
            if start < masked:  # goes on from one whose mark is out
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
        self._due = int(size * GROWTH) if size > AT_ONCE else 0
        return b"".join(out)


class Pieces:
    """Texts that are shown one after another, each for itself: a secret that is cut over several is not shown.

    Nothing is held back for later. The end of a text is left out where it may begin a secret.
    """

    def __init__(self) -> None:
        self._before = b""

    def show(self, redactor: Redactor, text: str) -> str:
        """What of the next text may be shown."""
        start = len(self._before)
        whole = self._before + text.encode("utf-8", "surrogatepass")
        stream = RedactedStream(redactor)
        begun = stream.begun(whole)
        end = max(start, begun) if len(flatten(whole[begun:])) >= LEAST else len(whole)
        out: list[bytes] = []
        at = start
        for first, last, name in merged(redactor.spans(whole)):
            if last > start and first < end:
                out += (whole[at : max(first, start)], mark(name).encode())
                at = last
        if at < end:
            out.append(whole[at:end])
        if max(at, end) < len(whole):
            out.append(LEFT_OUT.encode())
        self._before = whole[-min(REMEMBERED, 2 * stream.longest + AT_ONCE) :]
        return b"".join(out).decode("utf-8", "replace")
