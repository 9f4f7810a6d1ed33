"""Calls that are written as text: formats, the engine that reads and writes them, and a codec over another codec.

- `form.py`: a format is a `Form`, a row of templates that say how calls and results are written and taught.
- `formats.py`: all formats, a row each. To add one, add a row; `docs/text-models.md` shows how.
- `engine.py`, `tagged_calls.py`: read an answer by the delimiters that follow from the templates (`delimiters.py`).
- `call_objects.py`: reads calls that are JSON objects, and knows all keys for a call's parts.
- `grammars/`: the formats whose calls are of another grammar.
- `scanner.py`, `prose.py`, `answer.py`: a cursor over streamed text, the text between calls, and what comes out.
- `escaping.py`: keeps what tools return from meaning anything.
"""

from toolcrib.codecs.text.codec import TextCodec, TextDecoder
from toolcrib.codecs.text.form import Form, ResultText
from toolcrib.codecs.text.formats import format_for, format_named, formats
from toolcrib.codecs.text.parser import Parsed, TextParser, parse_text, text_parser

__all__ = [
    "Form",
    "Parsed",
    "ResultText",
    "TextCodec",
    "TextDecoder",
    "TextParser",
    "format_for",
    "format_named",
    "formats",
    "parse_text",
    "text_parser",
]
