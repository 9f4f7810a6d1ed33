"""What one turn shows to a model: the specs, and the tools that stand behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dataclass import dataclass, field
from toolcrib.spec import ToolSpec
from toolcrib.toolbox.registry import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.compiling.schema_params import SchemaParams
    from toolcrib.facts import Facts

__all__ = ["ToolList"]


@dataclass(slots=True)
class ToolList:
    """What one turn shows to a model: specs in a stable order, and the tools that stand behind them.

    `broken` names the tools that were set aside, with the reason; `turn_schemas` are the schemas that hold for
    this turn only. `why_hidden` gives the policy's reason why a tool is not shown, "" where it has none.
    """

    specs: list[ToolSpec] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    turn_schemas: dict[str, SchemaParams] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    why_hidden: Callable[[Facts], str] | None = None
    dynamic: bool = False
    takes_partials: bool = False  # whether a tool, or what a factory may make, reads partial arguments
