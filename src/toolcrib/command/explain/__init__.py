"""Explains what became of a command: why it failed, to the person while it runs, to the model in its result.

`failure` finds what the sandbox refused, `escalation` asks a person to allow it, `reporter` reports to the person, and
`result_text` writes the result for the model.
"""
