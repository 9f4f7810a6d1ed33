"""What everybody is measured with: the same functions, types and payloads for all peers.

The annotations stay evaluated (no postponed ones), as some peers read them from the function as they are.
"""

import asyncio
import json
from typing import Any, Literal

from pydantic import BaseModel, Field


class Address(BaseModel):
    street: str
    city: str
    zip: str = Field(min_length=3, max_length=12)


class LineItem(BaseModel):
    sku: str
    quantity: int = Field(ge=1, le=999)
    price: float
    tags: list[str]
    status: Literal["new", "packed", "shipped"]
    address: Address


async def get_weather(city: str, days: int, tags: list[str]) -> dict[str, Any]:
    """Look up the weather for a city.

    Args:
        city: City name, such as "Beijing".
        days: How many days ahead.
        tags: What is wanted.
    """
    return {"city": city, "days": days, "tags": len(tags)}


def get_weather_sync(city: str, days: int, tags: list[str]) -> dict[str, Any]:
    """Look up the weather for a city.

    Args:
        city: City name, such as "Beijing".
        days: How many days ahead.
        tags: What is wanted.
    """
    return {"city": city, "days": days, "tags": len(tags)}


async def place_order(customer: str, items: list[LineItem]) -> dict[str, Any]:
    """Place an order.

    Args:
        customer: Who orders.
        items: What is ordered.
    """
    return {"customer": customer, "items": len(items)}


def place_order_sync(customer: str, items: list[LineItem]) -> dict[str, Any]:
    """Place an order.

    Args:
        customer: Who orders.
        items: What is ordered.
    """
    return {"customer": customer, "items": len(items)}


async def write_file(path: str, content: str) -> str:
    """Write a file.

    Args:
        path: Where it is.
        content: The whole new text.
    """
    return f"Wrote {len(content)} characters to {path}."


def write_file_sync(path: str, content: str) -> str:
    """Write a file.

    Args:
        path: Where it is.
        content: The whole new text.
    """
    return f"Wrote {len(content)} characters to {path}."


async def wait_a_moment(city: str, days: int, tags: list[str]) -> dict[str, Any]:
    """Look up the weather for a city, slowly.

    Args:
        city: City name, such as "Beijing".
        days: How many days ahead.
        tags: What is wanted.
    """
    await asyncio.sleep(0.01)
    return {"city": city, "days": days, "tags": len(tags)}


FLAT = '{"city": "Rio de Janeiro, BR", "days": 7, "tags": ["wind", "rain", "humidity"]}'


def _line_item(number: int) -> dict[str, Any]:
    return {
        "sku": f"SKU-{number:08d}-{'ABCDEFGH'[number % 8] * 6}",
        "quantity": number % 90 + 1,
        "price": 19.99 + number,
        "tags": ["fragile", "gift", "express"],
        "status": ("new", "packed", "shipped")[number % 3],
        "address": {
            "street": f"{number} Long Water Meadow Lane",
            "city": "Springfield",
            "zip": f"{10000 + number}",
        },
    }


NESTED = json.dumps({"customer": "Ada Lovelace", "items": [_line_item(number) for number in range(50)]})

CODE = 'def area(radius: float) -> float:\n    return 3.14159 * radius ** 2  # "round"\n\n'
WRITTEN = json.dumps({"path": "src/shapes/circle.py", "content": CODE * 140})

# kind -> (the function, arguments as a model writes them)
KINDS: dict[str, tuple[Any, str]] = {
    "async": (get_weather, FLAT),
    "sync": (get_weather_sync, FLAT),
    "nested": (place_order, NESTED),
    "file": (write_file, WRITTEN),
    "slow": (wait_a_moment, FLAT),
}


def stream_payload(kind: str, size: int) -> str:
    """About `size` bytes of arguments: one long text ("write"), or many small edits ("edits")."""
    if kind == "write":
        text = json.dumps({"path": "src/shapes/circle.py", "content": CODE * (size // len(CODE) + 1)})
        return text[: size - 2].rstrip("\\") + '"}'
    one = len(json.dumps(_edit(0))) + 2
    edits = [_edit(number) for number in range(max(1, (size - 40) // one))]
    return json.dumps({"path": "src/shapes/circle.py", "edits": edits})


def _edit(number: int) -> dict[str, Any]:
    return {
        "line": number,
        "old": "return 3.14 * radius",
        "new": "return math.pi * radius ** 2\n",
        "all": number % 2 == 0,
        "near": None,
    }


_TEMPLATE = '''
def tool_{n}(
    name: str,
    count: int = {n},
    ratio: float = 0.5,
    tags: Optional[list[str]] = None,
    mode: Literal["fast", "slow", "m{n}"] = "fast",
) -> str:
    """Do the thing number {n} with a name.

    Some more words about when to use this tool and when not to.

    Args:
        name: The name of the thing number {n}.
        count: How many of them are wanted.
        ratio: Which share of them, between 0 and 1.
        tags: What to mark them with.
        mode: How it is to be done.
    """
    return name
'''
SOURCE_HEAD = "from typing import Literal, Optional\n"
ARGUMENTS = '{"name": "x", "count": 2, "ratio": 0.5, "tags": ["a", "b"], "mode": "slow"}'


def many_functions(count: int, folder: str) -> list[Any]:
    """So many distinct documented functions, from a real source file (some peers read the source)."""
    import importlib.util
    from pathlib import Path

    path = Path(folder) / "many_functions.py"
    path.write_text(SOURCE_HEAD + "".join(_TEMPLATE.format(n=n) for n in range(count)), "utf-8")
    spec = importlib.util.spec_from_file_location("many_functions", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["many_functions"] = module
    spec.loader.exec_module(module)
    return [getattr(module, f"tool_{n}") for n in range(count)]
