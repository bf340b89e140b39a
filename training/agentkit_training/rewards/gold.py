"""The gold calls that an answer is compared with: which of what is allowed comes nearest to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentkit.evaluation.expectations import (
    AllowedCalls,
    ExactCalls,
    Expectation,
    GoldCall,
    NoCall,
)
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics import AllowedCall, CallLike, GoldCalls, UnmatchedCall, texts_agree
from agentkit.tools.definition import ToolDefinition


def gold_calls(
    expects: Sequence[Expectation],
    calls: Sequence[ToolCall],
    known: Mapping[str, ToolDefinition],
) -> tuple[CallLike, ...] | None:
    """The gold calls of one user turn, for metrics that compare with exact values.

    Where a gold call lists allowed values (BFCL), a call that matches it by BFCL's own rules is the
    gold call; of any other, each argument has the value that the nearest call gave where that is
    allowed, and the first allowed one where it is not.

    Args:
        expects: What a right answer is.
        calls: The calls that were made.
        known: The tools by name.

    Returns:
        The calls; empty where none may be made, None where something else than calls is judged.
    """
    if len(expects) != 1:
        return None
    match expects[0]:
        case ExactCalls(calls=gold):
            return gold
        case NoCall():
            return ()
        case AllowedCalls() as allowed:
            return _nearest_allowed(allowed, calls, known)
        case _:
            return None


def _nearest_allowed(
    allowed: AllowedCalls, calls: Sequence[ToolCall], known: Mapping[str, ToolDefinition]
) -> tuple[CallLike, ...]:
    named = {gold.name for gold in allowed.calls}
    definitions = [known[name] for name in named if name in known]
    result = GoldCalls(allowed.calls, definitions, language=allowed.language).match(calls)
    matched = dict(result.pairs)
    others = {one.expected: one for one in result.unmatched}
    return tuple(
        calls[matched[at]] if at in matched else _instance(gold, others.get(at), calls)
        for at, gold in enumerate(allowed.calls)
    )


def _instance(
    gold: AllowedCall, unmatched: UnmatchedCall | None, calls: Sequence[ToolCall]
) -> GoldCall:
    """The gold call with one value for each argument."""
    given: JsonObject = {}
    wrong: set[str] = set()
    if unmatched is not None and unmatched.nearest is not None:
        nearest = calls[unmatched.nearest]
        given = nearest.arguments if nearest.name == gold.name else {}
        wrong = {mismatch.argument for mismatch in unmatched.mismatches}
    arguments: dict[str, Any] = {}
    for name, options in gold.allowed.items():
        if name in given and name not in wrong:
            arguments[name] = given[name]
        elif name in given or not _is_optional(options):
            arguments[name] = _choice(_values(options), given.get(name))
    return GoldCall(name=gold.name, arguments=arguments)


def _is_optional(options: Any) -> bool:
    return isinstance(options, list | tuple) and "" in options


def _values(options: Any) -> list[Any]:
    """The values among the options; ``""`` says that there may be none."""
    if not isinstance(options, list | tuple):
        return [options]
    return [one for one in options if one != ""] or [""]


def _choice(values: Iterable[Any], given: Any) -> Any:
    """A text that agrees with the given one, else the first value."""
    concrete = [_concrete(value) for value in values]
    if isinstance(given, str):
        for value in concrete:
            if isinstance(value, str) and texts_agree(given, value):
                return value
    return concrete[0]


def _concrete(value: Any) -> Any:
    """An allowed value without the options that BFCL lists again inside objects."""
    if isinstance(value, Mapping):
        return {key: _concrete(_values(options)[0]) for key, options in value.items()}
    if isinstance(value, list | tuple):
        return [_concrete(item) if isinstance(item, Mapping) else item for item in value]
    return value
