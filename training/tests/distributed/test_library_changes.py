"""What changed in a library is all that another process needs to come to the same one."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, strategies as st

from agentkit import Library, tool
from agentkit.composites.source import compose
from agentkit.tools.definition import Description, ToolDefinition
from agentkit_training.distributed.synchronising import (
    library_changes,
    library_fingerprint,
    with_changes,
)

NAMES = st.sampled_from(["add", "sub", "price", "unit", "rate", "tax"])
TOOLS = st.lists(
    st.tuples(NAMES, st.sampled_from(["One.", "Two.", "Three."])), unique_by=lambda one: one[0]
)
PARAMETERS = {"type": "object", "properties": {}}


def library(tools, version=1):
    definitions = [ToolDefinition.from_schema(name, words, PARAMETERS) for name, words in tools]
    return Library(definitions, version=version)


def carried(changes):
    """Changes as another process reads it."""
    return json.loads(json.dumps(changes))


@given(before=TOOLS, after=TOOLS, version=st.integers(1, 3))
def test_changes_lead_to_the_same_library(before, after, version):
    """Texts, order and version agree, whatever was added, changed, removed or moved."""
    first, wanted = library(before), library(after, version=version)
    found = with_changes(first, carried(library_changes(first, wanted)))
    assert library_fingerprint(found) == library_fingerprint(wanted)
    assert found.version == version
    assert list(found.tools) == list(wanted.tools)


@given(tools=TOOLS, changed=NAMES)
def test_only_what_changed_is_sent(tools, changed):
    """Tools that stayed as they were do not travel, and an equal library sends none."""
    first = library(tools)
    words = [(name, "Four." if name == changed else text) for name, text in tools]
    changes = library_changes(first, library(words))
    assert [one["name"] for one in changes["new"]] == [name for name, _ in tools if name == changed]
    assert library_changes(first, library(tools)) == {"version": 1, "names": None, "new": []}


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
    found = with_changes(before, carried(library_changes(before, after)))
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


def test_a_composite_of_a_reworded_tool_waits():
    """It is not linked before it is validated again."""
    composites = [calling("doubled", double), calling("halved", half)]
    before = Library([double, half, *composites], version=1).bind({})
    words = Description(summary="Two times a number.")
    reworded = replace(double.definition, description=words)
    after = Library(before.definitions, version=2).with_tools([reworded])
    found = with_changes(before, carried(library_changes(before, after)))
    assert found["double"](x=2) == 4
    assert not found["doubled"].is_bound
