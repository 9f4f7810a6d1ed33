"""Logits processors: a local guide within the loop of Hugging Face transformers, and of vLLM's offline `LLM`.

Both work on the tensors that they are given; PyTorch is imported with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from toolcrib.guided.local.engine import GuideError
from toolcrib.guided.local.guide import GuideSession, LocalGuide

__all__ = ["TransformersGuide", "VllmGuide", "vllm_logits_processor"]


class TransformersGuide:
    """A logits processor for one `model.generate(..., logits_processor=[TransformersGuide(guide)])`.

    Works for several prompts and beams. Use a fresh one for each `generate`: it holds the state of its answers.
    """

    def __init__(self, guide: LocalGuide) -> None:
        self._guide = guide
        self._prompt = -1  # the length of the prompts, which all have the same
        self._rows: list[_Row] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with those of tokens that may not come at minus infinity."""
        rows = input_ids.tolist()
        if self._prompt < 0:
            self._prompt = len(rows[0])
        self._rows = [self._row(number, row[self._prompt :]) for number, row in enumerate(rows)]
        return _masked(scores, [row.session for row in self._rows], self._guide.vocabulary_size)

    def _row(self, number: int, written: list[int]) -> _Row:
        """The state of a row: that of the same row before, or of the beam that it was taken from."""
        before = written[:-1]
        at_same = self._rows[number : number + 1]
        for known in [*at_same, *self._rows]:
            if written and known.written == before:
                forked = (
                    None if known.session is None else known.session.fork()
                )  # other beams may need it too
                return _Row(written, _stepped(forked, written[-1]))
        session: GuideSession | None = self._guide.session()
        for token in written:
            session = _stepped(session, token)
        return _Row(written, session)


class _Row:
    def __init__(self, written: list[int], session: GuideSession | None) -> None:
        self.written = written
        self.session = session  # None after the end, and where a token came that no mask had allowed


class VllmGuide:
    """A guide for one request of vLLM: called with the tokens written so far and the logits of the next one."""

    def __init__(self, guide: LocalGuide) -> None:
        self._guide = guide
        self._session: GuideSession | None = guide.session()
        self._seen = 0

    def __call__(self, output_ids: Sequence[int], logits: Any) -> Any:
        for token in output_ids[self._seen :]:
            self._session = _stepped(self._session, token)
        self._seen = len(output_ids)
        return _masked(logits[None, :], [self._session], self._guide.vocabulary_size)[0]


def vllm_logits_processor(guide_of: Callable[[Any], LocalGuide | None]) -> type[Any]:
    """A class for `vllm.LLM(..., logits_processors=[...])`; `guide_of` gives the guide of a request's parameters.

    `guide_of` is given the `SamplingParams`, whose `extra_args` may say what the request wants, and gives None for a
    request without a guide. A server of vLLM takes constraints by itself: see `lower(constraint, "vllm")`. ImportError
    without vLLM.
    """
    adapter: Any = import_module("vllm.v1.sample.logits_processor").AdapterLogitsProcessor

    class GuidedLogitsProcessor(adapter):  # type: ignore[misc]
        """Holds each request to its guide."""

        def is_argmax_invariant(self) -> bool:
            return False

        def new_req_logits_processor(self, params: Any) -> VllmGuide | None:
            guide = guide_of(params)
            return None if guide is None else VllmGuide(guide)

    return GuidedLogitsProcessor


def _stepped(session: GuideSession | None, token: int) -> GuideSession | None:
    """The session after a token; None where the answer has ended, by the end token or padding after it."""
    if session is None or session.accept(token):
        return session
    if session.complete:
        return None
    raise GuideError(f"the token {token} was written although the guide does not allow it")


def _masked(scores: Any, sessions: Sequence[GuideSession | None], size: int) -> Any:
    """The scores with minus infinity for what may not come. A model may have more scores than there are tokens."""
    torch: Any = import_module("torch")
    width = scores.shape[-1]
    allowed = torch.zeros((len(sessions), width), dtype=torch.bool)
    bits = torch.arange(8, dtype=torch.uint8)
    for number, session in enumerate(sessions):
        if session is None:
            allowed[number] = True
            continue
        mask = torch.frombuffer(bytearray(session.mask()), dtype=torch.uint8)
        row = ((mask[:, None] >> bits) & 1).flatten()[: min(size, width)].bool()
        allowed[number, : row.shape[0]] = row
    return scores.masked_fill(~allowed.to(scores.device), float("-inf"))
