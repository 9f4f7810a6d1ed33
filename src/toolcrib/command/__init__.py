"""The command room: judge a command line, launch it confined, explain why it failed.

`launch` runs what was judged: a proved plan program by program, or an opaque script by bash. `sandbox` holds what
confines either of them.
"""
