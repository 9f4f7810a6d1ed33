"""Answers to questions as JSON lines on stdin, for programs that run `toolcrib run --json --answers`."""

from __future__ import annotations

import asyncio
import json
import sys
import threading

from toolcrib.cli.answers import answer_from
from toolcrib.cli.console import say
from toolcrib.question import Answer, Question
from toolcrib.visible import on_one_line


class JsonAnswers:
    """The approver that reads answers from stdin, a JSON line each. An answer names its question by fingerprint."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Future[Answer | None]]] = {}
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, question: Question) -> Answer | None:
        """Wait for the answer to a question; None once stdin has ended."""
        if self._loop is None:
            self._start()
        if self._ended:
            return None
        future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(question.fingerprint, []).append(future)
        return await future

    async def ask_all(self, questions: tuple[Question, ...]) -> list[Answer | None]:
        """Wait for the answers to several questions, which may come in any order."""
        return list(await asyncio.gather(*(self(question) for question in questions)))

    def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="toolcrib-answers", daemon=True).start()

    def _read(self) -> None:
        assert self._loop is not None
        try:
            for line in sys.stdin:
                self._loop.call_soon_threadsafe(self._take, line)
            self._loop.call_soon_threadsafe(self._end)
        except (RuntimeError, ValueError):  # the run is over, and its event loop is closed
            pass

    def _take(self, line: str) -> None:
        try:
            data = json.loads(line)
            answer = answer_from(data, by="stdin")
            fingerprint = str(data["fingerprint"])
        except (ValueError, KeyError, TypeError, AttributeError):
            say(
                f'toolcrib: not an answer, ignored: {on_one_line(line.strip(), 120)} (expected {{"fingerprint": '
                '"…", "verdict": "yes" | "no" | "always"})'
            )
            return
        waiting = [future for future in self._waiting.get(fingerprint, ()) if not future.done()]
        if waiting:
            waiting[0].set_result(answer)
        else:
            say(f"toolcrib: no question with the fingerprint {on_one_line(fingerprint, 70)} waits; ignored")

    def _end(self) -> None:
        self._ended = True
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)
