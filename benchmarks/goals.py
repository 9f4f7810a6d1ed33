"""What toolcrib has set itself to reach: (measure, row) -> figure and limit."""

from typing import NamedTuple


class Goal(NamedTuple):
    """At most `limit` of the figure of that name."""

    figure: str
    limit: float

    def __str__(self) -> str:
        unit = self.figure.removeprefix("× ")
        return f"≤ ×{self.limit:g}" if unit != self.figure else f"≤ {self.limit:,g} {unit}"


GOALS: dict[tuple[str, str], Goal] = {
    ("calls", "async"): Goal("× floor", 4),
    ("calls", "async, subscriber"): Goal("× floor", 5),
    ("calls", "async, events()"): Goal("× floor", 6),
    ("calls", "sync"): Goal("× floor", 25),
    ("calls", "nested"): Goal("× floor", 1.2),
    ("loop", "turn 2"): Goal("ms a turn", 0.05),
    ("loop", "turn 200"): Goal("ms a turn", 0.05),
    ("bodies", "after 1,000 turns"): Goal("ms", 0.2),
    ("guarded", "one secret, one after the other"): Goal("µs", 20),
    ("guarded", "audit log, one after the other"): Goal("µs on the clock", 200),
    ("guarded", "audit log, 1,000 at once"): Goal("µs on the clock", 50),
    ("stream", "write, 1 MB"): Goal("× append", 30),
    ("stream", "edits, 1 MB"): Goal("× append", 30),
    ("answers", "chat, 4 calls"): Goal("× floor", 15),
    ("answers", "chat, 100 calls of 1 kB"): Goal("× floor", 10),
    ("answers", "messages, 4 calls"): Goal("× floor", 10),
    ("answers", "messages, 100 calls of 1 kB"): Goal("× floor", 10),
    ("typed", "streamed"): Goal("× json", 25),
    **{
        # "linear": a busy machine makes it up to 1.5; what is quadratic grows a hundredfold
        ("text", f"{name}, many calls"): Goal("× growth", 2)
        for name in (
            *("hermes", "tool_call", "llama3_json", "mistral", "pythonic", "harmony", "deepseek_v3.1"),
            *("qwen3_coder_xml", "glm47", "invoke", "schoober"),
        )
    },
    ("imports", "import toolcrib"): Goal("× pydantic", 1.25),
    ("imports", "tool and Toolbox"): Goal("× pydantic", 1.25),
    ("define", "definition"): Goal("µs", 60),
    ("define", "first use"): Goal("µs", 700),
    ("tokens", "10 tools"): Goal("tokens", 1720),
    ("concurrency", "10,000 calls of 10 ms"): Goal("CPU s", 0.3),
    ("concurrency", "10,000 calls of 10 ms, collector on"): Goal("CPU s", 0.3),
    ("concurrency", "memory of 10,000 calls"): Goal("peak MB more", 34),
    ("concurrency", "memory of 10,000 calls, collector on"): Goal("peak MB more", 34),
    ("registry", "list 10,000"): Goal("ms", 5),
    ("registry", "list 10,000 again"): Goal("ms", 10),
    # "constant": a plain dict grows up to threefold, as the objects no longer fit the processor's caches; what
    # looks through a list would grow a hundredfold
    ("registry", "add, 10,000 against 100"): Goal("× growth", 4),
    ("registry", "look up, 10,000 against 100"): Goal("× growth", 4),
    ("starts", "import to first answered call"): Goal("ms", 200),
    ("starts", "toolcrib tools list"): Goal("ms", 250),
    ("starts", "toolcrib tools call"): Goal("ms", 250),
    ("starts", "toolcrib run, two scripted turns"): Goal("ms", 350),
    ("files", "edit 5 MB, other spaces"): Goal("ms", 60),
    ("files", "edit 5 MB, not there"): Goal("ms", 60),
    ("files", "search 6,800 files"): Goal("ms", 300),
    ("files", "search 6,800 files, no ripgrep"): Goal("ms", 300),
    ("snapshots", "100 files changed"): Goal("ms", 200),
    ("snapshots", "put 100 files back"): Goal("ms", 200),
    ("decisions", "a pipe of three programs into a file"): Goal("µs, 200 rules", 60),
    ("commands", "bubblewrap"): Goal("least ms on the clock", 15),
    ("commands", "landlock"): Goal("least ms on the clock", 15),
    ("weight", "installed with the command line"): Goal("other packages", 16),
}
