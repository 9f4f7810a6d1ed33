"""Which tools for changing files a model is offered: a table of models.

Measured on 17 models: exact replacement and addresses of lines are equal (64 and 63 % of tasks), patches are far behind
(47 %) except with models that were trained on them. Two ways of editing at once only make a model choose.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from toolcrib.tool import Tool
from toolcrib.tools.apply_patch import ApplyPatch, FreeformApplyPatch, NativeApplyPatch
from toolcrib.tools.edit_file import EditFile
from toolcrib.tools.multi_edit import MultiEdit

if TYPE_CHECKING:
    from toolcrib.tools.backends.protocol import Backend

# The first row whose expression is found in the model's name counts: whether it was trained on patches.
MODELS = (
    (re.compile(r"gpt-oss|-chat|nano"), False),
    (re.compile(r"codex|gpt-4\.1|gpt-(?:[5-9]|\d\d)|(?<![a-z])o[34](?![a-z0-9])"), True),
)
# The form of `apply_patch` that OpenAI's models have, by the whole name; all others have a plain function.
FORMS = (
    (re.compile(r"openai:gpt-(?:5\.[1-9]|[6-9]|\d\d)"), NativeApplyPatch),
    (re.compile(r"openai:gpt-5(?!\d)"), FreeformApplyPatch),
)


def prefers_patches(model: str) -> bool:
    """Whether a model was trained on the patches of `apply_patch`.

    >>> prefers_patches("gpt-5.1-codex"), prefers_patches("claude-opus-4-6")
    (True, False)
    """
    return next((trained for name, trained in MODELS if name.search(model.lower())), False)


def edit_tools(
    backend: Backend,
    model: str,
    *,
    patches: bool | None = None,
    refuse_broken_syntax: bool = False,
) -> list[Tool[Any, Any]]:
    """The tools with which a model changes parts of files: `apply_patch`, or `edit_file` and `multi_edit`.

    `model` is its whole name, such as "openai:gpt-5.1", by which OpenAI's models get the form of `apply_patch` that
    they have. `patches` decides where it is given, and not the model; `refuse_broken_syntax` is that of `EditFile`.
    """
    if prefers_patches(model) if patches is None else patches:
        form = next((form for name, form in FORMS if name.match(model.lower())), ApplyPatch)
        return [form(backend)]
    return [make(backend, refuse_broken_syntax=refuse_broken_syntax) for make in (EditFile, MultiEdit)]
