"""Annotations and signatures, read also where an annotation uses a name that is not defined.

From Python 3.14 on an annotation is evaluated when it is read. A name in it that is not defined is then a ForwardRef
here; what else evaluating it may raise, reading it raises.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

__all__ = ["annotations_of", "innermost", "signature_of"]

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    signature_of = partial(inspect.signature, annotation_format=Format.FORWARDREF)

    def annotations_of(annotated: Any) -> Mapping[str, Any]:
        """The annotations of a function or class."""
        return get_annotations(annotated, format=Format.FORWARDREF)

else:
    signature_of = inspect.signature

    def annotations_of(annotated: Any) -> Mapping[str, Any]:
        """The annotations of a function or class."""
        found: Mapping[str, Any] = getattr(annotated, "__annotations__", {})
        return found


def innermost(fn: Callable[..., Any]) -> tuple[Callable[..., Any], set[str]]:
    """The function below partials and decorators that say what they wrap, and the arguments that partials name."""
    named = set[str]()
    while isinstance(fn, partial) or hasattr(fn, "__wrapped__"):
        if isinstance(fn, partial):
            named.update(fn.keywords)
            fn = fn.func
        else:
            fn = inspect.unwrap(fn, stop=lambda below: isinstance(below, partial))
    called = fn if inspect.isroutine(fn) else type(fn).__call__
    return (called if called is fn else innermost(called)[0]), named
