"""Texts that try to end the process by way of a package in C or Rust. Run in a child process by test_native_crashes.py.

By hand, for longer: `python -m tests.native_fuzz TARGET SEED COUNT`. The numbers of the texts at work stand in the
file that a fourth argument names, so that the text of a crash can be made again: `text_of(TARGET, SEED, NUMBER)`.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import random
import sys
import threading
import traceback
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from operator import add
from typing import Annotated, Any

from pydantic import BaseModel, Field, JsonValue

from tests.test_tools_documents import pdf
from toolcrib import Effect, Toolbox, tool
from toolcrib.secrets import Redactor

THREADS = 4
ONE_THREAD = threading.Lock()
PDF = pdf("Hello there", "", "Last")
LONG = 100_000  # characters of the longest texts
RARE = 0.0005  # share of the texts of each long kind: one of them costs as much as thousands of short ones
BETWEEN = ["", "", " ", "\n"]
SHELL = [
    "echo", "cat", "<<", "<<-", "<<<", "EOF", "'EOF'", '"E"', "{1..9}", "{a,b}", "{", "}", "(", ")",
    "((", "))", "[[", "]]", "[", "]", "$(", "`", "${", "}", "$", "$((", "a=b", "a[0]=", "if", "then",
    "fi", "for", "in", "do\n", "", "", "", "done", "while", "case", "esac", ";;", "function", "f()", "|",
    "||", "&", "&&", ";", ">", ">>", "2>&1", "<", "<(", "!", "*", "?", "#", "\\", "'", '"', "$'", "\n",
    "\t", "\x00", "-n", "--x=y", "1", "12", "~", "=", "+=", "=~", "@(", "%%", ":-", "/",
]  # fmt: skip
JSON = [
    "{", "}", "[", "]", ",", ":", '"a"', '"child"', '"text"', '"x"', "1", "-1", "1e999", "-0.0", "1.5",
    "NaN", "Infinity", "null", "true", "false", '"\\ud800"', '"\\u0000"', '"', "\\",
    "12345678901234567890123", '"2020-01-01"', '{"a":1}', "[[]]",
]  # fmt: skip
PATTERN = [
    r"(", r")", r"(?:", r"(?=", r"(?<=", r"(?P<a>", r"(?P=a)", r"(?i)", r"(?i:", r"[", r"]", r"[^",
    r"a-z", r"\d", r"\w", r"\b", r"\B", r"^", r"$", r".", r"*", r"+", r"?", r"{1,3}", r"{,99999}",
    r"{1000}", r"|", r"\1", r"\\", r"\x00", r"\u0416", r"\N{DIGIT", r"(?#", r"(?(1)a|b)", r"*+", r"++",
    r"(?>", r"a", r"é", r"字",
]  # fmt: skip
CODE = [
    "(", ")", "[", "]", "{", "}", ":", ",", ".", "=", "==", "+", "-", "*", "**", "/", "//", "%", "@",
    "if", "else", "for", "in", "lambda:", "not", "await", "async", "def", "class", "return", "yield",
    "match", "case", "f'{", "'", "'\n", "", "", "", "\n", "\t", "",
]  # fmt: skip


def sign(source: random.Random) -> str:
    """Any character of Unicode, half of a surrogate pair too."""
    most = source.choice([0x80, 0x100, 0x800, 0x10000, 0x110000])
    return chr(source.randrange(most))


def soup(source: random.Random, atoms: list[str]) -> str:
    """Atoms and characters in a row; now and then one of them very often, nested, or many of all."""
    kind = source.random()
    if kind < RARE:
        atom = (source.choice(atoms) or " ") + source.choice(["", " ", sign(source)])
        return (atom * source.randint(1, LONG // len(atom)))[:LONG]
    if kind < 2 * RARE:
        opened, closed = source.choice(atoms), source.choice(atoms)
        depth = source.randint(1, LONG // (len(opened + closed) or 1))
        return opened * depth + source.choice(atoms) + closed * source.randint(0, depth)
    length = source.choice([3, 10, 30]) if kind < 0.99 else source.choice([300, 300, 300, 3_000])
    count = source.randint(1, length)
    signs = [sign(source) for _ in range(1 + count // 8)]
    # One piece in six is a character, however many atoms there are.
    pool = atoms + signs * (1 + len(atoms) // (5 * len(signs)))
    return "".join(map(add, source.choices(pool, k=count), source.choices(BETWEEN, k=count)))


def here_documents(source: random.Random) -> str:
    """Many and long here-documents, with delimiters of any kind, closed and not."""
    names = [
        "".join(sign(source) for _ in range(source.choice([1, 3, 3, 3, 300])))
        for _ in range(source.choice([1, 1, 1, 5] if source.random() < 0.99 else [150]))
    ]
    heads = " ".join(f"cat <<{source.choice(['', '-'])}{name}" for name in names)
    bodies = "".join(
        f"\n{sign(source) * source.choice([0, 9, 999])}\n{name}" for name in names if source.random() < 0.9
    )
    return heads + bodies


def bash(source: random.Random) -> str:
    return here_documents(source) if source.random() < 0.05 else soup(source, SHELL)


def judge_it(text: str) -> None:
    from toolcrib.command.judge import judge
    from toolcrib.command.judge.syntax import tree_of
    from toolcrib.command.not_proved import NotProved
    from toolcrib.tools.syntax_check import newly_broken

    newly_broken("a.sh", "", text)
    if source_of(text).random() < 0.1:
        judge(text)
    else:
        try:
            tree_of(text)
        except NotProved:
            pass


def source_of(text: str) -> random.Random:
    return random.Random(text.encode("utf-8", "surrogatepass"))


def script(text: str) -> None:
    from toolcrib.tools.syntax_check import newly_broken

    newly_broken("a.py", "", text)


class Nested(BaseModel):
    """Anything as deep as one likes, with what Rust checks of a text."""

    child: Nested | list[Nested] | None = None
    text: Annotated[str, Field(pattern=r"^(a|b|\\w+)*$", max_length=1000)] | int | float | None = None
    x: dict[str, JsonValue] | datetime.datetime | Decimal | bytes | None = None


FOREIGN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "child": {"$ref": "#"},
        "text": {"type": "string", "pattern": "^(?:a|b|\\w+)*$", "maxLength": 1000},
        "x": {
            "anyOf": [
                {"items": {"$ref": "#"}, "uniqueItems": True},
                {"format": "date-time"},
                {"multipleOf": 0.1},
            ]
        },
        "a": {
            "oneOf": [
                {"$ref": "#"},
                {"type": "array", "items": {"$ref": "#/properties/a"}, "contains": {"const": 1}},
            ]
        },
    },
    "patternProperties": {"^[a-z]+$": {}},
    "unevaluatedProperties": {"$ref": "#"},
}


@cache
def box() -> Toolbox:
    @tool(effect=Effect.READ, secrets=())
    def typed(given: Nested, more: dict[str, JsonValue] | None = None) -> str:
        """Take anything."""
        return str(given.text)

    def take(given: dict[str, Any]) -> str:
        return str(len(given))

    foreign = tool(take, name="foreign", params=FOREIGN, effect=Effect.READ, secrets=())
    return Toolbox([typed, foreign])


def arguments(source: random.Random) -> str:
    """Mostly broken JSON; now and then very deep, and whole."""
    kind = source.random()
    if kind < 0.7:
        text = soup(source, JSON)
        return text if source.random() < 0.5 else f'{{"given": {text}}}'
    depth = source.choice([3, 3, 30, 30, 190, 300] if source.random() < 0.98 else [2_000, LONG // 10])
    opened, closed = source.choice(
        [('{"child":', "}"), ('{"a":[', "]}"), ("[", "]"), ('{"x":{"x":', "}}"), ('{"z":', "}")]
    )
    inner = source.choice(['{"text": "' + json.dumps(soup(source, PATTERN)[:2000])[1:-1] + '"}', *JSON])
    whole = opened * depth + inner + closed * (depth - source.choice([0, 0, 0, 1]))
    return whole if source.random() < 0.5 else f'{{"given": {whole}}}'


def call(text: str) -> None:
    name = source_of(text).choice(["typed", "foreign"])
    box().call_sync(name, text)
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(raw, dict):
        box().call_sync(name, raw)


def patterns(source: random.Random) -> str:
    return soup(source, PATTERN)[:10_000]


def look_for(text: str) -> None:
    """What the searches compile in this process, before a worker matches with it."""
    from toolcrib.glob_patterns import GlobError, GlobPattern
    from toolcrib.tools import Workspace
    from toolcrib.tools.grep import Grep, GrepParams

    Grep(Workspace(".")).precheck(GrepParams(pattern=text))
    try:
        GlobPattern(text).matches(text[:200])
    except GlobError:
        pass


def output(source: random.Random) -> str:
    """What a tool gives, of pieces of secrets."""
    atoms = [
        *SECRETS.values(),
        *(value[:5] for value in SECRETS.values()),
        base64.b64encode(b"horse").decode(),
        " ",
        "=",
    ]
    return soup(source, atoms)


SECRETS = {f"KEY_{number}": f"correct-horse-{number:03}" for number in range(60)}


def mask(text: str) -> None:
    redactor().redact_text(text)
    stream = redactor().stream()
    half = len(text) // 2
    stream.feed(text[:half])
    stream.feed(text[half:])
    stream.finish()


@cache
def redactor() -> Redactor:
    return Redactor(SECRETS)


def document(source: random.Random) -> str:
    """A PDF document of which some bytes were changed, one character for each byte."""
    data = bytearray(PDF)
    for _ in range(source.choice([0, 1, 3, 30])):
        at = source.randrange(len(data))
        kind = source.random()
        if kind < 0.5:
            data[at] = source.randrange(256)
        elif kind < 0.8:
            data[at : at + source.randrange(9)] = source.choice(
                [b"99999999999", b"-1", b"<<", b"[", b"/Kids", b"0 R", b"2 0 R"]
            )
        else:
            data[at:at] = data[at : at + 40] * source.randint(1, 100)
    return data.decode("latin-1")


def read_document(text: str) -> None:
    from toolcrib.tools.pdf_worker import read

    with ONE_THREAD:  # as in the worker, which has no other
        read(text.encode("latin-1"), 30)


TARGETS: dict[str, tuple[Callable[[random.Random], str], Callable[[str], None]]] = {
    "tree_sitter_bash": (bash, judge_it),
    "python_parser": (lambda source: soup(source, CODE), script),
    "pydantic_core and jsonschema_rs": (arguments, call),
    "re": (patterns, look_for),
    "ahocorasick": (output, mask),
    "pypdfium2": (document, read_document),
}


def text_of(target: str, seed: int, number: int) -> str:
    return TARGETS[target][0](random.Random(f"{seed}/{number}"))


def main(target: str, seed: int, count: int, at: str = os.devnull) -> None:
    """Hand each text to the package, on several threads. An exception that callers do not expect ends it, too."""
    attack = TARGETS[target][1]
    numbers, failed = iter(range(count)), list[tuple[int, BaseException]]()
    lock = threading.Lock()
    place = os.open(at, os.O_WRONLY)

    def work(thread: int) -> None:
        while not failed:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            os.pwrite(place, b"%-12d" % number, thread * 12)
            try:
                attack(text_of(target, seed, number))
            except BaseException as problem:
                failed.append((number, problem))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, problem in failed:
        sys.stderr.write(f"text_of({target!r}, {seed}, {number}):\n")
        traceback.print_exception(problem)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
