"""References in schemas, resolved in place for formats that do not have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.messages import JsonObject

MOST_SCHEMAS = 5_000
"""Schemas that resolving may make of one; definitions that refer to each other can grow without
bound."""


class RecursiveReference(Exception):  # noqa: N818 - a way out of the walk, never seen by callers
    """A schema refers to itself, or to nothing that is there."""


def resolved(schema: JsonObject, root: JsonObject, path: tuple[str, ...]) -> dict[str, Any]:
    """A schema without a reference at its top; what stands beside the reference wins.

    Args:
        schema: One that may hold ``$ref``.
        root: What local references point into.
        path: References that were followed on the way here.

    Raises:
        RecursiveReference: It was followed before, or leads nowhere.
    """
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return dict(schema)
    if reference in path:
        raise RecursiveReference(reference)
    target = _target(reference, root)
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**resolved(target, root, (*path, reference)), **beside}


def followed(schema: JsonObject, root: JsonObject, path: tuple[str, ...]) -> tuple[str, ...]:
    """The references on the way into a schema, with those at its own top."""
    reference = schema.get("$ref")
    while isinstance(reference, str) and reference not in path:
        path = (*path, reference)
        reference = _target(reference, root).get("$ref")
    return path


def _target(reference: str, root: JsonObject) -> JsonObject:
    if not reference.startswith("#"):
        raise RecursiveReference(reference)
    place: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, Mapping) or key not in place:
            raise RecursiveReference(reference)
        place = place[key]
    if not isinstance(place, Mapping):
        raise RecursiveReference(reference)
    return place
