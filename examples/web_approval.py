"""A web application whose agent asks before it deletes, and goes on when a person has answered.

    pip install toolcrib fastapi uvicorn
    python examples/web_approval.py runs.db

The run ends at its question and is kept in SQLite. Nothing waits in memory: stop the program, start it again, and
answer then. Open the address that is printed, start a run, and press a button.

The address holds a random word, so that no other page in your browser can answer in your name. It is in the database,
and stays the same.
"""

from __future__ import annotations

import json
import secrets
import socket
import sqlite3
import sys
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi import Request as HttpRequest
from fastapi.responses import HTMLResponse

from toolcrib import Agent, Answer, Context, Effect, ToolError, Verdict, tool
from toolcrib.agent import Outcome
from toolcrib.messages import Request
from toolcrib.models import Scripted

TABLES = """
CREATE TABLE IF NOT EXISTS waiting (run TEXT PRIMARY KEY, saved TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS word (word TEXT PRIMARY KEY);
"""
PAGE = """<!doctype html><meta charset="utf-8"><title>Reports</title>
<form method="post" action="/{word}/runs"><button>Tidy up the reports</button></form>{questions}"""
QUESTION = """<h1>{action}?</h1><p>{reason}</p><pre>{arguments}</pre>
<form method="post" action="/{word}/runs/{run}">
<input type="hidden" name="question" value="{id}"><input name="message" placeholder="why not, for the model">
<button name="verdict" value="yes">Yes</button> <button name="verdict" value="no">No</button></form>"""


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


def script(request: Request) -> str | dict[str, Any]:
    """What a model would say."""
    results = request.messages[-1].results
    if results:
        return f"I have tidied up: {results[0].text}"
    return {"calls": [{"name": "delete_report", "arguments": {"name": "2023.txt"}}]}


def make_app(database: Path, reports: Path) -> tuple[FastAPI, str]:
    """The application, and the secret word of its addresses."""
    agent = Agent(Scripted(script), [delete_report], deps=reports, on_question="suspend")

    @contextmanager
    def opened() -> Generator[sqlite3.Connection]:
        db = sqlite3.connect(database)
        try:
            with db:  # a transaction
                yield db
        finally:
            db.close()

    with opened() as db:
        db.executescript(TABLES)
        db.execute(
            "INSERT INTO word SELECT ? WHERE NOT EXISTS (SELECT * FROM word)", (secrets.token_urlsafe(),)
        )
        [[word]] = db.execute("SELECT word FROM word").fetchall()
    app = FastAPI(title="Reports", openapi_url=None)

    # The approval: a run that waits is kept, shown, and taken out by whoever answers.

    def kept(outcome: Outcome) -> dict[str, Any]:
        if outcome.reason == "waiting":
            with opened() as db:
                db.execute("INSERT INTO waiting VALUES (?, ?)", (outcome.run, json.dumps(outcome.to_json())))
        return {"run": outcome.run, "reason": outcome.reason, "text": outcome.text}

    @app.post(f"/{word}/runs")
    async def start() -> dict[str, Any]:
        return kept(await agent.run("Tidy up the reports."))

    @app.get(f"/{word}/questions")
    def questions() -> list[dict[str, Any]]:
        with opened() as db:
            rows = db.execute("SELECT run, saved FROM waiting").fetchall()
        found = [(run, call["questions"]) for run, saved in rows for call in json.loads(saved)["calls"]]
        return [{"run": run, **question} for run, listed in found for question in listed]

    @app.post(f"/{word}/runs/{{run}}")
    async def answer(run: str, request: HttpRequest) -> dict[str, Any]:
        form = dict(parse_qsl((await request.body()).decode()))
        if form.get("verdict") not in ("yes", "no"):
            raise HTTPException(400, "The verdict is yes or no.")
        reply = Answer(Verdict(form["verdict"]), form.get("message", ""), by="web")
        with opened() as db:  # two who answer at once: one of them finds nothing
            row = db.execute("DELETE FROM waiting WHERE run = ? RETURNING saved", (run,)).fetchone()
            try:
                going = agent.resume(json.loads(row[0]), {form.get("question", ""): reply})
            except (TypeError, ValueError) as problem:  # the run stays where it was
                db.rollback()
                raise HTTPException(409, "This question does not wait (any more).") from problem
        return kept(await going)

    # The page.

    @app.get(f"/{word}", response_class=HTMLResponse)
    def page() -> str:
        shown = [
            QUESTION.format(
                word=word,
                run=item["run"],
                id=item["id"],
                action=escape(item["action"]),
                reason=escape(item["reason"]),
                arguments=escape(json.dumps(item["arguments"], indent=2, ensure_ascii=False)),
            )
            for item in questions()
        ]
        return PAGE.format(word=word, questions="".join(shown) or "<p>No question waits.</p>")

    return app, word


def main(database: Path, port: int) -> None:
    reports = database.with_name("reports")
    if not reports.exists():
        reports.mkdir()
        (reports / "2023.txt").write_text("Numbers nobody needs.")
    app, word = make_app(database, reports)
    listening = socket.create_server(("127.0.0.1", port))
    print(f"The reports: http://127.0.0.1:{listening.getsockname()[1]}/{word}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else "runs.db").absolute(),
        int(sys.argv[2]) if len(sys.argv) > 2 else 8765,
    )
