"""What an approver gives that is no Answer: the plain words for yes, no and always, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.question import Answer, Verdict

if TYPE_CHECKING:
    from toolcrib.toolbox.box import Toolbox

WANTED = (
    "an approver gives Answer(Verdict.YES), Answer(Verdict.NO) or Answer(Verdict.ALWAYS), or in short a Verdict, "
    'True, False, "yes", "no" or "always"; None where nobody could be asked'
)


def parse_answer(given: Any, box: Toolbox) -> Answer | None:
    """The answer that is meant, if it is clear; else None, and the operator is told once what to write.

    >>> parse_answer("yes", None).verdict.value, parse_answer(False, None).verdict.value
    ('yes', 'no')
    """
    if isinstance(given, bool):
        return Answer(Verdict.YES if given else Verdict.NO)
    if isinstance(given, str) and given in list(Verdict):
        return Answer(Verdict(given))
    if "an approver" not in box._warned:
        box._warned.add("an approver")
        box.complain(
            f"the approver gave {type(given).__name__} {str(given)[:60]!r}, which allows nothing", WANTED
        )
    return None
