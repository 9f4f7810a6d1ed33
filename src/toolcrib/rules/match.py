"""How far a pattern matches what a call reaches, for example only a part of a folder."""

from typing import Literal

__all__ = ["NO", "PARTLY", "YES", "MatchLevel"]

MatchLevel = Literal[0, 1, 2]

NO: Literal[0] = 0
PARTLY: Literal[1] = 1  # a part of it, or perhaps: what a command reaches is not always known
YES: Literal[2] = 2  # all of it, for certain
