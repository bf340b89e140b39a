"""What would repair the definitions, and a null: ceiling and floor of experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from agentkit.library import Library
from agentkit.tools.definition import Specification, ToolDefinition
from agentkit.tools.rules import Rule, rule_sentence
from agentkit_training.tasks.hidden_constraints.tools import LOOKUPS, TOOLS, World

Repair: TypeAlias = Literal["fixed", "words", "rules"]
"""Which texts the tools have: as they are, with the demand unsaid; with the demand as a sentence;
with the demand as a learned rule, which also narrows the schema."""


def oracle_rules(tool: str, world: World = "first") -> tuple[Rule, ...]:
    """The learned rules that state what a tool demands; none for a lookup.

    Example:
        >>> oracle_rules("request_loan", "swapped")
        (OneOf(parameter='term', values=(12, 16, 20), kind='one_of'),)
    """
    return (TOOLS[tool].demands[world].rule,) if tool in TOOLS else ()


def library_of(
    repair: Repair, world: World = "first", *, names: Iterable[str] | None = None
) -> Library:
    """The tools of the family under other texts, to be given to ``evaluate`` or ``collect``.

    Args:
        repair: Which texts.
        world: Whose demands they state.
        names: The tools; None for all.
    """
    wanted = list(TOOLS) + list(LOOKUPS) if names is None else list(names)
    return Library([_repaired(name, repair, world) for name in wanted])


def _repaired(name: str, repair: Repair, world: World) -> ToolDefinition:
    definition = LOOKUPS[name] if name in LOOKUPS else TOOLS[name].definition
    rules = oracle_rules(name, world)
    if repair == "rules":
        return replace(definition, specification=Specification(rules=rules))
    if repair == "words":
        sentences = tuple(map(rule_sentence, rules))
        described = replace(definition.description, usage_rules=sentences)
        return replace(definition, description=described)
    return definition
