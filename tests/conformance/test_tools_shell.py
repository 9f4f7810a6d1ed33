"""Commands as other systems recorded them, run for real.

Left out: background process ids and jobs (gemini-cli: ours end with the command), command prefixes (pi),
truncation with a file and its retention (opencode, goose, gemini-cli/output_offload: the box's work), token
counts and cuts of item lists (codex: the box's work), and inheriting the whole environment
(codex/shell_env_policy: ours is a list of what may pass).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib.command.launch.output import BoundedOutput
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import Shell, ShellParams, Workspace


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/codex/truncation.json")
        if case["input"]["api"] == "head_tail_buffer"
    ],
)
def test_recorded_buffer(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    kept = BoundedOutput(given["max_bytes"])
    for chunk in given["chunks"]:
        kept.feed(chunk.encode())
    whole = (kept.head + kept.tail).decode()
    if "bytes" in expected:
        assert whole == expected["bytes"]
    if "omitted" in expected:
        assert kept.omitted == expected["omitted"]
    if "total" in expected:
        assert kept.total == expected["total"]
    if "retained" in expected:
        assert len(whole) == expected["retained"]
    assert whole.startswith(expected.get("bytes_startswith", ""))
    assert whole.endswith(expected.get("bytes_endswith", ""))
    assert kept.omitted > expected.get("omitted_gt", -1)


def run_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.split('/')[1]}-{case['name']}")
        for path in ("cases/goose/shell_read.json", "cases/gemini-cli/shell_result.json")
        for case in load_cases(path)
        if "command" in case["input"]
        and not {"jobs", "pid", "signal", "is_background", "aborted"} & set(case["input"])
        and not case["input"]["command"].startswith("sleep")
    ]


@pytest.mark.parametrize("case", run_cases())
async def test_recorded_command(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    shell = Shell(Workspace(tmp_path))
    params = ShellParams(command=given["command"], timeout=20)
    if "error" in expected:
        assert shell.precheck(params)
        with pytest.raises(ToolError):
            await shell.execute(params, Context())
        return
    got = (await shell.execute(params, Context())).text
    for text in expected.get("contains", ()) if isinstance(expected, dict) else ():
        code = text.rpartition(" ")[2]
        if "code" in text.casefold() and code.isdigit():
            assert f"[exit code {code};" in got
    for line in expected.get("text_lines_any_order", ()) if isinstance(expected, dict) else ():
        assert line in got.splitlines()
