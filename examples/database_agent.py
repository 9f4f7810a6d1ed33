"""A tool whose schema follows the database: the model is offered the tables that exist now, as an enum.

    python examples/database_agent.py

Makes an SQLite database in a temporary file. With TOOLCRIB_MODEL set that model answers, else a scripted one.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from toolcrib import Agent, Context, Effect, Tool, ToolError
from toolcrib.messages import Message, ResultPart
from toolcrib.models import Model, Scripted, resolve_model


class Rows(BaseModel):
    table: str = Field(description="The table to read.")
    columns: list[str] = Field(default=[], description="Columns to give; all when empty.")
    limit: int = Field(20, ge=1, le=200, description="How many rows at most.")


class ReadTable(
    Tool[Rows, list[dict[str, Any]]], name="read_table", effect=Effect.READ, secrets=(), open_world=False
):
    """Read rows of a table of the shop's database."""

    def execute(self, params: Rows, ctx: Context[Path]) -> list[dict[str, Any]]:
        # Table and columns go into the statement as identifiers, so only names that exist may pass.
        known = tables(ctx.deps).get(params.table)
        if known is None:
            raise ToolError(
                f"There is no table {params.table!r} any more. Tables: {', '.join(tables(ctx.deps))}."
            )
        unknown = [column for column in params.columns if column not in known]
        if unknown:
            raise ToolError(f"{params.table} has no column {unknown[0]!r}. It has: {', '.join(known)}.")
        chosen = ", ".join(quoted(name) for name in params.columns or known)
        with closing(connect(ctx.deps)) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute(f"SELECT {chosen} FROM {quoted(params.table)} LIMIT ?", [params.limit])
            return [dict(row) for row in rows]

    async def dynamic_description(self, ctx: Context[Path]) -> str:
        """Once a turn: the columns of every table, so that the model need not ask for them."""
        listed = "; ".join(f"{name} ({', '.join(columns)})" for name, columns in tables(ctx.deps).items())
        return f"Read rows of a table of the shop's database. Tables and their columns: {listed}."

    async def dynamic_schema(self, schema: dict[str, Any], ctx: Context[Path]) -> dict[str, Any]:
        """Once a turn: the tables that exist, as the values that `table` may have."""
        schema["properties"]["table"]["enum"] = list(tables(ctx.deps))
        return schema


def connect(path: Path) -> sqlite3.Connection:
    """Read-only, so that nothing that a tool is talked into can change the data."""
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)


def tables(path: Path) -> dict[str, list[str]]:
    with closing(connect(path)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [row[1] for row in database.execute(f"PRAGMA table_info({quoted(name)})")] for name in names
        }


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, total REAL);
INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Grace', 'New York');
INSERT INTO orders VALUES (1, 1, 120.5), (2, 2, 80.0), (3, 1, 14.25);
"""


def script() -> Scripted:
    """Stands in for a model. It guesses a table first, as models do, and reads in the answer what there is."""
    return Scripted(
        [
            {"calls": [{"name": "read_table", "arguments": {"table": "sales"}}]},
            {"calls": [{"name": "read_table", "arguments": {"table": "orders", "columns": ["total"]}}]},
            "The orders come to 214.75 in all.",
            {"calls": [{"name": "read_table", "arguments": {"table": "returns"}}]},
            "One order was returned.",
        ]
    )


def show(messages: list[Message]) -> None:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ResultPart):
                print(f"  {part.call.name} {part.call.arguments}\n    {part.result.text}")


def main() -> None:
    model: Model = resolve_model() if os.environ.get("TOOLCRIB_MODEL") else script()
    print(f"The model is {model.name}.\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        with closing(sqlite3.connect(path)) as database:
            database.executescript(SHOP)
        agent = Agent(model, [ReadTable], deps=path)

        first = agent.run_sync("What do all orders come to?")
        show(first.messages)
        print(first.text, "\n")

        with closing(
            sqlite3.connect(path)
        ) as database:  # the world changes, and the next turn's tool list with it
            database.executescript("CREATE TABLE returns (order_id INTEGER); INSERT INTO returns VALUES (2);")
        second = agent.run_sync("Was anything returned?", messages=first.messages)
        show(second.messages[len(first.messages) :])
        print(second.text)


if __name__ == "__main__":
    main()
