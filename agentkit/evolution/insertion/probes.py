"""Arguments to try a pure tool with: values of its worked calls, and the edges of its types."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.canonical import json_key, same_json
from agentkit.tools.definition import Signature
from agentkit.tools.fit import fits
from agentkit.tools.formats import FORMATS

_SCALARS: Mapping[str, Sequence[Any]] = {
    "integer": (0, 1, -1, 2, 7, 100),
    "number": (0, 1, -1, 2.5, -0.5, 100),
    "string": ("", "a", "Ab c", "0"),
    "boolean": (True, False),
    "null": (None,),
}
_MOST_VALUES = 12
_DEEPEST = 4


def probes(
    signature: Signature, calls: Sequence[JsonObject], *, count: int
) -> Iterator[dict[str, Any]]:
    """Arguments that fit the parameters, the same ones each time.

    Every value that one of ``calls`` gives a parameter, and then the edges of its type (zero,
    one, a negative number, the empty text or list, each member of an enum), come up as soon as
    there are enough probes; the parameters advance at different paces, so that values meet in
    ever new combinations.

    Args:
        signature: Whose parameters to fill; optional ones are filled as well.
        calls: Arguments of worked calls, under the names of the signature.
        count: How many to give; fewer when the values do not make so many.
    """
    if count <= 0:
        return
    pools = {name: _pool(name, schema, calls) for name, schema in signature.properties.items()}
    if not all(pools.values()):
        return
    seen = [dict(arguments) for arguments in calls]
    for turn in range(count * 2 if pools else 0):
        arguments = {
            name: pool[_at(turn, number, len(pool))]
            for number, (name, pool) in enumerate(pools.items())
        }
        if any(same_json(arguments, earlier) for earlier in seen):
            continue
        seen.append(arguments)
        if fits(arguments, signature.parameters) is not False:
            yield arguments
            count -= 1
        if not count:
            return


def _at(turn: int, number: int, size: int) -> int:
    """Each pool is walked through in turn; a later round is shifted against the other pools."""
    return (turn + number * (1 + turn // size)) % size


def _pool(name: str, schema: Any, calls: Sequence[JsonObject]) -> list[Any]:
    given = (arguments[name] for arguments in calls if name in arguments)
    pool: dict[Hashable, Any] = {}
    for value in (*given, *_edges(schema, 0)):
        pool.setdefault(json_key(value), value)
    return [*pool.values()][:_MOST_VALUES]


def _edges(schema: Any, depth: int) -> Sequence[Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ()
    if "enum" in schema:
        return tuple(schema["enum"])
    if "const" in schema:
        return (schema["const"],)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return [value for branch in branches for value in _edges(branch, depth + 1)]
    kinds = schema.get("type", ())
    named = [kinds] if isinstance(kinds, str) else kinds
    values = [value for kind in named for value in _of_type(kind, schema, depth)]
    return [value for value in values if fits(value, schema) is not False]


def _of_type(kind: str, schema: JsonObject, depth: int) -> Sequence[Any]:
    if kind == "array":
        items = list(_edges(schema.get("items"), depth + 1))
        return ([], items[:1], items[1:4], [*items[:1], *items[:1]]) if items else ([],)
    if kind == "object":
        return _objects(schema, depth)
    if kind == "string" and schema.get("format", "") not in {"", *FORMATS}:
        return ()  # made of a language that we can not guess
    bounds = [schema[word] for word in ("minimum", "maximum") if word in schema]
    return (*_SCALARS.get(kind, ()), *bounds)


def _objects(schema: JsonObject, depth: int) -> Sequence[Any]:
    parts = {name: _edges(part, depth + 1) for name, part in schema.get("properties", {}).items()}
    filled = {name: values for name, values in parts.items() if values}
    most = max(map(len, filled.values()), default=0)
    return [
        {name: values[turn % len(values)] for name, values in filled.items()}
        for turn in range(min(most, 3))
    ] or [{}]
