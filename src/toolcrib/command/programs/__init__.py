"""What is known of programs, as tables. A program without a row is unknown, and a command that runs it asks.

| to add | write a row in |
| --- | --- |
| a program's options and operands | `coreutils.py` (shows, counts, compares), `searching.py`, `documents.py` (looks into tables, sources, binaries), `archives.py`, `system.py` (tells of the machine), `writing.py` (changes files, reaches machines), `develop.py` (builds, tests, packages), `git.py` |
| a program that only tells, given `--help` or `--version` | `telling.py` |
| a program that runs code, a shell, an interpreter, an editor; what "always" may remember of it | `traits.py` |
| a wrapper such as `timeout` or `sudo` | `wrappers.py` |
| where other launchers have their command, and options that are one | `launchers.py` |
| a destructive command | `destructive.py`, `ROWS` |
| a program whose output is a list of file names | `listing.py` |

A row of options is a `Synopsis`; `options.py` says how it is written and reads arguments by it. `table.py` finds the row of
a command. `checks.py` reads arguments that no option explains; `languages.py` checks the small languages inside
arguments (awk, jq, test) by positive lists, and `sed.py` reads scripts of sed.
"""

from toolcrib.command.programs.table import find_synopsis

__all__ = ["find_synopsis"]
