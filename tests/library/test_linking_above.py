"""``link_above`` links what a change bears on, and comes to what linking everything comes to."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import given, settings, strategies as st

from agentkit import Library, Tool, ToolDefinition, tool
from agentkit.composites.source import compose
from agentkit.library.linking import link, link_above
from agentkit.tools.definition import ChildReference, Description


@tool
def one(x: float) -> float:
    """One more."""
    return x + 1


@tool
def two(x: float) -> float:
    """Two more."""
    return x + 2


CALLS = [("c0", "one"), ("c1", "two"), ("c2", "c0"), ("c3", "c1"), ("c4", "c2"), ("c5", "c3")]
PRIMITIVES = {"one": one, "two": two}
ALL = st.sampled_from([*PRIMITIVES, *(name for name, _ in CALLS)])
CHANGES = st.dictionaries(ALL, st.sampled_from(["gone", "reworded", "unbound", "new code"]))


def calling(name: str, child: str, tools: Library) -> ToolDefinition:
    """A composite that calls one tool."""
    text = f'def {name}(x: float) -> float:\n    "Calls {child}."\n    return {child}(x)'
    return compose(text, tools.tools)


@cache
def linked() -> Library:
    """Two primitives with three composites above each, all with code."""
    library = Library(PRIMITIVES.values())
    for name, child in CALLS:
        library = library.with_tools([calling(name, child, library)])
    return link(library)


def changed(known: Tool, how: str) -> Tool:
    """A tool after a change; composites get no code of the caller's own."""
    if how == "reworded":
        words = Description(summary="Other words.")
        return known.with_definition(replace(known.definition, description=words))
    if how == "unbound" or known.definition.is_composite:
        return Tool(definition=known.definition)
    return replace(known, function=lambda x: -x, requires_approval=True)


def shown(library: Library) -> dict[str, object]:
    """Of each tool whether it runs, what it gives, and whether it asks."""
    return {
        one.name: (one.is_bound, one(x=1) if one.is_bound else None, one.needs_approval)
        for one in library
    }


@settings(max_examples=100, deadline=None)
@given(CHANGES)
def test_linking_above_a_change_is_linking_everything(changes):
    """Whatever went, was reworded, lost its code or got another."""
    library = linked()
    gone = [name for name, how in changes.items() if how == "gone"]
    new = [changed(library[name], how) for name, how in changes.items() if how != "gone"]
    after = library.without(gone).with_tools(new)
    assert shown(link_above(after, changes)) == shown(link(after))


def test_what_a_change_does_not_bear_on_is_left_alone():
    """Its tools are the very same afterwards, so that their programs are not read again."""
    library = linked()
    after = link_above(library.with_tools([changed(one, "new code")]), ["one"])
    kept = [known.name for known in library if after[known.name] is known]
    assert kept == ["two", "c1", "c3", "c5"]
    assert after["c4"](x=1) == -1


def test_a_pin_without_a_call_is_heeded():
    """A composite that claims a child which it never calls is not run when that child changed."""
    library = linked()
    claim = ChildReference(name="two", digest=two.definition.digest)
    known = library["c0"].definition
    signature = replace(known.signature, children=(*known.signature.children, claim))
    claiming = link(library.with_tools([replace(known, signature=signature)]))
    assert claiming["c0"].is_bound
    after = claiming.with_tools([changed(two, "reworded")])
    assert not link_above(after, ["two"])["c0"].is_bound


def test_a_library_without_composites_stays_the_same():
    """There is nothing to link."""
    library = Library(PRIMITIVES.values())
    assert link_above(library, ["one"]) is library
