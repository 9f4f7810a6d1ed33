"""`python`: runs Python code in a session that keeps its variables, in a sandbox of its own.

What that takes is in `python_work.py`, which is loaded with the first call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from toolcrib.effect import Effect
from toolcrib.errors import as_tuple
from toolcrib.facts import MaxOutput
from toolcrib.result import ToolResult
from toolcrib.tool import Tool
from toolcrib.tools.backends.refusals import as_backend
from toolcrib.tools.in_folder import folder_of
from toolcrib.tools.python_params import MAX_TIMEOUT, PythonParams, PythonResult

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.access import Access
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.context import Context
    from toolcrib.question import Doubt, Preview
    from toolcrib.tools.python_work import PythonWork
    from toolcrib.tools.workspace import Workspace


class Python(
    Tool[PythonParams, ToolResult],
    name="python",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Python",
    category="shell",
    timeout=MAX_TIMEOUT + 60.0,
    approval_ignores=("timeout", "description"),
    max_output=MaxOutput(),
    output_schema=PythonResult,
):
    """Run Python code in a session of this run: variables, functions and imports stay for later calls.

    It runs in the workspace. What is printed and the value of a last expression are given back, figures of
    matplotlib as pictures. Use it to compute, to look into data and to try something out; use the tools for
    files to read and edit text. There is no input, and a sandbox may confine it, which is said when it
    refuses something.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        interpreter: str = "",
        env: Mapping[str, str] | None = None,
        passthrough: Collection[str] = (),
        grace: float = 2.0,
        sandbox: Sandbox | None = None,
    ) -> None:
        """`interpreter` is the program that runs the code: by default the one of a virtual environment in the workspace
        (`.venv`, `venv`), or else the Python that runs this program, with its packages.

        The other options are those of `Shell`.
        """
        self.workspace = as_backend(workspace)
        self.interpreter = interpreter
        self.env = dict(env or {})
        self.passthrough = as_tuple("passthrough", passthrough)
        self.grace = grace
        self.sandbox = sandbox
        self._making = threading.Lock()
        self._made: PythonWork | None = None

    @property
    def _work(self) -> PythonWork:
        """Made by the first call, of whichever thread."""
        from toolcrib.tools.python_work import PythonWork

        with self._making:
            if self._made is None:
                self._made = PythonWork(
                    self.workspace,
                    interpreter=self.interpreter,
                    env=self.env,
                    passthrough=self.passthrough,
                    grace=self.grace,
                    sandbox=self.sandbox,
                )
            return self._made

    def unavailable(self) -> str | None:
        if sys.platform == "win32":
            return "commands are not run on Windows"
        return None if self.interpreter or sys.executable else "this program has no Python interpreter"

    def precheck(self, params: PythonParams) -> str | None:
        return self._work.precheck(params)

    def accesses(self, params: PythonParams) -> tuple[Access, ...]:
        return self._work.accesses(params)

    def base_folder(self) -> str:
        return folder_of(self.workspace)

    def doubt(self, params: PythonParams) -> Doubt:
        return self._work.doubt(params)

    def preview(self, params: PythonParams) -> Preview:
        return self._work.preview(params)

    async def execute(self, params: PythonParams, ctx: Context[Any]) -> ToolResult:
        return await self._work.execute(params, ctx)
