"""Files that a person saved with an editor of theirs: with a byte order mark they are read, in UTF-16 refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each
from tests.command_line import toolcrib
from toolcrib.models.prices import Prices

EXCHANGE = (
    '{"api": "chat", "response": {"framing": "json", "body":'
    ' {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}}}'
)
FILES = {
    "schema.json": '{"type": "object", "properties": {"a": {"type": "string"}}}',
    "script.yaml": "- text: Hello.\n",
    "replay.jsonl": EXCHANGE,
    "calls.jsonl": '{"name": "read_file", "arguments": {"path": "a"}}',
    "prices.toml": '[openai]\nprices = [{model = "x", input = 1.0, output = 2.0}]\n',
    "policy.toml": '[[rule]]\ndeny = true\ntool = "fetch"\n',
    "text.txt": "a text",
    "answer.yaml": '- text: \'{"a": "b"}\'\n',
}
COMMANDS = [
    ("schema.json", "schema lower --target openai.chat schema.json", "native"),
    ("script.yaml", "run hello --model scripted:script.yaml", "Hello."),
    ("replay.jsonl", "run hello --model replay:replay.jsonl", "Hello."),
    ("calls.jsonl", "policy test calls.jsonl", "1 allow"),
    ("schema.json", "extract -s schema.json --model scripted:answer.yaml text.txt", '"b"'),
    ("policy.toml", "policy explain list_dir --policy policy.toml", "allow"),
    (".toolcrib/toolcrib.toml", "mcp add here --project -- true", ""),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / ".toolcrib").mkdir()
    return tmp_path


@each(("name", "command", "wanted"), COMMANDS)
def test_a_byte_order_mark_is_no_text(folder: Path, name: str, command: str, wanted: str) -> None:
    (folder / name).write_text(FILES.get(name, "# mine\n"), encoding="utf-8-sig")
    done = toolcrib(folder, *command.split(), HOME=str(folder))
    assert done.returncode == 0 and wanted in done.stdout + done.stderr, done.stderr


@each(("name", "command", "wanted"), COMMANDS)
def test_another_encoding_is_named(folder: Path, name: str, command: str, wanted: str) -> None:
    (folder / name).write_text(FILES.get(name, "# mine\n"), encoding="utf-16")
    done = toolcrib(folder, *command.split(), HOME=str(folder))
    assert done.returncode != 0
    assert f"{name}" in done.stderr and "expected text in UTF-8, got UTF-16; save it as UTF-8" in done.stderr


def test_prices_of_a_file(folder: Path) -> None:
    (folder / "prices.toml").write_text(FILES["prices.toml"], encoding="utf-8-sig")
    assert Prices.load(folder / "prices.toml").of("openai", "x") is not None
    (folder / "prices.toml").write_text(FILES["prices.toml"], encoding="utf-16")
    with pytest.raises(ValueError, match=r"prices in .*expected text in UTF-8, got UTF-16"):
        Prices.load(folder / "prices.toml")
