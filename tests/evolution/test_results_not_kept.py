"""Examples without a result say what a tool is asked for; nothing is run or answered by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import ToolDefinition, tool
from agentkit.evolution import Added, Rejected
from agentkit.evolution.dry_run import MissingStub, stub
from agentkit.tools.definition import Effects, Example

ASKED = Example(arguments={"city": "Rome"}, query="Will it rain in Rome?", is_whole=False)
ANSWERED = Example(arguments={"city": "Rome"}, result="sunny")


@tool(effects=Effects.pure(), examples=[{"arguments": {"x": 2.0}, "result": 4.0}])
def square(x: float) -> float:
    """A number times itself."""
    return x * x


FOURTH = '''
@composite(examples=[{"arguments": {"x": 2}, "result": 16}])
def fourth(x: float) -> float:
    """A number to the fourth power."""
    return square(square(x))
'''


def test_a_stub_does_not_answer_from_them():
    """A call that only such an example makes has no recorded answer."""
    weather = ToolDefinition(name="weather", examples=(ASKED,))
    with pytest.raises(MissingStub):
        stub(weather)(city="Rome")
    assert stub(replace(weather, examples=(ASKED, ANSWERED)))(city="Rome") == "sunny"


def test_a_child_is_not_tried_on_them(make_manager):
    """A composite over such a tool is added; a wrong worked call of the child would stop it."""
    manager = make_manager(square)
    manager.record({"square": [Example(arguments={"x": 3.0}, query="3 squared", is_whole=False)]})
    assert isinstance(manager.preview(FOURTH), Added)
    manager.record({"square": [Example(arguments={"x": 3.0}, result=8.0)]})
    outcome = manager.preview(FOURTH)
    assert isinstance(outcome, Rejected)
    assert outcome.code == "child_examples_failed"


def test_a_candidate_needs_one_with_a_result(make_manager):
    """Being asked for is no evidence that a composite works."""
    manager = make_manager(square)
    added = manager.insert(FOURTH)
    asked = Example(arguments={"x": 3.0}, query="3 to the fourth", is_whole=False)
    other = replace(added.definition, name="other", examples=(asked,))
    outcome = manager.preview(other)
    assert isinstance(outcome, Rejected)
    assert outcome.code == "no_examples"
