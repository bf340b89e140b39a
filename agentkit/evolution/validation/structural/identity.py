"""What a tool is, beside its parameters: name, program, conditions, origin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.sameness import same, shown_value
from agentkit.evolution.validation.texts import rules_of, sequence
from agentkit.tools.definition import ToolDefinition


def _origin(definition: ToolDefinition) -> list[Any]:
    origin = definition.origin
    return [origin.kind, origin.reference, origin.original, origin.original_name, origin.licence]


_KEPT: tuple[tuple[str, str, Callable[[ToolDefinition], Any]], ...] = (
    ("name_changed", "name", lambda tool: tool.name),
    (
        "children_changed",
        "signature.children",
        lambda tool: [[c.name, c.digest] for c in sequence(tool.signature.children)],
    ),
    ("body_changed", "body", lambda tool: tool.body),
    ("conditions_changed", "specification.pre", lambda tool: tool.specification.pre),
    ("conditions_changed", "specification.post", lambda tool: tool.specification.post),
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
        if not same(before, after):
            yield FailedCheck(
                code=code,
                layer="structural",
                field=field,
                message=f"it was {shown_value(before)} and would be {shown_value(after)}",
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
    if same(_content(change.base), _content(change.candidate)):
        yield FailedCheck(
            code="no_change",
            layer="structural",
            message="the candidate is the definition as it is",
            advice="propose nothing when nothing should change",
        )


def _content(definition: ToolDefinition) -> list[Any]:
    """Everything that the digest covers."""
    words, conditions = definition.description, definition.specification
    signature = definition.signature
    return [
        definition.name,
        [signature.parameters, signature.result, signature.effects.to_json()],
        [[child.name, child.digest] for child in sequence(signature.children)],
        [words.summary, words.tags, words.parameters, words.usage_rules],
        [conditions.pre, conditions.post, conditions.text, conditions.complexity],
        rules_of(definition),
        [
            [
                getattr(example, name, example)
                for name in ("arguments", "result", "query", "is_whole")
            ]
            for example in sequence(definition.examples)
        ],
        definition.body,
    ]
