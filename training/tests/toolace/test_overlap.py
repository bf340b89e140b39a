"""ToolACE-R's assignment, overlap and difficulty, equation by equation."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import calls_equal
from agentkit_training.toolace.overlap import (
    call_overlap,
    call_similarity,
    difficulty,
    optimal_assignment,
)

TRIP = ToolDefinition.from_schema(
    "trip",
    "A trip.",
    {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "days": {"type": "integer"},
            "class": {"type": "string", "default": "second"},
        },
    },
)
MAIL = ToolDefinition.from_schema("mail", "Send.", {"properties": {"to": {"type": "string"}}})
TOOLS = [TRIP, MAIL]


def call(name="trip", malformed=None, **arguments):
    return ToolCall(call_id="1", name=name, arguments=arguments, malformed=malformed)


CALLS = st.builds(
    lambda name, arguments: call(name, **arguments),
    st.sampled_from(["trip", "mail", "absent"]),
    st.dictionaries(
        st.sampled_from(["to", "days", "class"]),
        st.sampled_from(["Bonn", "Ulm", "3", 3, 2.0, True, 1, "second", None, [1], {"a": 1}]),
        max_size=3,
    ),
)
ANSWERS = st.lists(CALLS, max_size=5)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (call(to="Bonn", days=3), call(days="3", to="Bonn"), 1),
        (call(to="Bonn", days=3), call(to="Bonn"), 1 / 2),
        (call(to="Bonn", days=3), call(to="Bonn", days=2), 1 / 3),
        (call(to="Bonn", days=3), call(to="Ulm", days=2), 0),
        (call(to="Bonn"), call("mail", to="Bonn"), 0),
        (call(), call(), 1),
        (call(), call(to="Bonn"), 0),
        (call(to="Bonn"), call(to="Bonn", **{"class": "second"}), 1),
        (call(to="Bonn"), call(to="Ulm", **{"class": "second"}), 0),
        (call(malformed="{"), call(malformed="{"), 0),
    ],
)
def test_similarity_is_the_share_of_arguments_that_both_have(one, other, expected):
    """Eq. 2: equal arguments over distinct ones; different values of one name count twice."""
    assert call_similarity(one, other, TOOLS) == pytest.approx(expected)


def brute_force(predicted, reference):
    """Eq. 4 by trying every matching."""
    longer = max(len(predicted), len(reference))
    if not longer:
        return 1.0
    short, long = sorted((predicted, reference), key=len)
    return max(
        sum(call_similarity(a, b, TOOLS) for a, b in zip(short, order, strict=False)) / longer
        for order in itertools.permutations(long, len(short))
    )


@given(predicted=st.lists(CALLS, max_size=4), reference=st.lists(CALLS, max_size=4))
@settings(max_examples=50, deadline=None)
def test_overlap_is_the_best_over_all_matchings(predicted, reference):
    """Eq. 4 equals brute force."""
    assert call_overlap(predicted, reference, TOOLS) == pytest.approx(
        brute_force(predicted, reference)
    )


@given(predicted=ANSWERS, reference=ANSWERS, seed=st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_overlap_is_symmetric_bounded_and_blind_to_order(predicted, reference, seed):
    """0 <= O <= 1, O(a, b) = O(b, a), and shuffling either answer changes nothing."""
    score = call_overlap(predicted, reference, TOOLS)
    assert 0 <= score <= 1
    assert score == pytest.approx(call_overlap(reference, predicted, TOOLS))
    shuffled = random.Random(seed).sample(predicted, len(predicted))
    assert score == pytest.approx(call_overlap(shuffled, reference, TOOLS))


@given(predicted=ANSWERS, reference=ANSWERS)
@settings(max_examples=50, deadline=None)
def test_overlap_is_one_exactly_for_equal_answers(predicted, reference):
    """O = 1 says the same as canonical equality of the answers."""
    assert (call_overlap(predicted, reference, TOOLS) == 1) == calls_equal(
        predicted, reference, TOOLS
    )
    assert call_overlap(reference, reference, TOOLS) == 1


@given(predicted=ANSWERS, reference=ANSWERS, extra=CALLS)
@settings(max_examples=50, deadline=None)
def test_a_call_that_is_right_never_lowers_the_overlap(predicted, reference, extra):
    """Adding one call to both answers brings them closer, or leaves them as close."""
    before = call_overlap(predicted, reference, TOOLS)
    after = call_overlap([*predicted, extra], [*reference, extra], TOOLS)
    assert after >= before - 1e-12


@given(attempts=st.lists(ANSWERS, min_size=1, max_size=4), reference=ANSWERS)
@settings(max_examples=50, deadline=None)
def test_difficulty_is_the_mean_shortfall(attempts, reference):
    """Eq. 5: D is in [0, 1], falls when an attempt gets better, is 0 only when all are right."""
    value = difficulty(attempts, reference, TOOLS)
    shortfalls = [1 - call_overlap(attempt, reference, TOOLS) for attempt in attempts]
    assert 0 <= value <= 1
    assert value == pytest.approx(math.fsum(shortfalls) / len(attempts))
    assert difficulty([*attempts[:-1], reference], reference, TOOLS) <= value + 1e-12
    assert (value == 0) == all(calls_equal(attempt, reference, TOOLS) for attempt in attempts)


def total(weights, pairs):
    return sum(weights[row][column] for row, column in pairs)


def best_total(weights):
    """The most that any assignment reaches, found by trying all of them."""
    rows, columns = len(weights), len(weights[0])
    if rows > columns:
        return best_total([list(column) for column in zip(*weights, strict=True)])
    choices = itertools.permutations(range(columns), rows)
    return max(sum(weights[row][c] for row, c in enumerate(choice)) for choice in choices)


def matrices(weights, most=6):
    size = st.integers(1, most)
    return st.tuples(size, size).flatmap(
        lambda shape: st.lists(
            st.lists(weights, min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        )
    )


@given(weights=matrices(st.integers(-5, 5)))
@settings(max_examples=120, deadline=None)
def test_no_other_assignment_weighs_more(weights):
    """The total equals the best over all permutations, exactly for integers."""
    pairs = optimal_assignment(weights)
    assert total(weights, pairs) == best_total(weights)
    assert len(pairs) == min(len(weights), len(weights[0]))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert list(pairs) == sorted(pairs)


@given(weights=matrices(st.floats(-1e6, 1e6, allow_nan=False), most=12))
@settings(max_examples=60, deadline=None)
def test_scipy_finds_nothing_better(weights):
    """On larger matrices the total is that of SciPy's solver, where SciPy is installed."""
    optimize = pytest.importorskip("scipy.optimize")
    rows, columns = optimize.linear_sum_assignment(weights, maximize=True)
    expected = sum(weights[row][column] for row, column in zip(rows, columns, strict=True))
    assert math.isclose(
        total(weights, optimal_assignment(weights)), expected, rel_tol=1e-9, abs_tol=1e-6
    )
