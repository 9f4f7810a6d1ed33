"""What is known of programs: a row each, read by `options.py`. A program that has none asks."""

from toolcrib.command.programs.table import find_usage

__all__ = ["find_usage"]
