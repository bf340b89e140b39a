"""Tools that composites call in these tests, and random programs as nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from agentkit.composites import language as ir
from agentkit.composites.parser import parse
from agentkit.errors import CompositeError, SourceProblem
from agentkit.tools.definition import EffectName, Effects, ToolDefinition
from agentkit.tools.tool import Tool

Problems = Callable[[str], tuple[SourceProblem, ...]]


def unbound(name: str, *parameters: str, optional: str = "", effects: EffectName | None = None):
    """A catalogue entry: what the parser needs of a tool."""
    schema = {
        "type": "object",
        "properties": {parameter: {} for parameter in (*parameters, *optional.split())},
        "required": list(parameters),
        "additionalProperties": False,
    }
    known = Effects.of((effects,)) if effects else None
    return Tool(definition=ToolDefinition.from_schema(name, "", schema, effects=known))


@pytest.fixture(scope="session")
def tools() -> Mapping[str, Tool]:
    """Two tools that only read, one that writes, three of which nothing is known."""
    made = (
        unbound("add", "a", "b"),
        unbound("look_up", "key", optional="default", effects="reads"),
        unbound("measure", "x", effects="reads"),
        unbound("send", "text", effects="writes"),
        unbound("weather.now", "city", optional="unit"),
        unbound("get user", "user-id", optional="from"),
    )
    return {tool.name: tool for tool in made}


@pytest.fixture(scope="session")
def problems_of(tools: Mapping[str, Tool]) -> Problems:
    """Parses a text and gives what is wrong with it; empty when it was read."""

    def problems(source: str) -> tuple[SourceProblem, ...]:
        try:
            parse(source, tools)
        except CompositeError as error:
            return error.problems
        return ()

    return problems


# --- random programs ------------------------------------------------------------------------------

NAMES = ("a", "b", "rows")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PLAIN = st.text("ab'\"{}#:!= ü", max_size=4)


def constants(texts: SearchStrategy[str]) -> SearchStrategy[ir.Expression]:
    """Literals as the parser gives them: never negative."""
    numbers = st.integers(0, 2**70) | st.floats(0, allow_infinity=False, allow_nan=False)
    positive = numbers.filter(lambda number: str(number)[0] != "-")
    return st.builds(ir.Constant, value=positive | texts | st.none() | st.booleans())


def names(*known: str) -> SearchStrategy[ir.Expression]:
    """Variables that are set."""
    return st.builds(ir.Name, name=st.sampled_from(known))


def operations(inner: SearchStrategy[ir.Expression]) -> SearchStrategy[ir.Expression]:
    """Expressions of all kinds but texts and comprehensions, over ``inner``."""
    several = st.lists(inner, max_size=3).map(tuple)
    keys = st.lists(st.tuples(inner, inner), max_size=2)
    tests = st.builds(
        ir.Compare,
        operators=st.tuples(st.sampled_from(["==", "<", "in", "not in"])),
        operands=st.tuples(names(*NAMES), inner),
    )
    return st.one_of(
        st.builds(ir.Unary, operator=st.sampled_from(["-", "+", "not"]), operand=inner),
        st.builds(
            ir.Binary,
            operator=st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]),
            left=inner,
            right=inner,
        ),
        st.builds(
            ir.Compare,
            operators=st.tuples(st.sampled_from(["<=", "!=", ">"]), st.just(">=")),
            operands=st.tuples(inner, inner, inner),
        ),
        st.builds(
            ir.Compare,
            operators=st.tuples(st.sampled_from(["is", "is not"])),
            operands=st.tuples(inner, st.just(ir.Constant(value=None))),
        ),
        st.builds(
            ir.Boolean,
            operator=st.sampled_from(["and", "or"]),
            operands=st.lists(inner, min_size=2, max_size=3).map(tuple),
        ),
        st.builds(ir.Conditional, test=tests, then=inner, otherwise=inner),
        st.builds(ir.ListLiteral, items=several),
        st.builds(ir.TupleLiteral, items=several),
        keys.map(
            lambda entries: ir.DictLiteral(
                keys=tuple(key for key, _ in entries), values=tuple(value for _, value in entries)
            )
        ),
        st.builds(ir.Index, value=inner, index=inner),
        st.builds(
            ir.Slice,
            value=inner,
            start=st.none() | inner,
            stop=st.none() | inner,
            step=st.none() | inner,
        ),
        st.builds(ir.Method, receiver=inner, method=st.just("get"), arguments=st.tuples(inner)),
        st.builds(ir.Method, receiver=inner, method=st.just("upper")),
        st.builds(ir.Builtin, function=st.just("max"), arguments=st.tuples(inner, inner)),
        st.builds(
            ir.Builtin,
            function=st.just("sorted"),
            arguments=st.tuples(inner),
            keywords=st.tuples(st.builds(ir.Argument, name=st.just("reverse"), value=inner)),
        ),
        _calls(inner),
    )


def _calls(inner: SearchStrategy[ir.Expression]) -> SearchStrategy[ir.Expression]:
    parameters = {"add": ("b", "a"), "weather.now": ("city",), "get user": ("from", "user-id")}
    return st.one_of(
        [
            st.builds(
                ir.Call,
                child=st.just(child),
                arguments=st.tuples(
                    *(st.builds(ir.Argument, name=st.just(name), value=inner) for name in names)
                ),
            )
            for child, names in parameters.items()
        ]
    )


def formats(inner: SearchStrategy[ir.Expression]) -> SearchStrategy[ir.Expression]:
    """f-strings, no two texts of which stand side by side."""
    text = TEXT.filter(bool).map(lambda value: ir.Constant(value=value))
    value = inner.filter(lambda part: not isinstance(part, ir.Constant))
    parts = st.tuples(value) | st.tuples(text, value) | st.tuples(value, value, text, value)
    return st.builds(ir.Format, parts=parts)


def comprehensions(
    inner: SearchStrategy[ir.Expression], kind: ir.ComprehensionKind
) -> SearchStrategy[ir.Expression]:
    """Comprehensions with one or two targets."""
    own = inner | names("k")
    test = st.builds(ir.Compare, operators=st.just(("==",)), operands=st.tuples(names("k"), inner))
    return st.builds(
        ir.Comprehension,
        kind=st.just(kind),
        targets=st.sampled_from([("k",), ("k", "l")]),
        source=inner,
        conditions=st.lists(test, max_size=2).map(tuple),
        key=own if kind == "dict" else st.none(),
        element=own,
    )


@cache
def expressions(*known: str) -> SearchStrategy[ir.Expression]:
    """Expressions over the variables that are set."""
    simple = names(*known) | constants(PLAIN)
    small = st.recursive(simple, operations, max_leaves=3)
    joined = comprehensions(small, "generator").map(
        lambda made: ir.Builtin(function="sum", arguments=(made,))
    )
    listed = comprehensions(small, "list") | comprehensions(small, "dict") | joined
    leaves = simple | constants(TEXT) | listed | formats(small | listed)
    return st.recursive(leaves, operations, max_leaves=6)


@cache
def blocks(depth: int) -> SearchStrategy[ir.Block]:
    """A few statements that may be anywhere."""
    value = expressions(*NAMES)
    kinds = [
        st.builds(
            ir.Assign,
            targets=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple),
            value=value,
        ),
        st.builds(
            ir.Update,
            target=st.sampled_from(NAMES),
            operator=st.sampled_from(["+", "**"]),
            value=value,
        ),
        st.builds(ir.Do, call=_calls(value)),
    ]
    if depth:
        inside = blocks(depth - 1)
        test = st.builds(
            ir.Compare, operators=st.just(("<",)), operands=st.tuples(names("a"), value)
        )
        kinds.append(st.builds(ir.If, test=test, then=inside, otherwise=inside))
        end = st.sampled_from([(), (ir.Break(),), (ir.Continue(),)])
        body = st.tuples(inside, end).map(lambda pair: (*pair[0], *pair[1]))
        targets = st.sampled_from([("a",), ("a", "b")])
        kinds.append(st.builds(ir.For, targets=targets, source=value, body=body))
    return st.lists(st.one_of(kinds), max_size=2).map(tuple)


@pytest.fixture(scope="session")
def programs() -> SearchStrategy[ir.Program]:
    """Programs that break no rule, but for f-strings that Python 3.11 can not write."""
    defaults = st.none() | st.builds(ir.Constant, value=st.integers(-5, 5) | TEXT | st.none())
    first = st.tuples(*(st.builds(ir.Parameter, name=st.just(n), default=defaults) for n in NAMES))
    last = st.builds(ir.Return, value=expressions(*NAMES))
    body = st.tuples(blocks(2), last).map(lambda pair: (*pair[0], pair[1]))
    return st.builds(ir.Program, parameters=first, body=body)
