"""Data that flows between calls as between the gold ones (NESTFUL)."""

import random
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given, strategies as st
from support.episodes import episode_of

from agentkit import ToolDefinition
from agentkit.evaluation import GoldCall
from agentkit.evaluation.verifiers import Scene, verifier_for
from agentkit.messages import ToolCall, ToolFailure
from agentkit.metrics import calls_equal
from agentkit_bench import DataFlow
from agentkit_bench.comparable import by_name, comparable_call
from agentkit_bench.data_flow import FlowCall, compare_data_flow

FIND = ToolDefinition.from_schema(
    "find", "Find a harbour.", {"type": "object", "properties": {"place": {"type": "string"}}}
)
BOATS = ToolDefinition.from_schema(
    "boats",
    "Boats between harbours.",
    {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer"},
            "seats": {"type": "integer", "default": 1},
        },
    },
)
TOOLS = [FIND, BOATS]


def find(place, label="", **more):
    return FlowCall(name="find", arguments={"place": place, **more}, label=label)


def boats(a, b, label="", **more):
    return FlowCall(name="boats", arguments={"a": a, "b": b, **more}, label=label)


GOLD = [find("Aker"), find("Moss"), boats("$var1.id$", "$var2.id$")]


@pytest.mark.parametrize(
    "made",
    [
        GOLD,
        [find("Moss"), find("Aker"), boats("$var2.id$", "$var1.id$")],
        [find("Aker", "x"), find("Moss", "$y"), boats("$x.id$", "$y.id$", "z")],
        [find("Aker"), find("Moss"), boats("$var1.id$", "$var2.id$", seats="1")],
    ],
)
def test_renaming_and_independent_order_make_no_difference(made):
    """Labels, the order of calls that do not use each other, and defaults are free."""
    found = compare_data_flow(made, GOLD, TOOLS)
    assert found.is_full
    assert (found.partial, found.function_f1) == (1, 1)
    assert len(found.pairs) == 3


@pytest.mark.parametrize(
    ("made", "partial"),
    [
        ([find("Aker"), find("Moss"), boats("$var2.id$", "$var1.id$")], 2 / 3),  # swapped
        ([find("Aker"), find("Moss"), boats("$var1.id$", "$var2.code$")], 2 / 3),  # another field
        ([find("Aker"), find("Ulm"), boats("$var1.id$", "$var2.id$")], 1 / 3),  # made from wrong
        ([find("Aker"), find("Moss"), boats(1, 2)], 2 / 3),  # made up
        ([find("Aker"), find("Moss")], 2 / 3),  # too few
        ([*GOLD, find("Ulm")], 3 / 4),  # too many
        ([], 0),
    ],
)
def test_another_flow_is_another_answer(made, partial):
    """What a call is made from belongs to it; the share counts calls right down to the root."""
    found = compare_data_flow(made, GOLD, TOOLS)
    assert not found.is_full
    assert found.partial == pytest.approx(partial)
    assert not found.problems


def test_one_call_used_twice_is_not_two_equal_calls():
    """Drawing two cards and comparing them differs from comparing one with itself."""
    draw, again = FlowCall(name="draw"), FlowCall(name="draw")
    two = [draw, again, FlowCall(name="cmp", arguments={"a": "$var1$", "b": "$var2$"})]
    one = [draw, again, FlowCall(name="cmp", arguments={"a": "$var1$", "b": "$var1$"})]
    crossed = [draw, again, FlowCall(name="cmp", arguments={"a": "$var2$", "b": "$var1$"})]
    assert not compare_data_flow(one, two, []).is_full
    assert compare_data_flow(crossed, two, []).is_full


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            [boats("$var2.id$", 1), find("Aker")],
            "call 1 (boats): $var2.id$ refers to a call that is",
        ),
        ([find("Aker"), boats("$var9.id$", 1)], "$var9.id$ refers to no call"),
        ([find("Aker"), boats("$var1.id", 1)], "does not end"),
        ([ToolCall(call_id="1", name="find", malformed="{")], "can not be read"),
    ],
)
def test_references_that_lead_nowhere_are_told(made, says):
    """Forward, cyclic, dangling and broken references are problems in words, not exceptions."""
    found = compare_data_flow(made, GOLD, TOOLS)
    assert says in found.problems[0]
    assert not found.is_full
    assert not compare_data_flow(made, made, TOOLS).is_full
    assert compare_data_flow(GOLD, made, TOOLS).gold_problems == found.problems


def test_references_stand_in_texts_lists_and_objects():
    """A reference among words, in a list or in an object is one too, however it is named."""

    def answer(first, second):
        return [
            find("Aker", first),
            FlowCall(
                name="note",
                arguments={
                    "text": f"costs $US.5 from ${first}.name$ to ${first}.rows[0].name$",
                    "at": [f"${first}.lat$", 3.0],
                    "more": {"id": f"${first}.rows.0.id$"},
                },
                label=second,
            ),
        ]

    assert compare_data_flow(answer("var1", ""), answer("home", "x"), TOOLS).is_full
    other = answer("var1", "")
    other[1].arguments["at"].reverse()
    assert not compare_data_flow(other, answer("var1", ""), TOOLS).is_full


@st.composite
def answers(draw):
    """Answers of up to six calls with references to earlier ones."""
    calls = []
    for at in range(draw(st.integers(0, 6))):
        values = [st.sampled_from(["Aker", 1, 2.0, True, None])]
        if at:
            references = st.builds(
                lambda label, path: f"$v{label}{path}$",
                st.integers(0, at - 1),
                st.sampled_from(["", ".id", "[1].id", ".a b"]),
            )
            values += [references, references.map(lambda text: [text, f"to {text}"])]
        arguments = draw(st.dictionaries(st.sampled_from("ab"), st.one_of(values), max_size=2))
        name = draw(st.sampled_from(["find", "boats", "pay"]))
        calls.append(FlowCall(name=name, arguments=arguments, label=f"v{at}"))
    return calls


def shuffled(calls, seed):
    """The same flow in another order that keeps producers first, under other labels."""
    chance = random.Random(seed)
    left, order = list(range(len(calls))), []
    while left:
        ready = [at for at in left if all(f"$v{n}" not in repr(calls[at].arguments) for n in left)]
        order.append(chance.choice(ready))
        left.remove(order[-1])
    names = {f"v{at}": f"result_{place}" for place, at in enumerate(order)}

    def renamed(value):
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if isinstance(value, str):
            for old, new in names.items():
                value = value.replace(f"${old}", f"${new}")
        return value

    return [
        FlowCall(
            name=calls[at].name,
            arguments={key: renamed(value) for key, value in calls[at].arguments.items()},
            label=names[f"v{at}"],
        )
        for at in order
    ]


@given(calls=answers(), seed=st.integers(0, 9))
def test_every_renaming_is_recognised(calls, seed):
    """Any reordering that keeps producers first, under new labels, is the same answer."""
    found = compare_data_flow(shuffled(calls, seed), calls, TOOLS)
    assert found.is_full
    assert not found.problems
    assert (found.partial, found.function_f1, found.parameter_f1) == (1, 1, 1)


FIND_BOAT = ToolDefinition.from_schema(
    "find", "Find a place.", {"type": "object", "properties": {"place": {"type": "string"}}}
)
HARBOUR_BOATS = ToolDefinition.from_schema(
    "boats",
    "Boats between places.",
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
)
GOLD_CALLS = (
    GoldCall(name="find", arguments={"place": "Aker"}),
    GoldCall(name="find", arguments={"place": "Moss"}),
    GoldCall(name="boats", arguments={"a": "AK", "b": "MO"}),
)


@pytest.fixture
def judge():
    """Judges an episode against the gold calls."""

    async def verdict(episode, **expected):
        expectation = DataFlow(**{"calls": GOLD_CALLS, **expected})
        verifier = verifier_for(expectation, Scene(definitions=(FIND_BOAT, HARBOUR_BOATS)))
        return await verifier.verify(episode)

    return verdict


async def test_executed_calls_are_judged_by_the_values(judge):
    """Failed calls are left out, and a call that is made twice is one too many."""
    steps = [
        ("find", {"place": "Okker"}, "!no such place"),
        ("find", {"place": "Aker"}, {"id": "AK"}),
        ("find", {"place": "Moss"}, {"id": "MO"}),
        ("boats", {"a": "AK", "b": "MO"}, [7]),
    ]
    assert (await judge(episode_of(*steps))).passed
    twice = await judge(episode_of(*steps, steps[1]))
    assert not twice.passed
    assert twice.score == twice.metrics["partial_match"] == 3 / 4
    steps[-1] = ("boats", {"a": "AK", "b": "AK"}, [7])
    verdict = await judge(episode_of(*steps))
    assert [(one.kind, one.turn, one.parameter) for one in verdict.evidence] == [
        ("wrong_value", 3, "b"),
    ]


async def test_a_planned_call_that_a_learned_rule_refused_does_not_count(judge):
    """A rule that locks a tool loses its tasks, however right the call is otherwise."""
    failure = ToolFailure(kind="contract_violated", rule="call wipe first", cause="call_before")
    *others, last = [(one.name, one.arguments) for one in GOLD_CALLS]
    calls = [*((*one, None) for one in others), (*last, failure)]
    made = episode_of(*calls)
    planned = [replace(turn, results=()) for turn in made.turns[:-1]]
    verdict = await judge(replace(made, turns=(*planned, made.turns[-1])))
    assert [(one.kind, one.tool) for one in verdict.evidence] == [("missing_call", last[0])]


@pytest.mark.parametrize(
    "calls", [(GoldCall(name="absent"),), (GoldCall(name="boats", arguments={"a": "$var2.id$"}),)]
)
async def test_broken_gold_is_a_gold_error(judge, episode, calls):
    """Absent tools and references that lead nowhere say nothing about the agent."""
    assert (await judge(episode(answer="x"), calls=calls)).fault == "gold_error"


PLAIN = ToolDefinition.from_schema(
    "plain",
    "Only scalars, enums and lists.",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "n": {"type": "integer", "default": 3},
            "x": {"type": "number"},
            "flag": {"type": "boolean", "default": False},
            "unit": {"type": "string", "enum": ["km", "mile"], "default": "km"},
            "xs": {"type": "array", "items": {"type": "number"}},
            "free": {},
        },
        "required": ["text"],
    },
)
HARBOUR_TOOLS = by_name([PLAIN])
VALUES = st.recursive(
    st.sampled_from(["", "a", "km", " KM ", "mile", "3", "3.0", "true", "[1, 2.0]", "null", "nan"])
    | st.sampled_from([0, 1, 3, 3.0, -0.0, 0.5, 2**53, 2.0**53, 1e300, 10**300, True, False, None])
    | st.just(float("nan")),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.sampled_from("ab"), inside),
    max_leaves=4,
)
NAMES = st.sampled_from(["text", "n", "x", "flag", "unit", "xs", "free", "other"])
CALLS = st.builds(
    lambda name, arguments: ToolCall(call_id="1", name=name, arguments=arguments),
    st.sampled_from(["plain", "unknown"]),
    st.dictionaries(NAMES, VALUES, max_size=4),
)


@given(one=CALLS, other=CALLS)
def test_it_says_the_same_as_canonical_equality(one, other):
    """Two calls are equal in this form exactly when they are canonically equal."""
    same = comparable_call(one, HARBOUR_TOOLS).equals(comparable_call(other, HARBOUR_TOOLS))
    assert same == calls_equal([one], [other], HARBOUR_TOOLS.values())


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(call_id="1", name="plain", malformed="{"),
        ToolCall(
            call_id="1", name="plain", arguments={"free": reduce(lambda a, _: [a], "a" * 200)}
        ),
        ToolCall(call_id="1", name="plain", arguments={"free": {1: 2}}),
        ToolCall(call_id="1", name="plain", arguments={"unit": object()}),
        ToolCall(call_id="1", name="plain", arguments={"unit": 10**5_000}),
        ToolCall(call_id="1", name="plain", arguments=["text"]),
    ],
)
def test_what_is_no_object_of_arguments_equals_nothing(call):
    """Text that is no JSON, nesting beyond reason and keys that are no names give no exception."""
    compared = comparable_call(call, HARBOUR_TOOLS)
    assert not compared.is_readable
    assert not compared.equals(compared)
