"""Conditions of `[[ … ]]`, as the command `test` that means the same. Words are not split, and are no patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.command.judge.tokens import Token
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import (
    Command,
    Compound,
    Join,
    LoopName,
    Pipeline,
    Plan,
    Step,
    Substitution,
    Word,
    WordPart,
)
from toolcrib.command.programs.listing import is_number
from toolcrib.dataclass import replace

UNARY = re.compile(r"-[bcdefghknprstuwxzGLNOS]")
BINARY = re.compile(r"==?|!=|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)")
OF_NUMBERS = re.compile(r"-(?:eq|ne|lt|le|gt|ge)")
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
SIGNS = {"(", ")", "[[", "]]"}


def extended_test(raw: bytes, tokens: Sequence[Token]) -> Command | Compound:
    """The command `test` that means the same as `[[ … ]]`, or several of them joined by `&&` or `||`.

    `tokens` are those of `raw`, the words `test …`. Raises NotProved where it has patterns, computes, or is no test.
    """
    if tokens[0].word is None or tokens[0].word.literal != "test":
        raise NotProved("an odd test")
    joins: list[Join] = [";"]
    parts: list[list[tuple[str, Word]]] = [[]]
    for token in tokens[1:]:
        written = raw[token.start : token.end].decode()
        if token.text in ("&&", "||"):
            joins.append("&&" if token.text == "&&" else "||")
            parts.append([])
        elif written == "!" and not parts[-1]:
            parts[-1].append((written, Word((written,))))
        elif token.kind == "word" and token.word is not None and not token.more:
            parts[-1].append((written, token.word))
        else:
            raise NotProved("an odd test")
    if len({*joins[1:]}) > 1:
        raise NotProved("a [[ ]] test that mixes && and ||")
    made = [_condition([text for text, _ in part], [word for _, word in part]) for part in parts]
    if len(made) == 1 and not any(word.substitutions for word in made[0].words):
        return made[0]
    steps = [Step(join, Pipeline((one,))) for join, one in zip(joins, made, strict=True)]
    # In a group, redirections hold for all of it, and for what runs inside.
    return Compound("group", (Plan(tuple(steps)),))


def _condition(written: Sequence[str], words: Sequence[Word]) -> Command:
    """One condition as a command `test`. `written` has its words with their quotes: a quoted operator is a text."""
    words = [_unsplit(word) for word in words]
    negated = written[:1] == ["!"]
    operator, operands = _parts(written[negated:], words[negated:])
    if not SIGNS.isdisjoint(written) or any(map(_looks_like_operator, operands)):
        raise NotProved("a [[ ]] test of another kind")
    if OF_NUMBERS.fullmatch(operator) and not all(map(_is_integer, operands)):
        raise NotProved("a [[ ]] test that computes")
    made = (Word(("=",)) if word.literal == "==" else word for word in words)
    return Command((Word(("test",)), *made))


def _unsplit(word: Word) -> Word:
    parts: list[WordPart] = []
    for part in word.parts:
        if isinstance(part, LoopName | Substitution):
            parts.append(replace(part, quoted=True))
        elif isinstance(part, str):
            parts.append(part)
        else:
            raise NotProved("a pattern in a [[ ]] test")
    return Word(tuple(parts))


def _parts(written: Sequence[str], words: Sequence[Word]) -> tuple[str, list[Word]]:
    """The operator, "" for a word alone, and the operands."""
    if len(words) == 1:
        return "", [*words]
    if len(words) == 2 and UNARY.fullmatch(written[0]):
        return written[0], [words[1]]
    if len(words) == 3 and BINARY.fullmatch(written[1]):
        return written[1], [words[0], words[2]]
    raise NotProved("a [[ ]] test of another kind")


def _looks_like_operator(word: Word) -> bool:
    """Whether a text could be read as an operator by `test`, which finds operators by their places."""
    text = word.literal
    return text is not None and not INTEGER.fullmatch(text) and text.startswith(("-", "!", "(", ")"))


def _is_integer(word: Word) -> bool:
    return is_number(word) or INTEGER.fullmatch(word.literal or "") is not None
