"""What decides by a policy that is made of another one, and changes with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from toolcrib.toolbox.policy import Policy

__all__ = ["Followers"]

Derive = Callable[[Policy], Policy]


class Decides(Protocol):
    """What decides by a policy."""

    policy: Policy

    def use(self, policy: Policy) -> None: ...


class Followers:
    """What follows the policy of a toolbox. It does no more once it was given a policy of its own."""

    __slots__ = ("_adding", "_known")

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Decides, tuple[Derive, Policy]] = WeakKeyDictionary()
        self._adding = threading.Lock()

    def add(self, decider: Decides, derive: Derive) -> None:
        """Let it decide by what `derive` makes of each policy from now on."""
        with self._adding:
            self._known[decider] = derive, decider.policy

    def follow(self, policy: Policy) -> None:
        """The toolbox decides by another policy."""
        with self._adding:
            known = list(self._known.items())
        for decider, (derive, last) in known:
            if decider.policy is last:
                decider.use(derive(policy))
                self.add(decider, derive)
