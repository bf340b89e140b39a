"""What the contract and the learned rules say about parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agentkit.evolution.validation.texts import mapping, rules_of, sequence
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import resolve_local

_LIMITS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems",
)  # fmt: skip
_OF_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_DEEPEST = 16
_MOST_PARTS = 500
_MOST_PARAMETERS = 2_000
"""References multiply parameters at every level; those beyond this many are not looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterFacts:
    """One parameter of a tool.

    Attributes:
        path: Dotted path.
        types: JSON types that it takes; empty when nothing is said.
        values: What the enum and the rules allow; empty when they say nothing.
        numbers: Every number that schema and rules state about it.
        limits: Those of them that are limits or allowed values, and no mere default.
        default: What is taken when a call does not give it; None for nothing.
        minimum: Smallest number that it takes; None for no bound.
        maximum: Largest number that it takes; None for no bound.
        is_counted: Whether something bounds its length or its number of items.
        is_formed: Whether a format or pattern says how it is written.
        pattern: The regular expression that its text must match; empty for none.
        required: Whether a call must give it, as far as the object that holds it goes.
    """

    path: str
    types: frozenset[str] = frozenset()
    values: tuple[Any, ...] = ()
    numbers: frozenset[float] = frozenset()
    limits: frozenset[float] = frozenset()
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    is_counted: bool = False
    is_formed: bool = False
    pattern: str = ""
    required: bool = False

    def takes(self, number: float) -> bool:
        """Whether a number lies within the bounds."""
        above = self.minimum is None or number >= self.minimum
        return above and (self.maximum is None or number <= self.maximum)


def facts_of(contract: ToolDefinition, learned: ToolDefinition) -> Mapping[str, ParameterFacts]:
    """The parameters of a tool by dotted path, in declared order.

    Args:
        contract: Whose schema holds.
        learned: Whose rules hold.
    """
    schema = contract.signature.parameters
    rules = _by_parameter(learned)
    return {
        path: _facts(path, part, required=required, rules=rules.get(path, ()))
        for path, part, required in islice(_parts(schema, schema, "", 0), _MOST_PARAMETERS)
    }


def _parts(schema: Any, root: JsonObject, path: str, depth: int) -> Iterator[tuple[str, Any, bool]]:
    schema = _resolved(schema, root)
    if depth > _DEEPEST:
        return
    required = sequence(schema.get("required"))
    for name, part in mapping(schema.get("properties")).items():
        below = f"{path}.{name}" if path else str(name)
        schema_below = _resolved(part, root)
        yield below, schema_below, name in required
        yield from _parts(schema_below, root, below, depth + 1)
    items = schema.get("items")
    if path and isinstance(items, Mapping):
        part = _resolved(items, root)
        yield f"{path}[]", part, False
        yield from _parts(part, root, f"{path}[]", depth + 1)


def limits_of(schema: Any) -> frozenset[float]:
    """Every number that a schema states as a limit, however deep."""
    found: list[Any] = []
    waiting = [schema]
    for _ in range(_MOST_PARTS):
        if not waiting:
            break
        part = waiting.pop()
        found += [part.get(word) for word in _LIMITS] if isinstance(part, Mapping) else []
        waiting.extend(mapping(part).values() or sequence(part))
    return frozenset(_numbers(found))


def _resolved(part: Any, root: JsonObject) -> Mapping[str, Any]:
    reference = mapping(part).get("$ref")
    if isinstance(reference, str):
        target = resolve_local(root, reference)
        return mapping(target)
    return mapping(part)


def _by_parameter(definition: ToolDefinition) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for rule in rules_of(definition):
        if isinstance(path := getattr(rule, "parameter", None), str):
            found.setdefault(path, []).append(rule)
    return found


def _facts(path: str, part: Mapping[str, Any], *, required: bool, rules: Any) -> ParameterFacts:
    branches = [
        part,
        *(mapping(one) for word in ("anyOf", "oneOf", "allOf") for one in sequence(part.get(word))),
    ]
    types = {kind for one in branches for kind in _types(one)}
    values = [value for one in branches for value in _values(one)]
    limits = [one.get(word) for one in branches for word in _LIMITS]
    lows = [one.get(word) for one in branches for word in ("minimum", "exclusiveMinimum")]
    highs = [one.get(word) for one in branches for word in ("maximum", "exclusiveMaximum")]
    is_counted = any(word in one for one in branches for word in _OF_COUNTS) or any(
        getattr(rule, "measure", "value") != "value" for rule in rules
    )
    for rule in rules:
        values.extend(sequence(getattr(rule, "values", ())))
        lowest = [getattr(rule, word, None) for word in ("minimum", "exclusive_minimum")]
        highest = [getattr(rule, word, None) for word in ("maximum", "exclusive_maximum")]
        limits += [*lowest, *highest, getattr(rule, "multiple_of", None)]
        if getattr(rule, "measure", "value") == "value":
            lows += lowest
            highs += highest
    return ParameterFacts(
        path=path,
        types=frozenset(types),
        values=tuple(values),
        numbers=frozenset(_numbers([*limits, *values, part.get("default")])),
        limits=frozenset(_numbers([*limits, *values])),
        default=part.get("default"),
        minimum=max(_numbers(lows), default=None) if len(branches) == 1 else None,
        maximum=min(_numbers(highs), default=None) if len(branches) == 1 else None,
        is_counted=is_counted,
        is_formed=any(one.get("pattern") or one.get("format") for one in branches),
        pattern=next(
            (one["pattern"] for one in branches if isinstance(one.get("pattern"), str)), ""
        ),
        required=required,
    )


def _types(part: Mapping[str, Any]) -> list[str]:
    kind = part.get("type")
    return (
        [kind] if isinstance(kind, str) else [one for one in sequence(kind) if isinstance(one, str)]
    )


def _values(part: Mapping[str, Any]) -> list[Any]:
    return [*sequence(part.get("enum")), *([part["const"]] if "const" in part else [])]


def _numbers(values: Any) -> list[float]:
    """The finite numbers among values; those too large for a float are left out."""
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    ]
