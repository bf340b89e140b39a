"""When two sets of calls are the same."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import calls_equal, canonical_calls

LOAN = ToolDefinition.from_schema(
    "loan",
    "Monthly payment.",
    {
        "type": "object",
        "properties": {
            "amount": {"type": "number"},
            "months": {"type": "integer"},
            "currency": {"type": "string", "enum": ["EUR", "USD"], "default": "EUR"},
            "fees": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["amount", "months"],
    },
)
MAIL = ToolDefinition.from_schema("mail", "Send.", {"properties": {"to": {"type": "string"}}})
TOOLS = [LOAN, MAIL]

numbers = itertools.count()


def call(name="loan", malformed=None, **arguments):
    return ToolCall(
        call_id=f"call_{next(numbers)}", name=name, arguments=arguments, malformed=malformed
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call(amount=1000, months=36), call(months=36, amount=1000)),
        (call(amount=1000, months=36), call(amount=1000.0, months="36")),
        (call(amount=1000, months=36), call(amount=1000, months=36, currency="EUR")),
        (call(amount=1, months=36, currency="usd"), call(amount=1, months=36, currency="USD")),
        (call(amount=1, months=2, fees=[1, 2.0]), call(amount=1, months=2, fees="[1.0, 2]")),
        (call("unknown", a={"x": 1, "y": 2}), call("unknown", a={"y": 2, "x": 1.0})),
        (call("unknown", a=float("nan")), call("unknown", a=float("nan"))),
        (call(malformed='{"amount": 1'), call(malformed='{"amount": 1')),
    ],
)
def test_calls_that_mean_the_same_are_equal(one, other):
    """Order of keys, clear coercions and written-out defaults make no difference."""
    assert calls_equal([one], [other], TOOLS)
    assert hash(canonical_calls([one], TOOLS)) == hash(canonical_calls([other], TOOLS))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call(amount=1000, months=36), call(amount=1000, months=48)),
        (call(amount=1000, months=36), call(amount=1000)),
        (call(amount=1, months=36), call(amount=1, months=36, currency="USD")),
        (call(amount=1, months=2, fees=[1, 2]), call(amount=1, months=2, fees=[2, 1])),
        (call("mail", to="Ann"), call("mail", to="ann")),
        (call("mail", to="Ann"), call("loan", to="Ann")),
        (call("unknown", a=1), call("unknown", a=True)),
        (call("unknown", a=1), call("unknown", a="1")),
        (call("unknown", a=2**60), call("unknown", a=2**60 + 1)),
        (call(malformed='{"amount": 1'), call(malformed='{"amount":1')),
        (call(malformed="{}"), call()),
        (call(malformed="x"), call("mail", malformed="x")),
    ],
)
def test_calls_that_mean_something_else_differ(one, other):
    """Values, tools, order within a list, and the text of malformed calls count."""
    assert not calls_equal([one], [other], TOOLS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
loan_values = st.sampled_from([1, 1.0, "1", " 1", True, None, "EUR", "eur", [1], "[1]", {"a": 1}])
some_calls = st.one_of(
    st.builds(call, st.just("loan"), amount=loan_values, months=loan_values, currency=loan_values),
    st.builds(call, st.sampled_from(["mail", "unknown"]), to=json_values),
    st.builds(call, st.sampled_from(["mail", "loan"]), malformed=st.sampled_from(["", "{", "{}"])),
)


@settings(deadline=None)
@given(some_calls, some_calls, some_calls)
def test_equality_is_symmetric_and_transitive(a, b, c):
    """It does not matter who is compared with whom, or over whom."""
    ab, bc, ac = (calls_equal([x], [y], TOOLS) for x, y in ((a, b), (b, c), (a, c)))
    assert ab == calls_equal([b], [a], TOOLS)
    assert ac or not (ab and bc)
    assert ab == (hash(canonical_calls([a], TOOLS)) == hash(canonical_calls([b], TOOLS)))


FIND = ToolDefinition.from_schema("find", "Find.", {"properties": {"x": {}}})


def call_call(value):
    return ToolCall(call_id="1", name="find", arguments={"x": value})


def nested(innermost, levels=900):
    for _ in range(levels):
        innermost = [innermost] if levels % 2 else {"a": innermost}
    return innermost


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(nested(1), nested(2), id="objects"),
        pytest.param(nested(1, 901), nested(2, 901), id="lists"),
        pytest.param(nested([1, [2]]), nested([[1], 2]), id="places"),
        pytest.param(10**5000, 10**5000 + 1, id="digits"),
        pytest.param({"n": 10**5000, "t": "a b"}, {"n": 10**5000, "t": "a  b"}, id="texts"),
    ],
)
def test_only_the_same_arguments_are_equal(one, other):
    """No exception, no two different calls that count as the same."""
    assert calls_equal([call_call(one)], [call_call(one)], [FIND])
    assert not calls_equal([call_call(one)], [call_call(other)], [FIND])
    assert canonical_calls([call_call(one)], [FIND])[0].is_malformed
