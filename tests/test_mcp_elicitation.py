"""Questions as MCP elicitations: what a client may show, and what its results are worth."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Answer, Effect, Toolbox, ToolCall, Verdict, tool
from toolcrib.access import Access, Reach
from toolcrib.call import CallKey
from toolcrib.cli.wording import arguments_as_pairs
from toolcrib.credentials import arguments_on_one_line, without_credentials
from toolcrib.errors import ErrorCode
from toolcrib.mcp import answer_to, elicitation, elicited
from toolcrib.prepared import Pending
from toolcrib.question import Lasting, Question, Scope
from toolcrib.rules import read_rules
from toolcrib.visible import INVISIBLE


def question(arguments: Any = None, **named: Any) -> Question:
    named = {"reason": "it changes something", **named}
    return Question(
        CallKey("r", 1, 0), "save", "run save", named.pop("reason"), arguments, "write", "f", **named
    )


PREFIXED = (("git", "push"),)
# The schemas of primitives that the specification knows, with the keywords of each.
PRIMITIVES = {"type", "title", "description", "enum", "enumNames", "minLength", "maxLength", "format"}

ASKED = [question({"a": 1}), question({"a": 1}, prefixes=PREFIXED), question({}, strict=True), question(None)]


@pytest.mark.parametrize("asked", ASKED)
def test_a_request_is_a_message_and_a_flat_object_of_primitives(asked: Question) -> None:
    request = elicitation(asked)
    assert json.loads(json.dumps(request)) == request
    assert set(request) == {"message", "requestedSchema"}
    schema = request["requestedSchema"]
    assert set(schema) == {"type", "properties", "required"} and schema["type"] == "object"
    for described in schema["properties"].values():
        assert described["type"] == "string" and set(described) <= PRIMITIVES
        if "enum" in described:
            assert len(described["enum"]) == len(described["enumNames"])
    assert schema["required"] == ["decision"]


def test_always_is_offered_where_it_would_be_remembered() -> None:
    def offered(**named: Any) -> list[str]:
        properties = elicitation(question({}, **named))["requestedSchema"]["properties"]
        assert ("lasting" in properties) is ("always" in properties["decision"]["enum"])
        return properties["decision"]["enum"]

    assert offered() == ["yes", "no", "always"]
    assert offered(prefixes=PREFIXED) == ["yes", "no", "always", "always_prefix"]
    assert offered(strict=True, prefixes=PREFIXED) == ["yes", "no"]


def test_the_message_shows_the_exact_thing() -> None:
    asked = question(
        {"path": "a.txt", "text": "one\ntwo", "many": [1, 2]}, preview="- old\n+ new", patterns=("docs/*",)
    )
    message = elicitation(asked)["message"]
    for said in (
        "run save",
        "write",
        "it changes something",
        "path: a.txt",
        "two",
        "[1, 2]",
        "+ new",
        "docs/*",
    ):
        assert said in message


@given(st.text())
def test_nothing_in_a_message_is_invisible_or_begins_a_line_of_its_own(text: str) -> None:
    message = elicitation(question({"x": text}, reason=text))["message"]
    assert INVISIBLE.search(message) is None
    assert all(line.startswith(("run save", "x: ", "  | ")) for line in message.split("\n"))


CREDENTIALS = [
    "password", "api_key", "apiKey", "oauth_token", "client_secret", "private_key", "bearer_token", "Authorization",
    "db.password", "AWS_SECRET_ACCESS_KEY", "accessToken", "X-Api-Key", "apikey", "auth_header",
    "DBPassword", "PGPASSWORD", "JWTToken", "pin", "PIN", "userPin", "APIKey", "MYSQL_PWD", "GHToken", "OAuthTOKEN", "jwt", "otp", "cvv",
    "passwort", "db_Kennwort", "contraseña", "motDePasse", "密码", "\u043f\u0430\u0440\u043e\u043b\u044c", "パスワード",
    "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44",
    "sshpassphrase", "dbpasswd", "AWSSecretAccessKey", "HTTPAuthorization", "authtoken", "db_pass",
]  # fmt: skip
NO_CREDENTIALS = [
    "max_tokens", "token_count", "key", "keyboard", "secretary", "author", "path", "passenger",
    "essenhaus", "Kennzeichen", "motif", "cl\u00e9", "\u5bc6\u5ea6",
    "cookies_path", "secret_name", "pinned", "spin", "pins_count", "passes", "compass", "HTTPPath", "URLName", "tokenizer", "shopping",
]  # fmt: skip


@pytest.mark.promise("policy.md", "are hidden in what is sent, on cards and in lists of approvals")
@pytest.mark.parametrize("name", CREDENTIALS)
def test_no_credential_is_sent(name: str) -> None:
    arguments = {name: "hunter2", "deep": [{name: "hunter2"}]}
    sent = elicitation(question(arguments))["message"]
    for shown in (sent, arguments_as_pairs(arguments), arguments_on_one_line(arguments)):
        assert "hunter2" not in shown and shown.count("hidden") == 2


@pytest.mark.parametrize("name", ["pin", "otp", "card_cvv", "password"])
def test_a_number_is_a_credential_only_by_names_of_such_numbers(name: str) -> None:
    assert "4711" not in elicitation(question({name: 4711}))["message"]
    assert "4711" in elicitation(question({"tokens": 4711}))["message"]
    assert without_credentials({name: True}) == {name: True}


@pytest.mark.parametrize("name", NO_CREDENTIALS)
def test_what_is_no_credential_is_shown(name: str) -> None:
    assert without_credentials({name: "value"}) == {name: "value"}
    assert "value" in elicitation(question({name: "value"}))["message"]


def test_a_reference_is_no_credential() -> None:
    assert "<secret_ref:PASS>" in elicitation(question({"password": "<secret_ref:PASS>"}))["message"]


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


ANSWERS: list[tuple[Any, Answer | None]] = [
    (accepted(decision="yes"), Answer(Verdict.YES)),
    (accepted(decision="yes", message=None, lasting=None, arguments=None), Answer(Verdict.YES)),
    (accepted(decision="no"), Answer(Verdict.NO)),
    (accepted(decision="no", message=" use pip "), Answer(Verdict.NO, "use pip")),
    (accepted(decision="always"), Answer(Verdict.ALWAYS)),
    (accepted(decision="always", lasting="user"), Answer(Verdict.ALWAYS, lasting=Lasting.USER)),
    (accepted(decision="always_prefix"), Answer(Verdict.ALWAYS, scope=Scope.PREFIX)),
    (accepted(decision="yes", arguments='{"a": 2}'), Answer(Verdict.YES, arguments={"a": 2})),
    ({"action": "decline"}, Answer(Verdict.NO)),
    ({"action": "decline", "content": {"decision": "yes"}}, Answer(Verdict.NO)),
    ({"action": "cancel"}, None),
    ({"action": "cancel", "content": {"decision": "yes"}}, None),
]  # fmt: skip


@pytest.mark.parametrize(("result", "answer"), ANSWERS)
def test_what_a_result_means(result: Any, answer: Answer | None) -> None:
    assert answer_to(question({"a": 1}, prefixes=PREFIXED), result) == answer


MALFORMED = [
    None, "yes", [], {}, {"action": "accept"}, {"action": "Accept", "content": {"decision": "yes"}},
    {"action": "accept", "content": None}, {"action": "accept", "content": "yes"}, {"content": {"decision": "yes"}},
    accepted(), accepted(decision="YES"), accepted(decision=True), accepted(decision=["yes"]), accepted(verdict="yes"),
    accepted(decision="always", lasting="for ever"), accepted(decision="always", lasting=3),
    accepted(decision="always_tool"), accepted(decision="yes", arguments="{"),
    accepted(decision="yes", arguments="[1]"),
    accepted(decision="yes", arguments={"a": 1}), accepted(decision="yes", message=1),
    accepted(decision="yes", arguments="[" * 100_000),
]  # fmt: skip


@pytest.mark.parametrize("result", MALFORMED, ids=lambda result: repr(result)[:40])
def test_whatever_is_no_clear_yes_is_no(result: Any) -> None:
    assert answer_to(question({"a": 1}, prefixes=PREFIXED), result) == Answer(Verdict.NO)


def test_what_was_not_offered_cannot_be_chosen() -> None:
    for decision in ("always", "always_prefix"):
        assert answer_to(question({}, strict=True), accepted(decision=decision)) == Answer(Verdict.NO)
    assert answer_to(question({}), accepted(decision="always_prefix")) == Answer(Verdict.NO)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["yes", "always", "accept", "cancel"]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["action", "content", "decision", "arguments", "lasting"]), inner)
    ),
)


@given(JSON)
def test_a_yes_is_an_accepted_yes_and_nothing_else(result: Any) -> None:
    answer = answer_to(question({"a": 1}, prefixes=PREFIXED), result)
    if answer is not None and answer.allows:
        assert result["action"] == "accept" and re.match("yes|always", result["content"]["decision"])


# -- as an approver


def saving(ran: list[Any]) -> Any:
    def save(path: str) -> str:
        ran.append(path)
        return f"saved {path}"

    return tool(
        save, effect=Effect.WRITE, secrets=(), accesses=lambda given: [Access(Reach.WRITE, given["path"])]
    )


@pytest.mark.parametrize(
    ("result", "code", "ran"),
    [  # arguments of a person that cannot be used are put to them again, three times in all
        (accepted(decision="yes"), None, ["a"]),
        (accepted(decision="yes", arguments='{"path": "b"}'), None, ["b"]),
        (accepted(decision="yes", arguments='{"path": "x.key"}'), ErrorCode.DENIED, []),
        (accepted(decision="yes", arguments='{"nope": 1}'), ErrorCode.REJECTED, []),
        (accepted(decision="no", message="use c"), ErrorCode.REJECTED, []),
        ({"action": "decline"}, ErrorCode.REJECTED, []),
        ({"action": "cancel"}, ErrorCode.NOBODY_TO_ASK, []),
        (accepted(decision="maybe"), ErrorCode.REJECTED, []),
    ],
)
async def test_a_call_goes_by_the_result(result: Any, code: ErrorCode | None, ran: list[str]) -> None:
    done: list[Any] = []
    requests: list[Any] = []

    async def send(request: dict[str, Any]) -> Any:
        requests.append(request)
        return result

    policy = read_rules('[[rule]]\ndeny = true\npath = "*.key"').policy()
    box = Toolbox([saving(done)], policy=policy, approver=elicited(send, by="ann"))
    given = await box.call("save", {"path": "a"})
    wrong = "arguments" in result.get("content", {}) and not ran
    assert (given.code, done, len(requests)) == (code, ran, 3 if wrong else 1)
    if code is ErrorCode.REJECTED and "message" in result.get("content", {}):
        assert "use c" in given.text


async def test_a_client_that_fails_is_nobody() -> None:
    async def send(request: dict[str, Any]) -> Any:
        raise ConnectionError

    done: list[Any] = []
    given = await Toolbox([saving(done)], approver=elicited(send)).call("save", {"path": "a"})
    assert given.code is ErrorCode.NOBODY_TO_ASK and done == []


async def test_always_by_elicitation_is_remembered_as_it_says() -> None:
    asked = 0

    async def send(request: dict[str, Any]) -> Any:
        nonlocal asked
        asked += 1
        return accepted(decision="always")

    box = Toolbox([saving([])], approver=elicited(send))
    for number, path in enumerate(("a", "a", "b")):
        await box.call(ToolCall("save", {"path": path}), key=CallKey("run", 1, number))
    assert asked == 2
    assert isinstance(await box.prepare(ToolCall("save", {"path": "c"}), key=CallKey("run", 1, 9)), Pending)


def test_an_option_is_shown_with_what_is_invisible_in_it() -> None:
    options = ("keep", "delete \u202eekil uoy sa")
    choice = elicitation(question({}, kind="input", options=options))["requestedSchema"]["properties"][
        "choice"
    ]
    assert choice["enum"] == list(options)
    assert choice["enumNames"] == ["keep", "delete \\u202eekil uoy sa"]
