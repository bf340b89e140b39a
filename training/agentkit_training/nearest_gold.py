"""The right calls that come nearest to those that were made, where values may be chosen.

Where gold lists allowed values (BFCL), a model that chose another right one than the first must not
be told that it is wrong: neither by a reward that compares with exact values, nor as difficulty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.evaluation import GoldCall
from agentkit.evaluation.expectations import AllowedCalls
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics import (
    AllowedCall,
    GoldCalls,
    call_similarity,
    optimal_assignment,
    texts_agree,
)
from agentkit.tools.definition import ToolDefinition


def nearest_gold(
    expected: AllowedCalls,
    calls: Sequence[ToolCall],
    known: Mapping[str, ToolDefinition],
    *,
    plain: Sequence[GoldCall],
    corrects_optional: bool = False,
) -> tuple[GoldCall, ...]:
    """Each gold call with the values of the call that it is matched with, wherever these are right.

    Calls and gold calls are matched so that their similarities add up to the most, so that the
    order of parallel calls does not matter.

    Args:
        expected: All that is right.
        calls: What was called, in the names of ``known``.
        known: The tools by name.
        plain: The choice where a call is wrong, or was not made: one for each gold call.
        corrects_optional: Whether an argument that need not be there, and has a wrong value, is
            there with a right one (its name is right, which ToolDNA counts), or is left out, which
            is nearer where a wrong value counts twice (ToolACE-R, Eq. 2).

    Raises:
        UsageError: A gold call names no known tool, or lists no values for an argument.
    """

    def wrong_in(gold: AllowedCall, call: ToolCall) -> frozenset[str]:
        """The arguments of a call that gold does not allow, or misses."""
        definitions = [known[gold.name]] if gold.name in known else []
        found = GoldCalls([gold], definitions, language=expected.language).match([call])
        return frozenset(m.argument for one in found.unmatched for m in one.mismatches)

    chosen = [
        [_towards(first, one, call, wrong_in, mends=corrects_optional) for call in calls]
        for first, one in zip(plain, expected.calls, strict=True)
    ]
    weights = [
        [call_similarity(one, call, known) for one, call in zip(row, calls, strict=True)]
        for row in chosen
    ]
    nearest = list(plain)
    for row, column in optimal_assignment(weights) if calls else ():
        nearest[row] = chosen[row][column]
    return tuple(nearest)


def options_of(allowed: Any) -> list[Any]:
    """The values that an argument may have; ``""`` says that it may be left out, and is none.

    Example:
        >>> options_of(["Monday", "Mon", ""]), options_of("Monday")
        (['Monday', 'Mon'], ['Monday'])
    """
    listed = allowed if isinstance(allowed, list | tuple) else [allowed]
    return [concrete(one) for one in listed if one != ""]


def concrete(allowed: Any) -> Any:
    """A value that an allowed one describes: in an object, the first option of each key."""
    if isinstance(allowed, Mapping):
        listed = {k: v if isinstance(v, list | tuple) else [v] for k, v in allowed.items()}
        options = {key: [one for one in value if one != ""] for key, value in listed.items()}
        return {
            key: options[key][0] if options[key] else ""
            for key, value in listed.items()
            if options[key] and "" not in value
        }
    if isinstance(allowed, list | tuple):
        return [concrete(one) for one in allowed]
    return allowed


def _towards(
    plain: GoldCall,
    allowed: AllowedCall,
    call: ToolCall,
    wrong_in: Callable[[AllowedCall, ToolCall], frozenset[str]],
    *,
    mends: bool,
) -> GoldCall:
    """The gold call with the values of ``call`` wherever these are allowed."""
    if call.name != allowed.name or call.malformed is not None:
        return plain
    wrong = wrong_in(allowed, call)
    arguments: dict[str, Any] = {}
    for name, values in allowed.allowed.items():
        own = _only(plain.arguments, name)
        if name not in wrong:
            own = _only(call.arguments, name)
        elif name in call.arguments and (own or mends):
            options = options_of(values) or [""]
            own = {name: _agreeing(options, call.arguments[name], own.get(name, options[0]))}
        arguments.update(own)
    return replace(plain, arguments=arguments)


def _agreeing(values: Sequence[Any], given: Any, first: Any) -> Any:
    """A text that says what the given one does, though not to the letter; else the first choice."""
    if isinstance(given, str):
        for value in values:
            if isinstance(value, str) and texts_agree(given, value):
                return value
    return first


def _only(arguments: JsonObject, name: str) -> JsonObject:
    return {name: arguments[name]} if name in arguments else {}
