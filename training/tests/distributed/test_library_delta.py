"""What changed in a library is all that another process needs to come to the same one."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from agentkit import Library, tool
from agentkit.composites.source import compose
from agentkit.tools.definition import ToolDefinition
from agentkit_training.distributed.ranks import Alone
from agentkit_training.distributed.synchronising import (
    LibraryDelta,
    library_delta,
    library_fingerprint,
    synchronise,
    with_delta,
)

NAMES = st.sampled_from(["add", "sub", "price", "unit", "rate", "tax"])
TOOLS = st.lists(
    st.tuples(NAMES, st.sampled_from(["One.", "Two.", "Three."])), unique_by=lambda one: one[0]
)
PARAMETERS = {"type": "object", "properties": {}}


def library(tools, version=1):
    definitions = [ToolDefinition.from_schema(name, words, PARAMETERS) for name, words in tools]
    return Library(definitions, version=version)


def carried(delta):
    """The delta as another process reads it."""
    return LibraryDelta.from_json(json.loads(json.dumps(delta.to_json())))


@given(before=TOOLS, after=TOOLS, version=st.integers(1, 3))
def test_a_delta_leads_to_the_same_library(before, after, version):
    """Texts, order and version agree, whatever was added, changed, removed or moved."""
    first, wanted = library(before), library(after, version=version)
    found = with_delta(first, carried(library_delta(first, wanted)))
    assert library_fingerprint(found) == library_fingerprint(wanted)
    assert found.version == version
    assert list(found.tools) == list(wanted.tools)


@given(tools=TOOLS, changed=NAMES)
def test_only_what_changed_is_sent(tools, changed):
    """Tools that stayed as they were do not travel, and an equal library sends none."""
    first = library(tools)
    words = [(name, "Four." if name == changed else text) for name, text in tools]
    delta = library_delta(first, library(words))
    assert [one.name for one in delta.upserts] == [name for name, _ in tools if name == changed]
    assert delta.order == ()
    assert library_delta(first, library(tools)).is_empty


def test_code_stays_bound_when_its_text_changes():
    """A tool that runs in this process still runs after another process reworded it."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    before = Library([add], version=1)
    record = add.definition.to_json()
    record["description"]["summary"] = "Add two whole numbers."
    after = Library([ToolDefinition.from_json(record)], version=2)
    found = with_delta(before, carried(library_delta(before, after)))
    assert found["add"](a=1, b=2) == 3
    assert found["add"].definition.text == "Add two whole numbers."


@tool
def double(x: float) -> float:
    """Twice a number."""
    return 2 * x


@tool
def half(x: float) -> float:
    """Half of a number."""
    return x / 2


def calling(name, child):
    """A composite that calls one tool."""
    text = f'def {name}(x: float) -> float:\n    "Calls another."\n    return {child.name}(x)'
    return compose(text, {child.name: child})


def test_new_composites_run_on_code_that_came_with_them():
    """Code is given to new primitives, and what is made of them is linked to it."""
    before = Library([half], version=1)
    after = before.with_tools([double.definition, calling("doubled", double)]).at_version(2)
    found = with_delta(before, carried(library_delta(before, after)), tools=[double])
    assert found["doubled"](x=3) == 6
    without = with_delta(before, carried(library_delta(before, after)))
    assert not without["doubled"].is_bound


def test_one_process_decides_for_itself():
    """Alone, the report goes to the decision, and its answer is the library."""
    before, after = library([]), library([("add", "One.")], version=2)
    heard = []

    def decide(reports):
        heard.extend(reports)
        return after

    assert synchronise(before, {"failures": 1}, decide, ranks=Alone()) is after
    assert heard == [{"failures": 1}]
