"""Configurations of MCP servers: the files of other programs and ours, references, what is shown and hashed."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Toolbox
from toolcrib.effect import Effect
from toolcrib.mcp import Expansion, McpConfigError, McpServer, McpToolset, MissingValue, read_mcp_servers
from toolcrib.mcp.config_files import servers_of_text
from toolcrib.mcp.expansion import concealing, references_of
from toolcrib.settings import SettingsError, ToolSettings, read_settings

# As the documentation of each program writes it.
FILES: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "claude": (
        ".mcp.json",
        """{"mcpServers": {
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "server-filesystem", "${HOME:-/}"],
                      "env": {"LEVEL": 3, "ON": true}},
            "api": {"type": "http", "url": "https://example.com/mcp", "timeout": 30000,
                    "headers": {"Authorization": "Bearer ${API_TOKEN}"}},
            "old": {"type": "sse", "url": "https://example.com/sse", "oauth": {"clientId": "x", "callbackPort": 8080}}
        }}""",
        [
            {"name": "files", "command": ("npx", "-y", "server-filesystem", "${HOME:-/}"), "transport": "stdio",
             "env": {"LEVEL": "3", "ON": "true"}},
            {"name": "api", "url": "https://example.com/mcp", "transport": "http", "timeout": 30.0, "auth": "none"},
            {"name": "old", "transport": "sse", "auth": "oauth",
             "oauth": {"client_id": "x", "redirect_uri": "http://127.0.0.1:8080/callback"}},
        ],
    ),
    "cursor": (
        ".cursor/mcp.json",
        """{"mcpServers": {
            "here": {"command": "python", "args": ["${workspaceFolder}/server.py"], "env": {"K": "${env:K}"}},
            "there": {"url": "http://localhost:3000/mcp",
                      "auth": {"CLIENT_ID": "${env:ID}", "CLIENT_SECRET": "s", "scopes": ["read"]}}
        }}""",
        [
            {"name": "here", "command": ("python", "${workspaceFolder}/server.py"), "env": {"K": "${env:K}"}},
            {"name": "there", "transport": "http", "auth": "oauth",
             "oauth": {"client_id": "${env:ID}", "client_secret": "s", "scopes": ["read"]}},
        ],
    ),
    "vscode": (
        ".vscode/mcp.json",
        """{
            // asked for once
            "inputs": [{"type": "promptString", "id": "key", "description": "the key", "password": true},],
            "servers": {
                /* a local one */
                "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"KEY": "${input:key}"},},
                "off": {"type": "http", "url": "https://example.com/mcp", "disabled": true},
            },
        }""",
        [
            {"name": "perplexity", "env": {"KEY": "${input:key}"}},
            {"name": "off", "enabled": False, "transport": "http"},
        ],
    ),
    "vscode settings": (
        "settings.json",
        '{"editor.tabSize": 2, "mcp": {"servers": {"a": {"command": "a b"}}}}',
        [{"name": "a", "command": ("a", "b")}],
    ),
    "toolcrib": (
        "toolcrib.toml",
        """
        [mcp.servers.git]
        command = ["uvx", "mcp-server-git"]
        timeout = 2000
        tools = ["git_*", "!git_reset"]
        effects = { git_log = "read", "git_*" = "write" }
        trusted = true
        """,
        [{"name": "git", "command": ("uvx", "mcp-server-git"), "timeout": 2000.0, "max_timeout": 2000.0,
          "tools": ("git_*", "!git_reset"), "effects": {"git_log": Effect.READ, "git_*": Effect.WRITE},
          "trusted": True}],
    ),
    "gemini, windsurf": (
        "settings.json",
        """{"mcpServers": {"g": {"httpUrl": "https://example.com/g", "includeTools": ["a"], "excludeTools": ["b"],
            "trust": true}, "w": {"serverUrl": "https://example.com/w", "disabledTools": ["c"]}}}""",
        [
            {"name": "g", "url": "https://example.com/g", "tools": ("a", "!b"), "trusted": False},
            {"name": "w", "url": "https://example.com/w", "tools": ("!c",)},
        ],
    ),
}  # fmt: skip


@each("path, text, expected", FILES.values(), ids=FILES)
def test_the_files_of_other_programs_and_ours_are_read(
    tmp_path: Path, path: str, text: str, expected: list[dict[str, Any]]
) -> None:
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    complaints: list[str] = []
    servers = read_mcp_servers(file, complain=complaints.append)
    assert complaints == []
    assert [
        {key: getattr(server, key) for key in row} for server, row in zip(servers, expected, strict=True)
    ] == expected
    assert all(server.source == str(file) for server in servers)


# The complaint about an entry that is wrong. The entry beside it is read all the same.
WRONG: list[tuple[Any, str]] = [
    ({}, "it has neither a command nor a url"),
    ("npx", "expected an object, got a text"),
    ({"command": "a", "url": "https://x"}, "it has both a command and a url"),
    ({"command": "a", "type": "http"}, "type http needs a url"),
    ({"command": ""}, "command must be a text"),
    ({"command": "a 'b"}, "command cannot be split into words"),
    ({"command": "a", "args": "b"}, "args must be a list of texts, got a text"),
    ({"command": "a", "env": ["A=1"]}, "env must be an object of texts, got a list"),
    ({"command": "a", "env": {"A": None}}, "env.A must be a text, got null"),
    ({"command": "a", "disabled": "yes"}, "disabled must be true or false"),
    ({"url": "ftp://example.com"}, "url must begin with http:// or https://"),
    ({"url": "https://x", "type": "websocket"}, "type must be stdio, http or sse, got 'websocket'"),
    ({"url": "https://x", "auth": "basic"}, "auth must be oauth or none"),
    ({"url": "https://x", "timeout": "5"}, "timeout must be a number above 0"),
    ({"command": "a", "effects": {"t": "harmless"}}, "effects.t must be read, write or destructive, got 'harmless'"),
    ({"command": "a", "tools": "x"}, "tools must be a list"),
    ({"command": "a", "effects": {"t": []}}, "effects.t must be read, write or destructive"),
    ({"command": "a", "timeout": 10**400}, "timeout is too long a time"),
    ({"command": "a", "args": ["\0"]}, "command has a character that no process can be given"),
    ({"command": "a\ud800"}, "command has a character that no process can be given"),
    ({"command": "a", "cwd": "\0"}, "cwd has a character that no process can be given"),
    ({"command": "a", "env": {"A=B": "x"}}, "env has a name or value that no variable can have: A=B"),
    ({"command": "a", "env": {"A": "x\0"}}, "env has a name or value that no variable can have: A"),
    ({"url": "https://x", "headers": {"X": "a\r\nY: b"}}, "the header X has a value with a line break"),
    ({"url": "https://x", "headers": {"X\r\nY": "b"}}, "headers has a name that a request cannot be given: X"),
    ({"url": "https://x", "headers": {"Content-Length": "5"}}, "cannot be given: Content-Length"),
    ({"url": "https://x", "headers": {"transfer-encoding": "chunked"}}, "cannot be given: transfer-encoding"),
    ({"url": "https://[::1"}, "url is no address"),
    ({"url": "https://x:99999"}, "url is no address"),
    ({"url": "https://x/\r\nY: b"}, "url is no address"),
    ({"url": "https://x\ud800"}, "url is no address"),
    ({"url": "https:///x"}, "url is no address"),
]  # fmt: skip


def test_a_name_that_stands_twice_is_told() -> None:
    told: list[str] = []
    text = '{"mcpServers": {"x": {"command": "one"}, "x": {"command": "two"}}}'
    assert [server.command for server in servers_of_text(text, "f.json", told.append)] == [("two",)]
    assert told == ["f.json: x stands twice in one object; the last one counts"]


def test_a_value_that_cannot_be_sent_is_not_shown() -> None:
    server = McpServer("x", url="https://x", headers={"Authorization": "Bearer ${TOKEN}"})
    with pytest.raises(ValueError, match="the header Authorization has a value with a line break") as caught:
        Expansion(environ={"TOKEN": "sk-secret\n"})(server)
    assert "sk-secret" not in str(caught.value)


@each(
    "written, words",
    [
        ({"url": "${PLACE}"}, r"its url must be an address .* with the value of \$\{PLACE\} it does not"),
        ({"url": "https://x/${PLACE}"}, "its url must be an address"),
        ({"url": "https://${PLACE}"}, "its url must be an address"),
        ({"command": ["${NONE}", "${PLACE}"]}, r"its command must begin .* of \$\{NONE\} and \$\{PLACE\}"),
    ],
)
async def test_an_address_or_command_that_cannot_be_used_is_not_shown_filled_in(
    written: dict[str, Any], words: str
) -> None:
    values = Expansion(environ={"PLACE": "example.com/sk-secret x", "NONE": ""})
    tools = McpToolset([McpServer("x", **written)], resolve=values)
    async with Toolbox([tools]) as box:
        assert await box.names() == []
    [status] = tools.servers()
    assert re.search(words, status.problem) and "sk-secret" not in status.problem


@pytest.mark.promise("mcp-servers.md", "An entry that is wrong is named, and the others are used.")
@each("entry, words", WRONG)
def test_a_wrong_entry_is_named_and_the_others_are_read(entry: Any, words: str) -> None:
    complaints: list[str] = []
    data = {"mcpServers": {"bad\u202e": entry, "good": {"command": "x"}}}
    assert [server.name for server in read_mcp_servers(data, complain=complaints.append)] == ["good"]
    assert len(complaints) == 1
    assert words in complaints[0]
    assert "MCP server bad\\u202e was left out" in complaints[0]


def test_an_unknown_key_is_told_and_a_foreign_one_is_not() -> None:
    complaints: list[str] = []
    entry = {"command": "x", "heders": {}, "alwaysAllow": ["a"], "envFile": ".env"}
    assert len(read_mcp_servers({"mcpServers": {"a": entry}}, complain=complaints.append)) == 1
    assert [words.partition(": MCP server a: ")[2] for words in complaints] == [
        "unknown key 'heders' has no effect; did you mean headers?",
        'envFile has no effect here: name the variables in env, such as "TOKEN": "${TOKEN}"',
    ]
    with pytest.warns(UserWarning, match="heders"):
        read_mcp_servers({"mcpServers": {"a": {"command": "x", "heders": {}}}})


@each(
    "name, text, words",
    [
        ("a.json", "{", "not JSON"),
        (
            "a.json",
            '{"mcpServers": {"a": {"command": "x"}',
            "not JSON",
        ),  # nothing is guessed in a file of a person
        ("a.json", "{'mcpServers': {}}", "not JSON"),
        ("a.json", "[]", "expected an object"),
        ("a.json", '{"mcpServer": {}}', "do you mean mcpServers?"),
        ("a.json", '{"mcpServers": []}', "must be an object of servers by name, got a list"),
        ("a.toml", "[mcp", "not TOML"),
        ("missing.json", None, "cannot be read"),
        ("deep.json", "[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(McpConfigError, match=words.replace("?", r"\?")):
        read_mcp_servers(tmp_path / name)


@each(
    "text, words",
    [
        (
            '[mcp.servers.a]\ncomand = "x"',
            "line 2: unknown key 'comand' in [mcp.servers.a]; did you mean command?",
        ),
        ("[mcp.servers.a]\nenabled = true", "line 1: mcp.servers.a: it has neither a command nor a url"),
        (
            '[mcp.servers.a]\nurl = "x"\ncommand = "y"',
            "line 1: mcp.servers.a: it has both a command and a url",
        ),
        ('[mcp.servers.a]\nurl = "ftp://x"', "line 1: mcp.servers.a: url must begin with http://"),
        (
            '[mcp.servers.a]\ncommand = "x"\ntimeout = "1"',
            "line 3: mcp.servers.a.timeout must be a number; got '1'",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\ntimeout = 0',
            "mcp.servers.a.timeout must be a number above 0; got 0",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\neffects = { b = "c" }',
            "mcp.servers.a.effects.b must be 'read', 'write' or",
        ),
        ("[mcp.servers.a]\ncommand = 3", "line 2: mcp.servers.a.command must be a text; got 3"),
        ("[mcp]\nserver = 1", "line 2: unknown key 'server' in [mcp]; did you mean servers?"),
    ],
)
def test_what_is_wrong_in_settings_is_told_with_its_line(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(text)
    assert words in str(raised.value)


def test_the_schema_for_editors_has_every_key_of_a_server() -> None:
    table = ToolSettings.model_json_schema()["$defs"]["McpServerSettings"]
    known = {"args", *(field.name for field in dataclasses.fields(McpServer))} - {"name", "inputs", "source"}
    assert set(table["properties"]) == known
    assert all(item.get("description") for item in table["properties"].values())


class Store:
    def __init__(self, **values: str) -> None:
        self.values = values

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def names(self) -> list[str]:
        return list(self.values)


def expand(text: str, **inputs: dict[str, Any]) -> str:
    server = McpServer("x", command=["run", text], inputs=inputs)
    where = Expansion({"A": "1", "EMPTY": "", "TRICKY": "${A}<secret_ref:KEY>"}, Store(KEY="k", id="s"), "/")
    return where(server).command[1]


@each(
    "text, expected",
    [
        ("plain $A {A}", "plain $A {A}"),
        ("${A}-${env:A}", "1-1"),
        ("${B:-two}${EMPTY:-e}${B:-}", "twoe"),
        ("${EMPTY}", ""),
        ("${env:B:-x}", "x"),
        ("${workspaceFolder}${/}f", "//f"),
        ("${input:id}", "s"),
        ("Bearer <secret_ref:KEY>", "Bearer k"),
        ("${TRICKY}", "${A}<secret_ref:KEY>"),  # what is put in is not read again
        ("$${A}", "$1"),
    ],
)
def test_references_are_put_in(text: str, expected: str) -> None:
    assert expand(text) == expected


def test_an_input_has_its_default_where_nothing_is_stored() -> None:
    assert expand("${input:other}", other={"default": "d"}) == "d"


@each(
    "text, words",
    [
        ("${B}", r"the variable B is not set; set it, or write \$\{B:-default\}"),
        ("${input:none}", "toolcrib secrets set none"),
        ("<secret_ref:NONE>", "there is no secret NONE"),
        ("${command:do}", "no reference that is known"),
        ("${}", "no reference that is known"),
    ],
)
def test_a_missing_value_is_named(text: str, words: str) -> None:
    with pytest.raises(MissingValue, match=words):
        expand(text)


@pytest.mark.promise(
    "mcp-servers.md", "Lists, files of known tools and messages have the reference, never the value."
)
def test_what_is_shown_and_hashed_has_no_credentials() -> None:
    server = McpServer(
        "x",
        url="https://user:hunter2@example.com/mcp?key=hunter2&team=${TEAM}",
        headers={"Authorization": "Bearer hunter2", "X-Api-Key": "hunter2", "X-Team": "red"},
        oauth={"client_id": "me", "client_secret": "hunter2"},
    )
    local = McpServer("y", command=["run", "--token", "hunter2", "--api-key=hunter2", "--dir", "src"])
    shown = json.dumps([server.to_dict(), local.to_dict(), server.address(), local.address(), repr(server)])
    assert "hunter2" not in shown.replace(repr(server.url), "")
    assert "red" in shown and "src" in shown and "${TEAM}" in shown
    other = McpServer("x", url=server.url, headers={**server.headers, "X-Api-Key": "other"})
    assert server.config_hash() == other.config_hash()
    assert other.config_hash() != McpServer("x", url=server.url, headers={"X-Team": "blue"}).config_hash()
    assert references_of(server) == ["${TEAM}"]


def test_a_servers_last_words_have_references_in_place_of_credentials() -> None:
    server = McpServer(
        "x",
        command=["run", "--key=<secret_ref:KEY>", "${PLACE}"],
        env={"A": "${API_TOKEN}:${input:key}", "B": "<secret_ref:SHORT>"},
        headers={"Authorization": "Bearer <secret_ref:KEY>"},
    )
    store = Store(KEY="first-secret", key="third(secret", SHORT="no")
    variables = {"API_TOKEN": "second-secret", "PLACE": "a-public-place"}
    conceal = concealing(server, Expansion(variables, store))
    said = "cannot use first-secret, second-secret:third(secret in a-public-place, no"
    assert conceal(said) == "cannot use <secret_ref:KEY>, ${API_TOKEN}:${input:key} in a-public-place, no"
    assert concealing(McpServer("y", command=["x"]), Expansion())("text") == "text"
    run = McpServer(
        "x", command=["run", "--token", "fourth-secret", "--api-key=fifth-secret", "--a", "first-word"]
    )
    remote = McpServer("x", url="https://me:sixth%2Dsecret@a.example/mcp?team=a-word&token=last-secret")
    for written, hidden in ((run, ("--token", "--api-key")), (remote, ("password", "token"))):
        said = concealing(written, Expansion())(
            "fourth-secret fifth-secret first-word sixth-secret last-secret a-word"
        )
        assert said.count("(hidden: ") == 2 and all(f"(hidden: {name})" in said for name in hidden)
        assert "-word" in said


def test_a_credential_is_a_mere_word_if_it_is_as_short_as_one() -> None:
    text = "postgres of an Administrator with qwmxkzjvbpthgdly"
    for word, stays in (("postgres", True), ("Administrator", True), ("qwmxkzjvbpthgdly", False)):
        conceal = concealing(McpServer("x", command=["x"], env={"PASSWORD": word}), Expansion())
        assert word not in conceal(text)
        assert (word in conceal(text, words=False)) is stays


def test_references_that_touch_are_told_apart_however_their_values_look() -> None:
    server = McpServer(
        "x",
        command=["run", "${A}<secret_ref:KEY>", "${A}:${API_TOKEN}", "${A}x" * 40 + "y"],
        oauth={"client_secret": "<secret_ref:CLIENT>"},
    )
    variables = {"A": "xx:xx", "API_TOKEN": "second:secret"}
    conceal = concealing(server, Expansion(variables, Store(KEY="first-secret", CLIENT="third-secret")))
    said = "first-secret second:secret third-secret"
    assert conceal(said) == "<secret_ref:KEY> ${API_TOKEN} <secret_ref:CLIENT>"


def test_patterns_choose_tools_and_effects() -> None:
    server = McpServer(
        "x", command=["x"], tools=["a*", "!ab*"], effects={"a*": Effect.WRITE, "aa": Effect.READ}
    )
    assert [server.uses(name) for name in ("a", "ac", "abc", "b")] == [True, True, False, False]
    assert [server.effect_of(name) for name in ("aa", "ac", "b")] == [Effect.READ, Effect.WRITE, None]


@each(
    "options, words",
    [
        ({"command": "run it"}, "command is a list"),
        ({"command": ["x"], "url": "https://x"}, "both a command and a url"),
        ({"command": ["x"], "timeout": 0}, "timeout must be"),
        ({"url": "file:///etc"}, "url must begin"),
        ({"command": ["x"], "effects": {"a": "read"}}, "effects must be"),
    ],
)
def test_a_server_that_cannot_be_right_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        McpServer("x", **options)
