"""The environment of a command: the variables that are passed on, and overrides for git."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from toolcrib.errors import as_tuple

PASSED = (
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "NO_COLOR", "CI",
)  # fmt: skip
# Where programs find the certificates that they trust, which a network of one's own may need.
CERTIFICATES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT", "NIX_SSL_CERT_FILE",
    "UV_SYSTEM_CERTS", "UV_NATIVE_TLS",
)  # fmt: skip
# Where package managers find their index. One with a password in it is not passed on.
INDEXES = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "npm_config_registry", "NPM_CONFIG_REGISTRY", "GOPROXY", "GOSUMDB",
    "GOFLAGS", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL",
)  # fmt: skip
LOCALE = re.compile(  # in full: people name other variables LC_*, too, since ssh servers accept those
    "LC_(ALL|ADDRESS|COLLATE|CTYPE|IDENTIFICATION|MEASUREMENT|MESSAGES|MONETARY|NAME|NUMERIC|PAPER|TELEPHONE|TIME)"
)

# Overrides the settings by which a hostile repository makes `git status` run programs.
GIT = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "protocol.ext.allow": "never",
}
QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}


def environment(
    ours: Mapping[str, str], *, passed: Iterable[str] = (), added: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of our environment that are listed or named in `passed`, then git's overrides, then `added`.

    >>> made = environment({"PATH": "/bin", "LC_ALL": "C", "API_TOKEN": "x", "LD_PRELOAD": "y"})
    >>> [name for name in made if not name.startswith("GIT_")]
    ['PATH', 'LC_ALL']
    >>> made["GIT_CONFIG_KEY_0"], made["GIT_CONFIG_VALUE_0"]
    ('core.fsmonitor', 'false')
    """
    names = {*PASSED, *as_tuple("passed", passed)}
    kept = {name: ours[name] for name in ours if name in names or LOCALE.fullmatch(name)}
    of_packages = (name for name in (*CERTIFICATES, *INDEXES) if "@" not in ours.get(name, "@"))
    kept = {**{name: ours[name] for name in of_packages}, **kept}
    return {**kept, **git_overrides(), **(added or {})}


def outer_and_inner(env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The variables for the sandbox's own programs, and those that only the command gets.

    The first program to be started is not confined yet, and it would obey `LD_PRELOAD` and the like.
    """
    outer = {
        name: env[name] for name in env if name in PASSED or LOCALE.fullmatch(name) or name.startswith("GIT_")
    }
    return outer, {name: env[name] for name in env if name not in outer}


def git_overrides() -> dict[str, str]:
    """Variables that keep git from running hooks, monitors and remote helpers, and from asking questions."""
    made = {"GIT_CONFIG_COUNT": str(len(GIT)), **QUIET}
    for number, (key, value) in enumerate(GIT.items()):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    return made
