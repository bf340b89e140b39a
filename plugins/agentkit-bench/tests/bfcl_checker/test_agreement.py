"""Our verdicts beside the public checker's, on the first questions of every category."""

from __future__ import annotations

import pytest

from agentkit_bench.bfcl import CATEGORIES

pytestmark = pytest.mark.corpora

EXPLAINED = {
    "a tuple, which no JSON call holds",
    "arguments that can not be read count as a call where none is expected",
    "upstream raises: OverflowError",
    "upstream takes the first call that fits",
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_verdicts_agree(comparison, category):
    """On right and wrong answers alike, but for the differences that are explained."""
    found = comparison.category(category, limit=3)
    assert found.items == 3
    assert found.outputs > 10
    assert 0 < found.passed < found.outputs
    assert set(found.classes) <= EXPLAINED
    assert not found.disagreeing
    assert found.gold_passed == found.upstream_gold


def test_answers_of_a_model_are_compared_too(comparison, agreement):
    """What an evaluation kept is judged by both, also arguments that could not be read."""
    name = "calculate_triangle_area"
    real = {
        "simple_python_0": [((name, {"base": 10, "height": 5}),), ((name, {"base": 10}),), None]
    }
    bare = comparison.category("simple_python", limit=1)
    with_real = comparison.category("simple_python", limit=1, real=real)
    assert with_real.outputs == bare.outputs + 3
    assert with_real.passed == bare.passed + 1
    assert not with_real.disagreeing
