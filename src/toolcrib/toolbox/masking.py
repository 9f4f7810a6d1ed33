"""The masking of a toolbox, loaded only where there are secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.sink import EventSink

if TYPE_CHECKING:
    from toolcrib.secrets import SecretStore
    from toolcrib.secrets.masking import Masking

__all__ = ["masking_of"]


def masking_of(store: SecretStore, sink: EventSink) -> Masking:
    """The masking of a store's secrets, in results and in events; loaded only where there are secrets."""
    from toolcrib.secrets.events import MaskedEvents
    from toolcrib.secrets.masking import Masking

    masking = Masking(store)
    sink.mask = MaskedEvents(masking)
    return masking
