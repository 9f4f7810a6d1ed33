"""Invoices out of mails, into a table: read side by side, checked, resumable.

    python examples/invoices_to_sqlite.py
    TOOLCRIB_MODEL=openai:gpt-5-mini python examples/invoices_to_sqlite.py

Without TOOLCRIB_MODEL the model is scripted: it makes the mistakes that models make, and is told about them.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, Field

from toolcrib import ToolError
from toolcrib.agent import OutputType
from toolcrib.extraction import Quote, extract_many
from toolcrib.messages import Request
from toolcrib.models import Model, Scripted, resolve_model

MAILS = {
    "mail-1": "Dear customer, invoice A-17: 2 saws at 12.50 each and 1 plane at 30.00. Please pay 55.00 EUR by May.",
    "mail-2": "Invoice B-3. Drill bits, 4 pieces, 2.25 EUR a piece; 9.00 EUR in all, thank you!",
    "mail-3": "Shall we have lunch on Friday?",
}


class Line(BaseModel):
    what: str
    pieces: int = Field(ge=1)
    price: Decimal = Field(description="Of one piece.")


class Invoice(BaseModel):
    """An invoice in a mail. Without an invoice in it, say so in the number: "none", with no lines."""

    number: str
    lines: list[Line]
    total: Decimal
    proof: Quote = Field(
        description="The words of the mail that name the total, or its first words without one."
    )


def adds_up(invoice: Invoice) -> None:
    found = sum(line.pieces * line.price for line in invoice.lines)
    if found != invoice.total:
        raise ToolError(f"The lines make {found}, and the total is {invoice.total}. Read both again.")


def scripted(request: Request) -> Any:
    """What a model might answer: wrong at first where that is likely."""
    mail = next(message.text for message in request.messages if message.role == "user")
    again = any(message.role == "assistant" for message in request.messages)
    saws = [{"what": "saw", "pieces": 2, "price": "12.50"}, {"what": "plane", "pieces": 1, "price": "30.00"}]
    if "A-17" in mail:
        lines = saws if again else saws[:1]  # one was overlooked
        answer = {"number": "A-17", "lines": lines, "total": "55.00", "proof": "Please pay 55.00 EUR"}
    elif "B-3" in mail:
        bits = {"what": "drill bit", "pieces": 4 if again else "four", "price": "2.25"}
        answer = {"number": "B-3", "lines": [bits], "total": "9.00", "proof": "9.00 EUR in all"}
    else:
        proof = "Shall we have lunch" if again else "no invoice here"  # these words do not stand in the mail
        answer = {"number": "none", "lines": [], "total": "0", "proof": proof}
    return {"calls": [{"name": "attempt_completion", "arguments": answer}]}


async def main() -> None:
    name = os.environ.get("TOOLCRIB_MODEL")
    model: Model = resolve_model(name) if name else Scripted(scripted)
    table = sqlite3.connect(":memory:")
    table.execute("CREATE TABLE lines (mail TEXT, invoice TEXT, what TEXT, pieces INTEGER, price TEXT)")
    output = OutputType(Invoice, validators=[adds_up])
    async for found in extract_many(model, output, MAILS, concurrency=2):
        if not found.ok:
            print(f"{found.key}: {found.problem}")
            continue
        invoice = found.output
        attempts = 0 if found.outcome is None else found.outcome.attempts
        print(f"{found.key}: {invoice.number}, {invoice.total} EUR, {attempts} attempts")
        rows = [
            (found.key, invoice.number, line.what, line.pieces, str(line.price)) for line in invoice.lines
        ]
        with table:
            table.executemany("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", rows)
        if found.outcome is not None and attempts > 1:
            told = [result.text for message in found.outcome.messages for result in message.results]
            print("   it was told:", re.sub(r"\s+", " ", told[0])[:110])
    for row in table.execute(
        "SELECT invoice, sum(pieces), sum(pieces * price) FROM lines GROUP BY invoice ORDER BY 1"
    ):
        print("in the table:", row)


if __name__ == "__main__":
    asyncio.run(main())
