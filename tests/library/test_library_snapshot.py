"""``Library`` is an immutable, ordered snapshot."""

from __future__ import annotations

import pytest

from agentkit import Library, Tool, ToolDefinition
from agentkit.errors import DuplicateToolError, ToolNotFoundError, UsageError
from agentkit.tools.definition import Description


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


def test_definitions_are_one_object(library):
    """The tuple of definitions is made once, so that it can key a cache."""
    assert library.definitions is library.definitions


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
