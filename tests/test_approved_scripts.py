"""An "always" for a command that runs code of a file holds for the code that was in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolcrib import Answer, Toolbox, Verdict
from toolcrib.command.sandbox import NoSandbox
from toolcrib.question import Lasting
from toolcrib.rules import ApprovalStore
from toolcrib.tools import Shell, Workspace


@pytest.mark.promise(
    "shell-commands.md",
    'A yes or an "always" to `bash run.sh`, `make deploy` or `npm run build` holds for what '
    "stands in the script",
)
@pytest.mark.parametrize("lasting", [Lasting.RUN, Lasting.PROJECT, Lasting.USER])
async def test_an_always_for_a_script_holds_for_what_was_in_it(tmp_path: Path, lasting: Lasting) -> None:
    ws = tmp_path / "ws"
    (ws / "sub").mkdir(parents=True)
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.arguments["command"])
        return Answer(Verdict.ALWAYS, lasting=lasting)

    shell = Shell(Workspace(ws), sandbox=NoSandbox())
    store = ApprovalStore(tmp_path / "approvals.json")
    commands = ["bash run.sh", "./run.sh", "cd sub && sh ../run.sh", "cat run.sh | bash"]
    script = ws / "run.sh"
    for code, again in (("echo one", True), ("echo one", False), ("echo two", True), ("echo two", False)):
        script.write_text(f"#!/bin/sh\n{code}\n")
        script.chmod(0o755)
        box = Toolbox([shell], approver=approver, autonomy="supervised", approvals=store, project=str(ws))
        for command in commands:
            asked.clear()
            for _ in range(2):
                assert code.split()[1] in (await box.call("shell", {"command": command})).text
            assert asked == [command] * (again or lasting is Lasting.RUN), (code, command)


async def test_an_always_within_a_run_holds_for_what_was_in_the_script(tmp_path: Path) -> None:
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.preview)
        return Answer(Verdict.ALWAYS)

    box = Toolbox([Shell(Workspace(tmp_path), sandbox=NoSandbox())], approver=approver, autonomy="supervised")
    for code in ("echo one", "echo two"):
        (tmp_path / "run.sh").write_text(code)
        for _ in range(2):
            assert (await box.call("shell", {"command": "bash run.sh"})).text.strip() == code.split()[1]
    assert len(asked) == 2 and "echo two" in asked[1]
