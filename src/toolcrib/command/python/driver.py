"""Runs in the sandbox: executes pieces of Python code that it is sent, in one namespace, and replies to each.

It is started from its text, by any Python from 3.9 on, so it imports the standard library alone. Requests are lines of
JSON on what was its standard input; a reply is a frame in the output: a zero byte, the session's token, the length, a
line break, and JSON. A thread reads the requests, so that an interrupt arrives while code runs.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import linecache
import os
import queue
import signal
import sys
import threading
import traceback
import types
from typing import Any

MAX_VALUE = 20_000  # characters of the value of a last expression
MAX_FIGURES = 5
MAX_FRAMES = 20
MAX_PICTURE = 3_500_000  # bytes


class Session:
    def __init__(self, token: str) -> None:
        self.token = token
        self.process = os.getpid()
        self.requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.running: int | None = None
        # Descriptors of our own, since code may close or replace those that everybody knows.
        self.replies = os.dup(1)
        self.input = os.fdopen(os.dup(0), "rb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        sys.path.insert(0, "")
        sys.argv = [""]
        signal.signal(signal.SIGINT, self.interrupted)

    def interrupted(self, number: int, frame: Any) -> None:
        if self.running is not None:
            raise KeyboardInterrupt

    def read(self) -> None:
        """Takes requests; interrupts the code that runs. Ends the process with the last of them."""
        main = threading.main_thread().ident
        for line in self.input:
            request = json.loads(line)
            if "code" in request:
                self.requests.put(request)
            elif request.get("interrupt") == self.running and main is not None:
                signal.pthread_kill(main, signal.SIGINT)
        os._exit(0)

    def serve(self) -> None:
        threading.Thread(target=self.read, daemon=True).start()
        while True:
            request = self.requests.get()
            if request is None:
                return
            reply: dict[str, Any] = {"number": request["number"], "value": None, "error": None, "figures": []}
            try:
                self.running = request["number"]
                self.execute(request["code"], request["number"], reply)
            except KeyboardInterrupt:
                reply["error"] = "KeyboardInterrupt"
            finally:
                self.running = None
            if os.getpid() != self.process:  # a fork of the code's own that ran to its end
                os._exit(0)
            self.send(reply)

    def execute(self, code: str, number: int, reply: dict[str, Any]) -> None:
        """Runs code; the value of a last expression, or what was raised, goes into the reply."""
        name = f"<call {number}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        namespace = self.module.__dict__
        try:
            tree = ast.parse(code, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
                if value is not None:
                    namespace["_"] = value
                    reply["value"] = repr_text(value)
            reply["figures"] = figures()
        except BaseException as problem:
            if os.getpid() != self.process:
                os._exit(1)
            reply["error"] = type(problem).__name__
            self.flush()
            self.write(traceback_text(problem).encode("utf-8", "backslashreplace"))

    def send(self, reply: dict[str, Any]) -> None:
        self.flush()
        data = json.dumps(reply).encode()
        self.write(b"\0" + self.token.encode() + b" " + str(len(data)).encode() + b"\n" + data)

    def flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # code has closed or replaced it
                continue

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.replies, data) :]


def repr_text(value: Any) -> str:
    text = repr(value)
    return (
        text
        if len(text) <= MAX_VALUE
        else f"{text[:MAX_VALUE]} [... {len(text) - MAX_VALUE:,} more characters]"
    )


def traceback_text(problem: BaseException) -> str:
    """What was raised, without our own frames."""
    if isinstance(problem, SystemExit):
        return f"SystemExit: {problem.code}\n"
    trace = problem.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<call "):
        trace = trace.tb_next
    whole = traceback.TracebackException(type(problem), problem, trace, limit=-MAX_FRAMES)
    kept = [frame for frame in whole.stack if (frame.filename, frame.name) != ("<string>", "interrupted")]
    whole.stack = traceback.StackSummary.from_list(kept)
    return "".join(whole.format())


def figures() -> list[str]:
    """The open figures of matplotlib as PNG, in base64; they are closed."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    found = []
    for number in pyplot.get_fignums()[:MAX_FIGURES]:
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png")
        if len(picture.getvalue()) <= MAX_PICTURE:
            found.append(base64.b64encode(picture.getvalue()).decode())
        else:
            words = f"figure {number} is larger than {MAX_PICTURE:,} bytes as PNG; save it to a file\n"
            sys.stderr.write(words)
    if len(pyplot.get_fignums()) > MAX_FIGURES:
        sys.stderr.write(f"{MAX_FIGURES} of {len(pyplot.get_fignums())} figures are shown\n")
    pyplot.close("all")
    return found


if __name__ == "__main__" and "TOOLCRIB_PYTHON_SESSION" in os.environ:
    Session(os.environ.pop("TOOLCRIB_PYTHON_SESSION")).serve()
