# ruff: noqa: PTH111, PTH112, PTH118, PTH207 - paths are text and descriptors here
"""Which files a sandbox hides, which it shows all the same, and which it protects inside the workspace.

The home folders are hidden as a whole, so that secrets which no table knows are hidden too; what programs
need of them (toolchains, caches without credentials) is shown again, read-only. Elsewhere a table names them.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

from toolcrib.command.sandbox.interface import Files, Level
from toolcrib.command.sandbox.masks import is_mask
from toolcrib.command.sandbox.own import own_places, runs_us

# Relative to a home folder: what may be read of it. Nothing here may hold a credential.
SHOWN_OF_HOME = (
    ".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
    ".local/bin", ".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/pnpm",
    ".local/share/virtualenvs",
    ".pyenv", ".asdf", ".nvm", ".volta", ".fnm", ".bun/bin", ".deno/bin", ".rbenv", ".sdkman", ".ghcup/bin",
    ".nix-profile",
    ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/config.toml", ".cargo/env", ".rustup", "go/bin", "go/pkg",
    ".m2/repository", ".gradle/wrapper", ".gradle/caches", ".conda", "miniconda3", "anaconda3", "Library/Python",
)  # fmt: skip

# Relative to a home folder: hidden even where the folder itself has to be seen (it is, or holds, the workspace).
SECRETS_OF_HOME = (
    ".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".oci", ".password-store", ".netrc", "_netrc", ".pgpass",
    ".my.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials", ".config/gcloud",
    ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/rclone", ".config/sops", ".config/age",
    ".config/doctl", ".config/heroku", ".config/containers", ".config/toolcrib", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".mozilla", ".thunderbird",
    ".local/state/toolcrib", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".terraformrc",
    ".terraform.d", ".vault-token", ".databrickscfg", ".boto", ".s3cfg", ".local/share/keyrings",
    ".local/share/kwalletd",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
    ".sqlite_history", ".lesshst", ".local/share/fish/fish_history", ".claude", ".codex", ".gemini",
    ".config/anthropic",
    "Library/Keychains", "Library/Application Support/Google", "Library/Application Support/Firefox",
    "Library/Cookies",
)  # fmt: skip

# Of the system: keys, and the sockets and state of daemons.
SECRETS_OF_SYSTEM = (
    "/root", "/home", "/Users", "/run", "/var/run", "/tmp", "/var/tmp", "/etc/shadow", "/etc/shadow-", "/etc/gshadow",
    "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh/ssh_host_*_key", "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/wireguard", "/etc/openvpn", "/etc/NetworkManager",
    "/etc/letsencrypt", "/etc/ppp", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/private",
    "/var/lib/postgresql", "/var/lib/mysql", "/var/lib/redis", "/var/spool/cron", "/var/mail",
    "/var/backups", "/swapfile",
)  # fmt: skip

# Of these, what is hidden merely because nobody knows what lies there.
ROOMS = ("/root", "/home", "/Users", "/run", "/var/run", "/tmp", "/var/tmp")

# Of the workspace: what other programs obey when they merely stand in the folder. Protected also where absent.
PROTECTED = (
    ".git/hooks", ".git/config", ".git/info/attributes", ".git/modules", ".gitmodules", ".envrc", ".mise.toml",
    ".vscode", ".idea", ".mcp.json", ".cursor", ".claude", ".codex", ".gemini", ".toolcrib",
)  # fmt: skip
# The same where it is there; an empty folder in its place would stop git. What is made of it is taken out afterwards.
PROTECTED_IF_THERE = (".git/commondir", ".git/config.worktree", ".git/objects/info/alternates")
# Of a home folder that is the workspace: what shells and programs run whenever they start.
PROTECTED_OF_HOME = (
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".gitconfig",
    ".ripgreprc", ".config/autostart", ".config/systemd", ".config/fish", ".local/bin", ".pam_environment",
    ".xprofile",
)  # fmt: skip
# Removed again when a command makes them. HEAD turns a folder into a git repository whose configuration git obeys.
WATCHED = ("HEAD", "toolcrib.toml")
SYSTEM_PARTS = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/dev", "/proc", "/sys", "/nonexistent")
SYSTEM_OWN = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot", "/dev", "/proc", "/sys", "/System",
    "/Library",
)  # fmt: skip
SYSTEM_ROOTS = ("/root", "/home", "/Users", "/tmp", "/run")  # never shown as a whole, whatever PATH says
MAX_REPOSITORIES = 64  # nested ones whose hooks and configuration are protected too
NESTED_DEPTH = 4
MAX_FOLDERS = 4_000  # looked into for them


@dataclass(frozen=True, slots=True)
class View:
    """What a command sees of the file system. All paths are absolute and resolved.

    `hidden` are folders and files that are not there for it; `shown` lie below hidden ones and are there,
    read-only; `protected` and `watched` lie in the workspace. Rules took what is `withheld`, which is hidden
    whatever is shown, and what is `kept`, which may not be changed.
    """

    workspace: str
    home: str
    hidden: tuple[str, ...]
    shown: tuple[str, ...]
    protected: tuple[str, ...]
    watched: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Whether a path is not there for a command."""
        if within(path, self.workspace):
            return any(within(path, place) for place in self.hidden if within(place, self.workspace))
        shown = max((len(place) for place in self.shown if within(path, place)), default=0)
        hidden = max((len(place) for place in self.hidden if within(path, place)), default=0)
        return hidden > shown

    def protects(self, path: str) -> bool:
        return any(within(path, place) for place in (*self.protected, *self.watched))


def opened(view: View, writable: Iterable[str], readable: Iterable[str]) -> View:
    """A view with further paths open; what is hidden below them stays hidden, and one that is a link by now is shut."""
    mine = [path for path in writable if os.path.realpath(path) == path]
    paths = [*mine, *(path for path in readable if os.path.realpath(path) == path)]
    if not paths:
        return view
    shown = (path for path in paths if path not in view.shown and not within(path, view.workspace))
    return replace(
        view,
        hidden=tuple(path for path in view.hidden if path not in paths),
        shown=tuple(sorted((*view.shown, *shown))),
        protected=tuple(path for path in view.protected if not _in_one(path, mine)),
        watched=tuple(path for path in view.watched if not _in_one(path, mine)),
    )


def rooms(view: View, level: Level) -> list[str]:
    """What commands may change at a level."""
    return [view.workspace] * (level.files is Files.WORKSPACE_WRITE) + list(level.writable)


def taken(view: View, level: Level) -> View:
    """A view without what rules take from a level, where a command could reach it at all."""
    if not (level.hidden or level.kept):
        return view
    withheld = tuple(path for path in level.hidden if path not in view.hidden and not view.hides(path))
    changed = rooms(view, level)
    kept = tuple(path for path in level.kept if _in_one(path, changed) and not _in_one(path, withheld))
    mine = [path for path in kept if within(path, view.workspace)]
    return replace(
        view,
        hidden=tuple(sorted((*view.hidden, *withheld))),
        shown=tuple(path for path in view.shown if not _in_one(path, withheld)),
        protected=tuple(
            path for path in dict.fromkeys((*view.protected, *mine)) if not _in_one(path, withheld)
        ),
        withheld=withheld,
        kept=kept,
    )


def _in_one(path: str, places: Iterable[str]) -> bool:
    return any(within(path, place) for place in places)


def never_offered(path: str, view: View, *, writing: bool) -> bool:
    """Whether nobody is asked to open a path: it holds secrets, or is obeyed by programs outside the sandbox.

    A folder is not offered either for writing where it holds such a place, or the workspace, or a home folder.
    """
    homes = {view.home, *_homes_of_the_account()}
    system = [place for place in SECRETS_OF_SYSTEM if place not in ROOMS]
    secret = [
        *(found for place in system for found in (glob.glob(place) if "*" in place else [place])),
        *(os.path.join(home, place) for home in homes for place in SECRETS_OF_HOME),
        *own_places(),
    ]
    obeyed = [os.path.join(home, place) for home in homes for place in PROTECTED_OF_HOME] if writing else []
    places = {os.path.realpath(place) for place in (*secret, *obeyed)}
    if _in_one(path, places) or (writing and (view.protects(path) or _is_obeyed(path))):
        return True
    around = {*places, *homes, view.workspace} if writing else {*homes, view.workspace}
    return path == "/" or any(within(place, path) for place in around)


def _is_obeyed(path: str) -> bool:
    """Whether it is the system's own, or what programs obey in any folder, or a folder that holds such a thing."""
    if _in_one(path, SYSTEM_OWN) or any(f"/{name}/" in f"{path}/" for name in PROTECTED):
        return True
    return any(os.path.lexists(os.path.join(path, name)) for name in (".git", *PROTECTED))


def within(path: str, place: str) -> bool:
    """Whether a path is a place or lies below it; both absolute."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def view_of(
    workspace: str,
    *,
    home: str | None = None,
    readable: Iterable[str] = (),
    protected: Iterable[str] = PROTECTED,
) -> View:
    """The view from a workspace. `readable` are further folders to see; `protected` is relative to the workspace."""
    root = os.path.realpath(workspace)
    own = os.path.realpath(home or os.path.expanduser("~"))  # the path stays text
    homes = [own, *_homes_of_the_account()]
    ours = own_places(home)
    candidates = [
        *(path for place in SECRETS_OF_SYSTEM for path in (glob.glob(place) if "*" in place else [place])),
        *homes,
        *(os.path.join(folder, place) for folder in homes for place in SECRETS_OF_HOME),
        *ours,
    ]
    hidden = {os.path.realpath(path) for path in candidates if os.path.lexists(path) and not is_mask(path)}
    # A folder that holds the workspace is hidden all the same, around it; the workspace itself is not.
    hidden = {path for path in hidden if path != root and path != "/"}
    shown = [
        *(os.path.join(own, place) for place in SHOWN_OF_HOME),
        *interpreter(),
        *(folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/")),
    ]
    seen = {os.path.realpath(path) for path in shown if os.path.lexists(path)}
    seen = {
        path
        for path in seen
        if not within(own, path) and not any(within(place, path) for place in SYSTEM_ROOTS)
    }
    seen |= {os.path.realpath(path) for path in readable if os.path.lexists(path)}
    below = {path for path in seen if any(within(path, place) for place in hidden)}
    below = {path for path in below if not _shown_anyway(path, below, hidden)}
    names = (*protected, *(PROTECTED_OF_HOME if root == own else ()))
    # What is not there yet could be made, and would be obeyed by the next run.
    made_later = [path for path in ours if path not in hidden and within(path, root) and path != root]
    return View(
        root,
        own,
        tuple(sorted(hidden)),
        tuple(sorted(path for path in below if not within(path, root))),
        tuple(dict.fromkeys((*_protected(root, names), *made_later, *runs_us(root)))),
        tuple(f"{root}/{name}" for name in WATCHED),
    )


def _shown_anyway(path: str, shown: set[str], hidden: set[str]) -> bool:
    """Whether a path lies in another one that is shown, with nothing hidden between the two."""
    around = [place for place in (*shown, *hidden) if place != path and within(path, place)]
    return bool(around) and max(around, key=len) in shown


@cache
def _homes_of_the_account() -> tuple[str, ...]:
    """The home folder that the system has for us, wherever HOME points; not one that belongs to the system."""
    import pwd

    try:
        home = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return ()
    return () if home == "/" or any(within(home, place) for place in SYSTEM_PARTS) else (home,)


@cache
def interpreter() -> tuple[str, ...]:
    """Where this Python and its packages lie, which commands such as `pytest` need, and our own launcher."""
    ours = str(Path(__file__).resolve().parent)
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, ours)))


def _protected(root: str, names: tuple[str, ...]) -> list[str]:
    found = [f"{root}/{name}" for name in names]
    if not os.path.isdir(f"{root}/.git") or is_mask(
        f"{root}/.git"
    ):  # a file that names one, or no repository yet
        found = [path for path in found if not within(path, f"{root}/.git")] + [f"{root}/.git"]
    inner = [name for name in names if name.startswith(".git/")]
    inner += PROTECTED_IF_THERE if inner else ()
    for repository in (root, *islice(nested_repositories(root), MAX_REPOSITORIES)):
        found += [f"{repository}/{name}" for name in inner if os.path.lexists(f"{repository}/{name}")]
    return found


def nested_repositories(root: str) -> Iterable[str]:
    """Folders below the workspace that hold a `.git` folder; not too deep, and not without end."""
    todo = [(root, 0)]
    looked = 0
    while todo and looked < MAX_FOLDERS:
        folder, depth = todo.pop()
        looked += 1
        try:
            with os.scandir(folder) as entries:
                inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if folder != root and ".git" in inner:
            yield folder
        if depth < NESTED_DEPTH:
            todo += [(f"{folder}/{name}", depth + 1) for name in inner if name not in SKIPPED]


SKIPPED = {".git", "node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache"}
