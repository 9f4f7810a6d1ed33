"""The files on another host whose code a command runs, as a person is shown them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Protocol

from toolcrib.command.explain.scripts import MAX_FILES, SHOWN_BYTES, CodeFile
from toolcrib.command.remote import scripts
from toolcrib.command.remote.remote_command import ScriptOutput

MAX_PATHS = 200
HEAD = re.compile(rb"(\d{1,4}) (\d{1,6}) ([0-9a-f]{64})\n")


class ScriptRunner(Protocol):
    """Runs scripts in a folder of another host."""

    def script(self, script: str, stdin: bytes = b"") -> ScriptOutput: ...


def look_at(place: ScriptRunner, paths: Sequence[str]) -> dict[str, CodeFile]:
    """{path: file} of those paths that are regular files; paths are relative to the place's root, or absolute.

    Raises ValueError for an answer that cannot be read.
    """
    asked = [path for path in dict.fromkeys(map(posixpath.normpath, paths)) if "\0" not in path][:MAX_PATHS]
    answer = place.script(scripts.look_at(asked, SHOWN_BYTES))
    data, found = answer.stdout, dict[str, CodeFile]()
    while data and len(found) < MAX_FILES:
        if (head := HEAD.match(data)) is None or int(head[1]) >= len(asked):
            raise ValueError("files that are not here could not be looked at")
        begins, data = data[head.end() :][: int(head[2])], data[head.end() + int(head[2]) :]
        found[asked[int(head[1])]] = CodeFile(begins, head[3].decode())
    return found
