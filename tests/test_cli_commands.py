"""The table of commands: a row and a module for each, which is imported only when the command is called."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

import toolcrib.cli
from toolcrib.cli import main
from toolcrib.cli.command_table import COMMANDS, GROUPS

FOLDER = Path(toolcrib.cli.__file__).parent / "commands"


def test_every_command_has_a_row_and_a_module() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert modules == {path.replace(" ", "_") for path in COMMANDS}


@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS])
def test_the_help_of_a_command_begins_with_its_summary(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split(), "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f" {(GROUPS | COMMANDS)[path]} " in told and told.startswith(f"Usage: toolcrib {path}".strip())


@pytest.mark.parametrize("path", COMMANDS)
def test_the_usage_of_a_command_marks_an_argument_once(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([*path.split(), "--help"])
    usage = capsys.readouterr().out.partition("\n\n")[0]
    assert "[[" not in usage and "...}..." not in usage and "...]]" not in usage


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_of_a_command_names_values_in_no_words_of_python(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*path.split(), "--help"])
    assert [word for word in re.findall("<(.+?)>", capsys.readouterr().out) if "|" not in word] in (
        [],
        ["secret_ref:NAME"],
    )


def test_a_value_that_does_not_fit_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "go", "--max-turns", "many"]) == 2
    assert "'--max-turns'" in (said := capsys.readouterr().err) and "'many'" in said


def test_output_that_nobody_takes_has_an_exit_code_and_words(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "toolcrib", "trust", "--list"]
    gone = subprocess.run(program, stdout=writing, stderr=subprocess.PIPE, env={"HOME": str(tmp_path)})
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1:strict", "utf-8:strict"])
def test_a_result_is_not_lost_for_a_character_that_cannot_be_printed(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_text("caf\xe9 \u2192 \U0001f600\n", encoding="utf-8")
    program = [sys.executable, "-m", "toolcrib", "tools", "call", "read_file", '{"path": "a.txt"}']
    env = {"HOME": str(tmp_path), "PYTHONIOENCODING": encoding}
    done = subprocess.run(program, capture_output=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode(encoding.partition(":")[0]).splitlines()[0]
    assert json.loads(f'"{shown}"') == "caf\xe9 \u2192 \U0001f600"


def test_a_name_that_the_locale_has_not_is_refused_in_words(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "toolcrib", "tools", "call", "read_file", '{"path": "caf\\u00e9.txt"}']
    env = {"HOME": str(tmp_path), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert "no file name can have here" in done.stderr and "internal error" not in done.stderr


@pytest.mark.parametrize("arguments", [["tools", "call", "read_file", "-"], ["secrets", "set", "NAME"]])
def test_bytes_on_stdin_that_are_no_text_are_refused_in_words(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolcrib", *arguments],
        input=b'{"path": "n\xe9.txt"}',
        capture_output=True,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8:strict"},
    )
    assert done.returncode != 0
    assert b"should not have happened" not in done.stderr and b"codec" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device of a full disk is Linux's")
def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        program = [sys.executable, "-m", "toolcrib", "config", "schema"]
        done = subprocess.run(
            program, stdout=full, stderr=subprocess.PIPE, text=True, env={"HOME": str(tmp_path)}
        )
    assert done.returncode == 1
    assert done.stderr == "toolcrib: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device of a full disk is Linux's")
def test_the_output_of_a_program_that_runs_a_command_stays_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom toolcrib.cli import main\nprint(main(['config', 'schema']), file=sys.stderr)\n"
        "print(os.readlink('/proc/self/fd/1'), file=sys.stderr, flush=True)\nos._exit(0)"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={"HOME": str(tmp_path)},
        )
    assert done.stderr.splitlines()[-2:] == ["1", "/dev/full"]


LOADED = """
import sys
from toolcrib.cli import main
main({arguments})
heavy = [name for name in ("pydantic", "asyncio", "rich", "toolcrib.toolbox") if name in sys.modules]
print(sorted(n.rpartition(".")[2] for n in sys.modules if n.startswith("toolcrib.cli.commands.")), heavy)
"""


@pytest.mark.parametrize(
    ("arguments", "loaded"), [([["--help"]], "[] []"), ([["trust", "--list"]], "['trust']")]
)
def test_only_the_command_that_is_called_is_imported(
    arguments: list[list[str]], loaded: str, tmp_path: Path
) -> None:
    code = LOADED.replace("main({arguments})", "; ".join(f"sys.argv[1:] = {a}; main()" for a in arguments))
    env = {"HOME": str(tmp_path), "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines()[-1].startswith(loaded)


START = """
import sys
sys.argv[1:] = {arguments}
from toolcrib.cli import main
main()
print(*sorted(name for name in sys.modules if name.startswith({watched})))
"""
WATCHED = (
    "toolcrib.agent",
    "toolcrib.mcp.client",
    "toolcrib.command.sandbox.",
    "toolcrib.tools.",
    "rich",
    "jsonschema_rs",
    "docstring_parser",
    "typer._adapters",
)


@pytest.mark.parametrize(
    ("arguments", "expected", "unwanted"),
    [
        (
            ["tools", "list"],
            {"toolcrib.tools.grep"},
            ("toolcrib.agent", "toolcrib.mcp.client", "rich", "jsonschema_rs", "docstring_parser"),
        ),
        (
            ["tools", "call", "read_file", "--path", "a.txt"],
            {"toolcrib.tools.read_file"},
            (
                *("toolcrib.agent", "toolcrib.mcp.client", "rich", "jsonschema_rs", "toolcrib.tools.memory"),
                *("toolcrib.command.sandbox.bubblewrap", "toolcrib.tools.grep", "toolcrib.tools.shell"),
                "typer._adapters",
            ),
        ),
    ],
)
def test_a_command_loads_what_it_needs(
    arguments: list[str], expected: set[str], unwanted: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("hello")
    code = START.format(arguments=arguments, watched=WATCHED)
    env = {"HOME": str(tmp_path / "home"), "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env, cwd=tmp_path
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert expected <= set(loaded), "what is watched for is there to be seen"
    assert [name for name in loaded if name.startswith(unwanted)] == []


IMPORTS = """
from typing import Annotated
import typer
from toolcrib.cli.console import DONE, out
from toolcrib.cli.options import ToolSelection
"""


def test_a_command_is_added_as_the_package_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (toolcrib.cli.__doc__ or "").splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("def command"))
    module = ModuleType("toolcrib.cli.commands.tools_greet")
    exec(IMPORTS + textwrap.dedent("\n".join(lines[first : first + 4])), vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "tools greet", "Greet a tool.")
    assert main(["tools", "greet", "--loud", "saw"]) == 0
    assert capsys.readouterr().out == "Hello, saw!\n"
    assert main(["tools", "greet", "-h"]) == 0
    assert "Greet a tool." in (told := capsys.readouterr().out) and "--workspace" in told
