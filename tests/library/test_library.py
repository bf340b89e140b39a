"""``Library`` is an immutable, ordered snapshot."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent, Library, Tool, ToolDefinition, open_store
from agentkit.errors import DuplicateToolError, ToolNotFoundError, UsageError
from agentkit.library.conflicts import plan_import
from agentkit.library.store import LibraryChange
from agentkit.testing import ScriptedModel
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description, Origin, Signature


def definition(name: str, summary: str = "") -> ToolDefinition:
    """A tool with one text."""
    return ToolDefinition(name=name, description=Description(summary=summary))


@pytest.fixture
def library() -> Library:
    """Tools b and a, in that order, at version 3."""
    return Library([definition("b"), definition("a")], version=3)


def test_order_is_that_of_insertion(library):
    """Tools come in the order in which they were given, by every way of reading them."""
    assert [tool.name for tool in library] == ["b", "a"]
    assert list(library.tools) == ["b", "a"]
    assert [one.name for one in library.definitions] == ["b", "a"]
    assert (len(library), "a" in library, "c" in library) == (2, True, False)


def test_adding_makes_a_new_library(library):
    """Added tools go last, replaced ones keep their place, and the old library stays."""
    grown = library.with_tools([definition("c"), definition("b", "new")])
    assert [tool.name for tool in grown] == ["b", "a", "c"]
    assert grown["b"].definition.description.summary == "new"
    assert grown.version == library.version == 3
    assert library["b"].definition.description.summary == ""


def test_removing_makes_a_new_library(library):
    """Removed tools are gone, unknown names are ignored, and the old library stays."""
    assert list(library.without(["b", "zzz"]).tools) == ["a"]
    assert list(library.tools) == ["b", "a"]


def test_two_different_tools_of_one_name_are_refused():
    """One name means one tool; the same tool twice is one tool."""
    with pytest.raises(DuplicateToolError, match="'a'"):
        Library([definition("a", "one"), definition("a", "two")])
    assert len(Library([definition("a"), definition("a")])) == 1


def test_a_missing_name_suggests_another(library):
    """Asking for a name that is not there raises with names like it, and get gives None."""
    wide = library.with_tools([definition("get_weather")])
    with pytest.raises(ToolNotFoundError) as caught:
        wide["GetWeather"]
    assert caught.value.nearest == ("get_weather",)
    assert caught.value.tool_name == "GetWeather"
    assert wide.get("GetWeather") is None


def test_the_digest_ignores_order_and_version(library):
    """Libraries of equal tools have one digest; another text makes another."""
    same = Library([definition("a"), definition("b")])
    assert same.digest == library.digest
    assert library.with_tools([definition("a", "new")]).digest != library.digest


def test_binding_gives_code_to_stored_definitions(library):
    """Functions, coroutine functions and tools are attached by name; the rest stays unbound."""

    async def later() -> int:
        return 1

    own = Tool(definition=definition("x"), function=int, timeout_seconds=2)
    bound = library.bind({"a": later})
    assert (bound["a"].is_bound, bound["a"].is_async, bound["b"].is_bound) == (True, True, False)
    rebound = library.bind({"b": own})["b"]
    assert (rebound.function, rebound.timeout_seconds, rebound.name) == (int, 2, "b")
    assert not library["a"].is_bound


def test_binding_an_unknown_name_is_refused(library):
    """Code for a tool that is not in the library is a mistake."""
    with pytest.raises(ToolNotFoundError):
        library.bind({"zzz": print})


def test_one_text_is_no_list_of_names(library):
    """Its letters would be taken as names, and nothing or the wrong tools would go."""
    with pytest.raises(UsageError, match=r"write without\(\['ab'\]\)"):
        library.without("ab")


# RFC 8785 puts the third before the second, for it orders by UTF-16; quotes are escaped
NAMES = ["a", "\uff5e", "\U0001f600", 'say "b"', "ä", "a b", "Z", "z", "\\", "\x7f"]


def tool(name, text=""):
    return ToolDefinition(name=name, description=Description(summary=text))


def whole(library):
    """The digest as it is defined, from all tools at once."""
    return digest({one.name: one.definition.digest for one in library})


names = st.one_of(st.sampled_from(NAMES), st.text(min_size=1, max_size=3).filter(str.strip))
steps = st.lists(
    st.one_of(
        st.sets(names, max_size=4),
        st.dictionaries(names, st.sampled_from(["x", "y"]), max_size=4),
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(steps, st.sets(st.integers(0, 8)))
def test_any_changes_give_the_digest_of_the_whole(changes, asked):
    """However tools come, change and go, and whichever snapshots are asked in between."""
    library = Library([tool("a")])
    for place, change in enumerate(changes):
        if place in asked:
            assert library.digest == whole(library)
        if isinstance(change, set):
            library = library.without(change)
        else:
            library = library.with_tools(tool(name, text) for name, text in change.items())
    assert library.digest == whole(library) == Library(list(library)).digest


def test_known_libraries_keep_their_digests():
    """Digests stand in stores, artifacts and episodes; they must never move."""
    assert Library().digest == digest({})
    named = Library(tool(name) for name in NAMES)
    assert named.digest == "5f5423e08bf03acd2d20acc88f06c1e2f24d818a3bdb650d594318a92785b6d2"


@pytest.mark.parametrize("grown", [True, False])
def test_a_name_that_no_json_can_hold_is_refused(grown):
    """Half of a surrogate pair has no digest, whether it came first or later."""
    broken = tool("\ud800")
    library = Library([tool("a")])
    if grown:
        assert library.digest
    with pytest.raises(ValueError, match="not JSON data"):
        library.with_tools([broken]).digest  # noqa: B018 - asking is what raises


PARAMETERS = {"type": "object", "properties": {"id": {"type": "integer"}}}


def look_up(reference: str, *, name: str = "look_up", original: str | None = None) -> Tool:
    """A tool that answers with where it came from."""
    definition = ToolDefinition(
        name=name,
        signature=Signature(parameters=PARAMETERS),
        description=Description(summary=f"Look up, by {reference}."),
        origin=Origin(kind="openapi", reference=reference, original_name=original),
    )
    return Tool(definition=definition, function=lambda **_: reference)


def stored(*tools: Tool) -> Library:
    """A library that they came into one after another, each without its code."""
    library = Library()
    for tool in tools:
        plan = plan_import([tool.definition], library, on_conflict="suffix")
        library = library.with_tools(plan.upserts.values())
    return library


def test_many_definitions_of_one_name_are_told_apart_soon():
    """Each gets the next free name, in linear time; one that is there already is not added again."""
    several = [ToolDefinition.from_schema("it", f"Number {at}.", {}) for at in range(1_000)]
    begun = time.process_time()
    plan = plan_import(several, Library([several[0]]), on_conflict="suffix")
    assert time.process_time() - begun < 1
    assert (len(plan.renamed), plan.unchanged) == (999, 1)
    assert list(plan.upserts)[::997] == ["it__2", "it__999"]
    held = Library([several[0]]).with_tools(plan.upserts.values())
    assert plan_import(several[5:8], held, on_conflict="suffix").unchanged == 3


@pytest.mark.parametrize("original", [None, "look-up"])
def test_a_renamed_definition_gets_its_own_code(original):
    """Two tools of one name are told apart by where they came from, whatever their order."""
    cats, dogs = look_up("cats.json#/a"), look_up("dogs.json#/a", original=original)
    library = stored(cats, dogs)
    assert list(library.tools) == ["look_up", "look_up__2"]
    for code in ([cats, dogs], [dogs, cats], [dogs]):
        bound = library.bind(code)
        assert bound["look_up__2"]() == "dogs.json#/a"
        assert bound["look_up"].is_bound is (cats in code)


def test_an_agent_calls_the_code_of_a_renamed_definition():
    """The words in the store and the code in the program come together again."""
    cats, dogs = look_up("cats.json#/a"), look_up("dogs.json#/a")
    store = open_store("memory:")
    library = stored(cats, dogs)
    evolved = replace(library["look_up__2"].definition, description=Description(summary="Dogs."))
    upserts = (library["look_up"].definition, evolved)
    store.commit(LibraryChange(proposal_id="1", upserts=upserts), expected_version=0)
    agent = Agent(ScriptedModel([]), tools=[cats, dogs], store=store)
    assert list(agent.library.tools) == ["look_up", "look_up__2"]
    assert agent.library["look_up__2"].definition.description.summary == "Dogs."
    assert [tool() for tool in agent.library] == ["cats.json#/a", "dogs.json#/a"]


def test_another_tool_of_the_same_place_is_not_taken_for_it():
    """One function may be two tools; only the one that was renamed is found elsewhere."""
    first, second = look_up("tools:f", name="first"), look_up("tools:f", name="second")
    library = stored(look_up("other:f", name="first"), first)
    assert list(library.tools) == ["first", "first__2"]
    agent = Agent(ScriptedModel([]), tools=[first, second], library=library)
    assert list(agent.library.tools) == ["first", "first__2", "second"]
    assert not agent.library["first"].is_bound
