"""Ten tools with nested models, descriptions and constraints, whose definitions are counted in tokens."""

from datetime import date
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field


class Currency(StrEnum):
    EUR = "EUR"
    USD = "USD"
    CNY = "CNY"


class Money(BaseModel):
    amount: float = Field(ge=0, description="Amount in units of the currency, not in cents.")
    currency: Currency = Currency.EUR


class Address(BaseModel):
    street: str = Field(min_length=2, max_length=80, description="Street and house number.")
    city: str
    zip: str = Field(pattern="^[0-9A-Z -]{3,10}$", description="Postal code as written in that country.")
    country: str = Field(min_length=2, max_length=3, description="ISO 3166 code of the country.")


class Person(BaseModel):
    name: str = Field(min_length=1, description="Full name.")
    email: str = Field(description="Where we can write to them.")
    address: Address | None = None


class OrderLine(BaseModel):
    sku: str = Field(min_length=4, max_length=20, description="Article number from search_catalog.")
    quantity: int = Field(ge=1, le=500, description="How many pieces.")
    note: str | None = Field(
        default=None, max_length=200, description="Wish of the customer for this article."
    )


class Window(BaseModel):
    start: date = Field(description="First day, inclusive.")
    end: date = Field(description="Last day, inclusive.")


class Filter(BaseModel):
    field: str = Field(description="Name of the column.")
    op: Literal["eq", "ne", "lt", "gt", "in"]
    value: str | list[str]


class Edit(BaseModel):
    old: str = Field(min_length=1, description="Text to find; it must occur exactly once.")
    new: str = Field(description="Text that takes its place.")


class Reminder(BaseModel):
    minutes: int = Field(ge=5, le=10080, description="How long before the beginning.")
    channel: Literal["mail", "push", "sms"] = "push"


class Series(BaseModel):
    label: str
    values: list[float] = Field(min_length=1, max_length=365, description="One value a day.")


async def search_catalog(query: str, filters: list[Filter] | None = None, limit: int = 20) -> str:
    """Search the catalogue of articles and return the best matches with their article numbers.

    Args:
        query: Words to look for, in any language.
        filters: Conditions that all have to be met.
        limit: How many articles to return at most.
    """
    return ""


async def place_order(customer: Person, lines: list[OrderLine], express: bool = False) -> str:
    """Place an order for a customer. Use it only after the customer has agreed to the total.

    Args:
        customer: Who orders and pays.
        lines: What is ordered, one entry an article.
        express: Deliver on the next working day.
    """
    return ""


async def refund(
    order_id: str, amount: Money, reason: Literal["damaged", "late", "other"], note: str = ""
) -> str:
    """Pay back all or part of an order.

    Args:
        order_id: Number of the order, such as "A-2041".
        amount: How much to pay back.
        reason: Why it is paid back.
        note: What the customer said, in one sentence.
    """
    return ""


async def edit_file(path: str, edits: list[Edit], create: bool = False) -> str:
    """Replace parts of a text file. All edits are applied, or none of them.

    Args:
        path: Path of the file inside the workspace.
        edits: Replacements, applied one after the other.
        create: Make the file if there is none.
    """
    return ""


async def schedule_meeting(
    title: str,
    when: date,
    people: list[Person],
    reminders: list[Reminder] | None = None,
) -> str:
    """Put a meeting into the calendar and invite people to it.

    Args:
        title: What the meeting is about.
        when: The day of the (first) meeting.
        people: Who is invited.
        reminders: When and how everybody is reminded.
    """
    return ""


async def send_mail(
    to: list[str],
    subject: str,
    body: str,
    attachments: list[str] | None = None,
    priority: Literal["low", "normal", "high"] = "normal",
) -> str:
    """Send an e-mail in the name of the user.

    Args:
        to: Addresses of those who get it.
        subject: The subject line.
        body: The text as Markdown.
        attachments: Paths of files to send with it.
        priority: How urgent it is.
    """
    return ""


async def query_table(
    table: str, columns: list[str], where: list[Filter] | None = None, order_by: str | None = None
) -> str:
    """Read rows of a table of the sales database.

    Args:
        table: Name of the table.
        columns: Names of the columns to return.
        where: Conditions that all have to be met.
        order_by: Column by which the rows are sorted.
    """
    return ""


async def draw_chart(
    title: str,
    series: list[Series],
    kind: Literal["line", "bar", "pie"] = "line",
    span: Window | None = None,
) -> str:
    """Draw a chart and return the path of the picture.

    Args:
        title: What stands above the chart.
        series: What is drawn, one colour each.
        kind: How it is drawn.
        span: Which days are shown; all of them when left out.
    """
    return ""


async def get_stock(sku: str, warehouse: Literal["north", "south"] | None = None) -> str:
    """Say how many pieces of an article are in stock.

    Args:
        sku: Article number from search_catalog.
        warehouse: Only this warehouse.
    """
    return ""


async def update_customer(customer_id: int, person: Person) -> str:
    """Change what is known of a customer. Fields that are left out stay as they are.

    Args:
        customer_id: Number of the customer.
        person: The new facts.
    """
    return ""


TOOLS: list[Any] = [
    search_catalog,
    place_order,
    refund,
    edit_file,
    schedule_meeting,
    send_mail,
    query_table,
    draw_chart,
    get_stock,
    update_customer,
]

MODELS: list[type[BaseModel]] = [*(Money, Address, Person, OrderLine, Window, Filter, Edit, Reminder, Series)]
