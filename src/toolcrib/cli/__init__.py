"""The command line. `main` runs a command line and returns its exit code; also inside another program's process.

**To add a command**, `toolcrib greet` or `toolcrib tools greet`:

1. Add a row to `COMMANDS` in `command_table.py`: `"tools greet": "Greet a tool."`. The sentence is what `--help` says.
2. Write its module `commands/tools_greet.py` with a function `command`, whose parameters are Typer's options and
   whose docstring is the rest of its `--help`:

       def command(name: str, tools: ToolOptions, loud: Annotated[bool, typer.Option("--loud")] = False) -> int:
           "With --loud, in capitals."
           out(f"Hello, {name}!")
           return DONE

   A parameter whose type is one of the option classes (`ToolOptions`, `PolicyOptions`, `SandboxOptions`,
   `SecretOptions`) gives the command all options of that class.

A command prints results with `out`, tells the person other things with `say`, and ends early by raising `Problem`
(`console.py`). Its module is imported only when it is called, so it imports at its top whatever it needs.

| for | read |
| --- | --- |
| how a command line becomes a command | `main`, `command_group`, `command_table` |
| options that several commands share | `options`, `sandbox_options`, `secret_options`, `audit_reading` |
| what a command works with | `loaded_tools`, `user_files`, `settings_in_effect`, `rule_checks`, `own_files` |
| a run in front of a person | `run_display`, `terminal_display`, `live_view`, `call_card`, `run_summary` |
| questions and answers | `question_text`, `answers`, `prompt`, `json_answers` |
"""

from toolcrib.cli.main import main

__all__ = ["main"]
