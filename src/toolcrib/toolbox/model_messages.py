"""The one place where what went wrong turns into the words that a model reads.

Each text names the tool and the field, what was expected and what came, and the next step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from toolcrib.credentials import without_credentials
from toolcrib.errors import ErrorCode, FieldError
from toolcrib.result import ToolResult
from toolcrib.visible import counted
from toolcrib.word_cuts import begun_word

MISFIT = "The answer does not fit what was asked for."
MAX_FIELDS = 20  # failing fields that are told one by one
MAX_NAME = 128  # characters of a name
MAX_NAMES = 5  # suggestions for an unknown name
MAX_REASON = 2_000  # characters of the reason that a tool's own check gives


def short(name: str) -> str:
    """A name as it may be repeated: a model may write a name of any length, with half surrogate pairs."""
    name = name.encode("utf-8", "replace").decode()
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "…"


def unknown_tool(name: str, known: Iterable[str], *, hidden: bool = False) -> ToolResult:
    """No tool of that name, or a hidden one; it is never guessed which one was meant."""
    from difflib import get_close_matches

    name, names = short(name), sorted(known)
    near = [] if hidden else get_close_matches(name, names, n=MAX_NAMES, cutoff=0.5)
    if near:
        hint = "Did you mean " + " or ".join(f'"{other}"' for other in near) + "?"
    elif names:
        hint = "Available: " + ", ".join(names[:20]) + (", …" if len(names) > 20 else "") + "."
    else:
        hint = "No tools are available."
    what = f'Tool "{name}" is not available now' if hidden else f'Unknown tool "{name}"'
    return ToolResult.of(f"{what}; nothing was run. {hint}", code=ErrorCode.UNKNOWN_TOOL)


def too_deep(name: str, limit: int) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" was not run: calls within calls may be {limit} deep at most.', code=ErrorCode.FAILED
    )


def tool_changed(name: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" was removed or replaced since it was offered; nothing was run. '
        "Look at the tools that are available now.",
        code=ErrorCode.TOOL_CHANGED,
    )


def tool_broken(name: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" cannot be used: its definition is broken. Nothing was run; go on without it.',
        code=ErrorCode.FAILED,
    )


def invalid_arguments(name: str, fields: tuple[FieldError, ...]) -> ToolResult:
    """Every failing field with what was expected, what came and what is allowed; without a name, of an answer."""
    lines = [f'Invalid arguments for tool "{name}"; nothing was run.' if name else MISFIT]
    for field in fields[:MAX_FIELDS]:
        line = f"- {field.path or ('arguments' if name else 'the answer')}: expected {field.expected}"
        if field.got:
            line += f", got {field.got}"
        literals = [json.dumps(value, ensure_ascii=False) for value in field.allowed]
        if not all(literal in field.expected for literal in literals):
            names = (value if isinstance(value, str) else json.dumps(value) for value in field.allowed)
            line += f" (allowed: {', '.join(names)})"
        lines.append(line)
    if len(fields) > MAX_FIELDS:
        lines.append(f"- and {len(fields) - MAX_FIELDS} more")
    lines.append(
        "Correct these and call the tool again." if name else "Correct these and send the whole answer again."
    )
    return ToolResult.of("\n".join(lines), code=ErrorCode.INVALID_ARGUMENTS)


def unreadable_arguments(name: str, reason: str) -> ToolResult:
    """Arguments of a call that are no JSON; without a name, an answer that is none."""
    if not name:
        words = (
            f"{MISFIT} It could not be read: {reason.rstrip('.')}. Send it again as one complete JSON object."
        )
        return ToolResult.of(words, code=ErrorCode.INVALID_ARGUMENTS)
    return ToolResult.of(
        f'The arguments for tool "{name}" could not be read: {reason.rstrip(".")}. Nothing was run. '
        "Call the tool again with one complete JSON object.",
        code=ErrorCode.INVALID_ARGUMENTS,
    )


def unreadable_call(name: str, problem: str) -> ToolResult:
    """A call that its codec could not read; the problem says what to do, in the words of the model's format."""
    which = f' of tool "{name}"' if name else ""
    return ToolResult.of(
        f"The call{which} could not be read: {problem.rstrip('.')}. Nothing was run.",
        code=ErrorCode.INVALID_ARGUMENTS,
    )


def wrong_secret(name: str, problem: str) -> ToolResult:
    return ToolResult.of(
        f'The call of tool "{name}" was not run: {problem}', code=ErrorCode.INVALID_ARGUMENTS
    )


def rate_limited(name: str, why: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" was not run: {why}. Go on without it, or finish with what you have.',
        code=ErrorCode.RATE_LIMITED,
    )


def cut_off(name: str) -> ToolResult:
    return ToolResult.of(
        f'The call of tool "{name}" was cut off in the middle of the answer; nothing was run. '
        "Call it again with shorter arguments, in several steps if need be.",
        code=ErrorCode.INVALID_ARGUMENTS,
    )


def precheck(name: str, reason: str) -> ToolResult:
    if len(reason) > MAX_REASON:
        shown = reason[:MAX_REASON]
        shown = shown[: MAX_REASON - begun_word(shown)]  # no part of a secret
        reason = f"{shown}… ({counted(len(reason) - len(shown), 'more character')})"
    return ToolResult.of(f'Tool "{name}" was not run: {reason}', code=ErrorCode.PRECHECK)


def denied(name: str, reason: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" is not allowed to run: {reason}. Do not try it again; find another way or say what is needed.',
        code=ErrorCode.DENIED,
    )


def rejected(name: str, message: str) -> ToolResult:
    said = f" They say: {message}" if message else " Ask what they would prefer, or go on without it."
    return ToolResult.of(
        f'The user rejected this call of tool "{name}"; nothing was run.{said}', code=ErrorCode.REJECTED
    )


def outdated(name: str) -> ToolResult:
    return ToolResult.of(
        f'Something that the call of tool "{name}" depends on changed while it waited for approval; nothing was run. '
        "Look at it again, and repeat the call if it still fits.",
        code=ErrorCode.TOOL_CHANGED,
    )


def other_arguments(arguments: object, masked: Callable[[str], str]) -> str:
    """The arguments of a person that were run instead of the model's, with credentials and secrets hidden."""
    said = masked(json.dumps(without_credentials(arguments), ensure_ascii=False, default=str))
    return f"[A person approved the call with other arguments than yours. It was run with: {said[:2000]}]"


def unusable(name: str) -> ToolResult:
    """A person gave invalid arguments: only that person can correct them, not the model."""
    return ToolResult.of(
        f'The user wanted other arguments for this call of tool "{name}", which could not be used; nothing was run. '
        "Yours were not at fault: ask what they want, or go on without it.",
        code=ErrorCode.REJECTED,
    )


def nobody_to_ask(name: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" needs approval and nobody could be asked, so it was not run. '
        "No person has refused it; go on without it, or finish and say that approval is needed.",
        code=ErrorCode.NOBODY_TO_ASK,
    )


def waiting(name: str) -> ToolResult:
    return ToolResult.of(
        f'The call of tool "{name}" has not run: it waits for a person\'s answer, which has not come yet. '
        "Do not count on it, and do not call the tool again for it.",
        code=ErrorCode.WAITING,
    )


def cannot_wait(name: str, outer: str) -> ToolResult:
    """A question inside a call that cannot be run again from its beginning, so that nobody could be waited for."""
    return ToolResult.of(
        f'Tool "{name}" needs approval, and was not run: the call of tool "{outer}" that it is part of cannot wait '
        f"for a person's answer, since that may not be run twice. No person has refused it. If it is needed, call "
        f'"{name}" by itself.',
        code=ErrorCode.NOBODY_TO_ASK,
    )


def timed_out(name: str, seconds: float) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" was stopped after {counted(seconds, "second")} without a result. '
        "Ask for less at once, or allow more time if the tool takes a timeout.",
        code=ErrorCode.TIMED_OUT,
    )


def cancelled(name: str, *, started: bool = True) -> ToolResult:
    state = (
        "was cancelled before it finished" if started else "was cancelled before it started; nothing was run"
    )
    return ToolResult.of(f'The call of tool "{name}" {state}.', code=ErrorCode.CANCELLED)


def outcome_unknown(name: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" did not stop when it was told to: whether it did its work is unknown. '
        "Check the state before you call it again.",
        code=ErrorCode.OUTCOME_UNKNOWN,
    )


def still_busy(name: str) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" was not run: an earlier call that did not stop still holds what it needs.',
        code=ErrorCode.TIMED_OUT,
    )


def no_worker(name: str, seconds: float) -> ToolResult:
    return ToolResult.of(
        f'Tool "{name}" was not run: other calls kept everything busy for {counted(seconds, "second")}. '
        "Try it again later.",
        code=ErrorCode.TIMED_OUT,
    )


def tool_error(message: str) -> ToolResult:
    """What a tool said with ToolError, as written."""
    return ToolResult.of(message or "The tool reported an error.", code=ErrorCode.TOOL_ERROR)


def failed(name: str) -> ToolResult:
    """A crash: the operator has the whole error, the model is told that it happened."""
    return ToolResult.of(
        f'Tool "{name}" failed with an internal error, which the operator can see. '
        "Try other arguments or another way; the same call will likely fail again.",
        code=ErrorCode.FAILED,
    )


def too_large(name: str, size: int, limit: int, full: str) -> ToolResult:
    """Data is not cut in the middle: what would be left means something else."""
    where = f" The whole is in {full}, which can be read in pages." if full else ""
    result = ToolResult.of(
        f'The result of tool "{name}" is too large to show: {counted(size, "byte")} of structured data, '
        f"at most {limit:,} are possible. Ask for less: a filter, a page or fewer fields.{where}",
        code=ErrorCode.OUTPUT_TOO_LARGE,
    )
    result.full_output = full
    return result


MISFIT_NOTE = "\n[Note: this result does not match the schema that the tool declares.]"
