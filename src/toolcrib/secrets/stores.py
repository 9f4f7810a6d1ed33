"""Where secrets are kept. Each store says which names it has and gives one value at a time, when it is needed.

A secret's name is a letter or `_`, then up to 63 letters, digits, `_`, `.` or `-`.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from toolcrib.errors import as_tuple
from toolcrib.secrets.references import NAME

VALUE_LIMIT = 1 << 20


class SecretError(Exception):
    """A store cannot be used; the words are for a person and hold no value."""


class SecretStore(Protocol):
    """What gives secrets. Reading is cheap or quick enough to be done before a call; it may block."""

    def get(self, name: str) -> str | None:
        """The value, or None if the name is not known. Raises SecretError if the store cannot be read."""
        ...

    def names(self) -> Collection[str]:
        """The names that it has, without reading a value."""
        ...


class Environment:
    """Variables of our own environment: the named ones, and all that begin with `prefix` (without it)."""

    def __init__(
        self, names: Collection[str] = (), *, prefix: str = "", environ: Mapping[str, str] | None = None
    ) -> None:
        self._names = frozenset(map(valid_name, as_tuple("names", names)))
        self._prefix = prefix
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> str | None:
        if name in self._names and name in self._environ:
            return self._environ[name]
        return self._environ.get(self._prefix + name) if self._prefix and NAME.fullmatch(name) else None

    def names(self) -> Collection[str]:
        own = {name for name in self._names if name in self._environ}
        if self._prefix:
            size = len(self._prefix)
            rest = {name[size:] for name in self._environ if name.startswith(self._prefix)}
            own |= {name for name in rest if NAME.fullmatch(name)}
        return sorted(own)


class SecretFile:
    """A JSON object of names and values in a file that nobody else may read (0600, ours); a missing file has no names.

    Written whole and atomically. SecretError is raised for a file of others, one that others may read, a link, or
    one whose folder everybody may write to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, name: str) -> str | None:
        return self._read().get(name)

    def names(self) -> Collection[str]:
        return sorted(self._read())

    def set(self, name: str, value: str) -> None:
        """Keep a value, in the place of what stood there."""
        self._write({**self._read(), valid_name(name): value})

    def remove(self, name: str) -> bool:
        """Forget a value; whether there was one."""
        values = self._read()
        if name not in values:
            return False
        del values[name]
        self._write(values)
        return True

    def _read(self) -> dict[str, str]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise SecretError(f"{self.path} cannot be read: {problem.strerror}") from None
        try:
            if (reason := _unsafe(os.fstat(handle))) is not None:
                raise SecretError(f"{self.path} is not used: {reason}")
            self._check_folder()
            with open(handle, "rb", closefd=False) as file:
                data = file.read(VALUE_LIMIT + 1)
        finally:
            os.close(handle)
        try:
            values: Any = json.loads(data)
        except ValueError:
            values = None
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise SecretError(f"{self.path} is not used: expected a JSON object of names and strings")
        return values

    def _check_folder(self) -> None:
        folder = self.path.parent.stat()
        if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
            raise SecretError(f"{self.path} is not used: everybody may write to its folder")

    def _write(self, values: Mapping[str, str]) -> None:
        data = json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True).encode()
        if len(data) > VALUE_LIMIT:
            raise SecretError(f"{self.path} would become larger than {VALUE_LIMIT} bytes")
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._check_folder()
            temporary.unlink(missing_ok=True)
            handle = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as problem:
            raise SecretError(f"{self.path} cannot be written: {problem.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)


class Keyring:
    """The system's keyring, through the `keyring` library (extra `secrets`), under one service name.

    A keyring cannot be listed, so the names are kept in an entry of their own.
    """

    INDEX = "toolcrib: names"

    def __init__(self, service: str = "toolcrib") -> None:
        self.service = service

    def get(self, name: str) -> str | None:
        return self._ask("get_password", name) if NAME.fullmatch(name) else None

    def names(self) -> Collection[str]:
        try:
            names: Any = json.loads(self._ask("get_password", self.INDEX) or "[]")
        except ValueError:
            names = []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def set(self, name: str, value: str) -> None:
        """Keep a value, in the place of what stood there."""
        self._ask("set_password", valid_name(name), value)
        self._ask("set_password", self.INDEX, json.dumps(sorted({*self.names(), name})))

    def remove(self, name: str) -> bool:
        """Forget a value; whether there was one."""
        if self.get(name) is None:
            return False
        self._ask("delete_password", name)
        self._ask("set_password", self.INDEX, json.dumps(sorted({*self.names()} - {name})))
        return True

    def _ask(self, method: str, *arguments: str) -> Any:
        try:
            import keyring
            from keyring.errors import KeyringError
        except ImportError:
            raise SecretError(
                "the keyring needs the package keyring: pip install 'toolcrib[secrets]'"
            ) from None
        try:
            return getattr(keyring, method)(self.service, *arguments)
        except KeyringError as problem:
            raise SecretError(f"the system keyring cannot be used: {type(problem).__name__}") from None


class SecretCommand:
    """A program that prints a value, such as `["pass", "show", "{name}"]`: no shell, `{name}` replaced in each word.

    `names` are those that may be asked for. The program gets `deadline` seconds (10); it and its children are ended
    then. A line break at the end of what it prints is dropped.
    """

    def __init__(self, argv: Sequence[str], names: Collection[str], *, deadline: float = 10.0) -> None:
        if isinstance(argv, str) or not argv:
            raise TypeError(f"argv must be a list of words, got {argv!r}")
        self._argv = tuple(argv)
        self._names = frozenset(map(valid_name, as_tuple("names", names)))
        self._deadline = deadline

    def names(self) -> Collection[str]:
        return sorted(self._names)

    def get(self, name: str) -> str | None:
        if name not in self._names:
            return None
        program = self._argv[0]
        try:
            child = subprocess.Popen(
                [word.replace("{name}", name) for word in self._argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as problem:
            raise SecretError(f"{program} cannot be started: {problem.strerror}") from None
        try:
            printed = _printed(child, time.monotonic() + self._deadline)
        finally:
            _end(child)
        if printed is None:
            raise SecretError(f"{program} gave no value within {self._deadline:g} s")
        if len(printed) > VALUE_LIMIT:
            raise SecretError(f"{program} gave more than {VALUE_LIMIT} bytes for {name!r}")
        if child.returncode != 0:
            raise SecretError(f"{program} gave no value for {name!r}: exit code {child.returncode}")
        try:
            return printed.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise SecretError(f"{program} gave no text for {name!r}") from None


class Stores:
    """Several stores as one: the first that has a name gives its value."""

    def __init__(self, *stores: SecretStore) -> None:
        self._stores = stores

    def get(self, name: str) -> str | None:
        return next((value for store in self._stores if (value := store.get(name)) is not None), None)

    def names(self) -> Collection[str]:
        return sorted({name for store in self._stores for name in store.names()})


def valid_name(name: str) -> str:
    """The name itself; raises ValueError if a secret cannot be called that."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"a secret's name is letters, digits, _ . - (64 at most), no digit first; got {name!r}"
        )
    return name


def _unsafe(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "it is no ordinary file"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o077:
        return f"others may read or change it (mode {found.st_mode & 0o777:04o}); run chmod 600 on it"
    if found.st_size > VALUE_LIMIT:
        return f"it is larger than {VALUE_LIMIT} bytes"
    return None


def _printed(child: subprocess.Popen[bytes], until: float) -> bytes | None:
    """All that a program prints until it ends, or a little more than a value may have; None when the time is up."""
    assert child.stdout is not None
    out = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(child.stdout, selectors.EVENT_READ)
        while len(out) <= VALUE_LIMIT:
            if not ready.select(max(0.0, until - time.monotonic())):
                return None
            data = os.read(child.stdout.fileno(), 65_536)
            if not data:
                try:
                    child.wait(max(0.0, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    return None
                break
            out += data
    return bytes(out)


def _end(child: subprocess.Popen[bytes]) -> None:
    """The whole group, which may have outlived its first process."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    if child.stdout is not None:
        child.stdout.close()
    child.wait()
