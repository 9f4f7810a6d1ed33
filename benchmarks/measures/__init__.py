"""One module a measure: `TITLE`, `ABOUT`, `ROUNDS` (at most) and `measure(adapter, options) -> samples`.

A sample is `{"row", "path", "figures": {name: number}}`; a figure that was extrapolated stands in "guessed".
"""
