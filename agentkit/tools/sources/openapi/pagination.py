"""Paging recognised by the names that APIs use for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.tools.references import resolve_local
from agentkit.tools.sources.openapi.plan import Parameter

_CURSORS = (
    "cursor",
    "page_token",
    "next_token",
    "continuation_token",
    "starting_after",
    "after",
    "marker",
    "start_cursor",
)
_NUMBERS = ("page", "page_number", "offset", "skip", "start_index")
_SIZES = ("per_page", "page_size", "limit", "max_results", "page_limit", "count", "size", "top")
_NEXT = (
    "next_cursor",
    "next_page_token",
    "next_token",
    "continuation_token",
    "end_cursor",
    "next_page",
    "next",
)
_HOLDERS = ("meta", "pagination", "paging", "links", "response_metadata", "page_info", "_links")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pagination:
    """How an operation hands out its results in pages.

    Attributes:
        parameter: The argument that chooses the page: a cursor, an offset or a number.
        is_cursor: Whether it takes what an earlier answer gave, not a number to count up.
        size_parameter: The argument that says how much a page holds; None if there is none.
        next_field: The dotted path in the result of what ``parameter`` is next; None if unknown.
    """

    parameter: str
    is_cursor: bool = False
    size_parameter: str | None = None
    next_field: str | None = None

    @property
    def rule(self) -> str:
        """What a model has to know."""
        if self.next_field:
            told = f"pass the `{self.next_field}` of an answer as `{self.parameter}`"
        elif self.is_cursor:
            told = f"pass as `{self.parameter}` what an answer names as the place to go on from"
        else:
            told = f"raise `{self.parameter}`"
        size = (
            f"; `{self.size_parameter}` sets how much a page holds" if self.size_parameter else ""
        )
        return f"Results come in pages: {told} to get the next one{size}."


def read_pagination(
    parameters: Sequence[Parameter], result: Mapping[str, Any] | None
) -> Pagination | None:
    """How an operation pages, as far as its names tell; None when it does not.

    Args:
        parameters: Its parameters; those of the query count.
        result: The schema of its result.
    """
    by_name = {_plain(each.name): each.argument for each in parameters if each.location == "query"}
    cursor = _first(_CURSORS, by_name)
    parameter = cursor or _first(_NUMBERS, by_name)
    if parameter is None:
        return None
    return Pagination(
        parameter=parameter,
        is_cursor=cursor is not None,
        size_parameter=_first(_SIZES, by_name),
        next_field=_next_field(result) if cursor else None,
    )


def _plain(name: str) -> str:
    """``pageToken``, ``page-token`` and ``page[token]`` as ``page_token``."""
    spaced = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    spaced = "".join(char if char.isalnum() else "_" for char in spaced)
    return "_".join(part for part in spaced.split("_") if part)


def _first(names: Sequence[str], by_name: Mapping[str, str]) -> str | None:
    return next((by_name[name] for name in names if name in by_name), None)


def _next_field(result: Mapping[str, Any] | None) -> str | None:
    if result is None:
        return None
    fields = _properties(result, result)
    for holder, part in [("", None), *((name, fields[name]) for name in fields)]:
        inside = fields if part is None else _properties(part, result)
        if part is not None and _plain(holder) not in _HOLDERS:
            continue
        by_name = {_plain(name): name for name in inside}
        found = _first(_NEXT, by_name)
        if found:
            return f"{holder}.{found}" if holder else found
    return None


def _properties(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        schema = resolve_local(root, schema["$ref"])
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}
