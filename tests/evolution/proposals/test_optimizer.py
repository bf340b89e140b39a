"""The adapter to GEPA, against the real package where it is installed."""

from __future__ import annotations

import importlib.util

import pytest

from agentkit.errors import MissingExtraError
from agentkit.evolution.proposal import Observations
from agentkit.evolution.proposers.optimizer import GepaOptimizer, Score
from agentkit.testing import FunctionModel

needs_gepa = pytest.mark.skipif(
    importlib.util.find_spec("gepa") is None, reason="the extra gepa is not installed"
)
GOOD = "Loan term: one of 36, 48, 60 months."


async def evaluate(candidate, cases):
    """Right when the text says the terms."""
    is_good = GOOD in candidate.description.parameters.get("periods", "")
    return [Score(value=float(is_good), feedback="the term was refused") for _ in cases]


def reflecting(request):
    """Rewrites the text of the term, and nothing else well."""
    asked = request.messages[-1].text
    return f"```\n{GOOD}\n```" if "Loan term" in asked else "```\nA loan.\n```"


@pytest.fixture
def seen(library):
    """One tool to optimise."""
    return Observations(library=library, tools=("calculate_loan",))


@needs_gepa
async def test_the_best_texts_become_a_proposal(seen, loan):
    """What GEPA finds differs in words alone, and its reason holds the numbers."""
    optimizer = GepaOptimizer(
        FunctionModel(reflecting, name="writer"), evaluate, ["a", "b", "c"], max_evaluations=60
    )
    [found] = await optimizer.propose(seen)
    assert found.candidate.description.parameters["periods"] == GOOD
    assert found.candidate.signature == loan.signature
    assert found.reason.startswith("mean score 1.000 against 0.000 on 3 cases")
    assert (found.stream, found.author.name) == ("optimizer", "writer")


@pytest.mark.skipif(importlib.util.find_spec("gepa") is not None, reason="gepa is installed")
async def test_without_the_package_the_pip_line_is_told(seen):
    """Whoever lacks the extra reads what to type."""
    optimizer = GepaOptimizer(FunctionModel(reflecting), evaluate, ["a"])
    with pytest.raises(MissingExtraError, match=r'pip install "agentkit-evolve\[gepa\]"'):
        await optimizer.propose(seen)
