"""The secrets of a toolbox: checks references, reveals values for the tool alone, and masks them in all it returns.

A toolbox without a store of secrets has none of this.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from toolcrib.compiling.definition import Definition
from toolcrib.content import Audio, File, Image, Json, Part, Text
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError, belongs_to_caller
from toolcrib.prepared import Ready
from toolcrib.question import Question
from toolcrib.repair import Edit
from toolcrib.result import ToolResult
from toolcrib.secrets import (
    Redacted,
    Redactor,
    SecretError,
    SecretStore,
    check_references,
    find_references,
    reveal,
    why_unusable,
)
from toolcrib.secrets.references import may_have_references
from toolcrib.secrets.stores import names_at_hand
from toolcrib.secrets.stream import SuccessiveTexts

__all__ = ["Masking", "problem_of"]

MAX_BEFORE = 50  # values that a secret had before, and that are masked still


class Masking:
    """The secrets of one toolbox. Values are read from the store when they are needed.

    The values of `others` are masked too, and no call can name them.
    """

    def __init__(self, store: SecretStore, others: Masking | None = None) -> None:
        self.store = store
        self._others = others
        self._of_others: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._names: frozenset[str] = frozenset()
        self._redactor: Redactor | None = None

    def __repr__(self) -> str:
        return f"Masking({len(self._names)} secrets)"

    def names(self) -> Collection[str]:
        """The names that a call may refer to; none while the store cannot be read."""
        return self._at_hand().keys()

    def _at_hand(self) -> Mapping[str, str | None]:
        """The names, with those values that the store has at hand; none while it cannot be read."""
        try:
            return names_at_hand(self.store)
        except BaseException as problem:  # a store may be anybody's, and fail in its own way
            if belongs_to_caller(problem):
                raise
            return {}

    def reveal_params(self, ready: Ready, definition: Definition) -> Any:
        """The params of a call with values in place of references, validated again. Raises ToolError."""
        if not may_have_references(ready.given):
            return ready.params
        arguments = ready.arguments
        if not isinstance(arguments, dict) or next(iter(find_references(arguments)), None) is None:
            return ready.params
        try:
            made = reveal(arguments, definition.facts.secrets, self.store)
        except (KeyError, SecretError) as problem:
            name = problem.args[0] if isinstance(problem, KeyError) else ""
            logging.getLogger("toolcrib").warning(
                "a secret of tool %s cannot be had: %s", ready.call.name, problem
            )
            raise ToolError(f"Nothing was run: the secret {name!r} has no value now.") from None
        for name, value in made.values.items():
            if reason := why_unusable(value):
                raise ToolError(f"Nothing was run: the secret {name!r} cannot be used: {reason}.")
            self._learn(name, value)
        beside = definition.hooks.get("with_secrets")
        if beside is not None:
            return beside(ready.tool.instance, ready.params, made.values)
        try:
            from pydantic_core import to_json

            return definition.params.parse(to_json(made.arguments))
        except ValueError:
            raise ToolError("Nothing was run: with its secrets in place, an argument is not valid.") from None

    def mask(self, value: Any) -> Any:
        """Data or text without secrets; an object that contains none is returned as it is."""
        if isinstance(value, str):
            return self.redactor.redact_text(value).value
        return value if value is None else self.redactor.redact_json(value).value

    def mask_report(self, value: Any) -> Any:
        """A report of a tool without secrets. Data becomes text if a secret is spread over several strings in it."""
        return self._data(value).value if isinstance(value, list | dict | tuple) else self.mask(value)

    def mask_known_values(self, data: Any) -> Any:
        """JSON data without known values. Tokens in known formats stay, because the data is read back later."""
        return self.redactor.without_patterns().redact_json(data).value

    def mask_successive(self, pieces: SuccessiveTexts, text: str) -> str:
        """One of several texts that are shown one after another, without secrets."""
        return self.redactor.redact_text(pieces.show(self.redactor.finder, text)).value

    def mask_edits(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """Repairs without secrets."""
        hidden = self.mask
        return tuple(replace(edit, before=hidden(edit.before), after=hidden(edit.after)) for edit in edits)

    def mask_question(self, question: Question) -> Question:
        """A question without secrets, to be shown and stored. Its fingerprint binds it to the real arguments."""
        return replace(
            question,
            arguments=self.mask(question.arguments),
            edits=self.mask_edits(question.edits),
            action=self.mask(question.action),
            title=self.mask(question.title),
            reason=self.mask(question.reason),
            patterns=tuple(self.mask(list(question.patterns))),
            prefixes=tuple(map(tuple, self.mask(question.prefixes))),
            folders=tuple(self.mask(list(question.folders))),
        )

    def mask_result(
        self, result: ToolResult, cut: Callable[[ToolResult], ToolResult] = lambda whole: whole
    ) -> ToolResult:
        """A result without secrets. A note tells the model that something was masked.

        `cut` shortens the result after its parts are masked. If it gives an error instead, that is returned as it is.
        """
        redactor = self.redactor
        found: dict[str, None] = {}
        parts: list[Part] = []
        harmless = ""  # a text that holds no secret; most often it is also the text of the structured value
        for part in result.parts:
            if isinstance(part, Text) and redactor.finds_nothing(part.text):
                harmless = part.text
                parts.append(part)
            elif isinstance(part, Text):
                text = redactor.redact_text(part.text)
                found.update(dict.fromkeys(text.found))
                parts.append(part if text.value == part.text else replace(part, text=text.value))
            elif isinstance(part, Json):
                data = self._data(part.value)
                found.update(dict.fromkeys(data.found))
                parts.append(replace(part, value=data.value) if data.found else part)
            else:
                parts.append(_media(redactor, part, found))
        if len(parts) > 1:
            parts = self._joined(parts, found)
        masked = result
        if found:
            masked = result.copy()
            masked.parts = (*parts, _note(found))
        shown = cut(masked)
        if shown is not masked:
            return shown
        behind: dict[str, None] = {}
        unread = shown._json
        if unread is None or (unread != harmless and not redactor.finds_nothing(unread)):
            _ = shown.structured  # is read now, and masked below
        for name in ("_structured", "extras"):
            value = getattr(shown, name)
            if value is not None:
                data = self._data(value)
                if data.found:
                    shown = result.copy() if shown is result else shown
                    setattr(shown, name, data.value)
                    behind.update(dict.fromkeys(secret for secret in data.found if secret not in found))
        if behind:
            shown.parts = (*shown.parts, _note(behind))
        return shown

    def _data(self, value: Any) -> Redacted[Any]:
        """JSON data without secrets; a masked text if a secret is spread over several strings in it."""
        data = self.redactor.redact_json(value)
        if not isinstance(value, list | dict | tuple):
            return data
        whole = self.redactor.without_patterns().redact_text(json.dumps(data.value, default=str))
        return Redacted(whole.value, (*data.found, *whole.found)) if whole.found else data

    def _joined(self, parts: list[Part], found: dict[str, None]) -> list[Part]:
        """The parts, with all texts as one text if a secret is spread over them."""
        texts = [part.text for part in parts if isinstance(part, Text)]
        if len(texts) < 2:
            return parts
        whole = self.redactor.without_patterns().redact_text("\n".join(texts))
        if not whole.found:
            return parts
        found.update(dict.fromkeys(whole.found))
        return [Text(whole.value), *(part for part in parts if not isinstance(part, Text))]

    @property
    def redactor(self) -> Redactor:
        """A redactor of all values that the store has by now."""
        at_hand = self._at_hand()
        names = at_hand.keys() or self._names
        of_others = {} if self._others is None else self._others.values_now()
        if self._redactor is None or names != self._names or of_others != self._of_others:
            self._names, self._of_others = frozenset(names), of_others
            for name in self._names.difference(self._known):
                self._read(name)
            self._redactor = Redactor(self.values())
        for name, value in at_hand.items():
            if value is not None and value != self._known.get(name) and not why_unusable(value):
                self._learn(name, value)
        return self._redactor

    def values_now(self) -> dict[str, str]:
        """All values that are masked, as the store has them by now."""
        assert self.redactor is not None
        return self.values()

    def values(self) -> dict[str, str]:
        """All values that are masked, by names."""
        others = {
            name if name not in self._known else f"{name} (of the caller)": value
            for name, value in self._of_others.items()
            if self._known.get(name) != value
        }
        return {**others, **self._known}

    def _read(self, name: str) -> None:
        try:
            value = self.store.get(name)
        except BaseException as problem:
            if belongs_to_caller(problem):
                raise
            logging.getLogger("toolcrib").warning(
                "secret %s cannot be read, and so is not masked: %s", name, problem
            )
            return
        if value is not None and not why_unusable(value):
            self._known[name] = value

    def _known_before(self, name: str) -> Iterator[str]:
        """The values that a secret had earlier, as far as they are known, the latest first."""
        for place in range(MAX_BEFORE):
            if (known := self._known.get(_name_before(name, place))) is None:
                return
            yield known

    def _learn(self, name: str, value: str) -> None:
        """Remember a value as it is now; the values before it are still masked, under other names."""
        if self._known.get(name) == value:
            return
        values = [value, *self._known_before(name)][: MAX_BEFORE + 1]
        for place, known in enumerate(dict.fromkeys(values)):
            self._known[_name_before(name, place)] = known
        self._redactor = Redactor(self.values())


def _name_before(name: str, place: int) -> str:
    """The name in the mark of an earlier value of a secret; `place` counts back from the value that it has now."""
    return name if not place else f"{name} (before)" if place == 1 else f"{name} ({place} values before)"


def _note(found: Iterable[str]) -> Text:
    return Text(f"[Masked in this output, because it is secret: {', '.join(found)}.]")


def _media(redactor: Redactor, part: Image | Audio | File, found: dict[str, None]) -> Part:
    """A part of bytes. Text in it is masked; an image or a sound that contains a secret is left out."""
    named = redactor.redact_json([part.url, part.name])
    try:
        data = redactor.redact_bytes(base64.b64decode(part.data))
    except ValueError:
        data = redactor.redact_bytes(part.data.encode("utf-8", "replace"))
    found.update(dict.fromkeys((*named.found, *data.found)))
    url, name = named.value
    if data.found and not part.media_type.startswith("text/"):
        return Text(f"[This {part.kind} is left out: it holds what is secret.]")
    kept = base64.b64encode(data.value).decode() if data.found else part.data
    return replace(part, url=url, name=name, data=kept) if named.found or data.found else part


def problem_of(masking: Masking | None, given: Any, definition: Definition) -> str:
    """Words for the model if a reference in the arguments cannot be used as it is; "" if all can.

    `given` are the arguments as JSON text or data.
    """
    if not may_have_references(given):
        return ""
    arguments = json.loads(given or "{}") if isinstance(given, str | bytes) else given
    if not isinstance(arguments, Mapping):
        return ""
    known = masking.names() if masking is not None else ()
    return check_references(arguments, definition.facts.secrets, known) or ""
