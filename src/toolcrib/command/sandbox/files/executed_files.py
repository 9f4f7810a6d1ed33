"""Files of a workspace that other programs execute or obey later, by ecosystem, and what holds for each of them.

The one table of its kind: the sandbox, the tools that write files, and the page on the sandbox are made from it. The
paths lie at the top of the workspace; those below `.git` count in every repository of it, and single names in every
folder, where they are put back (`nested_executed_files`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Protection = Literal["refused", "put back", "told", "allowed"]


class ExecutedFiles(NamedTuple):
    """Files of one ecosystem: `runs` says who executes them and when; `holds` says what the sandbox does about it.

    "refused": commands cannot write them, whether they exist or not (under Landlock they are put back). "put back":
    restored after a command, and removed if the command created them. "told": may be written; a command that changed
    them is followed by one line about it. "allowed": code of the project like any other, which runs when somebody runs
    the project.
    """

    ecosystem: str
    holds: Protection
    paths: tuple[str, ...]
    runs: str


EXECUTED = (
    ExecutedFiles(
        "git", "refused",
        (".git/hooks", ".git/config", ".git/info/attributes", ".git/modules"),
        "git, at its next command in the folder, also that of an editor or a prompt",
    ),
    # Not refused: git complains of a folder in its place at each pull, also to a person while a command runs.
    ExecutedFiles("git", "put back", (".gitmodules",), "git, at its next command about submodules"),
    ExecutedFiles(
        "git hooks", "put back",
        (".husky", ".githooks"),
        "git, where core.hooksPath leads there, at a commit or a checkout",
    ),
    ExecutedFiles(
        "lazygit", "put back",
        (".lazygit.yml", ".git/lazygit.yml"),
        "lazygit, when it shows a difference or a key is pressed",
    ),
    ExecutedFiles(
        "Jujutsu and Mercurial", "put back",
        (".jj/repo/config.toml", ".jj/workspace-config.toml", ".hg/hgrc", ".hg/hgrc-not-shared"),
        "jj or hg, at its next command in the folder, also that of a prompt",
    ),
    ExecutedFiles(
        "git hooks", "told",
        (".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", "lefthook-local.yml", ".lefthook",
         ".overcommit.yml", ".huskyrc", ".lintstagedrc", ".pre-commit-hooks.yaml"),
        "pre-commit, lefthook or overcommit, at a commit, where they are installed",
    ),
    ExecutedFiles(
        "direnv, mise, autoenv", "refused",
        (".envrc", ".mise.toml"),
        "the shell, when somebody enters the folder",
    ),
    ExecutedFiles(
        "direnv, mise, autoenv", "put back",
        ("mise.toml", "mise.local.toml", ".mise.local.toml", ".mise", "mise/config.toml", ".config/mise.toml",
         ".config/mise", ".rtx.toml", ".autoenv", ".autoenv.zsh"),
        "the shell, when somebody enters the folder",
    ),
    ExecutedFiles(
        "asdf, mise", "told",
        (".tool-versions",),
        "the shims of asdf and mise, at each program that they stand for",
    ),
    ExecutedFiles(
        "VS Code and JetBrains", "refused",
        (".vscode", ".idea"),
        "the editor, when the folder is opened",
    ),
    ExecutedFiles(
        "other editors", "put back",
        (".zed", ".fleet", ".helix", ".exrc", ".vimrc", ".gvimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".vim",
         ".dir-locals.el", ".dir-locals-2.el"),
        "the editor, when the folder or a file in it is opened",
    ),
    ExecutedFiles(
        "dev containers", "told",
        (".devcontainer", ".devcontainer.json", ".gitpod.yml"),
        "the editor, when it opens the folder in a container",
    ),
    ExecutedFiles(
        "agents", "refused",
        (".mcp.json", ".cursor", ".claude", ".codex", ".gemini", ".toolcrib"),
        "the agent, at its next start",
    ),
    ExecutedFiles(
        "agents", "put back",
        ("toolcrib.toml", ".windsurf", ".roo", ".kiro", ".continue", ".amazonq", ".opencode", "opencode.json",
         "opencode.jsonc", ".aider.conf.yml", ".crush.json", "crush.json", ".qwen", ".kilocode", ".github/hooks",
         ".junie", ".factory", ".pi"),
        "the agent, at its next start",
    ),
    ExecutedFiles(
        "interpreters and debuggers", "put back",
        (".gdbinit", ".lldbinit", ".pdbrc", ".perldb", ".pryrc", ".irbrc", ".iex.exs", ".ocamlinit", ".Rprofile",
         ".Renviron", ".octaverc", ".ghci", "jupyter_config.py", "jupyter_server_config.py",
         "jupyter_notebook_config.py", "jupyter_lab_config.py"),
        "the program, when it is started in the folder",
    ),
    ExecutedFiles(
        "Python", "told",
        ("sitecustomize.py", "usercustomize.py", ".venv/bin/activate", ".venv/bin/activate.fish",
         ".venv/pyvenv.cfg", "venv/bin/activate", "venv/bin/activate.fish", "venv/pyvenv.cfg"),
        "Python at each start, or the shell and the editor that activate the environment; of an environment only "
        "what existed before",
    ),
    ExecutedFiles(
        "npm", "told",
        ("package.json", ".npmrc", ".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml", ".yarn/plugins", ".yarn/releases",
         "bunfig.toml"),
        "npm, pnpm, yarn or bun, at an install; of `package.json` only the scripts that run then (`postinstall`, "
        "...)",
    ),
    ExecutedFiles(
        "Rust", "told",
        (".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "rust-toolchain", "rust-analyzer.toml"),
        "cargo and rust-analyzer, also when a folder is opened",
    ),
    ExecutedFiles(
        "Java", "told",
        (".mvn", "gradle/wrapper", "gradle.properties"),
        "Maven, Gradle and editors that import the project",
    ),
    ExecutedFiles(
        "Bazel", "told",
        (".bazelrc", ".bazelversion", "tools/bazel"),
        "bazel, at each of its commands",
    ),
    ExecutedFiles(
        "continuous integration", "told",
        (".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", "Jenkinsfile",
         "azure-pipelines.yml", ".travis.yml", ".buildkite", ".drone.yml", ".woodpecker.yml", ".forgejo/workflows",
         ".gitea/workflows"),
        "a server, after a push",
    ),
    ExecutedFiles(
        "the project's own code", "allowed",
        ("Makefile", "GNUmakefile", "justfile", "Taskfile.yml", "tox.ini", "noxfile.py", "conftest.py", "setup.py",
         "pyproject.toml", "build.rs", "build.gradle", "build.gradle.kts", "pom.xml", "gradlew", "mvnw",
         "CMakeLists.txt", "Rakefile", "Dockerfile", "BUILD.bazel", "eslint.config.js"),
        "somebody who builds or tests the project, or an editor that does so by itself",
    ),
    # HEAD turns a folder into a git repository whose settings git obeys.
    ExecutedFiles(
        "git", "put back",
        ("HEAD",),
        "git takes a folder with a `HEAD` for a repository, and obeys its settings",
    ),
)  # fmt: skip


def paths_that_are(holds: Protection) -> tuple[str, ...]:
    return tuple(path for row in EXECUTED if row.holds == holds for path in row.paths)


PROTECTED = paths_that_are("refused")
PUT_BACK = paths_that_are("put back")
# Protected only where it exists: a placeholder would stop git. What a command creates of it is removed afterwards.
PROTECTED_IF_PRESENT = (".git/commondir", ".git/config.worktree", ".git/objects/info/alternates")
