"""References are checked before a call is decided, and revealed only where the tool takes secrets."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.secrets import Environment, Redactor, as_variables, check_references, find_references, reveal

STORE = Environment(
    ["KEY", "USER", "ODD", "LOOP"],
    environ={"KEY": "s3cret", "USER": "me", "ODD": "a'b\"c$d`e\\ f", "LOOP": "<secret_ref:KEY>"},
)
KNOWN = STORE.names()
SHELL = ["command", "env"]

REFUSED = [
    ({"content": "<secret_ref:KEY>"}, "content: a secret may not be used here (<secret_ref:KEY>). This tool takes secrets only in: command, env."),
    ({"rows": [{"a": ["x <secret_ref:KEY>"]}]}, "rows[0].a[0]: a secret may not be used here (<secret_ref:KEY>)"),
    ({"<secret_ref:KEY>": 1}, "arguments: a secret may not be used here"),
    ({"content": "<secret_ref:NOPE>"}, "content: a secret may not be used here"),
    ({"command": "echo <secret_ref:NOPE>"}, "command: there is no secret named 'NOPE'. Known names: KEY, LOOP, ODD, USER."),
    ({"env": {"<secret_ref:KEY>": "x"}}, "env: a secret may stand in a value, not in a key"),
    ({"command": "<secret_ref:>"}, "command: <secret_ref:> is not a reference to a secret. Expected <secret_ref:NAME>"),
    ({"command": "<secret_ref>"}, "is not a reference to a secret"),
    ({"command": "<secret_ref:A B>"}, "is not a reference to a secret"),
    ({"command": "< secret_ref:KEY>"}, "is not a reference to a secret"),
    ({"command": "<SECRET_REF:KEY>"}, "is not a reference to a secret"),
    ({"command": "&lt;secret_ref:KEY&gt;"}, "is not a reference to a secret"),
    ({"command": "<secret-ref:KEY>"}, "is not a reference to a secret"),
    ({"command": "<secret_ref:KEY"}, "is not a reference to a secret"),
    ({"command": "<secret_ref:" + "A" * 65 + ">"}, "is not a reference to a secret"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_a_reference_that_cannot_be_used_is_refused_in_words(arguments: dict[str, Any], words: str) -> None:
    problem = check_references(arguments, SHELL, KNOWN)
    assert problem is not None and words in problem
    assert "s3cret" not in problem


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": "ls", "content": "a < b > c"},
        {"command": "curl -u <secret_ref:USER>:<secret_ref:KEY> host", "env": {"TOKEN": "<secret_ref:KEY>"}},
        {
            "content": "write <secret_ref:…> where the key belongs, or <secret_ref>"
        },  # nothing would be revealed
    ],
)
def test_the_rest_passes(arguments: dict[str, Any]) -> None:
    assert check_references(arguments, SHELL, KNOWN) is None


def test_a_tool_without_secrets_says_so() -> None:
    assert "This tool takes secrets nowhere." in str(check_references({"q": "<secret_ref:KEY>"}, (), KNOWN))
    assert "Known names: none." in str(check_references({"q": "<secret_ref:KEY>"}, ["q"], ()))


def test_values_are_put_in_place_and_nothing_else_changes() -> None:
    arguments = {
        "command": "<secret_ref:USER>:<secret_ref:KEY>:<secret_ref:USER>",
        "env": {"A": ["<secret_ref:LOOP>", 1, None, True]},
        "content": "<secret_ref:KEY>",
    }
    before = copy.deepcopy(arguments)
    revealed = reveal(arguments, SHELL, STORE)
    assert revealed.arguments == {
        "command": "me:s3cret:me",
        "env": {"A": ["<secret_ref:KEY>", 1, None, True]},  # a value is not looked into
        "content": "<secret_ref:KEY>",
    }
    assert arguments == before
    assert revealed.values == {"USER": "me", "KEY": "s3cret", "LOOP": "<secret_ref:KEY>"}


def test_what_is_revealed_never_shows_itself() -> None:
    revealed = reveal({"command": "<secret_ref:KEY>"}, SHELL, STORE)
    assert f"{revealed} {revealed!r} {[revealed]}" == "Revealed(KEY) Revealed(KEY) [Revealed(KEY)]"
    with pytest.raises(TypeError, match="not stored"):
        pickle.dumps(revealed)
    with pytest.raises(TypeError, match="not stored"):
        copy.copy(revealed)


def test_a_name_whose_value_has_gone_is_no_literal_text() -> None:
    with pytest.raises(KeyError, match="NOPE"):
        reveal({"command": "<secret_ref:NOPE>"}, SHELL, STORE)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text("<>secrt_f:KEYA ", max_size=25), st.sampled_from(["<secret_ref:KEY>", "x<secret_ref:A>"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text("ab<>", max_size=3), inner, max_size=3)),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["command", "content"]), JSON), st.sampled_from([(), ("command",)]))
def test_what_passes_the_check_can_be_revealed_and_leaves_no_reference(arguments: Any, eligible: Any) -> None:
    if check_references(arguments, eligible, ["KEY"]) is not None:
        return
    assert all(
        not reference.name or reference.parameter in eligible for reference in find_references(arguments)
    )
    revealed = reveal(arguments, eligible, STORE)
    assert [r for r in find_references(revealed.arguments) if r.name] == []
    if not revealed.values:
        assert revealed.arguments == arguments


# -- references in a shell command


SPELLED = [
    ("printf %s <secret_ref:ODD>", "{}"),
    ('printf %s "x <secret_ref:ODD> y"', "x {} y"),
    ("printf %s 'x <secret_ref:ODD> y'", "x {} y"),
    ("printf %s 'it'\\''s <secret_ref:ODD>'", "it's {}"),
    ("printf %s a\\'<secret_ref:ODD>", "a'{}"),
    ('printf %s "\\"<secret_ref:ODD>"\'<secret_ref:ODD>\'', '"{}{}'),
    ("printf %s '\\'<secret_ref:ODD>", "\\{}"),
    ("cd / && printf %s <secret_ref:ODD><secret_ref:ODD>; true", "{}{}"),
]


@pytest.mark.parametrize(("command", "expected"), SPELLED)
def test_a_value_in_a_command_is_data_to_a_real_shell(command: str, expected: str) -> None:
    made = as_variables(command)
    assert not isinstance(made, str)
    text, names = made
    value = STORE.get("ODD") or ""
    assert value not in text
    env = {
        "PATH": os.environ["PATH"],
        **{variable: STORE.get(name) or "" for variable, name in names.items()},
    }
    done = subprocess.run(
        ["bash", "-c", text], env=env, capture_output=True, text=True, check=True, timeout=10
    )
    assert done.stdout == expected.replace("{}", value)


@pytest.mark.parametrize("command", ["cat <<E\n<secret_ref:KEY>\nE", "echo $'<secret_ref:KEY>'", "echo `echo <secret_ref:KEY>`", "echo $(echo '<secret_ref:KEY>')", 'echo "$(id <secret_ref:KEY>)"'])  # fmt: skip
def test_where_quotes_may_mean_something_else_there_is_no_guess(command: str) -> None:
    assert "give it in a variable of the environment instead" in str(as_variables(command))


def test_names_that_are_no_variables_stay_apart() -> None:
    made = as_variables("<secret_ref:a.b> <secret_ref:a-b> <secret_ref:a_b>")
    assert not isinstance(made, str)
    assert sorted(made[1].values()) == ["a-b", "a.b", "a_b"]
    assert as_variables("ls -l 'x'") == ("ls -l 'x'", {})


def test_together_with_masking_a_round_is_closed() -> None:
    revealed = reveal({"command": "login <secret_ref:KEY>"}, SHELL, STORE)
    printed = f"logged in with {revealed.arguments['command'].split()[1]}"
    assert Redactor(revealed.values).redact_text(printed).value == "logged in with [secret KEY]"
