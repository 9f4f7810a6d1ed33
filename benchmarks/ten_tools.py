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
    amount: float = Field(ge=0, description="In units, not in cents.")
    currency: Currency = Currency.EUR


class Address(BaseModel):
    street: str = Field(min_length=2, max_length=80)
    city: str
    zip: str = Field(pattern="^[0-9A-Z -]{3,10}$")
    country: str = Field(min_length=2, max_length=3)


class Person(BaseModel):
    name: str = Field(min_length=1)
    email: str
    address: Address | None = None


class OrderLine(BaseModel):
    sku: str = Field(min_length=4, max_length=20)
    quantity: int = Field(ge=1, le=500)
    note: str | None = Field(default=None, max_length=200)


class Window(BaseModel):
    start: date
    end: date = Field(description="Last day, inclusive.")


class Filter(BaseModel):
    field: str
    op: Literal["eq", "ne", "lt", "gt", "in"]
    value: str | list[str]


class Edit(BaseModel):
    old: str = Field(min_length=1)
    new: str


class Reminder(BaseModel):
    minutes: int = Field(ge=5, le=10080)
    channel: Literal["mail", "push", "sms"] = "push"


class Series(BaseModel):
    label: str
    values: list[float] = Field(min_length=1, max_length=365, description="One value a day.")


def search_catalog(query: str, filters: list[Filter] | None = None, limit: int = 20) -> str:
    """Search the catalogue of articles.

    Args:
        query: Words to look for.
        filters: Conditions on them.
        limit: How many articles to return at most.
    """
    return ""


def place_order(
    customer: Person, lines: list[OrderLine], ship_to: Address | None = None, express: bool = False
) -> str:
    """Place an order for a customer.

    Args:
        customer: Who orders and pays.
        lines: What is ordered.
        ship_to: Where to send it.
        express: Deliver on the next working day.
    """
    return ""


def refund(
    order_id: str, amount: Money, reason: Literal["damaged", "late", "other"], fee: Money | None = None
) -> str:
    """Pay back all or part of an order.

    Args:
        order_id: Number of the order.
        amount: How much to pay back.
        reason: Why it is paid back.
        fee: What is kept back.
    """
    return ""


def edit_file(path: str, edits: list[Edit], create: bool = False) -> str:
    """Replace parts of a text file.

    Args:
        path: Path of the file inside the workspace.
        edits: Replacements in their order.
        create: Make the file if there is none.
    """
    return ""


def schedule_meeting(
    title: str,
    when: date,
    host: Person,
    people: list[Person],
    reminders: list[Reminder] | None = None,
) -> str:
    """Put a meeting into the calendar.

    Args:
        title: Its subject.
        when: The day of the (first) meeting.
        host: Who invites.
        people: Who is invited.
        reminders: How they are reminded.
    """
    return ""


def send_mail(
    to: list[str],
    subject: str,
    body: str,
    attachments: list[str] | None = None,
) -> str:
    """Send an e-mail in the name of the user.

    Args:
        to: Addresses.
        subject: The subject line.
        body: The text as Markdown.
        attachments: Paths of files to send with it.
    """
    return ""


def query_table(table: str, columns: list[str], where: list[Filter] | None = None) -> str:
    """Read rows of a table of the sales database.

    Args:
        table: Name of the table.
        columns: Names of the columns to return.
        where: Conditions on them.
    """
    return ""


def draw_chart(
    title: str,
    series: list[Series],
    kind: Literal["line", "bar", "pie"] = "line",
    span: Window | None = None,
    compare: Window | None = None,
) -> str:
    """Draw a chart and return the path of the picture.

    Args:
        title: Its heading.
        series: What is drawn.
        kind: How it is drawn.
        span: Which days are shown.
        compare: Days to compare them with.
    """
    return ""


def get_stock(sku: str) -> str:
    """Say how many pieces of an article are in stock.

    Args:
        sku: Article number from search_catalog.
    """
    return ""


def update_customer(customer_id: int, person: Person) -> str:
    """Change what is known of a customer.

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
