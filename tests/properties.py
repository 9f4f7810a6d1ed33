"""How many examples a property is tried with.

`toolcrib-fast` is the default: few examples, the same ones each time, so that a change is judged by nothing but
itself. `python3 dev.py nightly` loads `nightly`: twenty-five times as many, new ones each time.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

FAST, NIGHTLY = "toolcrib-fast", "nightly"
ORDINARY = 100  # Hypothesis' own number of examples: what `examples` is a share or a multiple of

settings.register_profile(FAST, max_examples=40, derandomize=True, deadline=None)
settings.register_profile(NIGHTLY, max_examples=1000, deadline=None, print_blob=True)


def is_nightly() -> bool:
    """Whether there is time to try everything."""
    profile: Any = settings.default
    return bool(profile.max_examples > ORDINARY)


def examples(ordinary: int, **more: Any) -> settings:
    """Settings for a property that needs `ordinary` examples where Hypothesis tries 100."""
    profile: Any = settings.default
    return settings(max_examples=max(1, ordinary * profile.max_examples // ORDINARY), **more)
