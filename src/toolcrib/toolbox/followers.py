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
    followers: Followers

    def use(self, policy: Policy) -> None: ...


class Followers:
    """What follows the policy of a leader. It does no more once it was given a policy of its own."""

    __slots__ = ("_adding", "_known", "_leader", "leader_above")

    def __init__(self, leader: Decides) -> None:
        self._leader = leader
        self.leader_above: Decides | None = None  # whom the leader follows
        self._known: WeakKeyDictionary[Decides, tuple[Derive, Policy]] = WeakKeyDictionary()
        self._adding = threading.Lock()

    def add(self, decider: Decides, derive: Derive, made_of: Policy) -> None:
        """Let it decide by what `derive` makes of each policy from now on; its own now is `made_of` the leader's.

        It keeps its leader, which may itself follow another.
        """
        decider.followers.leader_above = self._leader
        with self._adding:
            self._known[decider] = derive, decider.policy
        if self._leader.policy is not made_of:  # another thread has set one meanwhile
            self.follow(self._leader.policy)

    def follow(self, policy: Policy) -> None:
        """The toolbox decides by another policy."""
        with self._adding:
            known = list(self._known.items())
        for decider, (derive, last) in known:
            if decider.policy is last:
                decider.use(derive(policy))
                with self._adding:
                    self._known[decider] = derive, decider.policy
