"""The base URL that calls go to: chosen by the caller, never by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from agentkit.errors import UsageError

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_UNSAID = ({"url": "/"},)
"""What OpenAPI has a document mean that lists no server: the host that it came from."""


def chosen_server(
    servers: object, *, server: str | int | None, variables: Mapping[str, str], reference: str
) -> str:
    """The base URL among the servers of a document or an operation.

    Args:
        servers: The list as written; absent or empty, it is the host that the document came from.
        server: A URL of the caller's own, or the index in the list; None takes the first.
        variables: Values of the URL's variables; the others take their defaults.
        reference: URL that the document came from, which relative URLs start from.

    Returns:
        The URL without a slash at its end; empty when the document names no absolute one.

    Raises:
        UsageError: The caller's choice is not possible.
    """
    if isinstance(server, str):
        return _checked(server)
    entries = (servers if isinstance(servers, list) else None) or _UNSAID
    listed = [entry for entry in entries if isinstance(entry, Mapping)]
    index = server or 0
    if server is not None and not 0 <= index < len(listed):
        urls = [str(entry.get("url")) for entry in listed]
        raise UsageError(f"there is no server {index}; the document has {len(listed)}: {urls}")
    if not listed:
        return ""
    url = _filled(listed[index], variables)
    try:
        if reference.lower().startswith(("http://", "https://")):
            url = urljoin(reference, url)
        is_absolute = urlsplit(url).scheme != ""
    except ValueError as error:
        raise _no_url(url, error) from error
    return _checked(url) if is_absolute else ""


def _filled(entry: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    known = entry.get("variables")
    declared: Mapping[str, Any] = known if isinstance(known, Mapping) else {}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        given = declared.get(name)
        rule: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        chosen = variables.get(name, rule.get("default"))
        if chosen is None:
            raise UsageError(
                f"the server {entry.get('url')} needs a value for {name!r}; "
                "give it among the server variables, or give the server's whole URL"
            )
        members = rule.get("enum")
        if isinstance(members, list) and members and chosen not in members:
            raise UsageError(f"the server variable {name!r} is one of {members}, not {chosen!r}")
        return str(chosen)

    return _VARIABLE.sub(value, str(entry.get("url", "")))


def same_origin(left: str, right: str) -> bool:
    """Whether credentials may travel on: scheme, host and port are equal, or only became secure.

    Raises:
        ValueError: One of them is no URL.

    Example:
        >>> same_origin("http://a.example/x", "https://a.example/y")
        True
        >>> same_origin("https://a.example", "http://a.example")
        False
    """
    one, other = urlsplit(left), urlsplit(right)
    if one.hostname != other.hostname:
        return False
    if (one.scheme, one.port) == ("http", None) and (other.scheme, other.port) == ("https", None):
        return True
    ports: Mapping[str, int] = {"http": 80, "https": 443}
    return one.scheme == other.scheme and (one.port or ports.get(one.scheme)) == (
        other.port or ports.get(other.scheme)
    )


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _no_url(url, error) from error
    # Parsers of URLs differ in what they make of these: the one that sends must see what we saw.
    is_plain = url.isprintable() and not any(mark in url for mark in " \\")
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname or not is_plain:
        raise _no_url(url)
    if parts.username or parts.password:
        raise UsageError(
            f"the server {parts.hostname} is given with user and password in its URL; "
            "give them as credentials, so that they are not kept"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"the server {url!r:.200} has a query or a fragment; give the base URL")
    return url.rstrip("/")


def _no_url(url: str, error: ValueError | None = None) -> UsageError:
    told = "" if error is None else f" ({error})"
    return UsageError(
        f"the server {url!r:.200} is no http or https URL{told}; give one such as https://api.example.com"
    )
