"""Preconditions against what a step has bound: surely broken drops, unknown never does."""

from __future__ import annotations

import pytest

from agentkit import Library, tool
from agentkit.composites.contracts import surely_broken
from agentkit.messages import Usage
from agentkit.retrieval import Judgement, Specification, SubGoal, Survivors
from agentkit.tools.types.fit import TypedSlot, slot_of_value
from agentkit.tools.types.lattice import TypeSet


@tool(pre=["months <= 60", "amount > 0"])
def car_loan(amount: float, months: int) -> float:
    """The monthly rate of a loan for a car."""
    return amount / months


@tool(pre=["months >= 120 and amount >= 1000"])
def house_loan(amount: float, months: int = 240) -> float:
    """The monthly rate of a loan for a house."""
    return amount / months


@tool
def any_loan(amount: float, months: int) -> float:
    """The monthly rate of any loan."""
    return amount / months


LIBRARY = Library([car_loan, house_loan, any_loan])


async def left(stage, *slots, ranked=("car_loan", "house_loan", "any_loan")):
    before = Survivors.of(LIBRARY).add(dict.fromkeys(ranked, 1.0))
    return await stage("rate", SubGoal(intent="rate", inputs=slots), before)


def names(survivors):
    return [hit.definition.name for hit in survivors.hits]


@pytest.mark.parametrize(
    ("slots", "kept"),
    [
        ([slot_of_value(240, name="months")], ["house_loan", "any_loan"]),
        ([slot_of_value("240", name="Months")], ["house_loan", "any_loan"]),
        ([slot_of_value(24, name="months")], ["car_loan", "any_loan"]),
        ([slot_of_value(500, name="amount")], ["car_loan", "any_loan"]),
        ([slot_of_value("many", name="months")], ["car_loan", "house_loan", "any_loan"]),
        ([slot_of_value(240)], ["car_loan", "house_loan", "any_loan"]),
        ([slot_of_value(240, name="term")], ["car_loan", "house_loan", "any_loan"]),
        (
            [TypedSlot(name="months", type=TypeSet.one_of([240]))],
            ["car_loan", "house_loan", "any_loan"],
        ),
        (
            [TypedSlot(name="months", type=TypeSet.of("integer"), bound=True)],
            ["car_loan", "house_loan", "any_loan"],
        ),
        ([], ["car_loan", "house_loan", "any_loan"]),
    ],
)
async def test_only_what_bound_values_surely_break_drops_out(slots, kept):
    """Values without a name, guessed ones, and those of another form decide nothing."""
    assert names(await left(Specification(), *slots)) == kept


async def test_the_reason_is_noted():
    """The trace says which condition a step breaks."""
    found = await left(Specification(), slot_of_value(240, name="months"))
    assert found.notes == ("specification: dropped car_loan: the step breaks `months <= 60`",)


async def test_tools_stay_when_all_would_go():
    """When every ranked tool breaks, the goal is more likely wrong than all of them."""
    slots = (slot_of_value(90, name="months"),)
    found = await left(Specification(), *slots, ranked=("car_loan", "house_loan"))
    assert names(found) == ["car_loan", "house_loan"]
    assert "no ranked tool would be left" in found.notes[0]


async def test_a_judge_is_asked_about_the_rest():
    """It sees the tools that have conditions and were not dropped; names it invents are ignored."""
    asked = []

    async def judge(goal, candidates):
        asked.extend(one.name for one in candidates)
        rejected = {"house_loan": "too large", "any_loan": "not asked", "nobody": "?"}
        return Judgement(rejected=rejected, usage=Usage(requests=1), notes=("was tired",))

    found = await left(Specification(judge=judge), slot_of_value(5000, name="amount"))
    assert asked == ["car_loan", "house_loan"]
    assert names(found) == ["car_loan", "any_loan"]
    assert found.usage.requests == 1
    assert found.notes == (
        "specification: was tired",
        "specification: dropped house_loan: too large",
    )


async def test_no_judge_is_asked_without_conditions():
    """Tools that declare nothing cost nothing."""

    async def judge(goal, candidates):
        raise AssertionError(candidates)

    found = await left(Specification(judge=judge), ranked=("any_loan",))
    assert names(found) == ["any_loan"]


@pytest.mark.parametrize(
    ("pre", "values", "broken"),
    [
        ("a > 0 and b > 0", {"b": -1}, True),
        ("a > 0 and (b > 0 and b < 9)", {"b": 10}, True),
        ("a > 0 or b > 0", {"b": -1}, False),
        ("a > 0 or b > 0", {"a": 0, "b": -1}, True),
        ("a > b", {"b": 1}, False),
        ("not a", {"a": 1}, True),
        ("a / b > 1", {"a": 1, "b": 0}, False),
        ("len(a) > 1", {"a": 5}, False),
        ("a >", {"a": 5}, False),
        ("unknown > 1", {"a": 5}, False),
        ("sum([i for i in a]) > 3", {"a": [1, 1]}, True),
        ("1 > 2", {}, True),
    ],
)
def test_a_condition_is_broken_only_when_no_call_could_keep_it(pre, values, broken):
    """Missing names, failing evaluation and unreadable conditions are unknown."""
    definition = any_loan.definition
    record = definition.to_json()
    record["signature"] = {"parameters": {"properties": {"a": {}, "b": {}}}}
    record["specification"] = {"pre": [pre]}
    found = surely_broken(type(definition).from_json(record), values)
    assert found == (pre if broken else None)
