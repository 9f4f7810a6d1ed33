"""The command line."""

from toolcrib.cli.main import main

__all__ = ["main"]
