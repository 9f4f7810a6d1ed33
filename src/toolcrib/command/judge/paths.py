"""Judges a path by its name alone: whether it leaves the workspace, whether it may hold secrets.

Where links lead, and what a pattern or a subtree holds, is seen by the file system and the sandbox alone.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal
from unicodedata import normalize

from toolcrib.command.backup_names import ADDED_BEFORE, ADDED_BEHIND
from toolcrib.dataclass import dataclass

if TYPE_CHECKING:
    from toolcrib.command.programs.options import Access

# Files whose text is code or prose, whatever their name says of secrets. What only holds values is not among them.
SOURCES = (
    "md|mdx|rst|adoc|html?|css|pyi?|pyx|[mc]?[jt]s|[jt]sx|vue|svelte|go|rs|java|kt|scala|swift"
    "|c|h|cc|cpp|hpp|cs|rb|proto|baseline"
)
EXAMPLE = "example|sample|template|dist"  # shows which values there are, and holds none
NO_MANUAL = r"(?!\.[1-9](?:\.gz)?$)"  # `credentials.7` and `shadow.5` are pages of the manual
SECRET = re.compile(
    rf"(?:^|/){ADDED_BEFORE}(?:\.env(?!\.(?:{EXAMPLE}|defaults?){ADDED_BEHIND}(?:/|$))[^/]*|[^/]+\.env|\.git|\.hg|\.svn|\.ssh|\.aws|\.azure"
    r"|\.gnupg|\.kube|kubeconfig|\.docker|\.dockercfg|\.config/(?:gcloud|gh|hub)|\.netrc|_netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc"
    r"|\.pgpass|\.my\.cnf|\.boto|\.s3cfg|\.git-credentials|\.htpasswd|\.password-store|\.vault-token|\.terraformrc"
    r"|\.(?:bash|zsh|sh|python|psql|mysql|sqlite|node_repl|rediscli|irb)_history|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    rf"|credentials{NO_MANUAL}|(?:[^/]*[_-])?credentials?\.(?:json|toml|ya?ml|ini|cfg|xml|csv|txt|enc)|client_secret[^/]*\.json"
    rf"|secrets?\.(?!(?:[^/.]+\.)*(?:{SOURCES}|(?:{EXAMPLE})(?:\.[^/.]+)?){ADDED_BEHIND}\Z)[^/]+|secrets?/secrets?\.[^/]+"
    rf"|service[-_]account[^/]*\.json|g?shadow{NO_MANUAL}|[^/]*\.(?:pem|key|p12|pfx|kdbx?|jks|keystore|ppk|asc|gpg|tfvars)"
    rf"|[^/]*\.tfstate){ADDED_BEHIND}(?:/|$)",
    re.IGNORECASE,
)
# What a pattern is tried on: one that names any of these names secrets.
SAMPLES = (
    ".env", ".env.local", ".ssh", ".aws", ".git", ".netrc", ".npmrc", "id_rsa", "id_ed25519", "credentials.json",
    "secrets.json", "secrets.yml", "secret.yaml", "service-account.json", "terraform.tfstate", "client_secret.json",
)  # fmt: skip
DOTTED = tuple(name for name in SAMPLES if name.startswith("."))
ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
MAX_ALTERNATIVES = 100
MAX_PATTERN = 200  # characters
SUFFIXES = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore")
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|file:", re.IGNORECASE)
HARMLESS_DEVICES = {"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr"}
# What these tell of the machine is no secret, and every program may read them.
FACTS = {
    "/etc/os-release", "/usr/lib/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/alpine-release",
    "/etc/redhat-release", "/etc/issue", "/etc/timezone", "/etc/shells", "/etc/services", "/proc/cpuinfo",
    "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime", "/usr/share/dict/words",
}  # fmt: skip
Reach = Literal["file", "pattern", "subtree"]


@dataclass(frozen=True, slots=True)
class Operand:
    """A path that a command would touch, relative to the workspace. `reach`: one file, a pattern, or all below it."""

    path: str
    access: Access
    reach: Reach = "file"


def join(folder: str, path: str) -> str:
    """A path in a folder, both relative to the workspace. Only a leading `./` is resolved."""
    if path.startswith("/") or folder in ("", "."):
        return path or "."
    return f"{folder}/{path}" if path not in ("", ".") else folder


def relative(path: str, workspace: str | None) -> str:
    """An absolute path in the workspace made relative to it; any other path as it is."""
    root = (workspace or "").rstrip("/")
    if not root or (path != root and not path.startswith(root + "/")) or ".." in path.split("/"):
        return path
    return path[len(root) + 1 :] or "."


def objection(path: str, *, contents: bool = True, pattern: bool = False) -> str | None:
    """Why a path, relative to the workspace, should not be used unasked, or None."""
    if path in HARMLESS_DEVICES or path == "-":
        return None
    if not path.isascii() and (folded := normalize("NFKC", path)) != path:
        wrong = objection(folded, contents=contents, pattern=pattern)
        if wrong is not None:
            return wrong  # a name that looks like another
    if URL.match(path):
        return f"{path} is an address, not a file"
    if path.startswith("/"):
        return f"{path} is outside the workspace"
    if ".." in path.split("/"):
        return f"{path} may lead outside the workspace"
    if contents and (SECRET.search(path) or (pattern and _matches_samples(path))):
        return f"{path} may hold secrets"
    return None


def may_hold_secrets(path: str) -> bool:
    """Whether a file of this name is read only after a person said yes, by a command or by a tool.

    >>> [may_hold_secrets(path) for path in ("a/.env", ".env.example", "secrets.toml", "docs/secrets.md")]
    [True, False, True, False]
    """
    return SECRET.search(path if path.isascii() else normalize("NFKC", path)) is not None


def names_secrets(pattern: str) -> bool:
    """Whether the name in a path or pattern is one of files that may hold secrets."""
    return may_hold_secrets(pattern) or _matches_samples(normalize("NFKC", pattern))


def may_leave(text: str) -> bool:
    """Whether an argument, whatever it means, looks like a path outside the workspace or one that may hold secrets."""
    value = text.partition("=")[2] if text.startswith("-") else text
    return value.startswith(("/", "~")) or ".." in value.split("/") or bool(SECRET.search(value))


def _matches_samples(pattern: str) -> bool:
    """Whether a pattern is meant for secrets: `.e*`, `id_*`, `*.pem`. A bare `*` is not, although it matches them."""
    last = pattern.rstrip("/").rpartition("/")[2].lower()
    if last.strip("*?") == "":
        return False
    if len(last) > MAX_PATTERN:
        return True  # nobody needs such a pattern, and trying it would be slow
    last = for_fnmatch(last)
    if any(fnmatchcase(name, last) for name in SAMPLES):
        return True
    return any(fnmatchcase(f"x{suffix}", last) and not last.endswith("*") for suffix in SUFFIXES)


def for_fnmatch(pattern: str) -> str:
    """A pattern as Python's fnmatch reads it, to which `[^a]` is no negation."""
    return pattern.replace("[^", "[!")


def chooses_secrets(pattern: str) -> bool:
    """Whether a pattern chooses files for a search that may hold secrets and that the search would otherwise leave out.

    >>> [chooses_secrets(one) for one in ("*.py", "!.env", ".e*", "*.{env,txt}", "**")]
    [False, False, True, True, True]
    """
    if pattern.startswith("!"):
        return False
    waiting = [pattern.replace("\\", "").lower()]
    while waiting and len(waiting) < MAX_ALTERNATIVES and len(pattern) <= MAX_PATTERN:
        one = waiting.pop()
        if (braces := ALTERNATIVES.search(one)) is not None:
            before, after = one[: braces.start()], one[braces.end() :]
            waiting += [before + text + after for text in braces[1].split(",")]
        elif SECRET.search(one) or any(
            fnmatchcase(name, for_fnmatch(one.rpartition("/")[2])) for name in DOTTED
        ):
            return True
    return bool(waiting) or len(pattern) > MAX_PATTERN


def changed_folder(folder: str, path: str) -> str | None:
    """Where `cd path` leads from a folder; None if that may be outside the workspace."""
    if path in ("", "-") or path.startswith(("/", "~")):
        return None
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."
