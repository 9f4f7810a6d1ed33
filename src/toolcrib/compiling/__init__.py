"""From a declaration to a `Definition`, at the first use of a tool.

`compile.py` is where to begin: it reads the signature (`signature.py`) or takes the type of the params, makes
the `Params` (`params.py`: `typed_params.py` from Python types, `schema_params.py` from a raw JSON Schema), adds
what the docstring says (`docstring.py`), and gives the `Definition` with its `Output`. What Pydantic checks and no
JSON Schema says goes into the descriptions (`unsaid.py`); what it refuses is told in plain words (`failures.py`).
"""
