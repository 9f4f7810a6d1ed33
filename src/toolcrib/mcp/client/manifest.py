"""What is known of a server without starting it: its tools, as it listed them last, kept in a private file.

A file holds one server with one configuration: whoever changes a command or a URL begins anew. A file that cannot be
read, that somebody else could have written, or that another version wrote counts as none.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from toolcrib.dataclass import dataclass, field
from toolcrib.mcp.client.definitions import RemoteDefinition, read_definitions
from toolcrib.private_files import (
    OPEN_FLAGS,
    belongs_to_another_user,
    others_may,
    replace_private_file,
    state_folder,
)

__all__ = ["Manifest", "ManifestCache", "default_cache"]

FORMAT = 1
MAX_BYTES = 32_000_000
MAX_PROBLEM = 4_000  # characters
MAX_TTL = 365 * 24 * 3600.0  # seconds


@dataclass(frozen=True, slots=True)
class Manifest:
    """The tools of a server at one moment.

    Attributes:
        tools: What it listed.
        problems: What was wrong in that, a sentence each.
        protocol: The revision of the protocol that was agreed on.
        info: What the server says of itself: `serverInfo`, `capabilities`, `instructions`.
        fetched: When it was listed, in seconds since the epoch.
        ttl: Seconds for which the server says that the list holds; None if it does not say.
    """

    tools: tuple[RemoteDefinition, ...]
    problems: tuple[str, ...] = ()
    protocol: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    fetched: float = 0.0
    ttl: float | None = None

    def fresh(self, now: float) -> bool:
        """Whether the list still holds, by the server's own word."""
        return self.ttl is not None and 0 <= now - self.fetched < self.ttl

    def same_tools(self, other: Manifest | None) -> bool:
        """Whether the tools are the same in every respect."""
        return other is not None and [tool.to_dict() for tool in self.tools] == [
            tool.to_dict() for tool in other.tools
        ]


def default_cache() -> Path:
    """The folder of manifests: below the user's state folder."""
    return state_folder() / "mcp"


class ManifestCache:
    """The manifests in a folder, which is made when the first one is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, server: str, config_hash: str) -> Path:
        """The file of a server with one configuration."""
        kept = "".join(char if char.isascii() and char.isalnum() else "_" for char in server)[:40]
        digest = sha256(f"{server}\0{config_hash}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return self.folder / f"{kept}-{digest}.json"

    def read(self, server: str, config_hash: str) -> Manifest | None:
        """The manifest that was stored last; None if there is none that can be trusted."""
        try:
            data = json.loads(_private_bytes(self.path(server, config_hash)))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("config") != config_hash:
            return None
        tools, problems = read_definitions(server, data.get("tools"))
        info, fetched, ttl = data.get("info"), data.get("fetched"), data.get("ttl")
        noted = data.get("problems")
        return Manifest(
            tools=tuple(tools),
            problems=(*map(str, noted if isinstance(noted, list) else ()), *problems),
            protocol=str(data.get("protocol") or ""),
            info=info if isinstance(info, dict) else {},
            fetched=_number(fetched) or 0.0,
            ttl=_number(ttl),
        )

    def write(self, server: str, config_hash: str, manifest: Manifest) -> None:
        """Store a manifest. Raises OSError if that is impossible."""
        data = {
            "format": FORMAT,
            "server": server,
            "config": config_hash,
            "protocol": manifest.protocol,
            "info": manifest.info,
            "fetched": manifest.fetched,
            "ttl": manifest.ttl,
            "problems": list(manifest.problems),
            "tools": [tool.to_dict() for tool in manifest.tools],
        }
        text = json.dumps(data, separators=(",", ":")).encode("utf-8", "surrogatepass")
        if len(text) > MAX_BYTES:
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_private_file(self.path(server, config_hash), text)

    def note_failure(self, server: str, config_hash: str, problem: str, now: float) -> None:
        """Store why a server could not be started, for lists that start nothing; "" if it could. Raises OSError."""
        path = self.path(server, config_hash).with_suffix(".failed")
        if not problem:
            path.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"format": FORMAT, "problem": problem[:MAX_PROBLEM], "at": now})
        replace_private_file(path, text.encode("utf-8", "surrogatepass"))

    def failure(self, server: str, config_hash: str) -> str:
        """Why the server could not be started the last time; "" if it could, or nobody knows."""
        try:
            data = json.loads(_private_bytes(self.path(server, config_hash).with_suffix(".failed")))
        except (OSError, ValueError, RecursionError):
            return ""
        return (
            str(data.get("problem") or "") if isinstance(data, dict) and data.get("format") == FORMAT else ""
        )

    def forget(self, server: str, config_hash: str) -> None:
        """Remove what is stored of a server with one configuration."""
        self.path(server, config_hash).unlink(missing_ok=True)


def ttl_of(answer: Mapping[str, Any]) -> float | None:
    """The seconds for which a list holds, by its `ttlMs`; None if it does not say."""
    given = _number(answer.get("ttlMs"))
    return None if given is None else min(max(given / 1000, 0.0), MAX_TTL)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        return None
    return float(value)


def _private_bytes(path: Path) -> bytes:
    """The content of a file that only its owner may change. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or belongs_to_another_user(status) or others_may(status, 0o022):
            raise PermissionError(f"others may change {path}")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(f"{path} is too large")
    return data
