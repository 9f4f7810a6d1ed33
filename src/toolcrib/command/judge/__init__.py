"""Judges a command line before it runs: what it would do, whether that is proved, and the plan that would be run.

`judge(text)` gives a `Judgement`: `plain` (proved harmless; it runs as its plan, without a shell), `ask`, or `deny`.
`accesses_of` says what the command reaches, for rules; `why` gives the reasons in words for the person who is asked;
`prefixes` gives what "always" may remember of a yes.

There are two readings of a text, because two questions are asked of it:

- **The parsed plan** answers "is all of it understood?". It accepts only what has one reading, and gives up at
  the first thing that it does not know. What it accepts is run exactly as it was read, so it must never be wrong.
- **The commands found in unparsed text** answer "could a destructive command, or one that a rule denies, stand anywhere
  in it?". They are looked for in quotes, in scripts inside scripts, behind wrappers and in text that cannot be parsed.
  Nothing is allowed because of this reading, so it may guess.

| step | module |
| --- | --- |
| refuse text that a person could not review | `screen.py` |
| text -> syntax tree (tree-sitter-bash) | `syntax.py` |
| tree -> words and tokens | `parse.py`, `words.py`, `conditions.py`, `tokens.py` |
| tokens -> plan | `grammar.py`; the plan itself is `toolcrib.command.plan` |
| `bash -c '…'` and `env X=1 …` replaced by what they run | `unwrap.py` |
| one command -> its row, its operands, what it does to them | `recognise.py` |
| all commands of a plan, each in its folder | `judged_commands.py`, `paths.py`, `variables.py` |
| commands found in unparsed text | `find_commands.py`, `destructive.py` |
| the forms of a command, and those that it may run | `inner_commands.py`, `python_code.py` |
| whether it says which commands it runs | `known_commands.py` |
| all of that together | `judgement.py` |
| what follows from a judgement | `accesses.py`, `reasons.py`, `remember.py`, `repository_history.py` |

What is known of programs is data, in `toolcrib.command.programs`: its docstring says where each kind of row stands.
The words of a reason stand where it is found (`NotProved("…")`); `reasons.py` turns them into words for the person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.command.judge.accesses import accesses_of, names_its_hosts
    from toolcrib.command.judge.judged_commands import JudgedCommand
    from toolcrib.command.judge.judgement import Judgement, judge
    from toolcrib.command.judge.paths import Operand
    from toolcrib.command.judge.reasons import why, why_of_command
    from toolcrib.command.judge.remember import covered, prefixes
    from toolcrib.command.judge.repository_history import removes_history
    from toolcrib.command.plan import Plan

__all__ = [
    "JudgedCommand", "Judgement", "Operand", "Plan", "accesses_of", "covered", "judge", "names_its_hosts", "prefixes",
    "removes_history", "why", "why_of_command",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    {
        "accesses": (
            "accesses_of",
            "names_its_hosts",
        ),
        "judged_commands": ("JudgedCommand",),
        "judgement": (
            "Judgement",
            "judge",
        ),
        "paths": ("Operand",),
        "reasons": (
            "why",
            "why_of_command",
        ),
        "remember": (
            "covered",
            "prefixes",
        ),
        "repository_history": ("removes_history",),
        ".plan": ("Plan",),
    },
)
