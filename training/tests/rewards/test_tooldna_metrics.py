"""ToolDNA's metrics and rewards: the paper's cases, its gates, and what must always hold."""

import random

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Effects, ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import calls_equal
from agentkit_training.rewards import reward_parts, tooldna_metrics

CARS = ToolDefinition.from_schema(
    "search_used_cars",
    "Search the inventory.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": 'Search term (e.g., "BMW X3").'},
            "limit": {"type": "integer", "default": 10, "maximum": 50},
        },
        "required": ["query"],
    },
)
LOAN = ToolDefinition.from_schema(
    "calculate_loan",
    "Monthly payment.",
    {
        "type": "object",
        "properties": {
            "total_price": {"type": "number"},
            "down_payment_ratio": {"type": "number"},
            "periods": {"type": "integer", "description": "Loan term (36/48/60)."},
        },
        "required": ["total_price", "down_payment_ratio", "periods"],
    },
)
CHECK = ToolDefinition.from_schema(
    "check_car",
    "Facts of a car.",
    {
        "type": "object",
        "properties": {
            "car_id": {"type": "string"},
            "fields": {
                "type": "array",
                "items": {"type": "string", "enum": ["price", "mileage", "colour"]},
            },
            "at": {"type": "array", "items": {"type": "number"}},
            "buyer": {
                "type": "object",
                "properties": {"age": {"type": "integer"}, "wish": {"type": "string"}},
            },
        },
        "required": ["car_id"],
    },
)
TRANSFER = ToolDefinition.from_schema("transfer_to_human", "Hand over.", {"type": "object"})
REMOVE = ToolDefinition.from_schema(
    "remove", "Remove.", {"type": "object"}, effects=Effects.of(["destructive"])
)
TOOLS = [CARS, LOAN, CHECK, TRANSFER, REMOVE]


def call(name="search_used_cars", malformed=None, **arguments):
    return ToolCall(call_id="1", name=name, arguments=arguments, malformed=malformed)


def cars(query, **arguments):
    return call(query=query, **arguments)


def check(**arguments):
    return call("check_car", **{"car_id": "c7", **arguments})


def compared(calls, gold, **facts):
    """ToolName, ParamName, ParamValue, PerfectMatch, Resolution."""
    found = tooldna_metrics(calls, gold, TOOLS, **facts)
    return (
        found.tool_name,
        found.param_name,
        found.param_value,
        found.perfect_match,
        found.resolution,
    )


def reward(design, metrics):
    """The whole reward of a design."""
    return sum(reward_parts(design, metrics).values())


PERFECT = (1, 1, 1, 1, 1)
LOAN_GOLD = call("calculate_loan", total_price=8.5, down_payment_ratio=0.1, periods=36)
LOAN_MADE = call("calculate_loan", total_price=8.5, down_payment_ratio=0.1, periods=31)


@pytest.mark.parametrize(
    ("made", "gold", "value", "total"),
    [
        (cars("Passat"), cars("Passat380"), 0.5, 0.625),  # table 5, initial
        (cars("Passat380"), cars("Passat380"), 1.0, 1.0),  # table 5, refined
        (LOAN_MADE, LOAN_GOLD, 0.0, 0.5),  # table 6, initial
        (LOAN_GOLD, LOAN_GOLD, 1.0, 1.0),  # table 6, refined
    ],
)
def test_the_papers_cases_come_out_as_printed(made, gold, value, total):
    """Tables 5 and 6: ParamValue, and the total reward, which is R2's in both."""
    metrics = tooldna_metrics([made], [gold], TOOLS)
    assert metrics.param_value == value
    assert reward("R2", metrics) == total


def test_no_other_reward_gives_the_totals_of_the_papers_cases():
    """R1 gives 0 and 0, R3 .5 and 0, where the tables print .625 and .5."""
    case1 = tooldna_metrics([cars("Passat")], [cars("Passat380")], TOOLS)
    case2 = tooldna_metrics([LOAN_MADE], [LOAN_GOLD], TOOLS)
    assert [reward("R1", case1), reward("R1", case2)] == [0, 0]
    assert [reward("R3", case1), reward("R3", case2)] == [0.5, 0]


def test_the_papers_example_of_semantic_overlap_resolves():
    """Its "2023 used cars" for "used 2023 vehicles" is not perfect, but resolves the query."""
    assert compared([cars("2023 used cars")], [cars("used 2023 vehicles")]) == (1, 1, 0.5, 0, 1)


@pytest.mark.parametrize(
    ("made", "gold", "expected"),
    [
        # under-selection
        (cars("X"), cars("X", limit=20), (1, 0, 0, 0, 0)),
        (check(), check(fields=["price"]), (1, 0, 0, 0, 0)),
        (check(fields=["price"]), check(fields=["price", "mileage"]), (1, 1, 0, 0, 0)),
        (check(fields=[]), check(fields=["price"]), (1, 1, 0, 0, 0)),
        (check(fields=["price", "mileage"]), check(fields=["price"] * 2), (1, 1, 0, 0, 0)),
        # defaults suffice
        (cars("X"), cars("X", limit=10), PERFECT),
        (cars("X", limit=10), cars("X"), PERFECT),
        (cars("X", limit="10"), cars("X", limit=10), PERFECT),
        # over-selection
        (cars("X", limit=20), cars("X"), (1, 0.5, 0.5, 0, 1)),
        (check(fields=["price", "mileage"]), check(fields=["price"]), (1, 1, 0.5, 0, 1)),
        (check(fields=["mileage", "price"]), check(fields=["price", "mileage"]), (1, 1, 0.5, 0, 1)),
        (check(fields=["price"]), check(), (1, 0.5, 0.5, 0, 1)),
        # hallucinated
        (cars("X", colour="red"), cars("X"), (1, 0, 0, 0, 0)),
        (cars("X", limit=99), cars("X"), (1, 0, 0, 0, 0)),
        (check(fields=["price", "smell"]), check(fields=["price"]), (1, 1, 0, 0, 0)),
        (check(fields=["price"]), check(fields=[]), (1, 1, 0, 0, 0)),
        # structured fields
        (cars("X", limit=11), cars("X", limit=12), (1, 1, 0, 0, 0)),
        (check(car_id="c8"), check(car_id="c7"), (1, 1, 0, 0, 0)),
        (check(at=[1, 2, 3]), check(at=[1, 2]), (1, 1, 0, 0, 0)),
        (check(at=[2, 1]), check(at=[1, 2]), (1, 1, 0, 0, 0)),
        # objects, field by field
        (check(buyer={"age": 3}), check(buyer={"age": 4}), (1, 1, 0, 0, 0)),
        (check(buyer={"age": 3, "wish": "red"}), check(buyer={"age": 3}), (1, 1, 0.5, 0, 1)),
        (check(buyer={"age": 3, "name": "Bo"}), check(buyer={"age": 3}), (1, 1, 0, 0, 0)),
        (check(buyer={}), check(buyer={"age": 3}), (1, 1, 0, 0, 0)),
        (check(buyer={"wish": "a red car"}), check(buyer={"wish": "red car"}), (1, 1, 0.5, 0, 1)),
        # free text
        (cars("Passat"), cars("Golf"), (1, 1, 0, 0, 0)),
        (cars("BMW X3"), cars("BMW X5"), (1, 1, 0, 0, 0)),
        (cars(380), cars("380"), (1, 1, 0, 0, 0)),
        # another tool
        (call("transfer_to_human"), cars("X"), (0, 0, 0, 0, 0)),
        (call("no_such_tool", query="X"), cars("X"), (0, 0, 0, 0, 0)),
    ],
)
def test_gates_for_one_call(made, gold, expected):
    """A missing parameter is 0, a valid superset .5, an invented one 0, structure exact."""
    assert compared([made], [gold]) == expected


@pytest.mark.parametrize(
    ("made", "gold", "expected"),
    [
        ([], [], PERFECT),
        ([cars("X")], [], (0, 0, 0, 0, 0)),
        ([], [cars("X")], (0, 0, 0, 0, 0)),
        ([call("transfer_to_human")], [call("transfer_to_human")], PERFECT),
        ([cars("A"), cars("B")], [cars("B"), cars("A")], PERFECT),
        ([cars("A")], [cars("A"), cars("B")], (0.5, 0, 0, 0, 0)),
        ([cars("A")], [cars("A"), call("transfer_to_human")], (0.5, 0, 0, 0, 0)),
        ([cars("A"), check()], [cars("A")], (0.5, 0.5, 0.5, 0, 1)),
        ([cars("A"), cars("A")], [cars("A")], (0.5, 0.5, 0.5, 0, 1)),
        ([cars("A"), call("remove")], [cars("A")], (0.5, 0, 0, 0, 0)),
        ([cars("A"), call("no_such_tool")], [cars("A")], (0.5, 0, 0, 0, 0)),
        ([cars("A"), call("check_car")], [cars("A")], (0.5, 0, 0, 0, 0)),
        ([cars("A"), check()], [cars("A"), call("transfer_to_human")], (0.5, 0, 0, 0, 0)),
        # pairing by order would compare 380 with Golf
        ([cars("Golf"), cars("Passat")], [cars("Passat380"), cars("Golf")], (1, 1, 0.5, 0, 1)),
    ],
)
def test_gates_for_several_calls(made, gold, expected):
    """Calls are paired as they fit best; the worst pair, and any call too many, decides."""
    assert compared(made, gold) == expected


def test_structure_is_a_fact_that_the_caller_gives():
    """A wrong format leaves the comparison alone; without parsed calls there is none."""
    right = [cars("X")]
    wrong_format = tooldna_metrics(right, right, TOOLS, format_ok=False)
    assert (wrong_format.format, wrong_format.perfect_match, wrong_format.resolution) == (0, 1, 0)
    for metrics in (
        tooldna_metrics(right, right, TOOLS, parsed_ok=False),
        tooldna_metrics([*right, call(malformed="{")], right, TOOLS),
    ):
        assert metrics.to_json() == {
            "format": 1,
            "tool_parsed": 0,
            "tool_name": 0,
            "param_name": 0,
            "param_value": 0,
            "perfect_match": 0,
            "resolution": 0,
        }


VALUES = st.sampled_from(
    [
        *("Passat", "Passat380", "c7", 10, 20, "20", 99, float("nan"), 10**400, None, True),
        ["price"],
        ["price", "mileage"],
        [],
        {"age": 3},
        {"age": 3, "wish": "red"},
        {},
        [[1]],
        "\u0440assat",
    ]
)
NAMES = st.sampled_from(["query", "limit", "car_id", "fields", "at", "buyer", "periods", "other"])
CALLS = st.builds(
    lambda name, arguments, malformed: call(
        name, malformed=malformed, **({} if malformed else arguments)
    ),
    st.sampled_from([*(tool.name for tool in TOOLS), "absent"]),
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.sampled_from([None] * 9 + ["{"]),
)
ANSWERS = st.lists(CALLS, max_size=4)
READABLE = st.lists(CALLS.filter(lambda one: one.malformed is None), max_size=4)
FACTS = st.fixed_dictionaries({"format_ok": st.booleans(), "parsed_ok": st.booleans()})


@given(calls=ANSWERS, gold=ANSWERS, facts=FACTS)
@settings(max_examples=100, deadline=None)
def test_metrics_and_rewards_stay_in_their_ranges(calls, gold, facts):
    """Each metric is 0, .5 or 1, the binary ones never .5, and rewards keep their bounds."""
    metrics = tooldna_metrics(calls, gold, TOOLS, **facts)
    assert set(metrics.to_json().values()) <= {0, 0.5, 1}
    binary = (metrics.format, metrics.tool_parsed, metrics.perfect_match, metrics.resolution)
    assert set(binary) <= {0, 1}
    assert metrics.param_value <= metrics.param_name <= metrics.tool_name
    assert -1 <= reward("R1", metrics) <= 1
    assert -2 <= reward("R2", metrics) <= 1
    assert -1 <= reward("R3", metrics) <= 1


@given(calls=READABLE, gold=READABLE, facts=FACTS)
@settings(max_examples=100, deadline=None)
def test_perfect_is_canonical_equality(calls, gold, facts):
    """PerfectMatch says that the calls are the gold calls, and needs nothing but parsing."""
    same = calls_equal(calls, gold, TOOLS) and facts["parsed_ok"]
    assert tooldna_metrics(calls, gold, TOOLS, **facts).perfect_match == same


@given(calls=ANSWERS, gold=ANSWERS, facts=FACTS)
@settings(max_examples=100, deadline=None)
def test_a_reward_is_one_exactly_for_a_perfect_answer_in_format(calls, gold, facts):
    """Nothing short of it reaches 1, so what triggers evolution can not be had otherwise."""
    metrics = tooldna_metrics(calls, gold, TOOLS, **facts)
    perfect = metrics.perfect_match == 1 and metrics.format == 1
    assert [reward(design, metrics) == 1 for design in ("R1", "R2", "R3")] == [perfect] * 3


@given(calls=READABLE, gold=READABLE, seed=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_the_order_of_calls_makes_no_difference(calls, gold, seed):
    """Shuffling either side gives the same seven numbers."""
    chance = random.Random(seed)
    shuffled = chance.sample(calls, len(calls)), chance.sample(gold, len(gold))
    assert tooldna_metrics(calls, gold, TOOLS) == tooldna_metrics(*shuffled, TOOLS)
