"""The network guard: where connections may go, decided at the moment of connecting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names
from toolcrib.net.addresses import AddressKind, kind_of, parse_address, why_refused
from toolcrib.net.guard import HostResolver, NetGuard, RequestLimits, system_resolver
from toolcrib.net.urls import NetworkRefused, ParsedHost, Target, parse_url

if TYPE_CHECKING:
    from toolcrib.net.transport import async_transport, sync_transport

__all__ = [
    "AddressKind",
    "HostResolver",
    "NetGuard",
    "NetworkRefused",
    "ParsedHost",
    "RequestLimits",
    "Target",
    "async_transport",
    "kind_of",
    "parse_address",
    "parse_url",
    "sync_transport",
    "system_resolver",
    "why_refused",
]

# The transports need httpx2, which is an extra.
__getattr__ = lazy_names(__name__, {"transport": ("async_transport", "sync_transport")})
