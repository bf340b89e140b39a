"""What a tool costs in a prompt, by field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.evaluation.doctor.parts import Part, parts
from agentkit.retrieval.cards import schema_text
from agentkit.retrieval.tokens import TokenCounter
from agentkit.tools.definition import ToolDefinition

FIELDS = (
    "name",
    "description",
    "parameter names",
    "parameter texts",
    "allowed values",
    "nested schema",
    "structure",
)
"""Where the tokens of a schema go.

``nested schema`` is everything below a parameter that is an object or a list of objects, texts
left out; ``structure`` is the rest: types, required names, defaults, braces.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weight:
    """The prompt tokens of one tool's full schema.

    Attributes:
        tool: Its name.
        tokens: All of them.
        by_field: The same by field, in the order of ``FIELDS``; they add up to ``tokens``.
    """

    tool: str
    tokens: int
    by_field: tuple[int, ...]


def weigh(definition: ToolDefinition, count_tokens: TokenCounter) -> Weight:
    """What offering a tool costs, and which field costs how much of it.

    The whole is what ``count_tokens`` says of the schema as it is sent; it is shared out by the
    bytes of each field, so that the fields add up whatever the counter.

    Example:
        >>> from agentkit.retrieval.tokens import estimate_tokens
        >>> time = ToolDefinition.from_schema("get_time", "The time in a city.", {})
        >>> weight = weigh(time, estimate_tokens)
        >>> weight.tokens == sum(weight.by_field), weight.by_field[:2]
        (True, (2, 5))
    """
    text = schema_text(definition)
    total = count_tokens(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    bytes_by_field = _bytes(definition)
    bytes_by_field["structure"] = size - sum(bytes_by_field.values())
    shares = _shared(total, [bytes_by_field[field] for field in FIELDS])
    return Weight(tool=definition.name, tokens=total, by_field=shares)


def added_up(weights: Iterable[Weight]) -> Mapping[str, int]:
    """Tokens by field over all tools."""
    columns = zip(*(weight.by_field for weight in weights), strict=True)
    return dict(zip(FIELDS, map(sum, columns), strict=False)) or dict.fromkeys(FIELDS, 0)


def _bytes(definition: ToolDefinition) -> dict[str, int]:
    found = dict.fromkeys(FIELDS, 0)
    found["name"] = _size(definition.name)
    found["description"] = _size(definition.text)
    for part in parts(definition.parameters_schema):
        _add(found, part)
    return found


def _add(found: dict[str, int], part: Part) -> None:
    is_nested = part.depth > 1 or part.role == "definition"
    if part.name:
        found["nested schema" if is_nested else "parameter names"] += _size(part.name)
    for key, value in part.own.items():
        if key == "description":
            found["parameter texts"] += _size(value)
        elif key in {"enum", "const"}:
            found["allowed values"] += _size(value)
        elif is_nested:
            found["nested schema"] += _size(value) + _size(key)


def _size(value: Any) -> int:
    """Bytes of a value in JSON, without the quotes of a string."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    size = len(text.encode("utf-8", "surrogatepass"))
    return size - 2 if isinstance(value, str) else size


def _shared(total: int, shares: list[int]) -> tuple[int, ...]:
    """``total`` in whole numbers by ``shares``: the largest remainders get what is left."""
    whole = sum(shares) or 1
    exact = [total * share / whole for share in shares]
    floors = [int(part) for part in exact]
    order = sorted(range(len(shares)), key=lambda at: (floors[at] - exact[at], at))
    for at in order[: total - sum(floors)]:
        floors[at] += 1
    return tuple(floors)
