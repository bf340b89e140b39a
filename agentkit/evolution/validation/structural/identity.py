"""What a tool is, beside its parameters: name, program, conditions, origin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.fit import same_json


def _origin(definition: ToolDefinition) -> list[Any]:
    origin = definition.origin
    return [origin.kind, origin.reference, origin.original, origin.original_name, origin.licence]


_KEPT: tuple[tuple[str, str, Callable[[ToolDefinition], Any]], ...] = (
    ("name_changed", "name", lambda tool: tool.name),
    (
        "children_changed",
        "signature.children",
        lambda tool: [[c.name, c.digest] for c in tool.signature.children],
    ),
    ("body_changed", "body", lambda tool: tool.body),
    ("conditions_changed", "specification.pre", lambda tool: list(tool.specification.pre)),
    ("conditions_changed", "specification.post", lambda tool: list(tool.specification.post)),
    ("origin_changed", "origin", _origin),
)


def identity_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """Name, children, program, pre- and postconditions and origin.

    A new program is a new composite and goes through InsertTool; a new condition is a rule.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(identity_kept(rewrite("weather_now", {"rule": "Cities in English."})))
        []
        >>> [found.code for found in identity_kept(rewrite("weather_now", {"/name": "weather"}))]
        ['name_changed']
    """
    for code, field, part in _KEPT:
        before, after = part(change.base), part(change.candidate)
        if not same_json(before, after):
            yield FailedCheck(
                code=code,
                layer="structural",
                field=field,
                message=f"it was {before!r:.60} and would be {after!r:.60}",
                advice="leave it as it is; a proposal changes words, examples and rules",
            )


def something_changed(change: ProposedChange) -> Iterator[FailedCheck]:
    """A proposal that changes nothing.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(something_changed(rewrite("weather_now", {"rule": "Cities in English."})))
        []
        >>> [found.code for found in something_changed(rewrite("weather_now", {}))]
        ['no_change']
    """
    base, candidate = change.base, change.candidate
    if base is candidate or (
        base == candidate and same_json(_ends(base), _ends(candidate)) and not change.edits
    ):
        yield FailedCheck(
            code="no_change",
            layer="structural",
            message="the candidate is the definition as it is",
            advice="propose nothing when nothing should change",
        )


def _ends(definition: ToolDefinition) -> list[Any]:
    """The examples as JSON: ``==`` takes 1 and True for the same."""
    return [[example.arguments, example.result] for example in definition.examples]
