"""The DAG of a library: edges, depths, flat sizes, ancestors, and what broken data does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.composites import language as ir, shortest_path
from agentkit.composites.codec import program_to_json
from agentkit.composites.language import (
    Argument,
    Assign,
    Binary,
    Boolean,
    Break,
    Call,
    Compare,
    Comprehension,
    Conditional,
    Continue,
    DictLiteral,
    Do,
    For,
    If,
    ListLiteral,
    Name,
    Parameter,
    Program,
    Return,
)
from agentkit.errors import CompositeError, LibraryError, ToolNotFoundError
from agentkit.library.dag import (
    Dag,
    ancestors,
    depth,
    descendants,
    find_cycle,
    flat_size,
    in_order,
    saved_calls,
)
from agentkit.tools.definition import ChildReference, Signature

DIGEST = "0" * 64


def primitive(name: str) -> ToolDefinition:
    """A tool without a body."""
    return ToolDefinition(name=name)


def composite(name: str, *children: str, pins: tuple[str, ...] = ()) -> ToolDefinition:
    """A composite that calls ``children`` one after the other."""
    items = tuple(Call(child=child) for child in children)
    program = Program(parameters=(), body=(Return(value=ListLiteral(items=items)),))
    references = tuple(ChildReference(name=pin, digest=DIGEST) for pin in pins)
    return ToolDefinition(
        name=name, signature=Signature(children=references), body=program_to_json(program)
    )


@pytest.fixture
def library() -> Library:
    """Primitives a, b and lone; top calls mid twice and a once; mid calls b and a."""
    return Library(
        [
            composite("top", "mid", "a", "mid", pins=("mid", "a")),
            composite("mid", "b", "a", pins=("b", "a")),
            primitive("a"),
            primitive("b"),
            primitive("lone"),
        ]
    )


def test_edges_are_the_call_sites(library):
    """Children come once, in the order of the pins; parents are the other way round."""
    assert library.dag.children["top"] == ("mid", "a")
    assert library.dag.children["mid"] == ("b", "a")
    assert library.dag.children["a"] == ()
    assert library.dag.parents["a"] == ("mid", "top")
    assert library.dag.parents["lone"] == ()


def test_depth_and_sizes_follow_the_recurrences(library):
    """Depth is one more than that of the deepest child; flat size adds up with multiplicity."""
    assert [depth(library, name) for name in library.tools] == [2, 1, 0, 0, 0]
    assert [flat_size(library, name) for name in library.tools] == [5, 2, 1, 1, 1]
    assert [saved_calls(library, name) for name in library.tools] == [4, 1, 0, 0, 0]


def test_a_composite_without_calls_stands_for_one():
    """It has depth 1 and flat size 1, and is the leaf of its own expansion."""
    alone = Library([composite("c"), composite("d", "c", "c")])
    assert (depth(alone, "c"), flat_size(alone, "c"), flat_size(alone, "d")) == (1, 1, 2)


def test_ancestors_come_in_the_order_of_validation(library):
    """Everything above a tool, children before parents."""
    assert ancestors(library, "b") == ("mid", "top")
    assert ancestors(library, "top") == ()
    assert descendants(library, "top") == ("a", "b", "mid")
    order = list(in_order(library.dag.children, library.dag.children))
    assert order.index("mid") < order.index("top")


def test_an_unknown_name_is_answered_with_the_nearest(library):
    """Every question about a tool that is not there raises as the library itself does."""
    for ask in (depth, flat_size, ancestors, descendants):
        with pytest.raises(ToolNotFoundError, match=r"no tool named 'lonely'.*'lone'"):
            ask(library, "lonely")


def test_a_missing_child_is_named_with_the_path():
    """A library with a hole loads; what stands above the hole has no depth, and says why."""
    holed = Library([composite("top", "mid"), composite("mid", "gone"), primitive("a")])
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
        [composite("a", "b"), composite("b", "c", "p"), composite("c", "a"), composite("d", "a")]
    ).with_tools([primitive("p")])
    assert find_cycle(circle) == ("a", "b", "c", "a")
    with pytest.raises(LibraryError, match="run in the cycle a -> b -> c -> a"):
        depth(circle, "d")
    assert depth(circle, "p") == 0
    assert ancestors(circle, "p") == ("a", "b", "c", "d")
    assert find_cycle(circle.with_tools([composite("c", "p")])) is None


def test_a_body_that_is_no_program_keeps_its_flat_size_to_itself():
    """The library loads and has depths; the flat size says what is wrong with the body."""
    broken = ToolDefinition(name="c", body={"kind": "Program", "body": [{"kind": "Call"}]})
    library = Library([broken, composite("d", "c")])
    assert depth(library, "d") == 2
    for name in ("c", "d"):
        with pytest.raises(CompositeError):
            flat_size(library, name)


def test_a_very_deep_chain_is_no_problem():
    """Five thousand layers of composites are counted and walked without recursion."""
    names = [f"c{n}" for n in range(5_001)]
    chain = [composite(name, below) for below, name in pairwise(names)]
    library = Library([*reversed(chain), primitive("c0")])
    assert (depth(library, "c5000"), flat_size(library, "c5000")) == (5_000, 1)
    assert len(ancestors(library, "c0")) == 5_000
    assert find_cycle(library) is None
    holed = library.without(["c0"])
    with pytest.raises(LibraryError, match=r"c5000 -> .* -> \.\.\. 4993 more \.\.\. -> .* -> c0"):
        depth(holed, "c5000")
    circle = library.with_tools([composite("c0", "c5000")])
    assert len(find_cycle(circle) or ()) == 5_002


# --- properties -----------------------------------------------------------------------------------


def graph_of(library):
    """The DAG as networkx has it."""
    return nx.DiGraph(dict(library.dag.children))


@st.composite
def edges_of(draw: st.DrawFn, *, acyclic: bool = True) -> dict[str, tuple[str, ...]]:
    """What each of up to nine tools calls; the first two are primitives."""
    count = draw(st.integers(2, 9))
    calls: dict[str, tuple[str, ...]] = {"t0": (), "t1": ()}
    for number in range(2, count):
        known = [f"t{n}" for n in range(number if acyclic else count)]
        calls[f"t{number}"] = tuple(draw(st.lists(st.sampled_from(known), max_size=4)))
    return calls


def definitions(calls: dict[str, tuple[str, ...]]) -> list[ToolDefinition]:
    """The tools that call so."""
    return [
        composite(name, *children) if name not in {"t0", "t1"} else primitive(name)
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
    place = {
        name: at for at, name in enumerate(in_order(library.dag.children, library.dag.children))
    }
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


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(edges_of(acyclic=False), st.sets(st.sampled_from("0123456789"))), max_size=4)
)
def test_a_dag_carried_along_is_the_one_made_afresh(steps):
    """Whatever is added, replaced and taken out, also in circles, nothing is left behind."""
    library = Library()
    assert library.dag == Dag()
    for calls, digits in steps:
        library = library.with_tools(definitions(calls))
        assert library.dag == Dag.of(library)
        library = library.without(f"t{digit}" for digit in digits)
        fresh = Library(list(library))
        assert library.dag == fresh.dag
        assert find_cycle(library) == find_cycle(fresh)
        for name in library.dag.depths:
            assert flat_size(library, name) == flat_size(fresh, name)
        circular = not nx.is_directed_acyclic_graph(graph_of(library))
        assert circular == (find_cycle(library) is not None)


X = Name(name="x")
WEIGHTS = {"a": 1, "b": 2, "c": 5}


def program(*body: ir.Statement) -> Program:
    """A program with one parameter."""
    return Program(parameters=(Parameter(name="x"),), body=body)


Way = tuple[str, ...]


def one_after_the_other(*parts: set[Way]) -> set[Way]:
    """Every way through the first part, then every way through the next."""
    whole: set[Way] = {()}
    for part in parts:
        whole = {(*before, *after) for before in whole for after in part}
        assume(len(whole) < 2_000)
    return whole


def stopping_early(operands: Sequence[ir.Expression], *, after: int) -> set[Way]:
    """Ways that evaluate the first ``after`` operands, or one more, and so on to all of them."""
    parts = [ways_to(operand) for operand in operands]
    return set().union(*(one_after_the_other(*parts[:end]) for end in range(after, len(parts) + 1)))


def ways_to(node: ir.Expression) -> set[Way]:
    """The calls on every way to the value of an expression."""
    match node:
        case Boolean():
            return stopping_early(node.operands, after=1)
        case Compare():
            return stopping_early(node.operands, after=2)
        case Conditional():
            sides = ways_to(node.then) | ways_to(node.otherwise)
            return one_after_the_other(ways_to(node.test), sides)
        case Comprehension():
            checked = [*node.conditions, node.element]
            item = stopping_early(checked, after=min(1, len(node.conditions)) or len(checked))
            return one_after_the_other(ways_to(node.source), item)
        case Call():
            inputs = (ways_to(argument.value) for argument in node.arguments)
            return one_after_the_other(*inputs, {(node.child,)})
    operands = list(ir.parts(node))
    if isinstance(node, DictLiteral):
        operands = [part for pair in zip(node.keys, node.values, strict=True) for part in pair]
    return one_after_the_other(*map(ways_to, operands))


def ways_out(block: ir.Block) -> set[tuple[str, Way]]:
    """How every way through a block ends, and its calls."""
    if not block:
        return {("falls through", ())}
    first, rest = block[0], block[1:]
    found: set[tuple[str, Way]] = set()
    for end, way in ends_of(first):
        if end != "falls through":
            found.add((end, way))
        else:
            found |= {(later, (*way, *more)) for later, more in ways_out(rest)}
        assume(len(found) < 2_000)
    return found


def ends_of(statement: ir.Statement) -> set[tuple[str, Way]]:
    """The same for one statement."""
    match statement:
        case Break() | Continue():
            return {("next", ())}
        case Return():
            return {("returns", way) for way in ways_to(statement.value)}
        case If():
            test, sides = ways_to(statement.test), (statement.then, statement.otherwise)
            inner = set().union(*map(ways_out, sides))
            return {(end, (*before, *after)) for before in test for end, after in inner}
        case For():
            source, inner = ways_to(statement.source), ways_out(statement.body)
            joined = {("returns" if end == "returns" else "falls through", w) for end, w in inner}
            return {(end, (*before, *after)) for before in source for end, after in joined}
    value = statement.call if isinstance(statement, Do) else statement.value
    return {("falls through", way) for way in ways_to(value)}


def every_way(node: Program) -> set[Way]:
    """The calls of every way through a program, each fork taken both ways."""
    return {way for _, way in ways_out(node.body)}


def expressions(children: st.SearchStrategy[str]) -> st.SearchStrategy[ir.Expression]:
    """Random expressions over calls of ``children``."""
    leaves = st.one_of(st.just(X), st.builds(Call, child=children))

    def grown(inner: st.SearchStrategy[ir.Expression]) -> st.SearchStrategy[ir.Expression]:
        pair = st.tuples(inner, inner)
        few = st.lists(inner, min_size=2, max_size=3).map(tuple)
        arguments = st.lists(inner, max_size=2).map(
            lambda given: tuple(Argument(name=f"p{n}", value=one) for n, one in enumerate(given))
        )
        return st.one_of(
            st.builds(Call, child=children, arguments=arguments),
            st.builds(Boolean, operator=st.sampled_from(["and", "or"]), operands=few),
            few.map(lambda all_: Compare(operators=("<",) * (len(all_) - 1), operands=all_)),
            st.builds(Conditional, test=inner, then=inner, otherwise=inner),
            st.builds(Binary, operator=st.just("+"), left=inner, right=inner),
            st.builds(ListLiteral, items=few),
            st.tuples(pair, pair).map(lambda kv: DictLiteral(keys=kv[0], values=kv[1])),
            st.builds(
                Comprehension,
                kind=st.just("list"),
                targets=st.just(("i",)),
                source=inner,
                element=inner,
                conditions=st.lists(inner, max_size=2).map(tuple),
            ),
        )

    return st.recursive(leaves, grown, max_leaves=3)


def blocks(children: st.SearchStrategy[str]) -> st.SearchStrategy[ir.Block]:
    """Random statements; a ``break`` outside a loop never gets past ``well_formed``."""
    value = expressions(children)
    simple = st.one_of(
        st.builds(Assign, targets=st.just(("y",)), value=value),
        st.builds(Do, call=st.builds(Call, child=children)),
    )

    def block_of(inner: st.SearchStrategy[ir.Statement]) -> st.SearchStrategy[ir.Block]:
        return st.lists(inner, min_size=1, max_size=3).map(tuple)

    def nested(
        inner: st.SearchStrategy[ir.Statement], *, in_loop: bool
    ) -> st.SearchStrategy[ir.Statement]:
        ends = [st.builds(Return, value=value)]
        if in_loop:
            ends += [st.just(Break()), st.just(Continue())]
        ended = st.tuples(inner, st.one_of(*ends))
        branch = st.one_of(block_of(inner), ended)
        otherwise = st.one_of(st.just(()), branch)
        return st.builds(If, test=value, then=branch, otherwise=otherwise)

    in_loop = st.one_of(simple, nested(simple, in_loop=True), nested(simple, in_loop=True))
    loop = st.builds(For, targets=st.just(("i",)), source=value, body=block_of(in_loop))
    twice = st.builds(For, targets=st.just(("j",)), source=value, body=block_of(loop))
    outer = st.one_of(simple, nested(simple, in_loop=False), loop, twice)
    return st.tuples(st.lists(outer, max_size=4), value).map(
        lambda parts: (*parts[0], Return(value=parts[1]))
    )


def programs(*children: str) -> st.SearchStrategy[Program]:
    """Random programs that call some of ``children``; not all keep to the language's rules."""
    return blocks(st.sampled_from(children)).map(lambda body: program(*body))


@settings(max_examples=100, deadline=None)
@given(programs("a", "b", "c"))
def test_the_shortest_way_is_the_lightest_of_all_ways(generated):
    """What is found without trying every way is what trying every way finds."""
    ways = every_way(generated)
    found = tuple(call.child for call in shortest_path(generated, WEIGHTS.__getitem__))
    lightest = min(sum(WEIGHTS[name] for name in way) for way in ways)
    assert sum(WEIGHTS[name] for name in found) == lightest
    assert found in ways
