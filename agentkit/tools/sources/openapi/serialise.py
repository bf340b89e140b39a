"""Values as OpenAPI writes them into paths, queries, headers and cookies.

The styles are those of RFC 6570, as OpenAPI refers to them (3.1.1, appendix C), and three of
OpenAPI's own. Where we differ from RFC 6570: with ``allowReserved`` the characters ``#``, ``&``,
``+``, ``[`` and ``]`` are encoded all the same, since they would end or split the query (so
OpenAPI 3.1.1 asks), and ``null`` is left out of lists and objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from agentkit.tools.sources.openapi.plan import Style

_RESERVED = ":/?!$'()*,;=@"
_SEPARATORS: Mapping[str, str] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_MAX_DEPTH = 16


def scalar_text(value: Any) -> str:
    """A value as text: numbers and booleans as JSON writes them, what is nested as JSON.

    Example:
        >>> scalar_text(True), scalar_text(2.0), scalar_text({"a": [1]})
        ('true', '2.0', '{"a":[1]}')
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encoded(value: Any, *, allow_reserved: bool = False) -> str:
    """A value as text, percent-encoded for a URL."""
    return quote(scalar_text(value), safe=_RESERVED if allow_reserved else "")


def path_text(name: str, value: Any, *, style: Style, explode: bool) -> str:
    """What stands in place of a placeholder of a path.

    Example:
        >>> path_text("id", [3, 4], style="simple", explode=False)
        '3,4'
        >>> path_text("id", {"a": 1}, style="matrix", explode=True)
        ';a=1'
    """
    if style == "matrix":
        return _matrix(name, value, explode=explode)
    items = _items(value, explode=explode, assign="=")
    if style == "label":
        return "." + ("." if explode else ",").join(items) if items else ""
    return ",".join(items)


def _matrix(name: str, value: Any, *, explode: bool) -> str:
    key = encoded(name)
    if isinstance(value, Mapping) and explode:
        return "".join(f";{pair}" for pair in _items(value, explode=True, assign="=", bare=True))
    if isinstance(value, list) and explode:
        return "".join(_assigned(f";{key}", item) for item in _items(value, explode=True))
    items = _items(value, explode=False)
    return _assigned(f";{key}", ",".join(items)) if items else ""


def _assigned(key: str, text: str) -> str:
    return f"{key}={text}" if text else key


def _items(value: Any, *, explode: bool, assign: str = "=", bare: bool = False) -> list[str]:
    """The encoded parts of a value, to be joined.

    Args:
        value: Any JSON value; null is no part.
        explode: Whether an object's names and values are joined by ``assign``.
        assign: What joins them.
        bare: Whether an empty value leaves its name alone.
    """
    if isinstance(value, Mapping):
        pairs = [(encoded(k), encoded(v)) for k, v in value.items() if v is not None]
        if explode:
            return [k if bare and not v else f"{k}{assign}{v}" for k, v in pairs]
        return [part for pair in pairs for part in pair]
    if isinstance(value, list):
        return [encoded(item) for item in value if item is not None]
    return [] if value is None else [encoded(value)]


def query_pairs(
    name: str, value: Any, *, style: Style, explode: bool, allow_reserved: bool = False
) -> Iterator[tuple[str, str]]:
    """Names and values for a query or a form, both percent-encoded.

    Example:
        >>> list(query_pairs("id", [3, 4], style="form", explode=True))
        [('id', '3'), ('id', '4')]
        >>> list(query_pairs("filter", {"age": {"min": 3}}, style="deepObject", explode=True))
        [('filter%5Bage%5D%5Bmin%5D', '3')]
    """
    if style == "deepObject" and isinstance(value, Mapping | list):
        yield from _deep(encoded(name), value, allow_reserved, 0)
        return
    if isinstance(value, Mapping):
        pairs = [(k, v) for k, v in value.items() if v is not None]
        if explode:
            yield from ((encoded(k), encoded(v, allow_reserved=allow_reserved)) for k, v in pairs)
            return
        parts = [part for pair in pairs for part in pair]
    elif isinstance(value, list):
        parts = [item for item in value if item is not None]
        if explode:
            yield from (
                (encoded(name), encoded(item, allow_reserved=allow_reserved)) for item in parts
            )
            return
    else:
        parts = [] if value is None else [value]
    if parts:
        separator = _SEPARATORS.get(style, ",")
        yield (
            encoded(name),
            separator.join(encoded(part, allow_reserved=allow_reserved) for part in parts),
        )


def _deep(name: str, value: Any, allow_reserved: bool, depth: int) -> Iterator[tuple[str, str]]:  # noqa: FBT001 - handed on, never written by a caller
    """``a[b][0]=c``. OpenAPI defines one level of an object; most servers read on like this."""
    if depth < _MAX_DEPTH and isinstance(value, Mapping | list) and value:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            inside = f"{name}%5B{quote(str(key), safe='')}%5D"
            yield from _deep(inside, item, allow_reserved, depth + 1)
    elif value is not None and value not in ({}, []):
        yield name, encoded(value, allow_reserved=allow_reserved)


def header_text(value: Any, *, explode: bool) -> str:
    """A header's value. Nothing is percent-encoded there (OpenAPI 3.1.1, 4.8.12.2).

    Example:
        >>> header_text({"a": 1, "b": 2}, explode=True), header_text(["x", "y"], explode=False)
        ('a=1,b=2', 'x,y')
    """
    if isinstance(value, Mapping):
        pairs = [(k, scalar_text(v)) for k, v in value.items() if v is not None]
        return ",".join(f"{k}={v}" if explode else f"{k},{v}" for k, v in pairs)
    if isinstance(value, list):
        return ",".join(scalar_text(item) for item in value if item is not None)
    return "" if value is None else scalar_text(value)
