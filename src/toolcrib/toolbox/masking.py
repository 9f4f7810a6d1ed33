"""The masking of a toolbox, loaded only where there are secrets."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from toolcrib.sink import EventSink

if TYPE_CHECKING:
    from toolcrib.secrets import SecretStore
    from toolcrib.secrets.masking import Masking

__all__ = ["masking_of", "nested_masking"]


def masking_of(store: SecretStore, sink: EventSink) -> Masking:
    """The masking of a store's secrets, in results and in events; loaded only where there are secrets."""
    from toolcrib.secrets.events import MaskedEvents
    from toolcrib.secrets.masking import Masking

    masking = Masking(store)
    sink.mask = MaskedEvents(masking)
    return masking


def nested_masking(
    own: Masking | None, outer: Masking | None, sink: EventSink
) -> tuple[Masking | None, EventSink]:
    """The masking of a run within another, and the sink of its events.

    Its calls may name its own secrets. The values of both are masked.
    """
    if own is None and outer is None:
        return None, sink
    from toolcrib.secrets.masking import Masking

    store: SecretStore = _NoSecrets() if own is None else own.store
    masking = Masking(store, outer)
    if own is not None:
        from toolcrib.secrets.events import MaskedEvents

        sink = copy.copy(sink)
        sink.mask = MaskedEvents(masking)
    return masking, sink


class _NoSecrets:
    """A store without secrets."""

    def get(self, name: str) -> str | None:
        return None

    def names(self) -> tuple[str, ...]:
        return ()
