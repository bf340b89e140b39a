"""Names that models, providers and composites accept, from names that HTTP accepts."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container

MAX_TOOL_NAME = 64
"""Longest name that every provider takes."""

_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_WORD = re.compile(r"_+|[A-Z]*[^A-Z_]+_*|[A-Z]+_*")


def identifier(text: str, *, fallback: str = "value") -> str:
    """A text as an identifier: what a composite can write before ``=`` or call.

    Example:
        >>> identifier("X-Request-ID"), identifier("filter[status]"), identifier("from")
        ('X_Request_ID', 'filter_status', 'from_')
    """
    made = _OTHER.sub("_", text).strip("_") or fallback
    if made[0].isdigit():
        made = f"_{made}"
    return f"{made}_" if keyword.iskeyword(made) else made


def tool_name(operation_id: object, method: str, path: str, *, prefix: str = "") -> str:
    """The name of an operation's tool: its id, or its method and path.

    Example:
        >>> tool_name("issues/list-for-repo", "get", "/repos/{owner}/issues")
        'issues_list_for_repo'
        >>> tool_name(None, "get", "/pets/{petId}", prefix="shop_")
        'shop_get_pets_petId'
    """
    given = operation_id if isinstance(operation_id, str) else ""
    if not _OTHER.sub("", given).strip("_"):
        given = f"{method.lower()}/{path}"
    return shortened(identifier(f"{prefix}{given}", fallback=method.lower()))


def shortened(name: str, *, longest: int = MAX_TOOL_NAME) -> str:
    """A name without as many words of its middle as do not fit.

    Its start tells what is done to what, its end what tells it from its siblings.

    Example:
        >>> shortened("get_metrics_load_balancer_network_bytes", longest=30)
        'get_metrics_load_network_bytes'
    """
    words = _WORD.findall(name)
    while sum(map(len, words)) > longest and len(words) > 2:
        del words[len(words) // 2]
    return "".join(words)[:longest]


def free_name(wanted: str, taken: Container[str], *, longest: int = MAX_TOOL_NAME) -> str:
    """``wanted`` if it is free, else the first free one of ``wanted__2``, ``wanted__3``, ...

    Example:
        >>> free_name("list", {"list"}), free_name("a" * 64, {"a" * 64})[-4:]
        ('list__2', 'a__2')
    """
    name, number = wanted, 2
    while name in taken:
        suffix = f"__{number}"
        name, number = f"{wanted[: longest - len(suffix)]}{suffix}", number + 1
    return name
