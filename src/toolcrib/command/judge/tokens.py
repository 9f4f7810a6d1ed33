"""Strings that look like keys and tokens of well-known services. On a command line all processes can read them.

Wider than the formats of `secrets/patterns.py`: a false alarm costs a question here, and there a text. And one
expression, for every command is looked at.
"""

from __future__ import annotations

import re

LOOKS_SECRET = re.compile(
    r"\b(?:sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[\w-]{40,}|hf_[A-Za-z0-9]{20,}|lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}"
    r"|tvly-[\w-]{16,}|pplx-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|dop_v1_[a-f0-9]{40,}|shp(?:at|ss|ca)_[a-fA-F0-9]{24,}"
    r"|sbp_[a-f0-9]{30,}|dapi[a-f0-9]{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


def looks_secret(text: str) -> bool:
    """Whether a text holds what looks like a key or token itself, not its name."""
    return LOOKS_SECRET.search(text) is not None
