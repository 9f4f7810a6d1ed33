"""Explains a command: to the person before and while it runs, why it failed, and to the model in its result.

`preview` says what would run, `failure` finds what the sandbox refused, `escalation` asks a person to allow it, `reporter` reports to the person, and
`result_text` writes the result for the model.
"""
