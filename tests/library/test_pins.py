"""Pins: which composites disagree with the library, and how a change moves up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition, tool
from agentkit.composites.source import compose
from agentkit.errors import LibraryError
from agentkit.library.dag import ancestors
from agentkit.library.pins import pin_faults, repinned
from agentkit.tools.definition import ChildReference, Description


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def mul(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


TEXTS = (
    'def twice(x: float) -> float:\n    "Twice."\n    return add(x, x)',
    'def area(a: float, b: float) -> float:\n    "An area."\n    return mul(a, b)',
    'def frame(a: float, b: float) -> float:\n    "A frame."\n    return twice(add(a, b))',
    'def house(a: float, b: float) -> float:\n    "A house."\n    return add(frame(a, b), area(a, b))',
)


def composed(*texts: str) -> Library:
    """The two primitives and a composite for each text, each made from those before it."""
    library = Library([add, mul])
    for text in texts:
        library = library.with_tools([compose(text, library.tools)])
    return library


@pytest.fixture
def library() -> Library:
    """The house calls add, frame and area; frame calls twice and add; twice calls add."""
    return composed(*TEXTS)


def reworded(definition: ToolDefinition, summary: str = "Other words.") -> ToolDefinition:
    """The definition with another summary, so with another digest."""
    return replace(definition, description=Description(summary=summary))


def codes(library: Library, *names: str) -> list[tuple[str, str, str]]:
    """Composite, child and code of each fault."""
    faults = pin_faults(library, names or None)
    return [(fault.tool, fault.child, fault.code) for fault in faults]


def test_what_was_composed_from_the_library_fits_it(library):
    """Nothing is wrong right after composing."""
    assert pin_faults(library) == ()


def test_a_changed_child_is_found_in_each_composite_that_calls_it(library):
    """Both digests are named, and what to do."""
    changed = library.with_tools([reworded(add.definition)])
    assert codes(changed) == [
        ("twice", "add", "changed_child"),
        ("frame", "add", "changed_child"),
        ("house", "add", "changed_child"),
    ]
    fault = pin_faults(changed, ["twice"])[0]
    assert add.definition.digest[:12] in fault.message
    assert changed["add"].definition.digest[:12] in fault.message
    assert "log --tool add" in fault.advice


def test_a_missing_child_is_found_with_its_nearest(library):
    """A child that is gone is named, and what looks like it."""
    other = replace(add.definition, name="add_")
    gone = library.without(["add"]).with_tools([other])
    assert ("twice", "add", "missing_child") in codes(gone)
    assert "(it has 'add_')" in pin_faults(gone, ["twice"])[0].message


def test_claims_that_differ_from_the_calls_are_faults(library):
    """A call that is not pinned and a pin that is not called are told apart."""
    twice = library["twice"].definition
    pins = (ChildReference(name="mul", digest=mul.definition.digest),)
    wrong = replace(twice, signature=replace(twice.signature, children=pins))
    assert codes(library.with_tools([wrong]), "twice") == [
        ("twice", "add", "unpinned_call"),
        ("twice", "mul", "uncalled_pin"),
    ]


def test_a_change_moves_up_to_the_top(library):
    """Every composite above gets the new digests, bottom-up, and then everything fits again."""
    moved = repinned(library, [reworded(add.definition)])
    assert [definition.name for definition in moved] == ["add", "twice", "frame", "house"]
    after = library.with_tools(moved)
    assert pin_faults(after) == ()
    assert after["area"].definition is library["area"].definition
    assert after["house"].definition.body == library["house"].definition.body


def test_changed_composites_are_pinned_to_each_other(library):
    """A changed composite whose child changes too is moved to that child's new digest."""
    changes = [reworded(library["frame"].definition), reworded(library["twice"].definition)]
    moved = repinned(library, changes)
    assert [definition.name for definition in moved] == ["twice", "frame", "house"]
    assert moved[1].description.summary == "Other words."
    assert pin_faults(library.with_tools(moved)) == ()


def test_a_circle_can_not_be_repinned(library):
    """A digest that would have to contain itself is refused, with the path."""
    twice, frame = library["twice"].definition, library["frame"].definition
    circular = replace(twice, body=frame.body)
    with pytest.raises(LibraryError, match="twice -> twice can not be moved"):
        repinned(library, [circular])


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(["add", "mul", "twice", "area", "frame", "house"]), min_size=1))
def test_repinning_touches_the_changed_and_what_is_above(names):
    """What comes back is the changed tools and all their ancestors, and nothing is stale after."""
    library = composed(*TEXTS)
    moved = repinned(library, [reworded(library[name].definition) for name in names])
    above = {one for name in names for one in ancestors(library, name)}
    assert {definition.name for definition in moved} == names | above
    assert pin_faults(library.with_tools(moved)) == ()


def test_digests_differ_exactly_where_pins_moved(library):
    """A composite keeps everything but its pins: words, examples, body, effects."""
    moved = {d.name: d for d in repinned(library, [reworded(add.definition)])}
    before = library["house"].definition
    after = moved["house"]
    same = replace(after, signature=replace(after.signature, children=before.signature.children))
    assert same == before
    assert after.digest != before.digest
