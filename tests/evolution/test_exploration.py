"""Exploration: tools are probed for what they take, within limits and only where that is allowed."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from agentkit import Library, ToolDefinition, open_store, tool
from agentkit.episodes.labels import PROBE_OF
from agentkit.errors import UsageError
from agentkit.evolution import EvidenceProposer, Observations, ToolManager, evolve, explore
from agentkit.tools.definition import Effects, Origin
from agentkit.tools.tool import Tool


def served(function, *, effects=("reads",), schema=None, **parts):
    """A tool of a server that says nothing of its parameters, and says what Python says of calls."""
    definition = ToolDefinition.from_schema(
        "served",
        "",
        schema or {"type": "object", "properties": {}},
        origin=Origin(kind="mcp"),
        effects=Effects.of(effects),
    )

    def run(**arguments):
        try:
            return function(**arguments)
        except (TypeError, AttributeError) as error:
            raise ValueError(str(error)) from error

    return Tool(definition=definition, function=run, **parts)


def learned(tool_, found):
    """The schema that models see once everything is agreed to, and the suggestions."""
    seen = Observations(library=Library([tool_.definition]), episodes=found.episodes)
    proposals = asyncio.run(EvidenceProposer().propose(seen))
    return [one.candidate.parameters_schema for one in proposals], proposals


def loan(amount, months, currency):
    """What a loan costs, with bounds and a list that only its errors tell."""
    if currency not in ("EUR", "USD"):
        raise ValueError(f"currency must be one of 'EUR', 'USD', got {currency!r}")
    if not 6 <= months <= 60:
        raise ValueError(f"months must be between 6 and 60, got {months}")
    return amount / months


def multiply(a, b):
    """The product of two matrices."""
    return [[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a]  # noqa: B905


def test_parameters_types_bounds_and_lists_are_found():
    """Names and needs from refusals, types from what is taken, bounds and lists from what is said."""
    probed = served(loan)
    found = asyncio.run(explore(probed, budget=40))
    schemas, _ = learned(probed, found)
    assert found.stopped == "nothing new"
    assert schemas[-1] == {
        "type": "object",
        "properties": {
            "amount": {"type": "number"},
            "months": {"type": "integer", "minimum": 6, "maximum": 60},
            "currency": {"type": "string", "enum": ["EUR", "USD"]},
        },
        "required": ["amount", "months", "currency"],
    }


def factorial(n):
    """Whole numbers alone."""
    return math.factorial(n)


def mean(numbers):
    """Of a list."""
    return sum(numbers) / len(numbers)


def greet(name):
    """A text."""
    return f"Hi {name.upper()}"


LIST = {"type": "array", "items": {"type": "number"}}
MATRIX = {"type": "array", "items": LIST}


@pytest.mark.parametrize(
    ("function", "properties"),
    [
        (factorial, {"n": {"type": "integer"}}),
        (mean, {"numbers": LIST}),
        (greet, {"name": {"type": "string"}}),
        (multiply, {"a": MATRIX, "b": MATRIX}),
    ],
)
def test_types_are_found_by_trying(function, properties):
    """Lists, matrices, texts; a fraction tells numbers from whole numbers."""
    probed = served(function)
    found = asyncio.run(explore(probed))
    schemas, _ = learned(probed, found)
    assert schemas[-1]["properties"] == properties


def test_every_probe_is_an_episode_that_says_so():
    """Probes are kept, are runs of nobody, and count for nothing but evidence."""
    store = open_store("memory:")
    probed = served(loan)
    manager = ToolManager(store)
    manager.register([probed])
    found = asyncio.run(explore(probed, store=store))
    kept = list(store.select())
    assert {one.metadata[PROBE_OF] for one in kept} == {"served"}
    assert len(kept) == len(found.episodes)
    report = asyncio.run(evolve(manager, [EvidenceProposer()], episodes=kept, learning=True))
    assert (report.looked_at.episodes, report.learned.added) == (0, {})
    assert {one.record.state for one in report.considered} == {"proposed"}


def test_a_probe_vouches_for_no_word():
    """A server that asks for the conversation and takes what a probe gives has said it alone."""

    def asks(chat_history):
        return len(str(chat_history))

    probed = served(asks)
    _, [proposal] = learned(probed, asyncio.run(explore(probed, budget=8)))
    assert [(one.text, one.kind, one.is_used) for one in proposal.origins] == [
        ("chat_history", "server", False)
    ]


def test_what_may_write_is_probed_with_a_persons_yes_alone():
    """Undeclared, writing, or no code here: the reason is given and nothing runs."""
    ran = []
    for effects in ((), ("writes",), ("reads", "writes"), ("destructive",)):
        with pytest.raises(UsageError, match="only read"):
            asyncio.run(explore(served(lambda **given: ran.append(given), effects=effects)))
    assert ran == []
    writing = served(lambda **given: ran.append(given), effects=("writes",))
    asyncio.run(explore(writing, agreed=["served"], budget=2))
    assert len(ran) == 2
    with pytest.raises(UsageError, match="give a list"):
        asyncio.run(explore(writing, agreed="observed and served"))
    with pytest.raises(UsageError, match="does not run here"):
        asyncio.run(explore(Tool(definition=writing.definition)))
    with pytest.raises(UsageError, match="1 or more"):
        asyncio.run(explore(writing, agreed=["served"], budget=0))


def test_probes_wait_for_approval_like_any_call():
    """A yes for probing approves no destructive call: the first one ends the exploration."""

    def yes(_call, _tool):
        return True

    ran = []
    kills = served(lambda **given: ran.append(given), effects=("destructive",))
    found = asyncio.run(explore(kills, agreed=["served"]))
    assert (found.stopped, len(found.episodes), ran) == ("approval", 1, [])
    asyncio.run(explore(kills, agreed=["served"], approve=yes, budget=2))
    assert len(ran) == 2


def test_probes_that_time_out_are_survived():
    """A tool that does not answer is left alone after a few probes."""

    def sleep(**_given):
        time.sleep(0.2)

    slow = served(sleep, timeout_seconds=0.01)
    found = asyncio.run(explore(slow))
    assert (found.stopped, len(found.episodes)) == ("no answer", 3)
    assert learned(slow, found)[0] == []


def test_it_ends_where_nothing_new_is_said():
    """A tool that always says the same, or lies in each answer, is left alone; nothing is learned."""

    def deaf(**_given):
        raise ValueError("no")

    numbers = iter(range(1000))

    def lies(**_given):
        raise ValueError(f"missing required argument: 'a{next(numbers)}x'")

    for function in (deaf, lies):
        found = asyncio.run(explore(served(function), budget=100))
        assert found.stopped == "nothing new"
        assert len(found.episodes) < 60
        assert learned(served(function), found)[0] == []


async def test_a_long_list_of_values_holds_up_nobody():
    """Twenty values of a list are tried, each once, and the loop goes on meanwhile."""
    values = [f"v{number}" for number in range(50_000)]
    schema = {"type": "object", "properties": {"n": {"enum": values}}}

    def deaf(n="v0"):
        raise ValueError("n must be one of NaN, Infinity")

    frozen = 0.0

    async def tick():
        nonlocal frozen
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            frozen = max(frozen, time.thread_time() - before)

    beside = asyncio.create_task(tick())
    began = time.process_time()
    found = await explore(served(deaf, schema=schema))
    beside.cancel()
    given = [call.arguments.get("n", "v0") for one in found.episodes for call in one.calls]
    assert set(given) <= set(values[:20])
    assert found.stopped == "nothing new"
    assert (time.process_time() - began < 10, frozen < 1) == (True, True)


def test_a_declared_contract_is_kept():
    """Probes keep the schema that a tool declares, and never call it with what it forbids."""
    given = []

    @tool(effects=["reads"])
    def shop(periods: int, name: str = "x") -> int:
        """A shop."""
        given.append((type(periods), type(name)))
        if periods not in (36, 48):
            raise ValueError(f"periods must be one of 36, 48, got {periods}")
        return periods

    found = asyncio.run(explore(shop))
    schemas, _ = learned(shop, found)
    assert set(given) == {(int, str)}
    failures = [one.results[0].failure for one in found.episodes]
    assert "invalid_arguments" not in {one.kind for one in failures if one is not None}
    assert schemas[-1]["properties"]["periods"]["enum"] == [36, 48]
