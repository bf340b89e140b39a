"""Benchmarks whose questions bring different tools of one name: what is learned from their runs."""

from __future__ import annotations

from dataclasses import replace

from agentkit import Tool, ToolDefinition, open_store
from agentkit.errors import ModelRetry
from agentkit.evaluation import Benchmark, FinalState, GoldCall, Task
from agentkit.evaluation.held_out import HeldOut
from agentkit.evaluation.runner import evaluate
from agentkit.evolution import ToolManager
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.round import evolve
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel
from agentkit.tools.definition import Origin
from agentkit.tools.rules import OneOf

SCHEMA = {
    "type": "object",
    "properties": {"size": {"type": "string", "description": "How big."}},
    "required": ["size"],
}


def offer(name, summary):
    """A tool that the questions call `offer`, whatever the catalogue calls it."""
    origin = Origin(kind="json_schema", original_name="offer" if name != "offer" else None)
    return ToolDefinition.from_schema(name, summary, SCHEMA, origin=origin)


CARS = offer("offer", "Offer a car.")
SHOES = offer("offer__2", "Offer shoes.")
ALLOWED = {"offer": ("small", "large"), "offer__2": ("38", "42")}


class Shop:
    """Takes orders; each tool knows sizes of its own and refuses all others."""

    def __init__(self, task):
        self._taken = []

    def _take(self, name):
        def take(size: str) -> str:
            if size not in ALLOWED[name]:
                allowed = ", ".join(f"'{one}'" for one in ALLOWED[name])
                raise ModelRetry(f"size must be one of {allowed}, got '{size}'")
            self._taken.append(f"{name} {size}")
            return "taken"

        return take

    def tools(self):
        """Both tools, under the names of the catalogue."""
        return [Tool(definition=one, function=self._take(one.name)) for one in (CARS, SHOES)]

    def state(self):
        """What was ordered."""
        return {"taken": list(self._taken)}


def tasks(name, count, first=0):
    """Questions that offer one of the two."""
    return tuple(
        Task(
            task_id=f"{name}-{number}",
            category=name,
            request=f"Number {number}: something big, please.",
            offered=(name,),
            expects=(
                FinalState(calls=(GoldCall(name=name, arguments={"size": ALLOWED[name][1]}),)),
            ),
        )
        for number in range(first, first + count)
    )


def shop(*asked):
    """The benchmark with these questions."""
    return Benchmark(name="shop", tasks=asked, definitions=(CARS, SHOES), environment=Shop)


def reader():
    """A model that gives the last size that the schema lists, and what it thinks without a list."""

    def answer(request):
        if any(message.role == "tool" for message in request.messages):
            return "Done."
        [one] = request.tools
        guess = ("huge", "vast")[int(request.messages[-1].text.split()[1].strip(":")) % 2]
        listed = one.parameters_schema["properties"]["size"].get("enum", [guess])
        return [ToolCall(call_id="1", name=one.name, arguments={"size": listed[-1]})]

    return FunctionModel(answer, name="reader")


async def episodes_of(*asked, library=None):
    """The episodes of a run over these questions."""
    store = open_store("memory:")
    await evaluate(shop(*asked), model=reader(), store=store, run="r", library=library)
    return tuple(store.select())


async def test_the_episode_says_which_tool_was_meant():
    """A tool that was offered under the benchmark's name is recorded with the catalogue's."""
    [cars] = await episodes_of(*tasks("offer", 1))
    [shoes] = await episodes_of(*tasks("offer__2", 1))
    assert (cars.calls[0].name, cars.library_names) == ("offer", {})
    assert (shoes.calls[0].name, shoes.library_names) == ("offer", {"offer": "offer__2"})


async def test_a_round_mends_namesakes_each_by_itself():
    """Two tools of one name learn their own sizes, and are promoted on their own questions."""
    kinds = ("offer", "offer__2")
    episodes = await episodes_of(*(task for kind in kinds for task in tasks(kind, 4)))
    manager = ToolManager(open_store("memory:"))
    code = Origin(kind="function", reference="shop:offer")  # whose refusals may be believed
    manager.register([replace(CARS, origin=code), replace(SHOES, origin=code)])
    held_out = HeldOut(
        benchmark=shop(*(task for kind in kinds for task in tasks(kind, 12, first=10))),
        model=reader(),
        store=open_store("memory:"),
    )
    outcome = await evolve(manager, [EvidenceProposer()], episodes=episodes, compare=held_out)
    assert {one.record.tool_name for one in outcome.promoted} == set(kinds)
    learned = {one.name: one.specification.rules for one in manager.library.definitions}
    assert learned == {
        name: (OneOf(parameter="size", values=values),) for name, values in ALLOWED.items()
    }
