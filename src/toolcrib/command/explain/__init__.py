"""Explains a command: to the person before and while it runs, why it failed, and to the model in its result.

`preview` says what would run, `reporter` what comes of it. `failure` finds what the sandbox refused, `escalation` asks
a person to allow that, and `result_text` writes the result for the model.
"""
