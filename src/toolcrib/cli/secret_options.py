"""The options that say where a secret is kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.user_files import secrets_path
from toolcrib.dataclass import dataclass
from toolcrib.secrets import Keyring, SecretFile


class SecretPlace(StrEnum):
    """Where secrets can be kept."""

    FILE = "file"
    KEYRING = "keyring"


SecretName = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name.")]


@dataclass(frozen=True, slots=True)
class SecretOptions:
    """Where secrets are kept: in a file, or in the system's keyring."""

    store: Annotated[
        SecretPlace,
        typer.Option("--store", help="file: a file that only you can read; keyring: the system's keyring."),
    ] = SecretPlace.FILE
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another file than the usual one under ~/.config.")
    ] = None

    def opened(self) -> SecretFile | Keyring:
        """The file or keyring."""
        return Keyring() if self.store is SecretPlace.KEYRING else SecretFile(self.file or secrets_path())

    @property
    def place(self) -> str:
        """Where the secrets lie, in words."""
        return "the system keyring" if self.store is SecretPlace.KEYRING else str(self.file or secrets_path())
