"""Hidden constraints: what the executor demands, what the definition says, what is right."""

from __future__ import annotations

import re

import pytest

from agentkit.composites import rule_problems
from agentkit.tools.rules import rule_sentence
from agentkit.tools.validation import ArgumentValidator
from agentkit_training.tasks.hidden_constraints.family import (
    ALL_KINDS,
    REFUSED,
    HiddenWorld,
    gold_calls,
    hidden_constraints,
    oracle_rules,
    tool_of,
)
from agentkit_training.tasks.hidden_constraints.tools import (
    LOOKUPS,
    TOOLS,
    WORLDS,
    looked_up,
)

EVERY = {world: hidden_constraints(world, kinds=ALL_KINDS) for world in WORLDS}
TASKS = [(world, task) for world in WORLDS for _, part in EVERY[world] for task in part.tasks]
OTHER_GOLD = {
    (other, task.request): gold_calls(task)[-1].arguments
    for world, other in zip(WORLDS, reversed(WORLDS), strict=True)
    for _, part in EVERY[world]
    for task in part.tasks
}


def broken_by(world, task):
    """Calls that differ from the gold call in the one field that the demand is about."""
    tool, gold = tool_of(task), gold_calls(task)[-1].arguments
    demand = tool.demands[world]
    if tool.kind == "requires":
        return [{name: value for name, value in gold.items() if name not in demand.others}]
    name = getattr(demand, "parameter", "room")
    wrong = [OTHER_GOLD[world, task.request][name]]
    if tool.definition.signature.properties[name]["type"] == "integer":
        wrong += [0, -1, 3, 7]
    elif tool.kind != "condition":
        wrong += ["the usual", "Ann Lee"]
    return [{**gold, name: value} for value in wrong]


def test_gold_calls_are_taken_and_each_violation_of_the_field_is_refused():
    """The executor takes all gold calls, and none that breaks its demand in one field."""
    for world, task in TASKS:
        one = HiddenWorld([*TOOLS, *LOOKUPS], world)
        tools = {tool.name: tool for tool in one.tools()}
        *before, last = gold_calls(task)
        for call in before:
            tools[call.name](**call.arguments)
        assert one.refusal(last.name, last.arguments) == "", task
        for arguments in broken_by(world, task):
            assert one.refusal(last.name, arguments).startswith(REFUSED), (task, arguments)


def test_gold_calls_fit_the_contract():
    """What is refused is refused for the hidden demand, never for the schema that is told."""
    for _, task in TASKS:
        for call in gold_calls(task):
            known = TOOLS[call.name].definition if call.name in TOOLS else LOOKUPS[call.name]
            assert ArgumentValidator(known).runnable(call.arguments) == call.arguments


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", TOOLS)
def test_definitions_do_not_tell_the_demand(name, world):
    """No value, unit, form or other tool of the demand stands in the definition's texts."""
    tool = TOOLS[name]
    texts = [tool.definition.text, *tool.definition.description.parameters.values()]
    words = set(re.findall(r"\w+", " ".join(texts).casefold()))
    demand = tool.demands[world]
    told = {
        "enum": lambda: demand.values,
        "unit": lambda: [demand.unit, demand.minimum, demand.maximum, demand.multiple_of],
        "form": lambda: [demand.words, demand.example],
        "condition": lambda: [*re.findall(r'"(\w+)"', demand.expression), 6],
        "requires": lambda: ["must", "when", "required", "together"],
        "call_before": lambda: [demand.tool, "first", "before", "result"],
    }[tool.kind]()
    for value in told:
        assert str(value).casefold() not in " ".join(texts).casefold().split()
        assert not set(re.findall(r"\w+", str(value).casefold())) - {"a", "the", "of"} <= words
    assert not tool.definition.specification.rules


def test_questions_do_not_tell_values_that_they_do_not_mean():
    """Where a word or number has to be turned into another, the question does not hold the other."""
    for _, task in TASKS:
        tool = tool_of(task)
        if tool.kind in {"enum", "unit", "form"}:
            value = gold_calls(task)[-1].arguments[tool.demands["first"].parameter]
            said = re.findall(r"[\w/.-]+", task.request)
            assert str(value) not in said or value in {"card", "transfer", "cash"}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", TOOLS)
def test_oracle_rules_are_fit_for_a_library(name, world):
    """The Tool Manager's own checks have nothing against the repair that is known to be right."""
    (rule,) = oracle_rules(name, world)
    assert rule_problems(rule, TOOLS[name].definition, {**TOOLS, **LOOKUPS}) == ()


def test_refusals_tell_as_much_as_they_are_set_to():
    """A refusal says that it is one, and with ``rule`` also what was broken."""
    call = {"amount": 5000, "term": 4}
    assert (
        HiddenWorld(["request_loan"], "first", "nothing").refusal("request_loan", call) == REFUSED
    )
    (rule,) = oracle_rules("request_loan")
    told = HiddenWorld(["request_loan"], "first").refusal("request_loan", call)
    assert told == f"{REFUSED} {rule_sentence(rule)}"


def test_a_value_of_another_tool_is_taken_only_after_it_was_told():
    """The reference of the right person from the wrong lookup is refused."""
    code = looked_up("find_customer", "Ann Lee")
    for lookup, is_taken in (("find_customer", True), ("find_contract", False), (None, False)):
        world = HiddenWorld([*TOOLS, *LOOKUPS], "first")
        if lookup:
            next(tool for tool in world.tools() if tool.name == lookup)(name="Ann Lee")
        refusal = world.refusal("cancel_subscription", {"reference": code})
        assert (refusal == "") == is_taken
