"""Runs a judged command in a sandbox: a proved plan program by program without a shell, anything else by bash.

`run_command` chooses between the two. A plan is run by `plan_runner` on a `SandboxedHost`, a script as one `process`.
Both bound the output and end everything that the command started.
"""

from toolcrib.command.launch.plan_runner import PlanHost, PlanProcess, run_plan

__all__ = ["PlanHost", "PlanProcess", "run_plan"]
