"""A row for each program: what it runs, and how much of its command "always" may remember. No row lists options.

To add a program, add its name to the row that describes it, or a row. Its options are a row of another table
(`coreutils.py`, `searching.py`, `writing.py`, `develop.py`, `git.py`); a wrapper such as `timeout` has its row in
`wrappers.py`. A name is listed once. It may end with `*` for all names that begin so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from toolcrib.command.programs.wrappers import WRAPPERS
from toolcrib.dataclass import dataclass

__all__ = ["FIRST_OPTIONS", "SHELLS", "Traits", "count_of_words", "known_name", "script_of", "traits_of"]

NOTHING: frozenset[str] = frozenset()
# Options that a plan gives to programs. Without -n some ask a server for the names of addresses; ack obeys a file of
# options in the folder (--files-from shows any file), npm writes its log where a project's settings say, and npx runs what
# it finds in the registry under the name of a program that a project does not have.
FIRST_OPTIONS = {
    **dict.fromkeys(("netstat", "lsof", "arp", "route"), "-n"), "ack": "--noenv", "npm": "--logs-max=0",
    "npx": "--no-install",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a program beside its options.

    `runs`: what its arguments may hold: the script of a `shell`, other `commands`, `code` of another language, or
    `editor` commands. `reads_script`: without arguments it runs what its input says. `words`: how many words say
    what a command does (`git commit` two, `gh pr list` three). `remembered`: the sub-commands that "always" may
    remember, None for any; nothing is remembered of what runs other code, installs it, or reaches another machine.
    `as_its_command`: `uv run X` is what X is. `network`: it uses the network, whatever its arguments name.
    `no_connection`: the exit codes by which a program that fetches the URLs in its arguments says that it reached nobody.
    """

    runs: Literal["", "shell", "commands", "code", "editor"] = ""
    reads_script: bool = False
    words: int = 1
    remembered: frozenset[str] | None = None
    as_its_command: bool = False
    network: bool = False
    no_connection: frozenset[int] = frozenset()


def _only(names: str) -> frozenset[str]:
    return frozenset(names.split())


ROWS: tuple[tuple[str, Traits], ...] = (
    # --- run what their arguments or their input say ---
    ("ash bash dash ksh sh zsh", Traits("shell", reads_script=True, remembered=NOTHING)),
    ("at batch csh fish tcsh", Traits("commands", reads_script=True, remembered=NOTHING)),
    (". alacritty alias arch autossh bwrap caffeinate capsh catchsegv cgexec choom chpst chronic chroot coproc cpulimit cross-env daemonize dbus-launch dbus-run-session"
     " direnv dumb-init eatmydata entr env-cmd envdir eval expect faketime fd fdfind find firejail gamemoderun gdb gnome-terminal gosu heaptrack hyperfine i386 ifne"
     " kitty konsole ld-linux* ld-musl* ld.so linux32 linux64 lldb ltrace mise mpiexec mpirun nocache nsenter numactl optirun osascript perf pkexec prime-run proxychains*"
     " rlwrap rr run0 runcon runuser s6-setuidgid screen script setpriv setuidgid sg softlimit source srun ssh ssh-agent sshpass start-stop-daemon su-exec systemd-cat"
     " systemd-inhibit systemd-run timelimit tini tmux torify torsocks toybox trap tsocks unshare valgrind vglrun watchexec wine wine64 x-terminal-emulator x86_64 xterm"
     " xvfb-run", Traits("commands", remembered=NOTHING)),
    ("make", Traits("commands", words=2, remembered=NOTHING)),
    ("R Rscript rscript awk gawk groovy irb jshell julia lua mawk nawk node nodejs perl php py pypy python pythonw ruby scala sed tclsh ts-node tsx"
     " wish", Traits("code", remembered=NOTHING)),
    ("bun", Traits("code", words=2, remembered=NOTHING)),
    ("deno", Traits("code", words=2, remembered=_only("check fmt lint"))),
    ("ed emacs ex nvim vi vim", Traits("editor", remembered=NOTHING)),
    # --- only these sub-commands do one thing alone ---
    ("git", Traits(words=2, network=True, remembered=_only("add branch cherry-pick commit init merge mv notes revert stash switch tag"))),
    ("hg", Traits(words=2, remembered=_only("add commit"))),
    ("svn", Traits(words=2, remembered=_only("add"))),
    ("jj", Traits(remembered=_only("commit describe new"))),
    ("cargo", Traits(words=2, network=True, remembered=_only("doc fmt metadata tree"))),
    ("go", Traits(words=2, network=True, remembered=_only("doc fmt version"))),
    ("kubectl", Traits(words=2, remembered=_only("describe get logs top version"))),
    ("oc", Traits(remembered=_only("describe get logs top version"))),
    ("helm", Traits(words=2, remembered=_only("history list status version"))),
    ("docker podman", Traits(words=2, remembered=_only("images inspect logs port ps stats top version"))),
    ("nerdctl", Traits(remembered=_only("images inspect logs port ps stats top version"))),
    # --- run or install the code of a file or a package, delete, or reach another machine ---
    ("uv", Traits(words=2, remembered=NOTHING, as_its_command=True, network=True)),
    ("conda hatch pdm poetry", Traits(words=2, remembered=NOTHING, as_its_command=True)),
    ("pipenv pixi rye", Traits(remembered=NOTHING, as_its_command=True)),
    ("bundle composer gem npm pip pip3 pnpm yarn", Traits(words=2, remembered=NOTHING, network=True)),
    ("npx", Traits(remembered=NOTHING, network=True)),
    ("curl", Traits(remembered=NOTHING, network=True, no_connection=frozenset({5, 6, 7, 28, 35, 56}))),
    ("wget wget2", Traits(remembered=NOTHING, network=True, no_connection=frozenset({4}))),
    ("http https", Traits(remembered=NOTHING, network=True, no_connection=frozenset({1}))),
    ("aria2c", Traits(remembered=NOTHING, network=True, no_connection=frozenset({2, 6, 19}))),
    ("ansible* apk apt apt-get brew cdk cmake dart dnf dotnet flutter gradle just mamba mix mvn nix* nx pacman pipx"
     " pre-commit pulumi rails rake rustup sst swift terraform tofu turbo vagrant yum", Traits(words=2, remembered=NOTHING)),
    ("ant aptitude bazel bazelisk buck buck2 bunx cabal chmod chown cmd crontab ctest dd export fab"
     " flatpak ftp ghc gmake gradlew grunt gulp iex inv invoke java jq kill killall ld"
     " lein lerna mail meson mkfs* mvnw nano nc ncat netcat ninja nox pants pip2"
     " pkill port powershell pwsh pyw rm rsync runghc rush sbt scons scp sendmail set sftp"
     " snap socat stack tar task tee telnet tox uvx zypper", Traits(remembered=NOTHING)),
    # --- do what their words say ---
    ("alembic argocd consul crictl ctr doctl eas expo firebase flyctl heroku ip istioctl kind minikube netlify openssl"
     " prisma ruff service skaffold sqlite3-diff supabase systemctl tilt twine vault vercel wrangler", Traits(words=2)),
    ("aws az doppler gcloud gh glab oci op sfdx", Traits(words=3)),
)  # fmt: skip
# Sub-commands that have sub-commands: so many words say what they do.
DEEPER: tuple[tuple[int, str, str], ...] = (
    (3, "docker", "builder buildx compose container image network system volume"), (3, "podman", "container image"),
    (3, "npm", "config exec init run"), (3, "pnpm", "dlx exec run"), (3, "yarn", "dlx run"), (3, "bun", "run x"),
    (3, "deno", "task"), (3, "git", "bisect config flow lfs notes remote stash submodule worktree"), (3, "go", "mod tool"),
    (3, "cargo", "add nextest run xtask"), (3, "uv", "pip run tool"), (3, "poetry", "env run"), (3, "pdm", "run"),
    (3, "hatch", "env run"), (3, "kubectl", "config create exec rollout"), (3, "helm", "repo"),
    (3, "terraform", "state workspace"), (3, "dotnet", "tool"), (3, "conda", "env"), (3, "openssl", "req x509"),
    (3, "ip", "addr link route"), (3, "systemctl", "--user"), (3, "vault", "auth kv"), (3, "pulumi", "stack"),
    (3, "composer", "run run-script"), (3, "bundle", "exec"), (3, "nix", "flake"), (3, "brew", "services"),
    (3, "gradle", "run"), (3, "swift", "package"), (4, "aws", "s3api"), (4, "gcloud", "compute container"),
    (4, "az", "network vm"), (4, "docker compose", "run"),
)  # fmt: skip

UNLISTED = Traits()
WRAPPER = Traits("commands", remembered=NOTHING)
# `python3.11` is `python`.
VERSION = re.compile(r"(lua|perl|php|pypy|pythonw?)[\d.]+")
# Other names of known programs: GNU's beside those of the system, and compilers with a version or for another machine.
OTHER_NAMES = re.compile(
    r"[gs](sed)|g(chmod|chown|chroot|cp|dd|env|find|install|kill|mv|nice|nohup|rm|shred|sort|split|stdbuf|tar|tee|timeout"
    r"|truncate|xargs)|(?:[\w.]+-)*(cc|c\+\+|clang(?:\+\+)?|gcc|g\+\+)(?:-[\d.]+)?"
)
# With -e or -u a script would stop where its plan goes on.
SCRIPT_OPTIONS = re.compile(r"-[lx]*c[lx]*")

_BY_NAME = dict.fromkeys(WRAPPERS, WRAPPER) | {
    name: row for names, row in ROWS for name in names.split() if not name.endswith("*")
}
_BY_BEGINNING = {name[:-1]: row for names, row in ROWS for name in names.split() if name.endswith("*")}
_DEEPER = {f"{name} {word}": count for count, name, words in DEEPER for word in words.split()}
SHELLS = frozenset(name for name, row in _BY_NAME.items() if row.runs == "shell")


def known_name(word: str) -> str:
    """The name by which tables know a program: without its folder, and without the `=` with which zsh finds its file.

    >>> known_name("/opt/bin/gsed"), known_name("x86_64-linux-gnu-gcc-12"), known_name("=ls")
    ('sed', 'gcc', 'ls')
    """
    name = word.rpartition("/")[2].removeprefix("=")
    match = OTHER_NAMES.fullmatch(name)
    return name if match is None else next(filter(None, match.groups()))


@lru_cache(maxsize=1_000)
def traits_of(name: str) -> Traits:
    """The row of a program, found by its name without a folder.

    >>> traits_of("python3.11").runs, traits_of("mkfs.ext4").remembered, traits_of("ls").words
    ('code', frozenset(), 1)
    """
    if (versioned := VERSION.fullmatch(name)) is not None:
        name = versioned[1]
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((row for begins, row in _BY_BEGINNING.items() if name.startswith(begins)), UNLISTED)


def count_of_words(argv: Sequence[str]) -> int:
    """How many leading words say what a command does.

    >>> count_of_words(["docker", "compose", "up", "web"]), count_of_words(["git", "checkout", "main"])
    (3, 2)
    """
    for count in (3, 2):
        deeper = _DEEPER.get(" ".join(argv[:count])) if len(argv) >= count else None
        if deeper is not None:
            return deeper
    return traits_of(argv[0]).words


def script_of(argv: Sequence[str]) -> str | None:
    """The script of `bash -c '…'`, where nothing else is given.

    >>> script_of(["bash", "-lc", "git status"])
    'git status'
    """
    if argv[0].rpartition("/")[2] not in SHELLS or len(argv) != 3:
        return None
    return argv[2] if SCRIPT_OPTIONS.fullmatch(argv[1]) and not argv[2].startswith("-") else None
