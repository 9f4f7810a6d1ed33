"""The network guard: where connections may go, decided at the moment of connecting."""

from toolcrib.net.addresses import Kind, judge, kind_of, parse_address
from toolcrib.net.guard import Limits, NetGuard, Resolver, system_resolver
from toolcrib.net.urls import Host, NetworkRefused, Target, parse_url

__all__ = [
    "Host",
    "Kind",
    "Limits",
    "NetGuard",
    "NetworkRefused",
    "Resolver",
    "Target",
    "judge",
    "kind_of",
    "parse_address",
    "parse_url",
    "system_resolver",
]
