"""How far a pattern matches what a call reaches, for example only a part of a folder."""

from typing import TypeAlias

__all__ = ["NO", "PARTLY", "YES", "MatchLevel"]

MatchLevel: TypeAlias = int
"""NO, PARTLY or YES; the more it matches, the larger."""

NO = 0
PARTLY = 1  # a part of it, or perhaps: what a command reaches is not always known
YES = 2  # all of it, for certain
