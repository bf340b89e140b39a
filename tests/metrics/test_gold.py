"""Calls against gold: values, whole calls, and when two calls are equal."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.errors import UsageError
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, calls_equal, canonical_calls, match_allowed_values
from agentkit.metrics.allowed_values import GoldCalls, gold_problems


def tool(name="find", required=(), **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolDefinition.from_schema(name, "A tool.", schema)


def call(name="find", **arguments):
    return ToolCall(call_id="1", name=name, arguments=arguments)


def passes(value, allowed, schema):
    """Whether one argument with this value passes."""
    gold = AllowedCall(name="find", allowed={"x": allowed})
    return match_allowed_values([call(x=value)], [gold], [tool(x=schema)]).passed


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
BOOLEAN, OBJECT = {"type": "boolean"}, {"type": "object"}
NUMBERS = {"type": "array", "items": NUMBER}
STRINGS = {"type": "array", "items": STRING}
OBJECTS = {"type": "array", "items": OBJECT}


@pytest.mark.parametrize(
    ("value", "allowed", "schema"),
    [
        ("april 1 2024", ["April 1, 2024"], STRING),
        ("New-York_City", ["new york city"], STRING),
        ("it's", ['it"s'], STRING),
        ("", ["Paris", ""], STRING),
        (5, [5], INTEGER),
        (5, [5.0], NUMBER),
        (5, [5], NUMBER),
        (5.0, [5], NUMBER),
        (True, [True], BOOLEAN),
        ([1.0, 2.0], [[1.0, 2.0]], NUMBERS),
        ([1, 2], [[1, 2]], NUMBERS),
        ((1, 2), [[1, 2]], NUMBERS),
        (["A.", "b"], [["a", "B"], ["c"]], STRINGS),
        ([], [["a"], ""], STRINGS),
        ([[1], [2]], [[[1], [2]]], {"type": "array", "items": {"type": "array"}}),
        ({"low": 1, "high": 2}, [{"low": [1], "high": [2, 3]}], OBJECT),
        ({"low": 1}, [{"low": [1], "high": [2, ""]}], OBJECT),
        ({"low": 1}, ["", {"low": [1]}], OBJECT),
        ({"city": "NEW YORK"}, [{"city": ["New York"]}], OBJECT),
        ([{"a": 1}, {"a": 2}], [[{"a": [1]}, {"a": [2, 3]}]], OBJECTS),
        ([{"a": 1}], [[{"a": [2]}], [{"a": [1]}]], OBJECTS),
        ("other_variable", ["other_variable"], INTEGER),  # of the type that the answers have
        (7, [7], {}),  # the same for a parameter without a type
        ("seven", ["Seven"], {}),
        (None, [None], {"type": ["string", "null"]}),
        (3, [3], {"type": ["integer", "string"]}),
    ],
)
def test_values_that_pass(value, allowed, schema):
    """The documented leniencies, each in a case."""
    assert passes(value, allowed, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "schema"),
    [
        ("April 2, 2024", ["April 1, 2024"], STRING),
        ("Paris!", ["Paris"], STRING),
        (5.0, [5], INTEGER),
        ("5", [5], INTEGER),
        (True, [1], INTEGER),
        (1, [True], BOOLEAN),
        (5.1, [5], NUMBER),
        (None, ["Paris", ""], STRING),
        ("Other_Variable", ["other_variable"], INTEGER),
        ([2.0, 1.0], [[1.0, 2.0]], NUMBERS),
        ([1, 2], [[1.0, 2.0]], NUMBERS),
        (["a"], [["a", "b"]], STRINGS),
        ("['a']", [["a"]], STRINGS),
        ([], [["a"]], STRINGS),
        ({"low": 1, "extra": 2}, [{"low": [1]}], OBJECT),
        ({}, [{"low": [1]}], OBJECT),
        ({"low": 9}, [{"low": [1]}], OBJECT),
        ([{"a": 1}], [[{"a": [1]}, {"a": [2]}]], OBJECTS),
        ([{"a": 2}, {"a": 1}], [[{"a": [1]}, {"a": [2]}]], OBJECTS),
        (["a"], [[{"a": [1]}]], OBJECTS),
    ],
)
def test_values_that_fail(value, allowed, schema):
    """What looks alike but is not what was asked."""
    assert not passes(value, allowed, schema)


def reasons(calls, gold, definition):
    result = match_allowed_values(calls, [AllowedCall(name="find", allowed=gold)], [definition])
    return [(m.kind, m.argument) for entry in result.unmatched for m in entry.mismatches]


def test_arguments_may_be_left_out_only_where_gold_says_so():
    """An optional parameter whose value matters must be given, a required one always."""
    find = tool(required=["a"], a=STRING, b=STRING, c=STRING)
    gold = {"a": ["x", ""], "b": ["y"], "c": ["z", ""]}
    assert reasons([call(a="x", b="y")], gold, find) == []
    assert reasons([call(a="x")], gold, find) == [("missing_argument", "b")]
    assert reasons([call(b="y")], gold, find) == [("missing_argument", "a")]


def test_all_reasons_are_given():
    """Each wrong argument is named with its value and what was allowed."""
    find = tool(required=["a"], a=STRING, n=INTEGER)
    gold = AllowedCall(name="find", allowed={"a": ["x"], "n": [1, 2]})
    result = match_allowed_values([call(a="y", n="1")], [gold], [find])
    (unmatched,) = result.unmatched
    assert (unmatched.expected, unmatched.nearest, result.spurious) == (0, 0, (0,))
    assert [str(mismatch) for mismatch in unmatched.mismatches] == [
        "argument 'a': wrong value, got 'y', allowed ['x']",
        "argument 'n': wrong type, got '1', allowed [1, 2]",
    ]


def test_the_nearest_call_is_the_one_with_the_fewest_reasons():
    """Of two wrong calls of the tool the better one is held against the gold call."""
    find = tool(a=STRING, n=INTEGER)
    gold = [AllowedCall(name="find", allowed={"a": ["x"], "n": [1]})]
    (missed,) = match_allowed_values([call(a="y", n=2), call(a="x", n=2)], gold, [find]).unmatched
    assert (missed.nearest, [one.argument for one in missed.mismatches]) == (1, ["n"])


def test_another_tool_and_malformed_arguments_are_reasons():
    """A call as a whole can be wrong."""
    find = tool(a=STRING)
    other = call("look", a="x")
    broken = ToolCall(call_id="1", name="find", malformed='{"a": ')
    assert reasons([other], {"a": ["x"]}, find) == [("wrong_tool", "")]
    assert reasons([broken], {"a": ["x"]}, find) == [("malformed_arguments", "")]
    assert reasons([other, broken], {"a": ["x"]}, find) == [("malformed_arguments", "")]


def test_missing_and_spurious_calls_are_counted():
    """Every gold call must be made, once, and no other."""
    find = tool(a=STRING)
    gold = [AllowedCall(name="find", allowed={"a": [value]}) for value in "xy"]
    short = match_allowed_values([call(a="x")], gold, [find])
    assert (short.passed, short.pairs) == (False, ((0, 0),))
    assert [(entry.expected, entry.nearest) for entry in short.unmatched] == [(1, None)]
    long = match_allowed_values([call(a="x"), call(a="y"), call(a="y")], gold, [find])
    assert (long.passed, long.unmatched, long.spurious) == (False, (), (2,))
    assert match_allowed_values([], [], [find]).passed


def test_a_greedy_choice_does_not_fail_the_rest():
    """The gold call that accepts both values leaves the other call to the one that needs it."""
    find = tool(a=STRING)
    gold = [
        AllowedCall(name="find", allowed={"a": ["x", "y"]}),
        AllowedCall(name="find", allowed={"a": ["x"]}),
    ]
    assert match_allowed_values([call(a="x"), call(a="y")], gold, [find]).passed


@given(
    st.lists(st.sampled_from("xyz"), max_size=5),
    st.lists(st.sampled_from(["x", "xy", "yz"]), max_size=5),
    st.data(),
)
def test_the_verdict_does_not_depend_on_order(values, options, data):
    """Calls and gold calls may be written in any order."""
    find = tool(a=STRING)
    gold = [AllowedCall(name="find", allowed={"a": list(option)}) for option in options]
    calls = [call(a=value) for value in values]
    result = match_allowed_values(calls, gold, [find])
    again = match_allowed_values(
        data.draw(st.permutations(calls)), data.draw(st.permutations(gold)), [find]
    )
    assert again.passed == result.passed
    assert len(again.pairs) == len(result.pairs) == _largest(values, options)


def _largest(values, options):
    """The size of a largest assignment, by trying all."""
    if len(values) > len(options):
        options = [*options, *[""] * (len(values) - len(options))]
    return max(
        sum(value in option for value, option in zip(values, order, strict=False))
        for order in itertools.permutations(options)
    )


FIND = tool(required=["town"], town=STRING, n=INTEGER, tags=STRINGS, where=OBJECT)


def problems(**allowed):
    return [
        str(problem)
        for problem in gold_problems([AllowedCall(name="find", allowed=allowed)], [FIND])
    ]


@pytest.mark.parametrize(
    "allowed",
    [
        {"town": ["Moss"]},
        {"town": ["Moss", ""]},
        {"town": [""]},
        {"town": ["Moss"], "n": [3, ""], "tags": [["a"], ""], "where": [{"x": [1, ""]}]},
        {"town": ["Moss"], "n": ["a_variable"]},
        {"town": ["Moss"], "made_up": [""]},
        {"town": ["Moss"], "where": [{}]},
    ],
)
def test_gold_that_some_call_matches_has_none(allowed):
    """Whatever odd values it lists, as long as one set of arguments is right."""
    assert problems(**allowed) == []


@pytest.mark.parametrize(
    ("allowed", "reason"),
    [
        ({}, "allows no value for the argument 'town', which 'find' requires"),
        ({"town": []}, "allows no value for 'town' that 'find' could be given"),
        ({"town": ["x"], "n": []}, "allows no value for 'n' that 'find' could be given"),
        ({"town": ["x"], "extra": [1]}, "lists the argument 'extra', which 'find' does not take"),
        ({"town": "Moss"}, "has no list of allowed values for 'town' but 'Moss'"),
        ({"town": 5}, "has no list of allowed values for 'town' but 5"),
    ],
)
def test_gold_that_nothing_matches_is_told(allowed, reason):
    """Each reason names the argument and what is listed for it."""
    assert problems(**allowed) == [f"gold call 0 {reason}"]


def test_an_unknown_tool_and_gold_without_arguments_are_told():
    """The call is named by its place among the gold calls."""
    gold = [
        AllowedCall(name="find", allowed={"town": ["x"]}),
        AllowedCall(name="look", allowed={}),
        AllowedCall(name="find", allowed=["town"]),
    ]
    found = gold_problems(gold, [FIND])
    assert [(one.expected, one.tool, one.argument) for one in found] == [
        (1, "look", ""),
        (2, "find", ""),
    ]
    assert "lists no arguments by name but ['town']" in str(found[1])
    with pytest.raises(UsageError, match="gold call 2"):
        match_allowed_values([], gold, [FIND])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["town", "n", "tags", "where", "extra"])


@given(
    st.dictionaries(NAMES, JSON, max_size=4),
    st.dictionaries(NAMES, JSON | st.lists(JSON, max_size=3), max_size=4),
)
def test_any_data_give_a_value(arguments, allowed):
    """Neither what a model wrote nor what gold lists ends a batch with an exception."""
    gold = [AllowedCall(name="find", allowed=allowed)]
    found = gold_problems(gold, [FIND])
    assert all(str(problem) for problem in found)
    prepared = GoldCalls(gold, [FIND])
    if not prepared.unreadable:
        result = prepared.match([ToolCall(call_id="1", name="find", arguments=arguments)])
        assert result.passed != bool(result.unmatched)
        assert all(str(one) for missed in result.unmatched for one in missed.mismatches)
        assert not (result.passed and found)


def test_values_beyond_what_can_be_shown_are_findings():
    """An integer of thousands of digits, or a list of hundreds of levels, is a wrong value."""
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    gold = [AllowedCall(name="find", allowed={"town": ["x"], "n": [1], "tags": [["a"]]})]
    given = {"town": "x", "n": 10**5000, "tags": deep}
    result = match_allowed_values([call(**given)], gold, [FIND])
    told = [str(one) for one in result.unmatched[0].mismatches]
    assert "argument 'n': wrong value, got int that is too large to be shown" in told[0]
    assert told[1].startswith("argument 'tags': wrong type")


CURRENCY = {"type": "string", "enum": ["EUR", "USD"], "default": "EUR"}
LOAN = tool(
    "loan", ["amount", "months"], amount=NUMBER, months=INTEGER, currency=CURRENCY, fees=NUMBERS
)
TOOLS = [LOAN, tool("mail", to=STRING)]

numbers = itertools.count()


def made(name="loan", malformed=None, **arguments):
    return ToolCall(
        call_id=f"call_{next(numbers)}", name=name, arguments=arguments, malformed=malformed
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(amount=1000, months=36), made(months=36, amount=1000)),
        (made(amount=1000, months=36), made(amount=1000.0, months="36")),
        (made(amount=1000, months=36), made(amount=1000, months=36, currency="EUR")),
        (made(amount=1, months=36, currency="usd"), made(amount=1, months=36, currency="USD")),
        (made(amount=1, months=2, fees=[1, 2.0]), made(amount=1, months=2, fees="[1.0, 2]")),
        (made("unknown", a={"x": 1, "y": 2}), made("unknown", a={"y": 2, "x": 1.0})),
        (made("unknown", a=float("nan")), made("unknown", a=float("nan"))),
        (made(malformed='{"amount": 1'), made(malformed='{"amount": 1')),
    ],
)
def test_calls_that_mean_the_same_are_equal(one, other):
    """Order of keys, clear coercions and written-out defaults make no difference."""
    assert calls_equal([one], [other], TOOLS)
    assert hash(canonical_calls([one], TOOLS)) == hash(canonical_calls([other], TOOLS))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(amount=1000, months=36), made(amount=1000, months=48)),
        (made(amount=1000, months=36), made(amount=1000)),
        (made(amount=1, months=36), made(amount=1, months=36, currency="USD")),
        (made(amount=1, months=2, fees=[1, 2]), made(amount=1, months=2, fees=[2, 1])),
        (made("mail", to="Ann"), made("mail", to="ann")),
        (made("mail", to="Ann"), made("loan", to="Ann")),
        (made("unknown", a=1), made("unknown", a=True)),
        (made("unknown", a=1), made("unknown", a="1")),
        (made("unknown", a=2**60), made("unknown", a=2**60 + 1)),
        (made(malformed='{"amount": 1'), made(malformed='{"amount":1')),
        (made(malformed="{}"), made()),
        (made(malformed="x"), made("mail", malformed="x")),
    ],
)
def test_calls_that_mean_something_else_differ(one, other):
    """Values, tools, order within a list, and the text of malformed calls count."""
    assert not calls_equal([one], [other], TOOLS)


loan_values = st.sampled_from([1, 1.0, "1", " 1", True, None, "EUR", "eur", [1], "[1]", {"a": 1}])
some_calls = st.one_of(
    st.builds(made, st.just("loan"), amount=loan_values, months=loan_values, currency=loan_values),
    st.builds(made, st.sampled_from(["mail", "unknown"]), to=JSON),
    st.builds(made, st.sampled_from(["mail", "loan"]), malformed=st.sampled_from(["", "{", "{}"])),
)


@settings(deadline=None)
@given(some_calls, some_calls, some_calls)
def test_equality_is_symmetric_and_transitive(a, b, c):
    """It does not matter who is compared with whom, or over whom."""
    ab, bc, ac = (calls_equal([x], [y], TOOLS) for x, y in ((a, b), (b, c), (a, c)))
    assert ab == calls_equal([b], [a], TOOLS)
    assert ac or not (ab and bc)
    assert ab == (hash(canonical_calls([a], TOOLS)) == hash(canonical_calls([b], TOOLS)))


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
    finder = [tool(x={})]
    assert calls_equal([call(x=one)], [call(x=one)], finder)
    assert not calls_equal([call(x=one)], [call(x=other)], finder)
    assert canonical_calls([call(x=one)], finder)[0].is_malformed
