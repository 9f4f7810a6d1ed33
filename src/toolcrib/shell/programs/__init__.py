"""What is known of programs: a row each, read by `options.py`. A program that has none asks."""

from toolcrib.shell.programs.table import find_form

__all__ = ["find_form"]
