"""The command line. `main` runs a command line and returns its exit code; also inside another program's process.

**To add a command**, `toolcrib greet` or `toolcrib tools greet`:

1. Add a row to `COMMANDS` in `command_table.py`: `"tools greet": "Greet a tool."`. The sentence is what `--help` says.
2. Write its module `commands/tools_greet.py` with a function `command`, whose parameters are Typer's options and
   whose docstring is the rest of its `--help`:

       def command(name: str, tools: ToolSelection, loud: Annotated[bool, typer.Option("--loud")] = False) -> int:
           "With --loud, in capitals."
           out(f"Hello, {name}!")
           return DONE

   A parameter whose type is one of the option classes (`ToolSelection`, `PolicyOptions`, `SandboxOptions`,
   `SecretOptions`) gives the command all options of that class.

A command prints results with `out`, tells the person other things with `say`, returns an exit code, and ends early by
raising `Problem` (all in `console.py`). Its module is imported only when it is called, so it may import whatever it
needs at its top. `tests/test_cli_commands.py` follows these steps.

| for | read |
| --- | --- |
| how a command line becomes a command | `main`, `command_group`, `command_table` |
| options of several commands | `options`, `policy_options`, `sandbox_options`, `secret_options`, `audit_reading` |
| tools and their arguments | `loaded_tools`, `tool_arguments` |
| what decides over calls | `settings_in_effect`, `user_files`, `rule_checks`, `own_files` |
| what would happen to a call | `prediction`, `dry_run` |
| a transcript file | `transcript_reading` |
| the model that a person names | `named_model`, `model_facts` |
| the agents that a run may hand tasks to | `named_agents` |
| a run in front of a person or a program | `run_display`, `terminal_display`, `live_view`, `call_card`, `run_summary` |
| what can be undone | `undo_text` |
| questions and answers | `question_text`, `prompt`, `answers`, `json_answers` |
"""

from toolcrib.cli.main import main

__all__ = ["main"]
