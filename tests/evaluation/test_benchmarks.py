"""Samples of tasks, catalogues, and benchmarks by name or path."""

import sys
import textwrap
from collections import Counter
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition, open_store
from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import (
    Benchmark,
    ExactCalls,
    GoldCall,
    Task,
    ToolsEnvironment,
    environment_from,
    load_tasks,
    task_files,
)
from agentkit.evaluation.held_out import HeldOut, is_held_out_answer
from agentkit.evaluation.task import import_catalogue, stratified
from agentkit.evaluation.task_files import PUBLIC, load_benchmark
from agentkit.evolution import Observations
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


def searched(*, seed_candidate, trainset, valset, adapter, **_):
    """In place of ``gepa.optimize``: the texts as they are, and one rewrite."""
    rewritten = {**seed_candidate, "summary": BETTER.description.summary}
    runs = [adapter.evaluate(trainset, one) for one in (seed_candidate, rewritten)]
    return SimpleNamespace(
        val_aggregate_scores=[fmean(one.scores) for one in runs],
        best_candidate=rewritten,
        total_metric_calls=2 * len(valset),
        candidates=runs,
    )


async def test_gepa_is_asked_the_tasks_that_do_not_decide(monkeypatch):
    """Held-out tasks stay unseen, its answers teach nobody, and it proposes words."""
    gepa = SimpleNamespace(optimize=searched, EvaluationBatch=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "gepa", gepa)
    library = Library([TIDE])
    compare = held_out(Reader(), learned_from={"t0", "t1"})
    optimizer = compare.optimizer(FunctionModel(str), "tide", library, attempts=9)
    seen = Observations(library=library, tools=("tide",))
    [proposal] = await optimizer.propose(seen)
    assert proposal.candidate.description.summary == BETTER.description.summary
    assert proposal.reason.startswith("mean score 1.000 against 0.000 on 2 cases")
    kept = list(compare.store.select())
    assert {one.metadata["task"] for one in kept} == {"t0", "t1"}
    assert all(map(is_held_out_answer, kept))
    with pytest.raises(UsageError, match="every task that offers 'tide' decides"):
        held_out(Reader()).optimizer(FunctionModel(str), "tide", library, attempts=9)


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


@pytest.fixture
def no_plugins(monkeypatch):
    """As where agentkit-bench is not installed."""
    monkeypatch.setattr(task_files, "named_benchmarks", dict)


def test_an_environment_may_be_named(shop):
    """The world of a file's tasks may be given as the place of a class."""
    tasks = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(tasks, environment=str(shop / "shop.py"))
    assert (len(benchmark.tasks), benchmark.left_out) == (10, ())


def test_a_file_without_a_task_raises_with_the_first_reason(write, row):
    """Nothing to ask is an error here, and says what is wrong with the rows."""
    path = write(row(expects={}), row(id="u", expects={}))
    with pytest.raises(DatasetError, match="none of its 2 rows can be asked; the first: tasks"):
        load_benchmark(str(path))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_benchmarks_name_their_plugin(name, no_plugins):
    """Without the plugin each says what to install."""
    with pytest.raises(UsageError, match=f"{name} needs the plugin .* pip install agentkit-bench"):
        load_benchmark(name)


WORLD = """
    from agentkit import tool

    class Lamp:
        '''A lamp that may be on.'''

        def __init__(self, task):
            self.on = bool(task.start["on"])

        def tools(self):
            return [tool(self.switch)]

        def switch(self, on: bool) -> str:
            '''Switch the lamp.'''
            self.on = on
            return "done"

        def state(self):
            return {"on": self.on}
"""
TASK = Task(task_id="t", category="c", request="?", offered=(), start={"on": True})


@pytest.fixture
def python_file(tmp_path):
    """Writes a Python file and gives its path."""

    def written(text, name="world.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return written


def test_the_only_class_of_a_file_is_taken(python_file):
    """A class with tools() and state() is found without its name, and takes the task."""
    place = python_file(WORLD)
    for target in (place, f"{place}:Lamp"):
        world = environment_from(target)(TASK)
        assert world.state() == {"on": True}
        assert [one.name for one in world.tools()] == ["switch"]


def test_every_attempt_has_its_own_world(python_file):
    """What is done in one world is not seen in another."""
    make = environment_from(python_file(WORLD))
    first, second = make(TASK), make(TASK)
    first.tools()[0](on=False)
    assert (first.state(), second.state()) == ({"on": False}, {"on": True})


def test_a_file_of_tools_is_a_world_without_state(python_file):
    """Functions with @tool and no class make an environment that is always empty."""
    text = "from agentkit import tool\n@tool\ndef one() -> int:\n    '''One.'''\n    return 1\n"
    place = python_file(text + "mine = [one]\nodd = [one, 7]\nnone = []\n")
    for target in (place, f"{place}:mine"):
        world = environment_from(target)(TASK)
        assert ([tool.name for tool in world.tools()], world.state()) == (["one"], {})
    for name in ("odd", "none"):
        with pytest.raises(UsageError, match="expected nothing but tools"):
            environment_from(f"{place}:{name}")


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("x = 1", "", "found these classes: none"),
        (WORLD + WORLD.replace("Lamp", "Fan"), "", "found these classes: Fan, Lamp; say which"),
        (WORLD, ":Fan", "has no 'Fan'; it has: Lamp, tool"),
        ("x = 1", ":x", "x has to be a class or a function that takes one argument, the task"),
        (WORLD.replace("self, task", "self"), "", "Lamp does not take the task"),
        (WORLD.replace("self, task", "self"), ":Lamp", "write def __init__"),
        ("1 / 0", "", r"cannot be imported \(ZeroDivisionError"),
    ],
)
def test_what_makes_no_world_is_refused(python_file, text, name, reason):
    """The message says what was found and what to write."""
    with pytest.raises(UsageError, match=reason):
        environment_from(python_file(text) + name)


def test_tasks_offer_the_tools_of_their_world(python_file, write, row):
    """Tools come from the environment; a task that it does not take is left out with the reason."""
    rows = (row(start={"on": False}), row(id="u"))
    benchmark = load_tasks(write(*rows), environment=environment_from(python_file(WORLD)))
    assert [task.offered for task in benchmark.tasks] == [("switch",)]
    assert [definition.name for definition in benchmark.definitions] == ["switch"]
    (left,) = benchmark.left_out
    assert "the environment does not take the task 'u' (KeyError: 'on')" in left.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("'''Switch the lamp.'''", "'''Turn.'''"), ""),
        (('return {"on": self.on}', 'return {"on": float("nan")}'), "ValueError"),
        (('return {"on": self.on}', 'return {"on": object()}'), "TypeError"),
        (("return [tool(self.switch)]", "return [self.switch]"), "make it one with tool(...)"),
    ],
)
def test_a_world_that_can_not_be_judged_is_found_early(python_file, write, row, change, reason):
    """A state that is no JSON, or tools that are none, are told before anything is asked."""
    make = environment_from(python_file(WORLD.replace(*change)))
    benchmark = load_tasks(write(row(start={"on": True})), environment=make)
    assert reason in "".join(map(str, benchmark.left_out))
    assert bool(benchmark.tasks) == (not reason)


def test_worlds_that_differ_in_a_definition_are_told(write, row, tools):
    """One name stands for one definition in a benchmark."""
    other = tools[1].with_definition(tools[1].definition.from_schema("add", "Other.", {}))
    worlds = iter([tools[:1], [other]])
    rows = (row(), row(id="u"))
    benchmark = load_tasks(write(*rows), environment=lambda _: ToolsEnvironment(next(worlds)))
    assert len(benchmark.tasks) == 1
    assert "another definition here than for an earlier task" in str(benchmark.left_out[0])


def test_two_different_tools_of_one_name_are_refused(write, row, tools):
    """Given tools are the caller's own, so a clash raises."""
    other = tools[1].with_definition(tools[1].definition.from_schema("add", "Other.", {}))
    with pytest.raises(UsageError, match="two different tools are named 'add'"):
        load_tasks(write(row()), tools=[tools[0], other])
