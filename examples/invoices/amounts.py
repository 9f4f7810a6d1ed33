"""Amounts of money as people write them."""

import re
from decimal import Decimal

AMOUNT = re.compile(r"(?P<sign>-?)\s*(?P<digits>[\d.,' ]*\d)")


def parse(text: str) -> Decimal:
    """An amount such as "1,250.50", "1.250,50" or "1'250"; the last point or comma is the decimal mark."""
    found = AMOUNT.search(text)
    if found is None:
        raise ValueError(f"no amount in {text!r}")
    digits = found["digits"].replace(" ", "").replace("'", "")
    mark = max(digits.rfind("."), digits.rfind(","))
    whole, cents = digits[:mark], digits[mark + 1 :]
    whole = whole.replace(".", "").replace(",", "")
    return Decimal(f"{found['sign']}{whole}.{cents}")
