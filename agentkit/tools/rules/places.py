"""Where in a schema, and where in arguments, the parameter of a rule is.

A rule names its parameter as ``Description.parameters`` does: ``city``, ``address.city``,
``items[].sku``. The path is read along the schema, through references and alternatives, since a
name may itself hold a dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.references import resolve_local

Step: TypeAlias = str | None
"""The name of a property, or None for every item of a list."""

Steps: TypeAlias = tuple[Step, ...]

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_MAX_VIEWS = 200
_MAX_PARTS = 5_000


def places(schema: JsonObject, parameter: str) -> dict[Steps, list[Any]]:
    """What a path leads to: the steps down, and the parts of the schema found there.

    There is usually one way and one part: several parts when alternatives of ``anyOf`` each
    describe the parameter, several ways when a name with a dot makes the path ambiguous, and none
    when the schema does not name such a parameter.

    Example:
        >>> line = {"type": "object", "properties": {"sku": {"type": "string"}}}
        >>> order = {"properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Line"}}}}
        >>> places({**order, "$defs": {"Line": line}}, "items[].sku")
        {('items', None, 'sku'): [{'type': 'string'}]}
    """
    found: dict[Steps, list[Any]] = {}
    for steps, part in _Search(schema).named(schema, parameter, ()):
        found.setdefault(steps, []).append(part)
    return found


class _Search:
    """Follows one path through one schema; alternatives that multiply are followed so far only."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MAX_PARTS

    def named(self, part: Any, path: str, above: Steps) -> Iterator[tuple[Steps, Any]]:
        for view in self._views(part):
            properties = view.get("properties")
            for name, below in properties.items() if isinstance(properties, Mapping) else ():
                if path.startswith(name) and name:
                    yield from self._below(below, path[len(name) :], (*above, name))

    def _below(self, part: Any, rest: str, steps: Steps) -> Iterator[tuple[Steps, Any]]:
        if not rest:
            yield steps, part
        elif rest.startswith("."):
            yield from self.named(part, rest[1:], steps)
        elif rest.startswith("[]"):
            for view in self._views(part):
                if "items" in view and "prefixItems" not in view:
                    yield from self._below(view["items"], rest[2:], (*steps, None))

    def _views(self, part: Any) -> Iterator[JsonObject]:
        for view in views_of(part, self._root):
            self._left -= 1
            if self._left < 0:
                return
            yield view


def views_of(part: Any, root: JsonObject) -> Iterator[JsonObject]:
    """A schema and what its references and combinations bring in beside it."""
    waiting, seen, left = [part], set[str](), _MAX_VIEWS
    while waiting and left:
        left -= 1
        view = waiting.pop(0)
        if not isinstance(view, Mapping):
            continue
        yield view
        reference = view.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            waiting.append(resolve_local(root, reference))
        for keyword in _COMBINATORS:
            branches = view.get(keyword)
            waiting.extend(branches if isinstance(branches, list | tuple) else ())


def values_at(
    arguments: Any, steps: Steps, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The values that arguments give at a place, each with its own path; none when left out.

    Example:
        >>> list(values_at({"items": [{"sku": "A"}, {}]}, ("items", None, "sku")))
        [(('items', 0, 'sku'), 'A')]
    """
    if not steps:
        yield path, arguments
    elif steps[0] is None:
        for at, item in enumerate(arguments if isinstance(arguments, list | tuple) else ()):
            yield from values_at(item, steps[1:], (*path, at))
    elif isinstance(arguments, Mapping) and steps[0] in arguments:
        yield from values_at(arguments[steps[0]], steps[1:], (*path, steps[0]))
