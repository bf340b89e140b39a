"""A library is an immutable, ordered snapshot, binds code, and is a DAG; ``open_store`` opens its store."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent, Library, Tool, ToolDefinition, open_store, tool
from agentkit.composites import shortest_path
from agentkit.composites.composite import program_to_json
from agentkit.composites.language import Program, child_call
from agentkit.composites.parser import parse
from agentkit.errors import (
    CompositeError,
    DuplicateToolError,
    LibraryError,
    StoreError,
    ToolNotFoundError,
    UnknownSchemeError,
    UsageError,
)
from agentkit.library import Store
from agentkit.library.dag import ancestors, depth, descendants, find_cycle, flat_size, in_order
from agentkit.library.memory import MemoryStore
from agentkit.library.merging import distinct_name
from agentkit.library.sqlite import SQLiteStore
from agentkit.testing import ScriptedModel
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ChildReference, Description, Origin, Signature


def definition(name: str, summary: str = "") -> ToolDefinition:
    """A tool with one text."""
    return ToolDefinition(name=name, description=Description(summary=summary))


@pytest.fixture
def library():
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


# RFC 8785 puts the third before the second, for it orders by UTF-16; quotes are escaped
NAMES = ["a", "\uff5e", "\U0001f600", 'say "b"', "ä", "a b", "Z", "z", "\\", "\x7f"]


def test_known_libraries_keep_their_digests():
    """Digests stand in stores, artifacts and episodes; they must never move."""
    assert Library().digest == digest({})
    named = Library(definition(name) for name in NAMES)
    assert named.digest == "5f5423e08bf03acd2d20acc88f06c1e2f24d818a3bdb650d594318a92785b6d2"


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
    for one in tools:
        name, origin = one.name, one.definition.origin
        free = distinct_name(name, library)
        if free != name:
            origin = replace(origin, original_name=origin.original_name or name)
        library = library.with_tools([replace(one.definition, name=free, origin=origin)])
    return library


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


DIGEST = "0" * 64


def primitive(name: str) -> ToolDefinition:
    """A tool without a body."""
    return ToolDefinition(name=name)


def calling(name: str, *children: str, pins: tuple[str, ...] = ()) -> ToolDefinition:
    """A calling that calls ``children`` one after the other."""
    items = ast.List(elts=[child_call(child) for child in children])
    program = Program(parameters=(), body=(ast.Return(value=items),))
    references = tuple(ChildReference(name=pin, digest=DIGEST) for pin in pins)
    return ToolDefinition(
        name=name, signature=Signature(children=references), body=program_to_json(program)
    )


def test_a_missing_child_is_named_with_the_path():
    """A graph with a hole loads; what stands above the hole has no depth, and says why."""
    holed = Library([calling("top", "mid"), calling("mid", "gone"), primitive("a")])
    with pytest.raises(LibraryError, match="top -> mid -> gone the tool 'gone' is not in"):
        depth(holed, "top")
    with pytest.raises(LibraryError, match="'gone' is not in the library"):
        flat_size(holed, "mid")
    assert depth(holed, "a") == 0
    assert ancestors(holed, "gone") == ("mid", "top")
    assert find_cycle(holed) is None
    mended = holed.with_tools([primitive("gone")])
    assert depth(mended, "top") == 2


def test_a_cycle_is_reported_with_its_path():
    """Foreign data may call in a circle: it loads, and the path is named."""
    circle = Library(
        [calling("a", "b"), calling("b", "c", "p"), calling("c", "a"), calling("d", "a")]
    ).with_tools([primitive("p")])
    assert find_cycle(circle) == ("a", "b", "c", "a")
    with pytest.raises(LibraryError, match="run in the cycle a -> b -> c -> a"):
        depth(circle, "d")
    assert depth(circle, "p") == 0
    assert ancestors(circle, "p") == ("a", "b", "c", "d")
    assert set(descendants(circle, "d")) == {"a", "b", "c", "p"}
    assert find_cycle(circle.with_tools([calling("c", "p")])) is None


def test_a_body_that_is_no_program_keeps_its_flat_size_to_itself():
    """The graph loads and has depths; the flat size says what is wrong with the body."""
    broken = ToolDefinition(name="c", body={"kind": "Program", "body": [{"kind": "Call"}]})
    graph = Library([broken, calling("d", "c")])
    assert depth(graph, "d") == 2
    for name in ("c", "d"):
        with pytest.raises(CompositeError):
            flat_size(graph, name)


def test_a_very_deep_chain_is_no_problem():
    """Five thousand layers of composites are counted and walked without recursion."""
    names = [f"c{n}" for n in range(5_001)]
    chain = [calling(name, below) for below, name in pairwise(names)]
    graph = Library([*reversed(chain), primitive("c0")])
    assert (depth(graph, "c5000"), flat_size(graph, "c5000")) == (5_000, 1)
    assert len(ancestors(graph, "c0")) == 5_000
    assert find_cycle(graph) is None
    holed = graph.without(["c0"])
    with pytest.raises(LibraryError, match=r"c5000 -> .* -> \.\.\. 4993 more \.\.\. -> .* -> c0"):
        depth(holed, "c5000")
    circle = graph.with_tools([calling("c0", "c5000")])
    assert len(find_cycle(circle) or ()) == 5_002


# --- properties -----------------------------------------------------------------------------------


def graph_of(graph):
    """The DAG as networkx has it."""
    return nx.DiGraph({name: graph.dag.children[name] for name in graph.tools})


@st.composite
def edges_of(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """What each of up to nine tools calls; the first two are primitives."""
    count = draw(st.integers(2, 9))
    calls: dict[str, tuple[str, ...]] = {"t0": (), "t1": ()}
    for number in range(2, count):
        known = [f"t{n}" for n in range(number)]
        calls[f"t{number}"] = tuple(draw(st.lists(st.sampled_from(known), max_size=4)))
    return calls


def definitions(calls: dict[str, tuple[str, ...]]) -> list[ToolDefinition]:
    """The tools that call so."""
    return [
        calling(name, *children) if name not in {"t0", "t1"} else primitive(name)
        for name, children in calls.items()
    ]


@settings(max_examples=200, deadline=None)
@given(edges_of(), st.randoms(use_true_random=False))
def test_invariants_hold_for_any_dag(calls, random):
    """Acyclic, depth and flat size by their recurrences, ancestors the transitive closure."""
    tools = definitions(calls)
    random.shuffle(tools)
    library = Library(tools)
    graph = graph_of(library)
    assert nx.is_directed_acyclic_graph(graph)
    assert find_cycle(library) is None
    place = {name: at for at, name in enumerate(in_order(library.tools, library.dag.children))}
    for name, children in calls.items():
        below = [depth(library, child) for child in children]
        if name in {"t0", "t1"}:
            assert (depth(library, name), flat_size(library, name)) == (0, 1)
        else:
            assert depth(library, name) == 1 + max(below, default=0)
            assert flat_size(library, name) == max(1, sum(flat_size(library, c) for c in children))
        assert all(place[child] < place[name] for child in children)
        assert set(ancestors(library, name)) == nx.ancestors(graph, name)
        assert set(descendants(library, name)) == nx.descendants(graph, name)
        above = ancestors(library, name)
        for at, one in enumerate(above):
            assert not set(library.dag.children[one]).intersection(above[at:])


@tool
def a(x: int = 0) -> int:
    """Weighs 1."""
    return x


@tool
def b(x: int = 0) -> int:
    """Weighs 2."""
    return x


@tool
def c(x: int = 0) -> int:
    """Weighs 5."""
    return x


SHORTEST = {
    "return c(b(x))": "bc",
    "y = c(x); return a(y)": "ca",
    "if c(x) > 1:\n  return b(x)\n return a(x)": "ca",
    "if x > 1:\n  return c(x)\n elif b(x) > 1:\n  return a(x)\n return x": "b",
    "return c(x) if x > 1 else b(x)": "b",
    "return b(x) and c(x)": "b",
    "return a(x) < b(x) < c(x)": "ab",
    "y = 0\n for i in [x, 2]:\n  y = b(i)\n return y": "b",
    "y = 0\n for i in [x, 2]:\n  y = a(i)\n  if y > 1:\n   break\n  y = c(y)\n return y": "a",
    "y = 0\n for i in [x, 2]:\n  if i > x:\n   continue\n  y = c(i)\n return a(y)": "a",
    "for i in [x, 2]:\n  if i > 1:\n   return c(i)\n return b(x)": "b",
    "return [b(i) for i in [x, 2]]": "b",
    "return [c(i) for i in [x, a(x)] if b(i) > 1]": "ab",
    "return {'k': [a(x), b(x)]}": "ab",
}


@pytest.mark.parametrize("body", SHORTEST)
def test_the_shortest_way_takes_what_can_not_be_avoided(body):
    """Branches, early stops, loops and comprehensions count as little as a run of them can."""
    text = f"def f(x: int):\n {body}\n"
    program = parse(text, {"a": a, "b": b, "c": c}).program
    path = shortest_path(program, {"a": 1, "b": 2, "c": 5}.__getitem__)
    assert "".join(path) == SHORTEST[body]


def opened_path(url: str | Path) -> Path:
    """The file behind a SQLite URL."""
    store = open_store(url)
    store.close()
    assert isinstance(store, SQLiteStore)
    return store.path


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
def test_memory_opens_a_new_store_each_time(url):
    """A memory URL gives a store of both halves, and never the same one twice."""
    first, second = open_store(url), open_store(url)
    assert isinstance(first, MemoryStore)
    assert isinstance(first, Store)
    assert first is not second


def test_slashes_tell_a_relative_path_from_an_absolute_one(tmp_path, monkeypatch):
    """sqlite:///name is a file in the working directory, sqlite:////path one by its absolute path."""
    monkeypatch.chdir(tmp_path)
    assert opened_path("sqlite:///library.db") == Path("library.db")
    assert (
        opened_path(f"sqlite:///{tmp_path}/my library %20?#.data")
        == tmp_path / "my library %20?#.data"
    )
    assert (tmp_path / "my library %20?#.data").exists()


@pytest.mark.parametrize(
    "url", ["", "library", "sqlite:", "sqlite://", "sqlite://a", "memory:mine"]
)
def test_what_is_no_url_says_what_to_write(url):
    """A URL that names nothing raises, with a form that works in the message."""
    with pytest.raises(UsageError, match="sqlite:///"):
        open_store(url)


@pytest.fixture
def without_plugins(monkeypatch):
    """As on a machine where no plugin is installed."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())


@pytest.mark.usefixtures("without_plugins")
@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("postgresql://host/db", "pip install agentkit-postgres"),
        ("redis://host/0", "pip install agentkit-redis"),
        ("ftp://host/library.db", "docs/write-a-store.md"),
    ],
)
def test_an_unknown_scheme_says_what_to_install(url, line):
    """A scheme that nobody answers for lists the installed ones and the line to type."""
    with pytest.raises(UnknownSchemeError, match=line) as caught:
        open_store(url)
    assert caught.value.scheme == url.partition(":")[0]
    assert {"memory", "sqlite"} <= set(caught.value.installed)


@pytest.mark.usefixtures("without_plugins")
@pytest.mark.parametrize(
    "url",
    ["redis://app:hunter2@host/0", "redis//app:hunter2@host/0", "redis://app:a@hunter2@[host/0"],
)
def test_a_password_is_not_shown(url):
    """The message of an unknown scheme keeps the password to itself, also of a mistyped URL."""
    with pytest.raises(UnknownSchemeError) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
    assert "app" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"), [("folder.db", "it is a folder"), ("missing/a.db", "does not exist")]
)
def test_a_file_that_can_not_be_opened_says_why(tmp_path, name, reason):
    """A folder in the place of the file, or a folder that is missing, is named as the reason."""
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreError, match=reason):
        open_store(tmp_path / name)


MODULE = """
from agentkit.library.memory import MemoryStore

class Shelf(MemoryStore):
    def __init__(self, url):
        super().__init__()
        self.url = url

def not_a_store(url):
    return {"url": url}
"""


def test_a_plugin_answers_for_its_scheme(plug_in):
    """The callable behind the entry point gets the whole URL, and its store is returned."""
    plug_in("shelf_store", MODULE, "[agentkit.stores]\nshelf = shelf_store:Shelf\n")
    store = open_store("shelf://upper/left?x=1")
    assert isinstance(store, MemoryStore)
    assert store.url == "shelf://upper/left?x=1"


@pytest.mark.parametrize("value", ["missing_module:Shelf", "shelf_store:Missing"])
def test_a_broken_plugin_is_named(plug_in, value):
    """A plugin that cannot be imported raises with its name, not with an import error alone."""
    plug_in("shelf_store", MODULE, f"[agentkit.stores]\nshelf = {value}\n")
    with pytest.raises(StoreError, match=value) as caught:
        open_store("shelf:")
    assert isinstance(caught.value.__cause__, ImportError | AttributeError)
