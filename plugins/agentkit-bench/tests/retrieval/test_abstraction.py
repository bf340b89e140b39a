"""The highest composite that covers a step comes first; its parts come only where needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition
from agentkit.retrieval import Candidates, SubGoal
from agentkit_bench.abstraction import Abstraction, judge_composites


def calling(name, *children, summary=""):
    """A tool, or a composite that calls others; its program is not run here."""
    definition = ToolDefinition.from_schema(name, summary, {})
    calls = ", ".join(f"tools[{child!r}]()" for child in children)
    return (
        replace(definition, body={"format": 2, "source": f"def f(): return [{calls}]"})
        if children
        else definition
    )


LIBRARY = Library(
    [
        calling("add"),
        calling("mul"),
        calling("pow"),
        calling("square_sum", "add", "pow"),
        calling("quadratic", "square_sum", "mul"),
        calling("other"),
    ]
)


def verdicts(scores, margin=0.1, library=LIBRARY):
    judged = judge_composites(scores, library.dag, margin=margin)
    return {one.name: one.verdict for one in judged}


async def moved(scores, library=LIBRARY):
    """The hits after the stage, best first, with their scores."""
    candidates = Candidates.of(library).add(scores)
    left = await Abstraction()("a request", SubGoal(intent="a step"), candidates)
    assert len(left) == len(candidates)
    return {hit.definition.name: round(hit.score, 3) for hit in left.hits}


async def test_a_composite_that_covers_pushes_its_parts_behind():
    """It is better than each part by the margin: parts through all layers go behind."""
    found = await moved({"quadratic": 1.0, "mul": 0.8, "pow": 0.7, "other": 0.6})
    assert found == {"quadratic": 1.0, "other": 0.6, "mul": 0.4, "pow": 0.35}
    assert list(found) == ["quadratic", "other", "mul", "pow"]


async def test_a_composite_that_is_too_broad_goes_behind():
    """A part that does the step better comes first; the other parts stay."""
    found = await moved({"mul": 1.0, "quadratic": 0.8, "pow": 0.5})
    assert list(found) == ["mul", "pow", "quadratic"]
    assert found["quadratic"] == 0.4


def test_descent_stops_at_the_highest_that_covers():
    """What lies below it is not looked at; where it does not cover, its parts are."""
    assert verdicts({"quadratic": 1.0, "square_sum": 0.5, "add": 0.4}) == {"quadratic": "covers"}
    assert verdicts({"quadratic": 0.5, "square_sum": 1.0, "add": 0.4}) == {
        "quadratic": "too_broad",
        "square_sum": "covers",
    }
    assert verdicts({"quadratic": 1.0, "square_sum": 0.95, "add": 0.4}) == {
        "quadratic": "indistinct",
        "square_sum": "covers",
    }


@pytest.mark.parametrize(
    ("whole", "part", "margin", "verdict"),
    [
        (1.0, 0.90, 0.1, "covers"),
        (1.0, 0.92, 0.1, "indistinct"),
        (1.0, 1.09, 0.1, "indistinct"),
        (1.0, 1.10, 0.1, "too_broad"),
        (1.0, 1.0, 0.0, "too_broad"),
        (0.0, 0.0, 0.1, "covers"),
        (0.0, 0.1, 0.1, "too_broad"),
    ],
)
def test_the_conditions_are_those_of_the_definition(whole, part, margin, verdict):
    """The margin is relative, and counts on its bound."""
    scores = {"quadratic": whole, "mul": part}
    assert verdicts(scores, margin=margin) == {"quadratic": verdict}


async def test_circles_and_missing_tools_do_not_disturb():
    """A broken library still gets an order; tools of a circle are no parts of each other."""
    library = Library(
        [calling("a", "b"), calling("b", "a"), calling("c", "a", "gone"), calling("self", "self")]
    )
    scores = {"a": 1.0, "b": 0.5, "c": 0.4, "self": 0.3}
    found = await moved(scores, library)
    assert found == {"a": 1.0, "b": 0.5, "self": 0.3, "c": 0.2}
    assert verdicts({"c": 1.0, "a": 0.2, "b": 0.1}, library=library) == {"c": "covers"}
