"""Starts conformance clients as forks of one process, which has imported them: `python client_processes.py SOCKET`.

The suite starts a process for each of its 50 client scenarios, and each would spend over a second on imports. It starts
`python -I -S client_processes.py SOCKET URL` instead, which imports nothing heavy: it hands its environment and streams to
the process that listens on SOCKET, and ends with the exit code of the fork that ran the scenario.
"""

import json
import os
import signal
import socket
import sys

LIMIT = 120  # seconds for one scenario
AT_ONCE = 4  # scenarios; the suite starts all of them at the same time


def ask(path: str, url: str) -> int:
    """Has a fork run the scenario that the environment names, with our streams. Returns its exit code."""
    names = [name for name in os.environ if name.startswith("MCP_CONFORMANCE_")]
    request = json.dumps([url, {name: os.environ[name] for name in names}]).encode()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        socket.send_fds(asking, [len(request).to_bytes(4, "big")], [1, 2])
        asking.sendall(request)
        answer = asking.recv(1)
    return answer[0] if answer else 1


def listen(path: str) -> None:
    """Forks for each request, until standard input closes."""
    from threading import Thread

    from tests.mcp_servers import conformance_client

    _import_what_each_fork_needs()
    Thread(target=_end_with_standard_input, daemon=True).start()
    running = 0
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(128)
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            if running == AT_ONCE:
                os.wait()
                running -= 1
            if os.fork():
                connection.close()
                running += 1
                continue
            listening.close()
            signal.alarm(LIMIT)
            connection.send(bytes([_run(connection, conformance_client.main)]))
            os._exit(0)


def _import_what_each_fork_needs() -> None:
    """What is imported on first use would be imported again by each fork."""
    import gc
    import importlib
    import pkgutil

    for name in ("mcp.client", "toolbox", "net", "rules", "schema"):
        package = importlib.import_module(f"toolcrib.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    for name in (
        *("concurrent.futures.thread", "mcp.client.client", "httpcore2", "anyio._backends._asyncio"),
        "tests.mcp_servers.conformance_auth",
    ):
        importlib.import_module(name)
    gc.freeze()


def _run(connection, main) -> int:  # type: ignore[no-untyped-def]
    size, streams, _, _ = socket.recv_fds(connection, 4, 2)
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    wanted, request = int.from_bytes(size, "big"), b""
    while len(request) < wanted and (part := connection.recv(65536)):
        request += part
    url, environment = json.loads(request)
    os.environ.update(environment)
    try:
        code = main(url)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _end_with_standard_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(ask(sys.argv[1], sys.argv[2]))
    listen(sys.argv[1])
