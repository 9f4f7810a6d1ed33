"""Reads scripts of sed as GNU sed does, sign by sign: which commands they run, and which files they read and write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.access import UNKNOWN_WORD
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Word
from toolcrib.command.programs.options import Synopsis, read_arguments
from toolcrib.dataclass import dataclass, field

# All options of sed. The row in `coreutils.py` lists those with which it may run unasked.
OPTIONS = Synopsis(
    "-abnErsuz -l= -i? -e= -f= --binary --debug --expression= --file= --follow-symlinks --in-place? --line-length="
    " --null-data --posix --quiet --regexp-extended --sandbox --separate --silent --unbuffered --zero-terminated",
    "data read*",
    instead="-e --expression -f --file",
)
BETWEEN = re.compile(r"[\s;]*")
BLANKS = re.compile(r"[ \t]*")
END = re.compile(r"[ \t]*(?:[;\n]|\Z|(?=[}#]))")
NEXT = re.compile(r"[^;\n]*")
LINE = re.compile(r"[^\n]*")
ADDRESS = re.compile(r"[0-9]+(?:[ \t]*~[ \t]*[0-9]*)?|[+~][ \t]*[0-9]+|\$")
ADDRESS_FLAGS = re.compile(r"[ \t]*(?:[IM][ \t]*)*")
BRACKET = re.compile(r"\^?+\]?+(?:\[:[a-z]+:\]|\[(?![.:=])|[^][\n])*+\]")
# A bracket expression that all versions of sed read alike, and the delimiters that all of them take.
PLAIN_BRACKET = re.compile(r"\^?\]?(?:\[:[a-z]+:\]|\\[A-Za-z.*+?-]|[^]\\\n[])*\]")
PLAIN_DELIMITERS = frozenset("/|,#:!@%")
LABEL = re.compile(r"[ \t]*[^\s;}#]*")
PLAIN_LABEL = re.compile(r"\w*")
NUMBER = re.compile(r"[ \t]*[0-9]*")
FLAGS = re.compile(r"(?:[ \t]*[gpiImMe0-9])*+[ \t]*")
TEXT_BEGINS = re.compile(r"[ \t]*(?:\\\n?)?")
# Behind `a\`. Versions of sed differ in whether this is a part of the text.
DOUBTFUL = re.compile(r"\\|[ \t]+\n")
TEXT = re.compile(r"(?:[^\\\n]|\\.)*+\\?", re.DOTALL)


@dataclass(slots=True)
class SedScript:
    """What a script does beside editing its input.

    `runs`: the shell commands that `e` names. `results`: the replacements of `s` with the flag `e`, which runs the line
    that they are put into. `runs_input`: it runs lines of its input. `files`: the files that it reads or writes.
    `script_files`: the files with more of the script. `understood`: every GNU sed reads it as it was read here.
    `portable`: so does every other sed.
    """

    runs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    runs_input: bool = False
    files: list[str] = field(default_factory=list)
    script_files: list[str] = field(default_factory=list)
    understood: bool = True
    portable: bool = True

    @property
    def only_edits(self) -> bool:
        """Whether it runs no command, and reads and writes no file, in every version of sed."""
        return self.understood and self.portable and not (self.runs or self.runs_input or self.files)

    @property
    def is_in_input(self) -> bool:
        """Whether sed reads more of the script from its standard input."""
        return not {"-", "/dev/stdin"}.isdisjoint(self.script_files)


def read_words(argv: Sequence[str]) -> SedScript:
    """What the scripts among the words of a command do. A script that is known only when the command runs is left out.

    >>> read_words(["sed", "-n", "-e", "1{w out", "-e", "e ls -l", "-e", "}", "a.txt"])
    SedScript(runs=['ls -l'], results=[], runs_input=False, files=['out'], script_files=[], understood=True, portable=True)
    """
    try:
        found = read_arguments("sed", OPTIONS, [Word((word,) if word else ()) for word in argv[1:]])
    except NotProved:
        script = read_script("\n".join(word.partition("=")[2] or word for word in argv[1:]))
        script.understood = False
        return script
    texts, files = [], []
    for option, word in found.values:
        if option in ("-f", "--file"):
            files.append(word.literal or "")
            texts.append("")
        elif option in ("-e", "--expression"):
            texts.append(word.literal or "")
    if not texts:
        operands = [word.literal or "" for word, _ in found.operands]
        texts = [text for text in operands if text not in ("", UNKNOWN_WORD)][:1]  # sed -i '' SCRIPT, on BSD
    script = read_script("\n".join("" if text == UNKNOWN_WORD else text for text in texts))
    script.script_files = files
    return script


def read_script(text: str) -> SedScript:
    """What a script does. A command that is not understood is skipped."""
    return _Reader(text).read()


class _Reader:
    """Reads one script. `at` is the place of the next sign; it only ever grows."""

    __slots__ = ("at", "script", "text")

    def __init__(self, text: str) -> None:
        self.text, self.at, self.script = text, 0, SedScript()

    def read(self) -> SedScript:
        self._take(BETWEEN)
        while self.at < len(self.text):
            if not self._command():
                self.script.understood = False
                self._take(NEXT)
            self._take(BETWEEN)
        return self.script

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Moves over what a pattern matches at this place, and returns it; "" if it does not match."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def _sign(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def _next_is(self, sign: str) -> bool:
        return self.text.startswith(sign, self.at)

    def _command(self) -> bool:
        """Reads one command with its addresses. Returns whether it was understood."""
        if self._address():
            self._take(BLANKS)
            if self._next_is(","):
                self.at += 1
                self._take(BLANKS)
                if not self._address():
                    return False
                self._take(BLANKS)
        if self._next_is("!"):
            self.at += 1
            self._take(BLANKS)
        name = self._sign()
        if name == "{":
            return True
        if name == "#":
            self._take(LINE)
            return True
        if name and name in "aci":
            return self._inserted_text()
        if name and name in "rRwW":
            return self._file()
        if name and name in ":btTv":
            return self._label()
        if name == "e":
            return self._executed_text()
        if name == "s":
            return self._substitution()
        if name == "y":
            return self._delimited(2, pattern=False) is not None and self._ends()
        if name and name in "lqQ":
            self._take(NUMBER)
        return name != "" and name in "}=dDFgGhHlnNpPqQxz" and self._ends()

    def _ends(self) -> bool:
        match = END.match(self.text, self.at)
        self.at = self.at if match is None else match.end()
        return match is not None

    def _address(self) -> bool:
        """Reads one address, if there is one. Returns whether there is."""
        if self._next_is("/") or self._next_is("\\"):
            self.at += self._next_is("\\")
            if self._delimited(1, pattern=True) is None:
                return False
            self._take(ADDRESS_FLAGS)
            return True
        return self._take(ADDRESS) != ""

    def _delimited(self, count: int, *, pattern: bool) -> list[str] | None:
        """Reads a delimiter and `count` texts that each end with it; None if one does not. The first may be a pattern."""
        delimiter = self._sign()
        if delimiter not in PLAIN_DELIMITERS:
            self.script.portable = False
        texts = []
        for number in range(count):
            start = self.at
            if not self._part(delimiter, pattern=pattern and number == 0):
                return None
            texts.append(self.text[start : self.at - 1])
        return texts

    def _part(self, delimiter: str, *, pattern: bool) -> bool:
        """Reads a text and the delimiter that ends it. Returns whether the delimiter is there."""
        while (sign := self._sign()) not in ("", "\n"):
            if sign == delimiter:
                return True
            if sign == "\\":
                escaped = self._sign()
                if pattern and escaped == "c":  # some versions end the pattern at a delimiter behind \c
                    self.script.understood = False
                if pattern and escaped == "\n":
                    self.script.portable = False
            elif sign == "[" and pattern:
                bracket = self._take(BRACKET)
                if not bracket:
                    return False
                if delimiter in bracket or not PLAIN_BRACKET.fullmatch(bracket):
                    self.script.portable = False
        return False

    def _substitution(self) -> bool:
        texts = self._delimited(2, pattern=True)
        if texts is None:
            return False
        if "e" in self._take(FLAGS):
            self.script.runs_input = True
            self.script.results.append(texts[1].replace("\\", ""))
        if self._next_is("w"):
            self.at += 1
            return self._file()
        return self._ends()

    def _file(self) -> bool:
        """Reads the name of a file, which ends with its line."""
        self._take(BLANKS)
        name = self._take(LINE)
        self.script.files.append(name)
        return name != ""

    def _label(self) -> bool:
        """Reads a label. What ends it, beside a semicolon and the end of the line, depends on the version."""
        label = self._take(LABEL)
        if not PLAIN_LABEL.fullmatch(label.lstrip(" \t")):
            self.script.portable = False
        return not self._next_is("#") and self._ends()

    def _inserted_text(self) -> bool:
        """Reads the text of `a`, `c` or `i`, up to an end of line that no backslash escapes."""
        begin = self._take(TEXT_BEGINS)
        doubtful = begin.endswith("\\") and DOUBTFUL.match(self.text, self.at) is not None
        text = self._take(LINE if doubtful else TEXT)
        if not text or "\\" in text:
            self.script.portable = False
        return not doubtful

    def _executed_text(self) -> bool:
        """Reads the command behind `e`. Its backslashes are dropped; with them, it is not understood."""
        text = self._take(TEXT)
        if text.strip():
            self.script.runs.append(text.strip().replace("\\", ""))
        else:
            self.script.runs_input = True
        return "\\" not in text
