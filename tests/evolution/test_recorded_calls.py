"""Recorded calls become worked calls of primitives, and nothing else of the library changes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.errors import LibraryError, StaleVersionError, ToolNotFoundError, UsageError
from agentkit.evolution import InsertPolicy, ToolManager
from agentkit.library import LibraryChange
from agentkit.library.pins import pin_faults
from agentkit.testing import primitive_library
from agentkit.tools.definition import Effects, Example

WEATHER = ToolDefinition.from_schema(
    "weather",
    "The weather of a day.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    },
    effects=Effects(reads=True, writes=False),
)


def answered(city, result, **further):
    """One recorded call of the tool."""
    return Example(arguments={"city": city, **further}, result=result)


@pytest.fixture
def above(manager):
    """A manager of a library with a composite over another one over `add`."""
    manager.insert('''
@composite(examples=[{"arguments": {"x": 2}, "result": 7}])
def inner(x: float) -> float:
    """Twice a number, and three more."""
    return add(mul(x, 2), 3)
''')
    manager.insert('''
@composite(examples=[{"arguments": {"x": 2}, "result": 14}])
def outer(x: float) -> float:
    """Both of it, doubled at last."""
    return mul(inner(x), 2)
''')
    assert {"inner", "outer"} <= set(manager.library.tools)
    return manager


def test_only_worked_calls_change(store):
    """The tool has the calls, and is otherwise as it was; so are all others."""
    manager = ToolManager(store)
    manager.register([WEATHER, *primitive_library()])
    before = manager.library
    assert manager.record({"weather": [answered("Rome", "sunny")]}, evidence=["episode-1"]) == 2
    after = manager.library
    assert after["weather"].definition == replace(WEATHER, examples=(answered("Rome", "sunny"),))
    others = before.without(["weather"])
    assert after.without(["weather"]).digest == others.digest
    assert store.history("weather")[-1].evidence == ("episode-1",)


def test_a_call_keeps_its_first_answer(store):
    """The same call in other words, or with another answer, is not taken a second time."""
    manager = ToolManager(store)
    manager.register([WEATHER])
    manager.record({"weather": [answered("Rome", "sunny"), answered("Rome", "rain", days=1)]})
    assert manager.record({"weather": [answered("Rome", "snow")]}) == 2
    assert manager.library["weather"].definition.examples == (answered("Rome", "sunny"),)


def test_worked_calls_are_bounded(store):
    """A tool keeps as many as the policy says."""
    manager = ToolManager(store, policy=InsertPolicy(max_examples=2))
    manager.register([WEATHER])
    manager.record({"weather": [answered(city, "sunny") for city in ("Rome", "Oslo", "Bern")]})
    assert len(manager.library["weather"].definition.examples) == 2


def test_what_stands_above_is_pinned_in_the_same_change_and_runs(above, store):
    """Composites of all layers follow, and give what they gave."""
    version = above.library.version
    extra = Example(arguments={"a": 1_000, "b": 1}, result=1_001)
    assert above.record({"add": [extra]}) == version + 1
    assert {r.version for name in ("inner", "outer") for r in store.history(name)[-1:]} == {
        version + 1
    }
    assert pin_faults(above.library) == ()
    assert above.library["outer"](x=5) == 26


def test_a_proposal_is_carried_out_once(store):
    """A repeated id changes nothing, whatever it holds."""
    manager = ToolManager(store)
    manager.register([WEATHER])
    manager.record({"weather": [answered("Rome", "sunny")]}, proposal_id="r-1")
    manager.record({"weather": [answered("Oslo", "rain")]}, proposal_id="r-1")
    assert manager.library.version == 2
    assert len(manager.library["weather"].definition.examples) == 1


@pytest.mark.parametrize(
    ("worked_calls", "error"),
    [
        ({"wether": [answered("Rome", "sunny")]}, ToolNotFoundError),
        ({"inner": [Example(arguments={"x": 0}, result=3)]}, UsageError),
        ({"add": [Example(arguments={"a": 1, "b": {2}}, result=3)]}, UsageError),
        ({"add": [Example(arguments={"a": 1, "b": 2}, result=float("nan"))]}, UsageError),
    ],
    ids=["unknown", "composite", "set", "nan"],
)
def test_misuse_changes_nothing(above, worked_calls, error):
    """Unknown tools, composites and what is no JSON are refused."""
    before = above.library.digest
    with pytest.raises(error):
        above.record(worked_calls)
    assert above.refresh().digest == before


def test_writers_at_once_lose_no_record(tmp_path):
    """Several managers that record into one tool lose none of the calls."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    ToolManager(open_store(url)).register([WEATHER])

    def work(number):
        manager = ToolManager(open_store(url), policy=InsertPolicy(attempts=100))
        for day in range(3):
            manager.record({"weather": [answered(f"City {number}", "sunny", days=day)]})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(open_store(url).load()["weather"].definition.examples) == 12


class AlwaysLate:
    """A store at which another writer is always faster."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, change, *, expected_version):
        """Say so."""
        raise StaleVersionError(expected=expected_version, actual=expected_version + 1)


def test_a_writer_that_is_always_late_gives_up(store):
    """After the attempts of the policy the error comes out."""
    ToolManager(store).register([WEATHER])
    manager = ToolManager(AlwaysLate(store), policy=InsertPolicy(attempts=2))
    with pytest.raises(StaleVersionError):
        manager.record({"weather": [answered("Rome", "sunny")]})
    assert store.load().version == 1


def test_a_circle_above_is_told(above, store):
    """Where composites call each other no pin can be moved, and nothing is written."""
    outer = above.library["outer"].definition
    text = json.dumps(outer.body).replace('"child": "inner"', '"child": "outer"')
    inner = replace(above.library["inner"].definition, body=json.loads(text))
    change = LibraryChange(proposal_id="circle", upserts=(inner,))
    store.commit(change, expected_version=store.load().version)
    above.refresh()
    extra = Example(arguments={"a": 1_000, "b": 2}, result=2_000)
    with pytest.raises(LibraryError, match="call each other"):
        above.record({"mul": [extra]})
