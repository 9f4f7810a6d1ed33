"""Attempts to speak to others."""

from __future__ import annotations

import os
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


def speak_by_a_pair(kind: int, address: Any, *, connected: bool = False) -> None:
    """Speaks from one end of a pair: a pair of datagram sockets may be turned to any address."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    with one, other:
        if connected:
            one.connect(address)
            one.send(b"hello")
        else:
            one.sendto(b"hello", address)


@attempt
def send_to_daemon_socket_by_a_pair() -> None:
    speak_by_a_pair(socket.SOCK_DGRAM, GIVEN["datagrams"])


@attempt
def send_to_daemon_socket_in_workspace_by_a_pair() -> None:
    speak_by_a_pair(socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, GIVEN["datagrams_inside"])


@attempt
def send_to_daemon_socket_below_run_by_a_pair() -> None:
    speak_by_a_pair(socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, GIVEN["datagrams_run"])


@attempt
def connect_a_pair_to_daemon_socket() -> None:
    speak_by_a_pair(socket.SOCK_DGRAM, GIVEN["datagrams_connected"], connected=True)


@attempt
def send_to_daemon_socket_by_a_raw_pair() -> None:
    speak_by_a_pair(socket.SOCK_RAW, GIVEN["datagrams_raw"])  # which the kernel takes for datagrams


@attempt
def send_to_abstract_socket_by_a_pair() -> None:
    speak_by_a_pair(socket.SOCK_DGRAM, "\0" + GIVEN["abstract"] + "-datagrams")


@attempt
def send_to_daemon_socket_by_a_message_of_a_pair() -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendmsg([b"hello"], [], 0, GIVEN["datagrams_message"])


@attempt
def write_to_a_named_pipe_outside() -> None:
    fd = os.open(GIVEN["pipe"], os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b"hello")
    os.close(fd)


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
