"""What is wrong with the composites of a library, without running anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition, tool
from agentkit.composites.source import compose
from agentkit.errors import ToolNotFoundError
from agentkit.library.pins import library_faults
from agentkit.tools.definition import Effects


@tool(effects=["reads"])
def look_up(key: str) -> int:
    """Look a number up."""
    return len(key)


@pytest.fixture
def library() -> Library:
    """The tool both over look_up."""
    text = 'def both(a: str, b: str) -> int:\n    "Both."\n    return look_up(a) + look_up(b)'
    return Library([look_up, compose(text, {"look_up": look_up})])


def faults(library: Library, *names: str) -> list[tuple[str, str]]:
    """Tool and code of each."""
    return [(fault.tool, fault.code) for fault in library_faults(library, names or None)]


def changed(library: Library, **parts) -> Library:
    """The library with another revision of both."""
    return library.with_tools([replace(library["both"].definition, **parts)])


def test_what_was_composed_is_sound(library):
    """Nothing is found, and primitives have nothing to find."""
    assert library_faults(library) == ()
    assert library_faults(library, ["look_up"]) == ()


def test_effects_are_those_of_the_children(library):
    """A composite may not claim to do less than the tools that it calls."""
    signature = replace(library["both"].definition.signature, effects=Effects(reads=False))
    (fault,) = library_faults(changed(library, signature=signature))
    assert fault.code == "effects"
    assert "declares not reads, its children together reads, not writes" in fault.message
    bare = replace(signature, effects=Effects())
    assert "declares no effects" in library_faults(changed(library, signature=bare))[0].message


def test_programs_of_any_origin_keep_the_rules(library):
    """A body that breaks a rule of the language is told."""
    body = library["both"].definition.body
    twice = {**body, "body": [*body["body"], *body["body"]]}
    (fault,) = library_faults(changed(library, body=twice))
    assert fault.code == "unreachable_code"


def test_conditions_of_composites_must_be_readable(library):
    """Each condition that is no expression over the parameters is a fault of its own."""
    specification = replace(
        library["both"].definition.specification, pre=("len(a) > 0", "c > 1"), post=("result >",)
    )
    found = faults(changed(library, specification=specification))
    assert found == [("both", "condition"), ("both", "condition")]


def test_each_fault_is_told_once_and_in_order(library):
    """Circles first; a missing child is told by its pin and not again by the program."""
    alone = library.without(["look_up"]).with_tools([ToolDefinition(name="c", body={})])
    assert faults(alone) == [("both", "missing_child"), ("c", "malformed_program")]
    assert faults(alone, "c", "c") == [("c", "malformed_program")]


def test_an_unknown_name_is_refused(library):
    """As everywhere, with the nearest names."""
    with pytest.raises(ToolNotFoundError, match="'both'"):
        library_faults(library, ["bothh"])
