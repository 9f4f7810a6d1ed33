"""What package managers and builds need of a sandbox: hosts that belong together, variables, and caches.

A manager that reaches nobody tries again, some for more than a minute; where the network is off, it is told not to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.files.paths import within
from toolcrib.command.sandbox.files.placeholders import is_placeholder
from toolcrib.command.sandbox.level import Level, Network

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.command.sandbox.files.file_view import FileView

# A public index names its packages on one host and hands them out from others, so one question asks for all.
HOSTS_TOGETHER = (
    ("pypi.org", "files.pythonhosted.org"),
    ("index.crates.io", "static.crates.io"),
    ("proxy.golang.org", "sum.golang.org"),
    ("rubygems.org", "index.rubygems.org"),
    ("services.gradle.org", "downloads.gradle.org", "plugins.gradle.org", "repo.maven.apache.org"),
)
ALWAYS = {
    "UV_LINK_MODE": "copy",  # its cache and the workspace are different mounts, so it cannot make hard links
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # it would reach for another index than the one that it was given
}
NO_RETRIES = {
    "PIP_RETRIES": "1",  # with none it would not say that it reached nobody
    "UV_HTTP_RETRIES": "0",
    "CARGO_NET_RETRY": "0",
    "npm_config_fetch_retries": "0",
    "pnpm_config_fetch_retries": "0",
}
# Relative to a home folder: what builds write there. It lasts as long as the sandbox, and is seen by its commands only.
CACHES_OF_HOME = (".cache", ".npm", ".gradle")
# The same for a back end that cannot mount: variables that lead builds to such folders.
CACHE_VARIABLES = {
    "XDG_CACHE_HOME": ".cache",  # pip, uv, go, node-gyp and most others
    "XDG_STATE_HOME": ".local/state",
    "npm_config_cache": ".npm",
    "pnpm_config_store_dir": ".local/share/pnpm/store",
    "GRADLE_USER_HOME": ".gradle",
}
# Gradle locks its caches even to read them, so it is shown those of the home folder as the read-only ones it knows.
GRADLE_PACKAGES = ".gradle/caches/modules-2"
GRADLE_READ_ONLY = ".gradle/read-only"


def with_companions(host: str) -> str:
    """A host and those that hand out what it names, as the target of one permission.

    >>> with_companions("pypi.org:443")
    'pypi.org:443, files.pythonhosted.org:443'
    """
    name, colon, port = host.partition(":")
    others = next((hosts for hosts in HOSTS_TOGETHER if name in hosts), (name,))
    return ", ".join(f"{other}{colon}{port}" for other in dict.fromkeys((name, *others)))


def variables(view: FileView, level: Level, env: Mapping[str, str]) -> dict[str, str]:
    """Variables for a command, besides those that it was given."""
    made = {**ALWAYS, **(NO_RETRIES if level.network is Network.OFF else {})}
    git = f"{view.workspace}/.git"
    if not os.path.lexists(git) or is_placeholder(git):
        # go takes the empty folder in its place for a repository, and asks git about it.
        made["GOFLAGS"] = f"{env.get('GOFLAGS', '')} -buildvcs=false".strip()
    return {name: value for name, value in made.items() if name not in env or name == "GOFLAGS"}


def cache_variables(temporary: str, env: Mapping[str, str]) -> dict[str, str]:
    """Variables that lead caches and temporary files of builds into a folder, where no home folder can be written."""
    made = {name: f"{temporary}/home/{path}" for name, path in CACHE_VARIABLES.items()}
    made["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={temporary}"  # java does not look at TMPDIR
    return {name: value for name, value in made.items() if name not in env}


def cache_mounts(view: FileView, caches: str) -> dict[str, list[str]]:
    """The mounts of bwrap for the caches of a hidden home folder. Commands reach `caches` only through them."""
    if view.home not in view.hidden or within(view.home, view.workspace):
        return {}
    mounts: dict[str, list[str]] = {}
    for name in CACHES_OF_HOME:
        path = f"{view.home}/{name}"
        if not within(view.workspace, path):
            os.makedirs(f"{caches}/{name}", mode=0o700, exist_ok=True)
            mounts[path] = ["--bind", f"{caches}/{name}", path]
    packages = f"{view.home}/{GRADLE_PACKAGES}"
    if os.path.isdir(packages) and os.path.realpath(packages) == packages:
        mounts[f"{view.home}/{GRADLE_READ_ONLY}/modules-2"] = [
            "--setenv", "GRADLE_RO_DEP_CACHE", f"{view.home}/{GRADLE_READ_ONLY}",
            "--ro-bind", packages, f"{view.home}/{GRADLE_READ_ONLY}/modules-2",
        ]  # fmt: skip
    return mounts
