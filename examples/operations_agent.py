"""An operations agent: starts a service in the background, is told of its crash, finds the cause, starts it again.

    python examples/operations_agent.py

Works in a temporary folder, in the best sandbox of this machine. With TOOLCRIB_MODEL set that model works on it, else a
scripted one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolcrib import Agent, Toolbox
from toolcrib.assembly import default_tools
from toolcrib.events import CallFinished, Event, ProcessEnded, ProcessStarted
from toolcrib.models import Model, Scripted, resolve_model

TASK = (
    "Start the importer (python3 -u importer.py) in the background, hand it orders.csv by copying the file to inbox/, "
    "and see that it imports all of it. If it crashes, find out why, repair the data and start it again."
)
IMPORTER = """
import csv, pathlib, time

print("watching inbox/", flush=True)
while True:
    for path in pathlib.Path("inbox").glob("*.csv"):
        total = sum(float(row["total"]) for row in csv.DictReader(path.open()))
        path.unlink()
        print(f"imported {path.name}: {total:.2f}", flush=True)
    time.sleep(0.1)
"""
ORDERS = "order,total\n1,120.50\n2,8O.00\n3,14.25\n"  # one of the digits is a letter
FIND = """
import csv
[row for row in csv.DictReader(open("orders.csv")) if not row["total"].replace(".", "").isdigit()]
"""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def script() -> Model:
    """The answers of a model that works on the task."""
    start = call(
        "shell", command="python3 -u importer.py", run_in_background=True, description="the importer"
    )
    return Scripted(
        [
            start,
            call("process", process_id="python3-1", until="watching inbox"),
            call("shell", command="cp orders.csv inbox/ && sleep 1"),
            call("process", process_id="python3-1"),
            call("python", code=FIND, description="looks for the broken row"),
            call("edit_file", path="orders.csv", old_string="8O.00", new_string="80.00"),
            call("shell", command="cp orders.csv inbox/"),
            start,
            call("process", process_id="python3-2", until=r"imported orders\.csv: \d+"),
            "Order 2 had the letter O in its total. It is repaired, and all orders are imported: 214.75.",
        ]
    )


def show(event: Event) -> None:
    if isinstance(event, ProcessStarted):
        print(f"* {event.process_id} runs in the background: {event.description or event.command}")
    elif isinstance(event, ProcessEnded):
        how = "stopped with the run" if event.stopped else f"exit code {event.exit_code}"
        print(f"* {event.process_id} ended: {how}")
    elif isinstance(event, CallFinished):
        said = event.result.text.strip().replace("\n", "\n    ")
        print(f"{event.tool}\n    {said}")


async def watch(folder: Path) -> None:
    model = resolve_model() if os.environ.get("TOOLCRIB_MODEL") else script()
    # What the sandbox confines may run unasked here: there is nobody to ask.
    box: Toolbox[None] = Toolbox(builtin=default_tools(folder), autonomy="full")
    run = Agent(model, toolbox=box).start(TASK)
    async for event in run:
        show(event)
    outcome = await run
    for message in outcome.messages[1:]:
        if message.role == "user":
            print(f"the model was told: {message.text}")
    print(f"{outcome.text}\n[{outcome.reason}]")


def main() -> None:
    if sys.platform == "win32":
        raise SystemExit("commands are not run on Windows")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "inbox").mkdir()
        (folder / "importer.py").write_text(IMPORTER)
        (folder / "orders.csv").write_text(ORDERS)
        asyncio.run(watch(folder))


if __name__ == "__main__":
    main()
