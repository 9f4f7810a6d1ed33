"""Runs a judged command: a proved plan program by program without a shell, anything else as a script of bash."""

from toolcrib.command.launch.plan_runner import Child, Host, run_plan

__all__ = ["Child", "Host", "run_plan"]
