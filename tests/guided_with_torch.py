"""What runs in the environment with PyTorch: a tiny model of random weights, held to each constraint.

`python -m tests.guided_with_torch NUMBER` prints a line of JSON for each vocabulary, constraint and backend: how many of
so many answers were valid, how many were finished, and how long they took.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

from tests.guided_constraints import CONSTRAINTS
from tests.vocabularies import PAGES, byte_vocabulary, trained_vocabulary
from toolcrib.guided import JsonSchema
from toolcrib.guided.local import LocalGuide, TransformersGuide, VllmGuide, Vocabulary

torch: Any = import_module("torch")
transformers: Any = import_module("transformers")
AT_ONCE = 250
LONGEST = 600


class LikelierQuotes:
    """Makes quotes likelier, as in any trained model: strings of random letters would not end."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        quotes = [number for number, token in enumerate(vocabulary.tokens) if token.startswith(b'"')]
        self._bias = torch.zeros(vocabulary.size)
        self._bias[quotes] = 4.0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores + self._bias


def tiny_model(vocabulary: Vocabulary) -> Any:
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=vocabulary.size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=LONGEST + 64,
        bos_token_id=None,
        eos_token_id=vocabulary.ends[0],
        pad_token_id=vocabulary.ends[0],
    )
    return transformers.LlamaForCausalLM(config).eval()


def judged(guide: LocalGuide, vocabulary: Vocabulary, rows: list[list[int]]) -> tuple[int, int]:
    """How many answers are valid, and how many were finished."""
    valid = finished = 0
    end = vocabulary.ends[0]
    for row in rows:
        if end not in row:
            continue
        finished += 1
        text = b"".join(vocabulary.tokens[token] for token in row[: row.index(end)])
        try:
            valid += is_valid(guide, text.decode())
        except ValueError as problem:
            sys.stderr.write(f"{problem}: {text[:200]!r}\n")
    return valid, finished


def is_valid(guide: LocalGuide, text: str) -> bool:
    """Whether the answer is what was promised: the constraint, but for the losses that the guide told of."""
    low = guide.lowered
    value = low.parse(text).value
    if low.guarantee == "enforced" or low.schema is None:
        return not low.validate(value)
    return JsonSchema(low.schema).fits(value)


def by_transformers(guide: LocalGuide, vocabulary: Vocabulary, number: int, **options: Any) -> Any:
    model = tiny_model(vocabulary)
    rows: list[list[int]] = []
    prompt = torch.full((min(number, AT_ONCE), 3), 65)
    while len(rows) < number:
        with torch.no_grad():
            written = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=LONGEST,
                logits_processor=[LikelierQuotes(vocabulary), TransformersGuide(guide)],
                **({"do_sample": True, "top_k": 0} | options),
            )
        rows += written[:, prompt.shape[1] :].tolist()
    return judged(guide, vocabulary, rows[:number])


def by_vllm(guide: LocalGuide, vocabulary: Vocabulary, number: int) -> Any:
    """The loop of vLLM's sampler: a processor for each request is given the tokens so far and the next logits."""
    rows: list[list[int]] = []
    torch.manual_seed(7)
    likelier = LikelierQuotes(vocabulary)
    for _ in range(number):
        processor, row = VllmGuide(guide), list[int]()
        while len(row) < LONGEST and (not row or row[-1] not in vocabulary.ends):
            logits = processor(row, likelier(None, torch.randn(vocabulary.size)))
            row.append(int(torch.multinomial(torch.softmax(logits, -1), 1)))
        rows.append(row)
    return judged(guide, vocabulary, rows)


def trained_tokenizer() -> Any:
    """A fast tokenizer of transformers, as a model's files hold one: byte-level BPE, with a special token."""
    tokenizers: Any = import_module("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2_000,
        special_tokens=["<end>", "<pad>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train([str(page) for page in sorted(PAGES.glob("*.md"))], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<pad>")


def by_tokenizer(kind: str, number: int) -> dict[str, Any]:
    """Answers of a model whose tokenizer is one of transformers, decoded by it."""
    tokenizer = trained_tokenizer()
    vocabulary = Vocabulary.of(tokenizer)
    text = "Grüße, 世界! 😀\n"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert b"".join(vocabulary.tokens[token] for token in ids).decode() == text
    guide = LocalGuide(CONSTRAINTS[kind], tokenizer, compact=True)
    prompt = torch.full((number, 3), 65)
    with torch.no_grad():
        written = tiny_model(vocabulary).generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=LONGEST,
            do_sample=True,
            top_k=0,
            logits_processor=[LikelierQuotes(vocabulary), TransformersGuide(guide)],
        )
    texts = tokenizer.batch_decode(written[:, prompt.shape[1] :], skip_special_tokens=True)
    valid = sum(is_valid(guide, answer) for answer in texts)
    assert not any("<pad>" in answer for answer in texts)
    line = {"vocabulary": "transformers", "constraint": kind, "by": "tokenizer", "backend": "llguidance"}
    return line | {"valid": valid, "finished": number, "of": number}


def main(number: int) -> None:
    for kind in ("choice", "json", "merged tools"):
        sys.stdout.write(json.dumps(by_tokenizer(kind, min(number, 100))) + "\n")
    for name, vocabulary in (("bytes", byte_vocabulary()), ("bpe", trained_vocabulary())):
        for kind, constraint in CONSTRAINTS.items():
            if (
                kind == "tags"
            ):  # free text of a random model has no end: tests/test_guided_local.py begins the tag
                continue
            runs: list[tuple[str, Any, str, dict[str, Any]]] = [
                ("transformers", by_transformers, "llguidance", {}),
                ("vllm", by_vllm, "llguidance", {}),
                ("transformers", by_transformers, "xgrammar", {}),
            ]
            if kind == "json":
                beams = {"num_beams": 4, "do_sample": False}
                runs.append(("beams", by_transformers, "llguidance", beams))
            for way, sample, backend, options in runs:
                guide = LocalGuide(constraint, vocabulary, backend=backend, compact=True)  # type: ignore[arg-type]
                begun = time.perf_counter()
                wanted = number if way != "beams" else min(number, 20)
                valid, finished = sample(guide, vocabulary, wanted, **options)
                line = {"vocabulary": name, "constraint": kind, "by": way, "backend": backend}
                took = round(time.perf_counter() - begun, 1)
                found = {"valid": valid, "finished": finished, "of": wanted, "s": took}
                sys.stdout.write(json.dumps(line | found) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)  # more cost such a small model more than they give
    main(int(sys.argv[1]))
