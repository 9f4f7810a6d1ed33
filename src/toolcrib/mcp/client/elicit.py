"""What a server asks the person: read from an `elicitation/create` request, and answered in the protocol's words.

A server is a stranger. What it writes is shown as its words, under the name that the user gave the server, with
invisible characters spelled out. A form that asks for a credential by the name of its field is refused: such things are
entered on a page of their own, which the URL form of elicitation is for. An address is shown whole and with its host,
and nothing opens it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from toolcrib.credentials import CAMEL, foreign_credential, is_credential
from toolcrib.dataclass import replace
from toolcrib.forms import FormField, read_form
from toolcrib.look_alikes import as_it_looks
from toolcrib.question import Answer, InputRequest
from toolcrib.visible import escape_invisible, on_one_line, spelled_out

__all__ = ["CannotAsk", "input_request", "response_to"]

MAX_MESSAGE = 4_000  # characters of a server's message
MAX_LABEL = 300  # of a title, a description, an option
MAX_URL = 2_000
YES, NO = "Yes", "No"
VISITED = "I have opened it"
NOT_VISITED = "I do not open it"
AUTHORITY = re.compile(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?"
)  # no user, nothing that is decoded later
ABOUT_CREDENTIALS = re.compile(
    r"pass[ -]?word|pass[ -]?phrase|passcode|api[ _-]?key|secret[ _-]?key|private[ _-]?key|access[ _-]?token|"
    r"recovery (code|phrase)|seed phrase|mnemonic|one-time (code|password)|"
    r"(verification|security|login|authentication) code|credit card|card number|"
    r"\b(cvv|cvc|pin|pw|otp|totp|2fa|mfa|secret|token)\b",
    re.IGNORECASE,
)


class CannotAsk(Exception):
    """A request that is not put to the person; the message says why, for the model and the person."""


def input_request(server: str, params: Mapping[str, Any], *, credentials: bool = False) -> InputRequest:
    """What the person is asked. Raises CannotAsk for what is refused, and ValueError for what is no elicitation.

    Args:
        server: The name of the server in the user's configuration, not the one that it gives itself.
        params: The params of an `elicitation/create` request, as JSON data.
        credentials: Whether forms may ask for credentials.
    """
    message = params.get("message")
    if not isinstance(message, str):
        raise ValueError("an elicitation needs a message")
    text = escape_invisible(message[:MAX_MESSAGE]).strip() or "(The server says nothing.)"
    if params.get("mode") == "url":
        return _about_url(server, text, params.get("url"))
    written = read_form(params.get("requestedSchema") or {})
    typed = [field for field in written if field.kind in ("text", "number", "integer")]
    asked = [field for field in typed if _is_credential(field.name) or _is_credential(field.title)]
    if asked and not credentials:
        named = ", ".join(repr(on_one_line(field.name, 60)) for field in asked)
        raise CannotAsk(f"the server {server!r} asked the user to type a credential into a form ({named})")
    words = " ".join([message, *(f"{field.label} {field.description}" for field in written)])
    suspicious = _speaks_of(words) if typed else ""
    warning = f"; it speaks of {suspicious!r}: do not type a credential here" if suspicious else ""
    reason = f"the MCP server {server!r} asks, not toolcrib and not the model{warning}"
    options = () if written else (YES, NO)
    form = tuple(map(_safe, written))
    return InputRequest(text, options, form=form, source=server, reason=reason)


def response_to(request: InputRequest, answer: Answer | None) -> dict[str, Any]:
    """The result of an elicitation, as JSON data, for the person's answer; None: nobody decided."""
    if answer is None:
        return {"action": "cancel"}
    if request.form:
        accepted = answer.allows and answer.values is not None
    else:
        accepted = answer.allows and answer.chosen == request.options[:1]
    if not accepted:
        return {"action": "decline"}
    if request.url:
        return {"action": "accept"}
    return {"action": "accept", "content": (answer.values or {}) if request.form else {}}


def _about_url(server: str, text: str, url: Any) -> InputRequest:
    if (
        not isinstance(url, str)
        or not url.isascii()
        or len(url) > MAX_URL
        or spelled_out(url) != url
        or " " in url
    ):
        raise CannotAsk(f"the server {server!r} gave an address with characters that an address may not have")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise CannotAsk(f"the server {server!r} gave an address that cannot be read") from None
    allowed = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))
    if not allowed or not host:
        raise CannotAsk(f"the server {server!r} gave an address that is not https")
    if not AUTHORITY.fullmatch(parts.netloc) or "\\" in url:
        raise CannotAsk(f"the server {server!r} gave an address that hides its host")
    odd = " (a name with letters of another alphabet)" if "xn--" in host else ""
    reason = f"the MCP server {server!r} asks you to open a page of {host}{odd}; toolcrib does not open it"
    return InputRequest(text, (VISITED, NOT_VISITED), source=server, url=url, reason=reason)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _speaks_of(words: str) -> str:
    """The first credential that a text speaks of, or "". It counts how the text looks, not how it is spelled."""
    looks = as_it_looks(words)
    found = ABOUT_CREDENTIALS.search(" ".join([looks, CAMEL.sub(" ", looks)]))
    return found[0].lower() if found else foreign_credential(words)


def _is_credential(name: str) -> bool:
    """Whether a name says that its value is a credential, as it is spelled or as it looks."""
    return is_credential(name) or is_credential(as_it_looks(name))


def _safe(field: FormField) -> FormField:
    """A field whose words can be shown; its name and its values stay, because the server reads them."""
    options = tuple((value, on_one_line(label, MAX_LABEL)) for value, label in field.options)
    title = on_one_line(field.title or field.name, MAX_LABEL)
    return replace(field, title=title, description=on_one_line(field.description, MAX_LABEL), options=options)
