"""Calls that are written as text: the formats, their parsers, and the codec that lays them over another."""

from toolcrib.codecs.text.catalog import format_for, format_named, formats
from toolcrib.codecs.text.codec import TextCodec, TextDecoder
from toolcrib.codecs.text.format import ResultText, TextFormat
from toolcrib.codecs.text.parser import Parsed, TextParser, parse_text, text_parser

__all__ = [
    "Parsed",
    "ResultText",
    "TextCodec",
    "TextDecoder",
    "TextFormat",
    "TextParser",
    "format_for",
    "format_named",
    "formats",
    "parse_text",
    "text_parser",
]
