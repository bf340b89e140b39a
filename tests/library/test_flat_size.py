"""The flat size of a composite: what a run of it can not avoid to call."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import assume, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.composites import language as ir, program_from_json, shortest_path
from agentkit.composites.checks import check_program
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
    Constant,
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
from agentkit.library.dag import depth, flat_size, saved_calls

X, ONE = Name(name="x"), Constant(value=1)
WEIGHTS = {"a": 1, "b": 2, "c": 5}
A, B, C = (Call(child=name) for name in WEIGHTS)
DONE = Return(value=ONE)


def program(*body: ir.Statement) -> Program:
    """A program with one parameter."""
    return Program(parameters=(Parameter(name="x"),), body=body)


def shortest(*body: ir.Statement) -> str:
    """The names on the shortest way, as one word."""
    path = shortest_path(program(*body), WEIGHTS.__getitem__)
    return "".join(call.child for call in path)


def value_of(expression: ir.Expression) -> str:
    """The names on the shortest way to the value of an expression."""
    return shortest(Return(value=expression))


def test_sixteen_ifs_in_a_row_join():
    """Ways that meet again are merged: their number does not double with each ``if``."""
    ifs = [If(test=X, then=(Do(call=C),), otherwise=(Do(call=B), Do(call=A))) for _ in range(40)]
    assert shortest(*ifs, DONE) == "ba" * 40


def test_a_long_chain_of_elifs_is_walked():
    """A chain longer than Python's stack is deep is no problem."""
    chain: tuple[ir.Statement, ...] = (Return(value=A),)
    for _ in range(5_000):
        chain = (If(test=X, then=(Return(value=C),), otherwise=chain),)
    assert shortest(*chain) == "a"


# --- against an oracle that tries every way --------------------------------------------------------


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


def accepted_programs(*children: str) -> st.SearchStrategy[Program]:
    """Those that a library would take."""
    return programs(*children).filter(lambda made: not check_program(made))


@settings(max_examples=100, deadline=None)
@given(programs("a", "b", "c"))
def test_the_shortest_way_is_the_lightest_of_all_ways(generated):
    """What is found without trying every way is what trying every way finds."""
    ways = every_way(generated)
    found = tuple(call.child for call in shortest_path(generated, WEIGHTS.__getitem__))
    lightest = min(sum(WEIGHTS[name] for name in way) for way in ways)
    assert sum(WEIGHTS[name] for name in found) == lightest
    assert found in ways


def composite(name: str, body: Program) -> ToolDefinition:
    """A definition with a body; its pins play no part here."""
    return ToolDefinition(name=name, body=program_to_json(body))


@st.composite
def libraries(draw: st.DrawFn) -> Library:
    """Two primitives and a few composites over them and over each other."""
    names = ["p", "q"]
    tools = [ToolDefinition(name=name) for name in names]
    for number in range(draw(st.integers(1, 4))):
        name = f"c{number}"
        tools.append(composite(name, draw(accepted_programs(*names))))
        names.append(name)
    return Library(tools)


def flat_by_recursion(library: Library, name: str) -> int:
    """The flat size from every way through every program below; nothing is shared with ours."""
    body = library[name].definition.body
    if body is None:
        return 1
    ways = every_way(program_from_json(body))
    return max(1, min(sum(flat_by_recursion(library, child) for child in way) for way in ways))


@settings(max_examples=20, deadline=None)
@given(libraries())
def test_flat_size_is_what_brute_force_finds(library):
    """Through all layers, the flat size is that of the lightest way, and the expansion as long."""
    for name in library.tools:
        size = flat_size(library, name)
        assert size == flat_by_recursion(library, name)
        assert saved_calls(library, name) == size - 1
        assert (depth(library, name) == 0) == (name in {"p", "q"})
