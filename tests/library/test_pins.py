"""Pins hold composites to their children; what does not hold is found, and can be moved."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition, tool
from agentkit.composites.source import compose
from agentkit.errors import LibraryError, ToolNotFoundError
from agentkit.library.dag import ancestors
from agentkit.library.pins import library_faults, pin_faults, repinned
from agentkit.tools.definition import ChildReference, Description, Effects


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


def test_moved_pins_bring_the_effects_of_the_children(library):
    """A composite above a child that began to write writes too, through all layers."""
    add_ = library["add"].definition
    writing = replace(add_, signature=replace(add_.signature, effects=Effects.of(["destructive"])))
    moved = {one.name: one for one in repinned(library, [writing])}
    assert len(moved) > 2
    assert all(one.signature.effects.destructive for one in moved.values())


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


@tool(effects=["reads"])
def look_up(key: str) -> int:
    """Look a number up."""
    return len(key)


@pytest.fixture
def sound() -> Library:
    """The tool both over look_up."""
    text = 'def both(a: str, b: str) -> int:\n    "Both."\n    return look_up(a) + look_up(b)'
    return Library([look_up, compose(text, {"look_up": look_up})])


def faults(sound: Library, *names: str) -> list[tuple[str, str]]:
    """Tool and code of each."""
    return [(fault.tool, fault.code) for fault in library_faults(sound, names or None)]


def changed(sound: Library, **parts) -> Library:
    """The library with another revision of both."""
    return sound.with_tools([replace(sound["both"].definition, **parts)])


def test_what_was_composed_is_sound(sound):
    """Nothing is found, and primitives have nothing to find."""
    assert library_faults(sound) == ()
    assert library_faults(sound, ["look_up"]) == ()


def test_effects_are_those_of_the_children(sound):
    """A composite may not claim to do less than the tools that it calls."""
    signature = replace(sound["both"].definition.signature, effects=Effects(reads=False))
    (fault,) = library_faults(changed(sound, signature=signature))
    assert fault.code == "effects"
    assert "declares not reads, its children together reads, not writes" in fault.message
    bare = replace(signature, effects=Effects())
    assert "declares no effects" in library_faults(changed(sound, signature=bare))[0].message


def test_programs_of_any_origin_keep_the_rules(sound):
    """A body that breaks a rule of the language is told."""
    body = sound["both"].definition.body
    twice = {**body, "body": [*body["body"], *body["body"]]}
    (fault,) = library_faults(changed(sound, body=twice))
    assert fault.code == "unreachable_code"


def test_conditions_of_composites_must_be_readable(sound):
    """Each condition that is no expression over the parameters is a fault of its own."""
    specification = replace(
        sound["both"].definition.specification,
        pre=("len(a) > 0", "c > 1"),
        post=("result >",),
    )
    found = faults(changed(sound, specification=specification))
    assert found == [("both", "condition"), ("both", "condition")]


def test_each_fault_is_told_once_and_in_order(sound):
    """Circles first; a missing child is told by its pin and not again by the program."""
    alone = sound.without(["look_up"]).with_tools([ToolDefinition(name="c", body={})])
    assert faults(alone) == [("both", "missing_child"), ("c", "malformed_program")]
    assert faults(alone, "c", "c") == [("c", "malformed_program")]


def test_an_unknown_name_is_refused(sound):
    """As everywhere, with the nearest names."""
    with pytest.raises(ToolNotFoundError, match="'both'"):
        library_faults(sound, ["bothh"])
