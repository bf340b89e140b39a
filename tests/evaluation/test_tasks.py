"""Catalogues and samples of tasks, and tasks that are held out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition, open_store
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, ExactCalls, GoldCall, Task
from agentkit.evaluation.held_out import HeldOut
from agentkit.evaluation.task import import_catalogue, stratified
from agentkit.library import LibraryChange
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel


def test_the_catalogue_is_one_version(sample):
    """All definitions arrive in one version, in the benchmark's order."""
    library = import_catalogue(open_store("memory:"), sample)
    assert library.version == 1
    assert library.definitions == sample.definitions


def test_an_older_release_is_replaced(sample):
    """A definition that the same source changed gets a new revision."""
    store = open_store("memory:")
    import_catalogue(store, sample)
    first = sample.definitions[0]
    words = replace(first.description, summary="Changed upstream.")
    changed = replace(first, description=words)
    newer = replace(sample, definitions=(changed, *sample.definitions[1:]))
    library = import_catalogue(store, newer)
    assert library.version == 2
    assert library[first.name].definition.description.summary == "Changed upstream."


def test_a_tool_from_elsewhere_is_never_overwritten(sample):
    """A tool of the user's own under the same name stops the import with an error."""
    store = open_store("memory:")
    own = ToolDefinition(name="set_lamp")
    store.commit(LibraryChange(proposal_id="own", upserts=(own,)), expected_version=0)
    with pytest.raises(UsageError, match="already holds another tool named 'set_lamp'"):
        import_catalogue(store, sample)
    assert store.load().version == 1


counts = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 12), min_size=1)


def make(sizes):
    """Tasks of those many per category."""
    return [
        Task(task_id=f"{category}{n}", category=category, request="?", offered=())
        for category, count in sizes.items()
        for n in range(count)
    ]


@given(counts, st.integers(0, 40), st.integers(0, 5))
def test_every_prefix_is_spread_over_the_categories(sizes, size, seed):
    """Wherever the sample is cut, categories that still have tasks differ by one at most."""
    sample = stratified(make(sizes), size, seed=seed)
    assert len(sample) == min(size, sum(sizes.values()))
    assert len({task.task_id for task in sample}) == len(sample)
    taken = Counter()
    for one in sample:
        taken[one.category] += 1
        open_counts = [taken[c] for c, count in sizes.items() if taken[c] < count]
        assert not open_counts or max(taken.values()) - min(open_counts) <= 1


def test_the_seed_decides():
    """The same seed gives the same sample whatever the order of the tasks' categories."""
    tasks = make({"a": 30, "b": 30})
    other = make({"b": 30, "a": 30})
    assert stratified(tasks, 10, seed=1) == stratified(other, 10, seed=1)
    assert stratified(tasks, 10, seed=1) != stratified(tasks, 10, seed=2)


def tool(name, summary=""):
    """A tool that takes a place."""
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    return ToolDefinition.from_schema(name, summary, schema)


TIDE = tool("tide")
BETTER = tool("tide", "Harbours in capitals.")
TASKS = tuple(
    Task(
        task_id=f"t{number}",
        category="tides",
        request="When is high water at Aker?",
        offered=("tide",),
        expects=(ExactCalls(calls=(GoldCall(name="tide", arguments={"place": "AKER"}),)),),
    )
    for number in range(4)
)
OTHER = Task(task_id="other", category="weather", request="Rain?", offered=("weather",))


class Reader:
    """A model that does what the text says, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0
        self.model = FunctionModel(self._answer, name="reader")

    def _answer(self, request):
        self.asked += 1
        place = "AKER" if "capitals" in request.tools[0].text else "Aker"
        return [ToolCall(call_id="1", name="tide", arguments={"place": place})]


def held_out(reader, **changes):
    """The four tasks about tides and one about something else."""
    benchmark = Benchmark(name="tides", tasks=(*TASKS, OTHER), definitions=(TIDE, tool("weather")))
    made = HeldOut(benchmark=benchmark, model=reader.model, store=open_store("memory:"))
    return replace(made, **changes)


async def test_each_task_that_offers_the_tool_has_a_pair():
    """Tasks about other tools are not asked, and each pair holds both scores."""
    pairs = await held_out(Reader())("tide", Library([TIDE]), Library([BETTER]))
    assert {pair.task for pair in pairs} == {"t0", "t1", "t2", "t3"}
    assert {(pair.control, pair.candidate) for pair in pairs} == {(0.0, 1.0)}


async def test_what_is_known_is_not_asked_again():
    """A library of the same content has its answers, whatever its version."""
    reader = Reader()
    compare = held_out(reader)
    await compare("tide", Library([TIDE]), Library([BETTER]))
    assert reader.asked == 8
    again = await compare("tide", Library([TIDE], version=3), Library([BETTER], version=4))
    assert (reader.asked, len(again)) == (8, 4)


async def test_tasks_that_were_learned_from_meanwhile_are_left_out():
    """Their answers from an earlier round are there, and count no more."""
    reader = Reader()
    compare = held_out(reader)
    await compare("tide", Library([TIDE]), Library([BETTER]))
    later = replace(compare, learned_from={"t0", "t1"})
    pairs = await later("tide", Library([TIDE]), Library([BETTER]))
    assert {pair.task for pair in pairs} == {"t2", "t3"}
    assert reader.asked == 8


async def test_a_tool_without_tasks_has_no_pairs():
    """Nothing is asked where no held-out task offers the tool."""
    reader = Reader()
    assert await held_out(reader)("lamp", Library([TIDE]), Library([BETTER])) == ()
    assert reader.asked == 0
