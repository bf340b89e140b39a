"""Which tools have the same signature, and which parameters of two of them mean the same.

Candidates for a merge are found by a key, never by a scan: the key of a tool holds the types of
its parameters, whatever their names and order, and the type of its result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.definition import Signature, ToolDefinition

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


class SignatureIndex:
    """Names of tools by ``signature_key``. Immutable; ``with_definitions`` gives a new one.

    Args:
        definitions: What to index.
    """

    __slots__ = ("_by_key", "_keys")

    def __init__(self, definitions: Iterable[ToolDefinition] = ()) -> None:
        self._by_key: dict[str, tuple[str, ...]] = {}
        self._keys: dict[str, str] = {}
        gathered: dict[str, list[str]] = {}
        for definition in definitions:
            key = self._keys[definition.name] = signature_key(definition.signature)
            gathered.setdefault(key, []).append(definition.name)
        self._by_key = {key: tuple(names) for key, names in gathered.items()}

    def matching(self, signature: Signature) -> tuple[str, ...]:
        """Names of the tools of that signature, in the order in which they came."""
        return self._by_key.get(signature_key(signature), ())

    def with_definitions(self, definitions: Iterable[ToolDefinition]) -> SignatureIndex:
        """An index that also holds ``definitions``; one of the same name is replaced."""
        changed = SignatureIndex()
        changed._by_key, changed._keys = dict(self._by_key), dict(self._keys)
        for definition in definitions:
            changed._put(definition.name, signature_key(definition.signature))
        return changed

    def _put(self, name: str, key: str) -> None:
        earlier = self._keys.get(name)
        if earlier == key:
            return
        if earlier is not None:
            self._by_key[earlier] = tuple(n for n in self._by_key[earlier] if n != name)
        self._keys[name] = key
        self._by_key[key] = (*self._by_key.get(key, ()), name)


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
