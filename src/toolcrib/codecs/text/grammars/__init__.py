"""Formats whose calls are of another grammar than name and arguments between delimiters.

- `harmony.py`: messages in channels, where a header says which message is a call.
- `functionary.py`: messages to recipients, which a line break and not a closing tag ends.
- `gemma.py`: values in a notation of its own, with a special token as quotation mark.
- `elements.py`: elements in elements instead of JSON.
- `python_calls.py`: calls and literals in Python's syntax.
- `tool_tags.py`: the tools' names are the tags, so that the delimiters depend on the tools.
- `merged_json.py`: the whole answer is one JSON object, its text included.
- `tolerant.py`, with `tolerant_tags.py`, `tolerant_bodies.py` and `shortened_calls.py`: whatever an unknown model
  writes that was shown `<tool_call>`.
"""
