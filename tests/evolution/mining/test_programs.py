"""Programs of code mode as candidates: which are proposed, with which parameters, and that they run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, open_store, tool
from agentkit.composites.codec import program_of
from agentkit.composites.composite import composite_tool
from agentkit.composites.rendering import render
from agentkit.episodes import Verdict
from agentkit.evolution import ToolManager
from agentkit.evolution.mining import MiningConfig, submit_mined
from agentkit.evolution.programs import mined_programs
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

CHEAP = """
rows = find(city="{city}", currency="euro")
return [describe(id=row["id"]) for row in rows if row["price"] < {most}]
"""


@tool(effects=("reads",))
def find(city: str, currency: str | None) -> list[dict[str, int]]:
    """Find rooms.

    Args:
        city: Where.
        currency: In which.
    """
    return [{"id": len(city), "price": 50}, {"id": 2, "price": 30}]


@tool(effects=("reads",))
def describe(id: int) -> str:  # noqa: A002
    """Describe a room."""
    return f"room {id}"


@pytest.fixture
def store():
    return open_store("memory:")


async def asked(store, *programs):
    """Runs of an agent that answers each request with one program; the tools that it has."""
    script = []
    for at, text in enumerate(programs):
        call = ToolCall(call_id=f"c{at}", name="run_program", arguments={"program": text})
        script += [[call], "Here they are."]
    agent = Agent(ScriptedModel(script), tools=[find, describe], store=store, code_mode=True)
    for at in range(len(programs)):
        await agent.run(f"Rooms, please, number {at}")
    return {one.name: one for one in agent.library.definitions}


def cheap(*given):
    return [CHEAP.format(city=city, most=most) for city, most in given]


async def test_a_program_that_recurs_is_a_composite(store):
    """What varied are its parameters, what did not a default; it runs as the programs did."""
    tools = await asked(store, *cheap(("Rome", 40), ("Oslo", 60), ("Bergen", 40)))
    (made,) = mined_programs(store.select(), tools, min_support=3)
    definition = made.definition
    assert render(program_of(definition), "f") == (
        "def f(city, value, currency='euro'):\n"
        "    rows = find(city=city, currency=currency)\n"
        "    return [describe(id=row['id']) for row in rows if row['price'] < value]\n"
    )
    assert definition.signature.required == ("city", "value")
    assert definition.signature.properties["city"]["type"] == "string"
    assert definition.description.parameters["city"] == "Where."
    assert [child.name for child in definition.signature.children] == ["find", "describe"]
    assert (made.support, len(made.worked)) == (3, 3)
    run = composite_tool(definition, [find, describe])
    for worked in made.worked:
        assert worked.recorded[0].tool == "find"
        assert await run(**worked.example.arguments) == worked.example.result


@pytest.mark.parametrize(
    "programs",
    [
        cheap(("Rome", 40), ("Oslo", 60)),  # too seldom
        ["return find(city='Rome', currency='euro')"] * 3,  # a call alone
        [*cheap(("Rome", 40), ("Oslo", 60)), CHEAP.format(city="Bergen", most="None")],  # failed
        [text + "\nx = [" for text in cheap(("Rome", 40), ("Oslo", 60), ("Bergen", 40))],
    ],
)
async def test_what_is_no_candidate(store, programs):
    """Programs that are rare, trivial, failed, or none."""
    tools = await asked(store, *programs)
    assert mined_programs(store.select(), tools, min_support=3) == ()


async def test_only_programs_of_episodes_that_passed_count(store):
    """A program may run to its end and be the wrong one."""
    tools = await asked(store, *cheap(("Rome", 40), ("Oslo", 60), ("Bergen", 40)))
    first, *others = store.select()
    failed = replace(first, verdict=Verdict(passed=False))
    assert mined_programs([failed, *others], tools, min_support=3) == ()
    assert len(mined_programs([failed, *others], tools, min_support=2)) == 1


async def test_truth_values_and_none_stay(store):
    """They choose what a program does, so they are no parameters."""
    text = "a = find(city='{}', currency=None)\nreturn [describe(id=r['id']) for r in a]"
    tools = await asked(store, *map(text.format, ("Rome", "Oslo", "Bergen")))
    (made,) = mined_programs(store.select(), tools, min_support=3)
    assert made.definition.signature.required == ("city",)
    assert list(made.definition.signature.properties) == ["city"]


async def test_a_mined_program_waits_for_a_person(store):
    """It is proposed once, with the records to try it on, and changes nothing by itself."""
    await asked(store, *cheap(("Rome", 40), ("Oslo", 60), ("Bergen", 40)))
    manager = ToolManager(store)
    (record,) = await submit_mined(manager, store.select(), MiningConfig())
    assert record.candidate.description.tags == ("mined",)
    assert [dict(one.arguments) for one in record.candidate.worked_calls]
    assert record.tool_name not in manager.library
    assert await submit_mined(manager, store.select(), MiningConfig()) == ()
