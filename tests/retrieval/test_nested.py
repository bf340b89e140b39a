"""Survivor sets are nested: what a stage has dropped, no later one brings back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import (
    Abstraction,
    Description,
    ExactName,
    Examples,
    Lexical,
    NearDuplicates,
    References,
    Signature,
    Specification,
    SubGoal,
    Survivors,
)
from agentkit.tools import definition as tools
from agentkit.tools.types.fit import slot_of_value

WORDS = ("rocket", "weather", "loan", "mail", "find the fuel", "天气")
STAGES = (
    ExactName(),
    Signature(mode="hard"),
    Signature(back_off=1),
    Examples(keep=3),
    Lexical(keep=5),
    Description(keep=4, embedder=None),
    References(keep=4),
    Specification(),
    NearDuplicates(),
    Abstraction(),
)
SLOTS = [slot_of_value(value, name="value") for value in (3, True, "2024-08-15", [1])]


@st.composite
def catalogues(draw):
    """Tools of different types, with conditions, examples, children and texts that name others."""
    made = []
    for number in range(draw(st.integers(1, 12))):
        words = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
        kind = draw(st.sampled_from(["number", "boolean", "string", "array"]))
        source = f"From `Get_Tool_{draw(st.integers(0, 12))}`."
        schema = {
            "properties": {"value": {"type": kind, "description": source}, "day": {"type": kind}},
            "required": ["value", "day"],
        }
        one = ToolDefinition.from_schema(f"get_tool_{number}", words, schema)
        call = {"kind": "Call", "child": f"get_tool_{draw(st.integers(0, max(0, number - 1)))}"}
        made.append(
            replace(
                one,
                specification=tools.Specification(pre=(f"value != {draw(st.integers(2, 4))}",)),
                examples=(tools.Example(arguments={}, query=words),) if words else (),
                body={"body": [call]} if number and draw(st.booleans()) else None,
            )
        )
    return Library(made)


@settings(max_examples=60, deadline=None)
@given(
    library=catalogues(),
    stages=st.permutations(STAGES),
    query=st.lists(st.sampled_from([*WORDS, "get_tool_1"]), max_size=3).map(" ".join),
    inputs=st.lists(st.sampled_from(SLOTS), max_size=2, unique_by=id),
)
def test_no_stage_brings_a_tool_back(library, stages, query, inputs):
    """In any order of the stages: each leaves a part of what it got, and ranks nothing else."""
    goal = SubGoal(intent=query, inputs=tuple(inputs))

    async def check():
        left = Survivors.of(library, [one for s in stages for one in getattr(s, "channels", ())])
        for stage in stages:
            before = {one.name for one in left.pool}
            left = await stage(query, goal, left)
            after = {one.name for one in left.pool}
            assert after <= before
            assert {hit.definition.name for hit in left.hits} <= after
            assert len(left) == len(after)

    asyncio.run(check())
