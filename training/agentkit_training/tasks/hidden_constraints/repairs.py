"""What would repair the definitions and what would not: ceiling and null of experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import Specification, ToolDefinition
from agentkit.tools.rules import Between, Form, OneOf, Rule, rule_sentence
from agentkit_training.tasks.hidden_constraints.catalogue import TOOLS
from agentkit_training.tasks.hidden_constraints.hidden_tool import HiddenTool, World
from agentkit_training.tasks.hidden_constraints.lookups import LOOKUPS

Repair: TypeAlias = Literal["fixed", "words", "rules", "text", "shuffled_words", "shuffled_rules"]
"""Which texts the tools have:

* ``fixed``: as they are, with the demand unsaid;
* ``words``: with the demand as a sentence after the summary;
* ``rules``: with the demand as a learned rule, which also narrows the schema;
* ``text``: with the demand in the parameter's own text, and a few words with their values;
* ``shuffled_words``, ``shuffled_rules``: as above, with the demand of another tool.
"""

_MOST_PAIRS = 6


def oracle_rules(tool: str, world: World = "first") -> tuple[Rule, ...]:
    """The learned rules that state what a tool demands; none for a lookup.

    Example:
        >>> oracle_rules("request_loan", "swapped")
        (OneOf(parameter='term', values=(12, 16, 20), kind='one_of'),)
    """
    return (TOOLS[tool].demands[world].rule,) if tool in TOOLS else ()


def shuffled_rules(tool: str, world: World = "first") -> tuple[Rule, ...]:
    """The demand of another tool, at the place of this one's own: the null of an experiment.

    Only a rule about one value can be moved to another parameter, and only to one of the same JSON
    type, as any other would refuse every call. Tools of other kinds get none.
    """
    own = _value_rule(tool, world)
    if own is None:
        return ()
    alike = [name for name in TOOLS if _value_type(name, world) == _value_type(tool, world)]
    other = _value_rule(_next(tool, alike), world)
    assert other is not None  # those without a value rule have no value type
    return (replace(other, parameter=own.parameter),)


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
    if name in LOOKUPS:
        return LOOKUPS[name]
    return _REPAIRS[repair](TOOLS[name], world)


def _with_words(definition: ToolDefinition, rules: Iterable[Rule]) -> ToolDefinition:
    sentences = tuple(map(rule_sentence, rules))
    return replace(definition, description=replace(definition.description, usage_rules=sentences))


def _with_rules(definition: ToolDefinition, rules: Iterable[Rule]) -> ToolDefinition:
    return replace(definition, specification=Specification(rules=tuple(rules)))


def _with_text(tool: HiddenTool, world: World) -> ToolDefinition:
    """The demand and how words become values, in the text of the parameter."""
    rule = tool.demands[world].rule
    if not isinstance(rule, OneOf | Between | Form):
        return _with_words(tool.definition, [rule])
    texts = dict(tool.definition.description.parameters)
    texts[rule.parameter] += f" {_explained(tool, rule, world)}"
    return replace(
        tool.definition, description=replace(tool.definition.description, parameters=texts)
    )


def _explained(tool: HiddenTool, rule: OneOf | Between | Form, world: World) -> str:
    if isinstance(rule, Form):
        return f"Write {rule.words}, such as {rule.example}."
    (slot,) = (slot for slot in tool.slots if slot.name == rule.parameter)
    pairs = [f"{one.gold[world][rule.parameter]} for {one.words}" for one in slot.fillings]
    unit = f"In {rule.unit}: " if isinstance(rule, Between) else "Write "
    return f"{unit}{', '.join(pairs[:_MOST_PAIRS])}."


def _next(name: str, names: list[str]) -> str:
    return names[(names.index(name) + 1) % len(names)]


def _value_rule(name: str, world: World) -> OneOf | Between | Form | None:
    rule = TOOLS[name].demands[world].rule
    return rule if isinstance(rule, OneOf | Between | Form) else None


def _value_type(name: str, world: World) -> object:
    rule = _value_rule(name, world)
    schema: JsonObject = TOOLS[name].definition.signature.properties
    return None if rule is None else schema[rule.parameter]["type"]


_REPAIRS: dict[Repair, Callable[[HiddenTool, World], ToolDefinition]] = {
    "fixed": lambda tool, _world: tool.definition,
    "words": lambda tool, world: _with_words(tool.definition, oracle_rules(tool.name, world)),
    "rules": lambda tool, world: _with_rules(tool.definition, oracle_rules(tool.name, world)),
    "text": _with_text,
    "shuffled_words": lambda tool, world: _with_words(
        tool.definition, oracle_rules(_next(tool.name, list(TOOLS)), world)
    ),
    "shuffled_rules": lambda tool, world: _with_rules(
        tool.definition, shuffled_rules(tool.name, world)
    ),
}
