"""Invoices: lines with an amount at their end."""

from decimal import Decimal

import amounts


def total(text: str) -> Decimal:
    """The sum of the amounts at the ends of the lines; lines without one do not count."""
    result = Decimal(0)
    for line in text.splitlines():
        _, _, last = line.rpartition(":")
        try:
            result += amounts.parse(last)
        except ValueError:
            continue
    return result
