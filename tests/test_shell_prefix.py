# ruff: noqa: E501 - a case reads better in one line
"""What "always" remembers of a command, and what it then covers."""

from __future__ import annotations

import pytest

from toolcrib.shell import covered, judge, prefixes

pytest.importorskip("tree_sitter_bash")

REMEMBERED = {
    "git commit -m x": [("git", "commit")],
    "npm run build": [("npm", "run", "build")],
    "docker compose up web": [("docker", "compose", "up")],
    "gh pr create --title x": [("gh", "pr", "create")],
    "mkdir -p a/b": [("mkdir",)],
    "uv run mytool -x": [("uv", "run", "mytool")],
    "mytool --fast x": [("mytool",)],
    "ls && git commit -m x | cat": [("git", "commit")],
    "bash -c 'git commit -m x'": [("git", "commit")],
    "git add a && git commit -m x": [("git", "add"), ("git", "commit")],
}


@pytest.mark.parametrize(("command", "expected"), REMEMBERED.items())
def test_the_words_that_name_a_command(command: str, expected: list[tuple[str, ...]]) -> None:
    assert prefixes(judge(command)) == tuple(expected)


NEVER = [
    "ls", "python x.py", "python -c 'x'", "node x.js", "bash x.sh", "sh -c 'foo $x'", "sudo foo", "env FOO=1 foo", "xargs foo", "git -c a=b commit",
    "git config alias.x '!y'", "git push --force", "foo > out", "foo $x", "FOO=1 foo", "cat /etc/passwd", "rm -rf build", "curl x", "./x", "find . -exec foo {} +",
    "awk 'BEGIN{system(1)}'", "sort -o x a", "npx x", "npm exec x", "uv run x.py", "docker run x", "docker exec a b", "foo; for i in $x; do b; done", "eval foo", "make deploy",
    "mytool /etc/passwd", "mytool ../x", "git", "npm", "rm -rf /", "tee x", "foo && python x", "kubectl exec x", "git submodule foreach x", "poetry run python x", "uv run python", "git clean -fd", "npm run $(ls)", "git reset --hard", "uv run",
]  # fmt: skip


@pytest.mark.parametrize("command", NEVER)
def test_nothing_is_remembered_of_what_could_be_anything(command: str) -> None:
    assert prefixes(judge(command)) is None


def test_a_prefix_covers_whole_words_and_all_commands() -> None:
    known = [("npm", "run", "build"), ("git", "commit"), ("mytool",), ("mkdir",)]
    yes = [
        "npm run build",
        "ls && git commit -m a",
        "mytool a b",
        "mkdir a && npm run build",
        "ls",
        "(git commit -m x)",
    ]
    no = [
        "npm run build2", "npm run", "git commit -m a && git push", "mytools", "mytool /etc/passwd", "mytool a > b", "mytool $x", "X=1 mytool a", "mkdir ../a",
        "mkdir /a", "git commit --template=x", "mytool a; rm -rf /", "mytool sk-" + "a1" * 12, "bash -c 'mytool a; other'", "./mytool a", "mytool a &",
    ]  # fmt: skip
    assert [command for command in yes if not covered(judge(command), known)] == []
    assert [command for command in no if covered(judge(command), known)] == []


def test_nothing_is_covered_elsewhere_or_with_variables() -> None:
    assert not covered(judge("mytool a", cwd_is_workspace=False), [("mytool",)])
    assert not covered(judge("mytool a", env={"PATH": "."}), [("mytool",)])
    assert not covered(judge("mytool a"), [()])
