"""A library is an immutable, ordered snapshot, binds code, and can be rolled back."""

from __future__ import annotations

import time

import pytest

from agentkit import Agent, Library, Tool, ToolDefinition, open_store
from agentkit.errors import DuplicateToolError, StoreError, ToolNotFoundError, UsageError
from agentkit.library import LibraryChange
from agentkit.library.changes import rollback_change
from agentkit.library.merging import plan_import
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


def test_known_libraries_keep_their_digests():
    """Digests stand in stores, artifacts and episodes; they must never move."""
    assert Library().digest == digest({})
    named = Library(tool(name) for name in NAMES)
    assert named.digest == "5f5423e08bf03acd2d20acc88f06c1e2f24d818a3bdb650d594318a92785b6d2"


def test_a_name_that_no_json_can_hold_is_refused():
    """Half of a surrogate pair has no digest."""
    broken = tool("\ud800")
    library = Library([tool("a")])
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


def test_another_tool_of_the_same_place_is_not_taken_for_it():
    """One function may be two tools; only the one that was renamed is found elsewhere."""
    first, second = look_up("tools:f", name="first"), look_up("tools:f", name="second")
    library = stored(look_up("other:f", name="first"), first)
    assert list(library.tools) == ["first", "first__2"]
    agent = Agent(ScriptedModel([]), tools=[first, second], library=library)
    assert list(agent.library.tools) == ["first", "first__2", "second"]
    assert not agent.library["first"].is_bound


def reworded_tool(name: str, summary: str) -> ToolDefinition:
    """A tool with one text."""
    return ToolDefinition(name=name, description=Description(summary=summary))


@pytest.fixture
def store():
    """Tool a: good in 1, bad in 3, removed in 4. Tool b: new in 2."""
    store = open_store("memory:")
    steps = [
        LibraryChange(proposal_id="1", upserts=(reworded_tool("a", "good"),)),
        LibraryChange(proposal_id="2", upserts=(reworded_tool("b", "b"),)),
        LibraryChange(proposal_id="3", upserts=(reworded_tool("a", "bad"),)),
        LibraryChange(proposal_id="4", removals=("a",)),
    ]
    for version, step in enumerate(steps):
        store.commit(step, expected_version=version)
    return store


def test_the_definition_of_that_version_is_restored(store):
    """The change holds the definition that the tool had at that version, with its reason."""
    change = rollback_change(store, "a", to_version=2, proposal_id="undo", author="Ada")
    assert change.upserts == (reworded_tool("a", "good"),)
    assert (change.proposal_id, change.author, change.removals) == ("undo", "Ada", ())
    assert "version 2" in change.reason


def test_a_removed_tool_comes_back(store):
    """A tool that was removed since is in the library again, and its history only grows."""
    change = rollback_change(store, "a", to_version=3, proposal_id="undo")
    assert store.commit(change, expected_version=4) == 5
    assert store.load()["a"].definition == reworded_tool("a", "bad")
    assert [revision.version for revision in store.history("a")] == [1, 3, 4, 5]


def test_nothing_to_do_says_so(store):
    """A tool that already is as it was then raises and shows its history."""
    with pytest.raises(StoreError, match=r"nothing to roll back") as caught:
        rollback_change(store, "b", to_version=3, proposal_id="undo")
    assert "2 changed" in str(caught.value)


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_that_never_was_is_refused(store, version):
    """An unknown version raises and says which there are."""
    with pytest.raises(StoreError, match="versions 1 to 4"):
        rollback_change(store, "a", to_version=version, proposal_id="undo")


def test_an_unknown_tool_is_refused_with_a_suggestion(store):
    """A name that the store never held raises and suggests one that it has."""
    with pytest.raises(ToolNotFoundError) as caught:
        rollback_change(store, "B", to_version=1, proposal_id="undo")
    assert caught.value.nearest == ("b",)
