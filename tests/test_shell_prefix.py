"""What "always" remembers of a command, and what it then covers."""

from __future__ import annotations

import pytest

from tests.cases import each
from toolcrib.command.judge import covered, judge, prefixes

REMEMBERED = {
    "git commit -m x": [("git", "commit")],
    "cargo fmt": [("cargo", "fmt")],
    "docker logs web": [("docker", "logs")],
    "gh pr create --title x": [("gh", "pr", "create")],
    "mkdir -p a/b": [("mkdir",)],
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
    # code of a file or a package, another machine, another remote: `*` would be anything
    "uv run mytool -x", "go run .", "go run ./cmd/x", "go test ./...", "cargo run", "cargo install x", "npm run build", "npm install x", "npm i", "npm start", "pnpm run x",
    "pnpm dlx x", "yarn run x", "yarn dlx x", "yarn add x", "npm exec x", "npx x", "pip install x", "pip3 install -r a.txt", "gem install x", "bundle exec x", "make", "make all",
    "docker compose up web", "docker build .", "docker pull x", "podman run x", "kubectl apply -f x", "kubectl exec x -- sh", "ssh host ls", "git push", "git push origin main",
    "git pull", "git fetch", "git clone https://x.example/y", "git remote add x y", "git rebase main", "git lfs install", "terraform apply", "helm install x y", "bazel run //x",
    "bazel build //x", "gradle build", "mvn package", "just deploy", "ansible-playbook x", "brew install x", "apt-get install x", "gh extension install x", "gh api x",
    "dotnet run", "rake x", "mytool run x", "deno run x", "bun run x", "poetry install", "rustup default nightly", "nix run x", "cmake --build b", "aws ssm x --script y && ssh y",
]  # fmt: skip


@pytest.mark.promise("shell-commands.md", "or None where no yes should last")
@each("command", NEVER)
def test_nothing_is_remembered_of_what_could_be_anything(command: str) -> None:
    assert prefixes(judge(command)) is None


@pytest.mark.promise("shell-commands.md", "compares whole words, for every command of a line")
def test_a_prefix_covers_whole_words_and_all_commands() -> None:
    known = [("cargo", "fmt"), ("git", "commit"), ("mytool",), ("mkdir",)]
    yes = [
        "cargo fmt",
        "ls && git commit -m a",
        "mytool a b",
        "mkdir a && cargo fmt",
        "ls",
        "(git commit -m x)",
    ]
    no = [
        "cargo fmt2", "git push", "npm run deploy", "git commit -m a && git push", "mytools", "mytool /etc/passwd", "mytool a > b", "mytool $x", "X=1 mytool a", "mkdir ../a",
        "mkdir /a", "git commit --template=x", "mytool a; rm -rf /", "mytool sk-" + "a1" * 12, "bash -c 'mytool a; other'", "./mytool a", "mytool a &",
        "fish x.fish", "csh -f x", "firejail firefox", "runuser -u x ls",
    ]  # fmt: skip
    assert [command for command in yes if not covered(judge(command), known)] == []
    assert [command for command in no if covered(judge(command), known)] == []


def test_nothing_is_covered_elsewhere_or_with_variables() -> None:
    assert not covered(judge("mytool a", cwd_is_workspace=False), [("mytool",)])
    assert not covered(judge("mytool a", env={"PATH": "."}), [("mytool",)])
    assert not covered(judge("mytool a"), [()])
