"""Items of a conversation that are not sent, because only another provider understands them."""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.codecs.codec import Codec
from toolcrib.codecs.wire_json import as_dict, as_str, own_item
from toolcrib.messages import MessagePart, Opaque


def left_out(parts: Iterable[MessagePart], codec: Codec) -> list[str]:
    """A sentence for each kind of item that a codec leaves out, because it is another provider's or has no place."""
    found: dict[str, None] = {}
    for part in parts:
        if isinstance(part, Opaque) and not (codec.features.items and own_item(part, codec.provider)):
            kind = as_str(as_dict(part.data).get("type")) or "without a type"
            found[f"an item of {part.provider} ({kind}) is not sent to {codec.provider}"] = None
    return list(found)
