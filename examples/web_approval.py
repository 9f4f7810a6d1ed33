"""A web page that answers an agent's questions.

    python examples/web_approval.py

The agent wants to delete a file. That needs a person, so the call waits, as a question: data that a page can
show. Open the address that is printed and press a button; the run goes on with your answer.

The address holds a random word, so that no other page in your browser can answer in your name. Standard
library only; in a program of yours the same four steps go into the web framework that you have.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from concurrent.futures import Future
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

from toolcrib import Agent, Answer, Context, Effect, Question, ToolError, Verdict, tool
from toolcrib.models import Scripted

PAGE = """<!doctype html><meta charset="utf-8"><title>Approval</title>
<h1>{action}?</h1><p>{reason}</p><pre>{arguments}</pre>
<form method="post"><input type="hidden" name="fingerprint" value="{fingerprint}">
<input name="message" placeholder="why not, for the model">
<button name="verdict" value="yes">Yes</button> <button name="verdict" value="no">No</button></form>"""


class Desk:
    """Where questions wait for their answers."""

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[Question, Future[Answer]]] = {}

    async def approve(self, question: Question) -> Answer:
        """1. The toolbox asks: lay the question out, and wait."""
        answer: Future[Answer] = Future()
        self.waiting[question.fingerprint] = (question, answer)
        try:
            return await asyncio.wrap_future(answer)
        finally:  # answered, or the run was cancelled
            del self.waiting[question.fingerprint]

    def questions(self) -> list[Question]:
        """2. The page shows what waits."""
        return [question for question, _ in self.waiting.values()]

    def answer(self, fingerprint: str, verdict: str, message: str) -> bool:
        """3. The page answers; False when nothing of this fingerprint waits (any more)."""
        found = self.waiting.get(fingerprint)
        if found is None or found[1].done():
            return False
        found[1].set_result(Answer(Verdict(verdict), message, by="web"))
        return True


def serve(desk: Desk, port: int) -> tuple[ThreadingHTTPServer, str]:
    """A server on this machine only, and its address."""
    word = secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == f"/{word}/questions":
                data = json.dumps([question.to_dict() for question in desk.questions()])
                return self.reply(200, data, "application/json")
            if self.path != f"/{word}":
                return self.reply(404, "There is nothing here.")
            for question in desk.questions():
                arguments = json.dumps(question.arguments, indent=2, ensure_ascii=False)
                said = {"action": question.action, "reason": question.reason, "arguments": arguments}
                return self.reply(
                    200,
                    PAGE.format(
                        **{name: escape(text) for name, text in said.items()},
                        fingerprint=question.fingerprint,
                    ),
                )
            return self.reply(200, "No question waits.")

        def do_POST(self) -> None:
            if self.path != f"/{word}":
                return self.reply(404, "There is nothing here.")
            size = min(int(self.headers.get("Content-Length", 0)), 10_000)
            form = {name: values[0] for name, values in parse_qs(self.rfile.read(size).decode()).items()}
            verdict = form.get("verdict", "")
            if verdict not in ("yes", "no"):
                return self.reply(400, "The verdict is yes or no.")
            if not desk.answer(form.get("fingerprint", ""), verdict, form.get("message", "")):
                return self.reply(409, "This question does not wait any more.")
            return self.reply(200, f"The answer was {verdict}.")

        def reply(self, status: int, body: str, kind: str = "text/html") -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: the address holds a secret."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/{word}"


@tool(effect=Effect.DESTRUCTIVE, secrets=(), open_world=False)
def delete_report(name: str, *, ctx: Context[Path]) -> str:
    """Delete a report for good.

    Args:
        name: The report's file name, such as "2023.txt".
    """
    report = next((path for path in ctx.deps.iterdir() if path.name == name), None)
    if report is None:
        raise ToolError(f"There is no report {name!r}.")
    report.unlink()
    return f"Deleted {name}."


async def main(port: int) -> None:
    desk = Desk()
    server, address = serve(desk, port)
    model = Scripted(
        [
            {"calls": [{"name": "delete_report", "arguments": {"name": "2023.txt"}}]},
            "I am done.",
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "2023.txt"
        report.write_text("Numbers nobody needs.")
        agent = Agent(model, [delete_report], approver=desk.approve, deps=Path(folder))
        print(f"The agent asks: {address}", flush=True)
        outcome = await agent.run("Tidy up the reports.")  # 4. it goes on here
        for result in outcome.messages[-2].results:
            print(result.text)
        print(f"The report is {'still there' if report.exists() else 'gone'}.")
    server.shutdown()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8765))
