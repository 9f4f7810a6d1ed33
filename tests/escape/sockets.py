"""Attempts to speak to others."""

from __future__ import annotations

import socket
from typing import Any

from .trying import (
    GIVEN,
    attempt,
)

# -- sockets


def speak(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)
        made.send(b"hello")


@attempt
def connect_to_this_machine() -> None:
    speak(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", GIVEN["tcp"]))


@attempt
def connect_to_this_machine_by_ipv6() -> None:
    speak(socket.AF_INET6, socket.SOCK_STREAM, ("::1", GIVEN["tcp6"]))


@attempt
def send_a_datagram() -> None:
    speak(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", GIVEN["udp"]))


@attempt
def connect_to_daemon_socket() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["unix"])


@attempt
def connect_to_daemon_socket_in_workspace() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["unix_inside"])


@attempt
def connect_to_key_agent() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["agent"])


@attempt
def connect_to_display() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["display"])


@attempt
def connect_to_abstract_socket() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + GIVEN["abstract"])


LISTENING: list[socket.socket] = []


@attempt
def serve_on_this_machine() -> None:
    made = socket.create_server(("127.0.0.1", GIVEN["serve"]))
    LISTENING.append(made)
    made.settimeout(1)
    made.accept()[0].close()


@attempt
def open_icmp_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@attempt
def open_netlink_socket() -> None:
    socket.socket(16, socket.SOCK_RAW, 0).close()


@attempt
def open_vsock_socket() -> None:
    socket.socket(40, socket.SOCK_STREAM).close()


@attempt
def open_packet_socket() -> None:
    socket.socket(17, socket.SOCK_RAW, 0).close()


@attempt
def open_ping_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()


@attempt
def open_cipher_socket() -> None:
    socket.socket(38, socket.SOCK_SEQPACKET).close()
