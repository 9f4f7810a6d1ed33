"""Toolboxes whose policy is made from another toolbox's policy, and made anew when that one changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from toolcrib.toolbox.policy import Policy

__all__ = ["Followers"]

Derive = Callable[[Policy], Policy]


class Decides(Protocol):
    """An object that decides calls by a policy: the `Decider` of a toolbox."""

    policy: Policy
    followers: Followers

    def use(self, policy: Policy) -> None: ...


class Followers:
    """The deciders whose policy is made from that of the leader, until they are given a policy of their own.

    Whoever sets a policy holds `changing`, which a leader and all below it share: what is set last counts for all.
    """

    __slots__ = ("_known", "_leader", "changing", "leader_above")

    def __init__(self, leader: Decides) -> None:
        self._leader = leader
        self.leader_above: Decides | None = None  # whom the leader follows
        self._known: WeakKeyDictionary[Decides, tuple[Derive, Policy]] = WeakKeyDictionary()
        self.changing = threading.RLock()

    def add(self, decider: Decides, derive: Derive, made_of: Policy) -> None:
        """Adds a decider. From now on it decides by what `derive` makes of each new policy of the leader.

        `made_of` is the leader's policy that its present one was made from. The decider keeps its leader alive, as the
        leader may itself follow another.
        """
        decider.followers.leader_above, decider.followers.changing = self._leader, self.changing
        with self.changing:
            self._known[decider] = derive, decider.policy
            if self._leader.policy is not made_of:  # another thread has set one meanwhile
                self.follow()

    def follow(self) -> None:
        """Gives every follower the policy that it makes from the leader's present one."""
        for decider, (derive, last) in list(self._known.items()):
            if decider.policy is last:
                decider.use(derive(self._leader.policy))
                self._known[decider] = derive, decider.policy
