"""Answers to questions, as a person types them or a program writes them as JSON. What is not clearly a yes is a no."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from toolcrib.question import Answer, Lasting, Scope, Verdict

WORDS = {
    "y": (Verdict.YES, Scope.ARGUMENTS),
    "yes": (Verdict.YES, Scope.ARGUMENTS),
    "a": (Verdict.ALWAYS, Scope.ARGUMENTS),
    "always": (Verdict.ALWAYS, Scope.ARGUMENTS),
    "p": (Verdict.ALWAYS, Scope.PREFIX),
    "prefix": (Verdict.ALWAYS, Scope.PREFIX),
    "f": (Verdict.ALWAYS, Scope.FOLDER),
    "folder": (Verdict.ALWAYS, Scope.FOLDER),
}
LASTING = {"": Lasting.RUN, "run": Lasting.RUN, "project": Lasting.PROJECT, "user": Lasting.USER}
SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:(run|project|user)\b\s*)?(?:([1-9][0-9]{0,4})([mhd]))?", re.IGNORECASE)


def read_answer(line: str | None, clock: Callable[[], float] = time.time) -> Answer:
    """Reads a typed line as an answer. End of input, an empty line and an unknown line are a no.

    "a" allows these arguments always, "p" commands that begin alike, "f" files below the same folder. Further words
    say for how long: "project" or "user", or else this run, and perhaps 30m, 8h or 7d.

    >>> answer = read_answer("n use pip instead")
    >>> answer.verdict.value, answer.message
    ('no', 'use pip instead')
    >>> answer = read_answer("p project")
    >>> answer.verdict.value, answer.scope.value, answer.lasting.value
    ('always', 'prefix', 'project')
    """
    first, _, rest = (line or "").strip().partition(" ")
    known, duration = WORDS.get(first.lower()), DURATION.fullmatch(rest.strip())
    if known is not None and duration is not None and (known[0] is Verdict.ALWAYS or not rest.strip()):
        lasting, count, unit = LASTING[(duration[1] or "").lower()], duration[2], (duration[3] or "").lower()
        expires = clock() + int(count) * SECONDS[unit] if count else None
        return Answer(known[0], by="terminal", scope=known[1], lasting=lasting, expires=expires)
    message = rest.strip() if first.lower().rstrip(",:") in ("n", "no") else ""
    return Answer(Verdict.NO, message, by="terminal")


def is_unclear(line: str | None) -> bool:
    """Whether a line says something that is neither a yes nor a no, so that the question is asked again.

    >>> is_unclear("yes please"), is_unclear("no thanks"), is_unclear("")
    (True, False, False)
    """
    first = (line or "").strip().partition(" ")[0].lower().rstrip(",:")
    return first not in ("", "n", "no") and not read_answer(line).allows


def answer_from(data: dict[str, Any], *, by: str) -> Answer:
    """An answer from JSON data: `verdict`, and perhaps `message`, `scope`, `lasting`, `expires`, `arguments`, `chosen`,
    `values`.

    Raises ValueError, KeyError or TypeError for data that is no answer.
    """
    arguments, expires = data.get("arguments"), data.get("expires")
    if arguments is not None and not isinstance(arguments, dict):
        raise TypeError("arguments must be an object")
    values = data.get("values")
    if values is not None and not isinstance(values, dict):
        raise TypeError("values must be an object")
    return Answer(
        Verdict(data["verdict"]),
        message=str(data.get("message", "")),
        by=by,
        scope=data.get("scope") or Scope.ARGUMENTS,
        lasting=data.get("lasting") or Lasting.RUN,
        expires=None if expires is None else float(expires),
        arguments=arguments,
        chosen=tuple(map(str, data.get("chosen") or ())),
        values=values,
    )


def read_reply(line: str | None, options: tuple[str, ...], *, several: bool) -> Answer:
    """Reads a typed line as the reply to a question for input: numbers or texts of options, or any words.

    End of input and an empty line decline to answer.

    >>> read_reply("2", ("red", "blue"), several=False).chosen, read_reply("green", ("red",), several=False).message
    (('blue',), 'green')
    """
    words = (line or "").strip()
    if not words:
        return Answer(Verdict.NO, by="terminal")
    parts = [part for part in re.split(r"[,\s]+", words) if part] if several else [words]
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 4]
    if options and len(numbers) == len(parts) and all(1 <= number <= len(options) for number in numbers):
        return Answer(Verdict.YES, by="terminal", chosen=tuple(options[number - 1] for number in numbers))
    same = tuple(option for option in options if option.casefold() == words.casefold())
    return Answer(Verdict.YES, "" if same else words, "terminal", chosen=same)
