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
    """The deciders whose policy is made from that of the leader, until they are given a policy of their own."""

    __slots__ = ("_adding", "_known", "_leader", "leader_above")

    def __init__(self, leader: Decides) -> None:
        self._leader = leader
        self.leader_above: Decides | None = None  # whom the leader follows
        self._known: WeakKeyDictionary[Decides, tuple[Derive, Policy]] = WeakKeyDictionary()
        self._adding = threading.Lock()

    def add(self, decider: Decides, derive: Derive, made_of: Policy) -> None:
        """Adds a decider. From now on it decides by what `derive` makes of each new policy of the leader.

        `made_of` is the leader's policy that its present one was made from. The decider keeps its leader alive, as the
        leader may itself follow another.
        """
        decider.followers.leader_above = self._leader
        with self._adding:
            self._known[decider] = derive, decider.policy
        if self._leader.policy is not made_of:  # another thread has set one meanwhile
            self.follow(self._leader.policy)

    def follow(self, policy: Policy) -> None:
        """Gives every follower the policy that it makes from the leader's new one."""
        with self._adding:
            known = list(self._known.items())
        for decider, (derive, last) in known:
            if decider.policy is last:
                decider.use(derive(policy))
                with self._adding:
                    self._known[decider] = derive, decider.policy
