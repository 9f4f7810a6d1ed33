"""How a run ended, in the two lines that a terminal shows."""

from __future__ import annotations

from toolcrib.cli.live_view import LiveView
from toolcrib.cli.run_display import EndedRun
from toolcrib.visible import counted, on_one_line


def summary_lines(ended: EndedRun, view: LiveView) -> list[tuple[str, str]]:
    """How a run ended, in (style, line) pairs."""
    outcome = ended.outcome
    style = "bold green" if outcome.finished else "bold yellow"
    head = outcome.reason.words.capitalize() + ("." if outcome.finished else "")
    if view.refused and outcome.finished:
        style = "bold yellow"
        head = f"{head.rstrip('.')}, but {view.refused} of {counted(view.calls, 'call')} did not run."
    if outcome.detail and not outcome.finished:
        head += f": {on_one_line(outcome.detail)}"
    return [(style, head), ("dim", " · ".join(_figures(ended, view)))]


def _figures(ended: EndedRun, view: LiveView) -> list[str]:
    usage = ended.outcome.usage
    asides = [
        f"{number} {word}"
        for number, word in ((view.refused, "not run"), (view.failed, "failed"), (view.repaired, "repaired"))
        if number
    ]
    asides += [f"{counted(view.exited, 'command')} failed"] if view.exited else []
    calls = counted(view.calls, "call") + (f" ({', '.join(asides)})" if asides else "")
    tokens = "tokens unknown"
    if usage.total_tokens:
        tokens = (
            f"{counted(usage.total_tokens, 'token')} ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"
        )
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return [counted(ended.outcome.turns, "turn"), calls, f"{ended.seconds:.1f} s", tokens, cost]
