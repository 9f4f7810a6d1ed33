"""Values out of texts, pictures and documents, by a model without tools.

`extract` gives one value, `extract_stream` what is known of it so far, `extract_items` the items of a list one by one,
`extract_many` one value for each of many sources; `classify` a label with its probability, `choose` one of several
things. Each is a typed run of an Agent, and gives its Outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.agent.quotes import Quote
    from toolcrib.extraction.classify import Classification, choose, choose_sync, classify, classify_sync
    from toolcrib.extraction.extract import (
        ExtractOptions,
        extract,
        extract_items,
        extract_stream,
        extract_sync,
    )
    from toolcrib.extraction.many import Extracted, extract_many, extract_many_sync
    from toolcrib.extraction.maybe import Maybe
    from toolcrib.extraction.sources import Source, file_source

__all__ = [
    "Classification",
    "ExtractOptions",
    "Extracted",
    "Maybe",
    "Quote",
    "Source",
    "choose",
    "choose_sync",
    "classify",
    "classify_sync",
    "extract",
    "extract_items",
    "extract_many",
    "extract_many_sync",
    "extract_stream",
    "extract_sync",
    "file_source",
]

__getattr__ = lazy_names(
    __name__,
    {
        "classify": ("Classification", "choose", "choose_sync", "classify", "classify_sync"),
        "extract": ("ExtractOptions", "extract", "extract_items", "extract_stream", "extract_sync"),
        "many": ("Extracted", "extract_many", "extract_many_sync"),
        "maybe": ("Maybe",),
        "sources": ("Source", "file_source"),
        ".agent.quotes": ("Quote",),
    },
)
