# ruff: noqa: E501 - tables read better in lines
"""What "always" may remember of a command: the beginning of its arguments, never more than was meant.

How many words say what a command is stands in a table; an option ends them, so that `git commit --amend` is not
remembered as `git commit`. Nothing is remembered of what runs other code (of a file, of a package, of a container),
installs it, or reaches another machine, of a redirection, or of a variable: of such only the very arguments are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from toolcrib.command.judge.judgement import Judgement
from toolcrib.command.judge.parts import JudgedCommand
from toolcrib.command.programs.wrappers import SHELLS, WRAPPERS

Prefix = tuple[str, ...]

# How many words name the action; 1 where a program is not here.
WORDS: dict[str, int] = {
    **dict.fromkeys(
        ("git", "hg", "svn", "npm", "pnpm", "yarn", "bun", "deno", "pip", "pip3", "pipx", "poetry", "pdm", "uv", "hatch",
         "cargo", "rustup", "go", "dotnet", "mvn", "gradle", "make", "just", "rake", "bundle", "gem", "composer", "docker",
         "podman", "kubectl", "helm", "terraform", "tofu", "pulumi", "ansible", "vagrant", "systemctl", "service", "brew",
         "apt", "apt-get", "dnf", "yum", "pacman", "apk", "conda", "mamba", "flyctl", "heroku", "vercel", "netlify",
         "wrangler", "firebase", "supabase", "turbo", "nx", "nix", "cdk", "swift", "flutter", "dart", "mix", "rails",
         "cmake", "ruff", "alembic", "prisma", "eas", "expo", "ip", "openssl", "consul", "vault", "sst", "doctl", "kind",
         "minikube", "skaffold", "tilt", "argocd", "istioctl", "crictl", "ctr", "pre-commit", "twine", "sqlite3-diff"), 2),
    **dict.fromkeys(("gh", "glab", "aws", "gcloud", "az", "doppler", "op", "sfdx", "oci"), 3),
    **dict.fromkeys(
        ("docker compose", "docker container", "docker image", "docker network", "docker volume", "docker builder",
         "docker buildx", "docker system", "podman container", "podman image", "npm run", "pnpm run", "yarn run", "bun run",
         "npm exec", "npm init", "pnpm dlx", "pnpm exec", "yarn dlx", "deno task", "bun x", "git config", "git remote",
         "git stash", "git submodule", "git worktree", "git bisect", "git notes", "git flow", "git lfs", "go mod", "go tool",
         "cargo run", "cargo add", "cargo xtask", "uv run", "uv pip", "uv tool", "poetry run", "poetry env", "pdm run",
         "hatch run", "hatch env", "kubectl rollout", "kubectl config", "kubectl create", "kubectl exec", "helm repo",
         "terraform workspace", "terraform state", "dotnet tool", "conda env", "openssl req", "openssl x509", "ip addr",
         "ip link", "ip route", "systemctl --user", "vault kv", "vault auth", "pulumi stack", "npm config", "composer run",
         "composer run-script", "bundle exec", "nix flake", "brew services", "cargo nextest", "gradle run", "swift package"),
        3),
    **dict.fromkeys(("aws s3api", "gcloud compute", "gcloud container", "az network", "az vm", "docker compose run"), 4),
}  # fmt: skip
# What these run is in their other arguments, in files, in packages, or anywhere: nothing of them is remembered.
INTERPRETERS = re.compile(
    r"pythonw?[\d.]*|pyw?|pypy[\d.]*|node|nodejs|ruby|irb|perl[\d.]*|php[\d.]*|lua[\d.]*|Rscript|R|julia|scala|groovy|osascript"
    r"|g?awk|mawk|nawk|sed|jq|ed|ex|vim?|nvim|nano|emacs|find|fd|tar|make|gmake|npx|uvx|pipx|bunx|ssh|scp|sftp|rsync|curl|wget|aria2c"
    r"|eval|source|\.|trap|alias|export|set|sh|ld|gdb|lldb|strace|ltrace|socat|nc|ncat|netcat|telnet|ftp|mail|sendmail"
    r"|powershell|pwsh|cmd|su|sudo|doas|pkexec|chroot|nsenter|unshare|systemd-run|crontab|at|batch|expect|tmux|screen|script"
    r"|rm|dd|mkfs.*|chmod|chown|kill|pkill|killall|tee|xargs|env"
    r"|just|rake|task|tox|nox|invoke|inv|fab|ant|mvn|mvnw|gradle|gradlew|sbt|lein|bazel|bazelisk|buck2?|pants|ninja|scons|meson|cmake|ctest"
    r"|turbo|nx|lerna|rush|gulp|grunt|rails|mix|iex|ansible.*|vagrant|terraform|tofu|pulumi|cdk|sst|nix.*|pre-commit|tsx|ts-node|swift"
    r"|apt|apt-get|aptitude|dnf|yum|pacman|apk|zypper|brew|snap|flatpak|port|tclsh|wish|ghc|runghc|stack|cabal|dotnet|java|jshell"
)
# Of these only the sub-commands that do one thing may be remembered: none that run the code of a file or a package,
# fetch any, or reach another machine.
NAMED_ONLY: dict[str, Collection[str]] = {
    "git": {"add", "commit", "stash", "tag", "branch", "switch", "merge", "revert", "cherry-pick", "mv", "init", "notes"},
    "hg": {"add", "commit"}, "svn": {"add"}, "jj": {"commit", "describe", "new"},
    "deno": {"lint", "fmt", "check"}, "cargo": {"fmt", "doc", "tree", "metadata"}, "go": {"fmt", "doc", "version"},
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "conda", "mamba", "bundle", "npm", "pnpm", "yarn", "bun",
                     "pip", "pip2", "pip3", "gem", "composer", "rustup", "flutter", "dart"), ()),
    **dict.fromkeys(("docker", "podman", "nerdctl"), ("ps", "images", "logs", "inspect", "stats", "top", "port", "version")),
    **dict.fromkeys(("kubectl", "oc"), ("get", "describe", "logs", "top", "version")),
    "helm": {"list", "status", "history", "version"},
}  # fmt: skip
RUNS = {
    "exec", "run", "x", "dlx", "--", "-c", "-e", "--eval", "--exec", "shell", "config", "alias", "submodule", "bisect",
    "filter-branch", "difftool", "mergetool", "tool", "install", "i", "ci", "start", "serve", "script", "ssh", "api", "extension",
    "plugin", "clone", "fetch", "pull", "push", "deploy", "publish",
}  # fmt: skip


DESTROYS = {("git", "clean"), ("git", "reset"), ("git", "rm"), ("git", "restore"), ("git", "checkout")}
RUNNERS = {"uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "conda"}  # `uv run X` is as X is


def arity(words: Sequence[str]) -> int:
    """How many leading words say what a command is; the longest row of the table counts.

    >>> arity(["docker", "compose", "up", "web"]), arity(["git", "checkout", "main"]), arity(["ls", "-l"])
    (3, 2, 1)
    """
    for count in (3, 2, 1):
        known = WORDS.get(" ".join(words[:count])) if len(words) >= count else None
        if known is not None:
            return known
    return 1


def prefix_of(argv: Sequence[str]) -> Prefix | None:
    """The prefix that may stand for a command later on, or None where only the very command may."""
    name = argv[0]
    if "/" in name or name in SHELLS or name in WRAPPERS or not re.fullmatch(r"\w[\w+-]*(?:\.\d+)*", name):
        return None
    count = arity(argv)
    words = tuple(argv[:count])
    allowed = NAMED_ONLY.get(name)
    if INTERPRETERS.fullmatch(name) or (allowed is not None and (len(words) < 2 or words[1] not in allowed)):
        return None
    if len(words) < count and count > 1 and len(argv) < 2:
        return None  # a program's name alone would stand for all of its sub-commands
    if words[:2] in DESTROYS or not all(re.fullmatch(r"[\w@.:/+-]+", word) for word in words[1:]):
        return None
    if any(word.startswith("-") for word in words[1:]) or set(argv[1:2]) & RUNS or set(words[1:]) & RUNS:
        return None
    return words


def prefixes(judgement: Judgement) -> tuple[Prefix, ...] | None:
    """One prefix for each command that asks, or None where "always" must not be offered."""
    if judgement.verdict != "ask" or not judgement.grantable:
        return None
    found: list[Prefix] = []
    for part in judgement.parts:
        if not part.reason:
            continue
        prefix = _of_part(part)
        if prefix is None:
            return None
        found.append(prefix)
    return tuple(dict.fromkeys(found)) or None


def covered(judgement: Judgement, remembered: Collection[Sequence[str]]) -> bool:
    """Whether each command of it is plain or begins with a remembered prefix, word for word.

    What leaves the workspace, names secrets, redirects into files or sets variables is never covered.
    """
    if judgement.verdict == "deny" or judgement.plan is None:
        return False
    if judgement.verdict == "plain":
        return True
    known = {tuple(prefix) for prefix in remembered if prefix}
    if not judgement.grantable:
        return False
    return all(
        not part.reason or (_of_part(part) in known and _of_part(part) is not None)
        for part in judgement.parts
    )


def _of_part(part: JudgedCommand) -> Prefix | None:
    if not part.argv or not part.grantable:
        return None
    return prefix_of(part.argv)
