"""Composites, mined: what an agent did again and again becomes one tool, without any model.

Five conversations make the same three calls. Mining finds that two of them pass data on to the
third, writes the program, the Tool Manager tries it on recorded answers, and a person agrees to it.
Run it: python examples/08_mine_composites.py
"""

from __future__ import annotations

import asyncio

from typing_extensions import TypedDict

from agentkit import Agent, open_store, tool
from agentkit.evolution import (
    MiningConfig,
    ToolManager,
    mine,
    submit_mined,
    trajectories_of,
)
from agentkit.library import Author
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


class Station(TypedDict):
    """Where trains stop."""

    code: str
    name: str


class Train(TypedDict):
    """One connection."""

    train: str
    leaves: str


@tool(effects=["reads"])
def find_station(name: str) -> list[Station]:
    """Stations by name, the best match first."""
    return [{"code": f"{name[:3].upper()}-{len(name)}", "name": f"{name} Central"}]


@tool(effects=["reads"])
def find_trains(from_code: str, to_code: str, day: str, changes: int) -> list[Train]:
    """Trains between two stations on a day."""
    return [{"train": f"{from_code}/{to_code}", "leaves": f"{day} 09:1{changes}"}]


TRIPS = [
    ("Oslo", "Bergen", "2026-05-01"),
    ("Paris", "Lyon", "2026-06-12"),
    ("Madrid", "Valencia", "2026-07-03"),
    ("Turin", "Rome", "2026-08-24"),
    ("Ghent", "Namur", "2026-09-15"),
]


def conversation(start: str, goal: str, day: str) -> list[list[ToolCall] | str]:
    """What the model says: two look-ups at once, then the search, then the answer."""
    codes = [f"{name[:3].upper()}-{len(name)}" for name in (start, goal)]
    search = {"from_code": codes[0], "to_code": codes[1], "day": day, "changes": 0}
    return [
        [
            ToolCall(call_id="1", name="find_station", arguments={"name": start}),
            ToolCall(call_id="2", name="find_station", arguments={"name": goal}),
        ],
        [ToolCall(call_id="3", name="find_trains", arguments=search)],
        f"It leaves at {day} 09:10.",
    ]


store = open_store("memory:")
ToolManager(store).register([find_station, find_trains])
for trip in TRIPS:
    model = ScriptedModel(conversation(*trip))
    agent = Agent(model, tools=[find_station, find_trains], store=store)
    agent.run_sync("From {} to {} on {}?".format(*trip))

flow = trajectories_of(store.select())
tools = {definition.name: definition for definition in store.load().definitions}
result = mine(flow.trajectories, tools)
for composite in result.composites:
    print(f"{composite.support} episodes, {composite.saves} calls saved:\n{composite.source}")

manager = ToolManager(store)
for record in asyncio.run(submit_mined(manager, store.select(), MiningConfig())):
    print(f"{record.tool_name}: {manager.status(record.proposal_id).why}")
    manager.approve(record.proposal_id, person=Author(kind="person", name="ada"))
    (moved,) = manager.advance(record.proposal_id)
    print(f"{record.tool_name}: {moved.after} in version {manager.library.version}, {moved.why}")

print(f"{result.calls} calls before, {result.calls_after} after")
