"""When two tools have the same signature, and which parameters of them mean the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.definition import Signature

_WORDS_ONLY = frozenset({"title", "description", "examples", "default", "$comment", "deprecated"})
"""Keywords of JSON Schema that constrain nothing."""

_NAME_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose keys are names rather than keywords."""


def type_key(schema: Any) -> str:
    """A text that is the same for schemas that allow the same by the same keywords.

    Example:
        >>> type_key({"type": "number", "description": "How much."}) == type_key({"type": "number"})
        True
    """
    return json.dumps(_bare(schema), sort_keys=True, separators=(",", ":"), default=str)


def signature_key(signature: Signature) -> str:
    """A text that is the same for signatures equal up to names and order of their parameters."""
    types = sorted(parameter_keys(signature).values())
    return "|".join([*types, "->", type_key(signature.result)])


def parameter_keys(signature: Signature) -> dict[str, str]:
    """For each parameter its type, whether it may be left out, and what it is then."""
    required, shared = set(signature.required), _definitions(signature.parameters)
    return {
        name: _optional(schema, is_required=name in required) + type_key(schema) + shared
        for name, schema in signature.properties.items()
    }


def mappings(candidate: Signature, known: Signature, *, most: int) -> Iterator[Mapping[str, str]]:
    """Ways to read the parameters of one tool as those of another, the likely ones first.

    Equal names are tried before others, then the declared order.

    Args:
        candidate: The one whose parameters are mapped.
        known: The one they are mapped to; of the same ``signature_key``.
        most: How many ways to give at most.
    """
    wanted, offered = parameter_keys(candidate), parameter_keys(known)
    names = sorted(wanted, key=lambda name: offered.get(name) != wanted[name])  # sure ones first
    return islice(_bijections(names, wanted, offered), most)


def _bijections(
    names: Sequence[str], wanted: Mapping[str, str], offered: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    if not names:
        yield {}
        return
    name, *others = names
    fitting = [target for target, key in offered.items() if key == wanted[name]]
    for target in sorted(fitting, key=lambda target: target != name):
        left = {other: key for other, key in offered.items() if other != target}
        for rest in _bijections(others, wanted, left):
            yield {name: target, **rest}


def renamed(arguments: JsonObject, mapping: Mapping[str, str]) -> dict[str, Any]:
    """Arguments under the names of the other tool."""
    return {mapping.get(name, name): value for name, value in arguments.items()}


def forced_mapping(
    candidate: Signature, known: Signature, pairs: Mapping[str, str]
) -> dict[str, str] | None:
    """The one way to read parameters as those of another tool that holds ``pairs``.

    Parameters outside of ``pairs`` are those that no program speaks of: any of their type will do.

    Returns:
        The way; None when the types of a pair differ, or no way is left.
    """
    wanted, offered = parameter_keys(candidate), parameter_keys(known)
    if any(wanted.get(ours) != offered.get(theirs, "") for ours, theirs in pairs.items()):
        return None
    left = [name for name in wanted if name not in pairs]
    free = {name: key for name, key in offered.items() if name not in set(pairs.values())}
    rest = next(_bijections(left, wanted, free), None)
    return None if rest is None or len(left) != len(free) else {**pairs, **rest}


def _bare(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            word: {name: _bare(part) for name, part in value.items()}
            if word in _NAME_MAPS and isinstance(value, Mapping)
            else _bare(value)
            for word, value in schema.items()
            if word not in _WORDS_ONLY
        }
    if isinstance(schema, list | tuple):
        return [_bare(part) for part in schema]
    return schema


def _optional(schema: JsonObject, *, is_required: bool) -> str:
    if is_required or not isinstance(schema, Mapping):
        return ""
    return f"?{json.dumps(schema.get('default'), sort_keys=True, default=str)}:"


def _definitions(parameters: JsonObject) -> str:
    """What local references point to is part of each type."""
    shared = {word: parameters[word] for word in ("$defs", "definitions") if word in parameters}
    return type_key(shared) if shared else ""
