"""The contract: parameters, result, effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.sameness import DEEPEST, same, shown_value

_CODES: Mapping[str, str] = {
    "type": "type_changed",
    "enum": "enum_changed",
    "const": "enum_changed",
    "default": "default_changed",
    "required": "required_changed",
    **dict.fromkeys(
        (
            "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
            "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
            "minProperties", "maxProperties", "pattern", "format",
        ),
        "bounds_changed",
    ),
}  # fmt: skip
_ADVICE = (
    "leave the contract as it is; state a narrower range or list as a rule, and the rest in words"
)


def contract_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """Parameters, their types, enums, defaults and bounds, and what is required.

    Every difference is told with its place. Keywords beyond those with a code of their own, such as
    a ``description`` smuggled into the contract, are ``schema_changed``.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(contract_kept(rewrite("weather_forecast", {"parameters.days": "1 to 7 days."})))
        []
        >>> maximum = "/signature/parameters/properties/days/maximum"
        >>> wider = rewrite("weather_forecast", {maximum: 90})
        >>> [str(found) for found in contract_kept(wider)]
        ['[bounds_changed] in signature.parameters.days: maximum was 7 and would be 90']
    """
    before, after = change.base.signature.parameters, change.candidate.signature.parameters
    yield from _differences("signature.parameters", before, after, 0)


def result_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """The schema of the result.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(result_kept(rewrite("weather_now", {"rule": "Degrees have one decimal place."})))
        []
        >>> other = rewrite("weather_now", {"/signature/result": {"type": "string"}})
        >>> [found.code for found in result_kept(other)]
        ['result_changed']
    """
    before, after = change.base.signature.result, change.candidate.signature.result
    if not same(before, after):
        yield _changed("result_changed", "signature.result", "the result schema", before, after)


def effects_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """What running the tool does: declared effects stand whatever a text says.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(effects_kept(rewrite("calendar_cancel_event", {"rule": "Ask before it."})))
        []
        >>> tame = rewrite("calendar_cancel_event", {"/signature/effects/destructive": False})
        >>> [found.code for found in effects_kept(tame)]
        ['effects_changed']
    """
    before, after = change.base.signature.effects, change.candidate.signature.effects
    if before != after:
        yield _changed(
            "effects_changed", "signature.effects", "what running it does", before, after
        )


def _differences(path: str, before: Any, after: Any, depth: int) -> Iterator[FailedCheck]:
    if before is after or same(before, after):
        return
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)) or depth > DEEPEST:
        yield _changed("schema_changed", path, "the schema", before, after)
        return
    for keyword in dict.fromkeys((*before, *after)):
        had, has = before.get(keyword), after.get(keyword)
        if (keyword in before) == (keyword in after) and same(had, has):
            continue
        if keyword == "properties" and isinstance(had, Mapping) and isinstance(has, Mapping):
            yield from _parameters(path, had, has, depth)
        elif isinstance(had, Mapping) and isinstance(has, Mapping):
            below = f"{path}[]" if keyword == "items" else f"{path}.{keyword}"
            yield from _differences(below, had, has, depth + 1)
        else:
            code = (
                "parameters_changed"
                if keyword == "properties"
                else _CODES.get(str(keyword), "schema_changed")
            )
            yield _changed(code, path, str(keyword), had, has)


def _parameters(
    path: str, had: Mapping[str, Any], has: Mapping[str, Any], depth: int
) -> Iterator[FailedCheck]:
    for name in [name for name in had if name not in has]:
        yield _parameter(path, f"the parameter {name!r:.60} is gone")
    for name in [name for name in has if name not in had]:
        yield _parameter(path, f"there is no parameter {name!r:.60}")
    for name, schema in had.items():
        if name in has:
            yield from _differences(f"{path}.{name}", schema, has[name], depth + 1)


def _parameter(path: str, message: str) -> FailedCheck:
    return FailedCheck(
        code="parameters_changed", layer="structural", field=path, message=message, advice=_ADVICE
    )


def _changed(code: str, field: str, what: str, before: Any, after: Any) -> FailedCheck:
    return FailedCheck(
        code=code,
        layer="structural",
        field=field,
        message=f"{what} was {shown_value(before)} and would be {shown_value(after)}",
        advice=_ADVICE,
    )
