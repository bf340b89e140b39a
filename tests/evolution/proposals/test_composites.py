"""Composites that a model writes."""

from __future__ import annotations

import pytest

from agentkit.composites.language import BUILTINS
from agentkit.episodes import Episode, Turn
from agentkit.evolution.proposal import Observations, Proposal
from agentkit.evolution.proposers.composites import CompositeStream, propose_composites
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.testing import FunctionModel, ScriptedModel, primitive_library

# --- Composites behind the protocol of proposers -------------------------------------------------


SOURCE = '''```python
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
```'''


async def test_a_composite_is_a_proposal_without_a_base(make_episode, manager):
    """It changes no revision; InsertTool decides about it, and takes it."""
    calls = (("mul", {"a": 4, "b": 3}, 12), ("add", {"a": 12, "b": 2}, 14))
    episode = make_episode("e1", *calls, request="3 at 4 with a fee of 2?")
    seen = Observations(library=primitive_library(), episodes=(episode,))
    [found] = await CompositeStream(ScriptedModel([SOURCE], name="teacher")).propose(seen)
    assert isinstance(found, Proposal)
    assert (found.base, found.stream, found.evidence) == ("", "composite", ("e1",))
    outcome = await manager.insert_async(found.candidate, evidence=found.evidence)
    assert "order_total" in manager.refresh()
    assert outcome.version > 1


# --- A model proposes composites from solved tasks, and mends what is wrong with them ------------


GOOD = '''
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee.

    Args:
        price: Of one piece.
        count: Pieces.
        fee: Added once.
    """
    return add(mul(price, count), fee)
'''
UNKNOWN = GOOD.replace("mul(", "multiply(")


def fenced(*functions):
    """An answer with each function in a block of its own."""
    return "Here they are.\n" + "\n".join(f"```python\n{text.strip()}\n```" for text in functions)


def solved(*calls, episode_id="e-1", request="What do three at 4 cost, with a fee of 2?"):
    """An episode that made these calls: name, arguments, result."""
    turns = []
    for at, (name, arguments, value) in enumerate(calls):
        call = ToolCall(call_id=f"c{at}", name=name, arguments=arguments)
        status = "failed" if value is None else "ok"
        result = ToolResult(call_id=f"c{at}", name=name, status=status, value=value)
        turns.append(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)))
    return Episode(episode_id=episode_id, request=request, turns=tuple(turns), output="14")


EPISODE = solved(
    ("mul", {"a": 4, "b": 0}, None), ("mul", {"a": 4, "b": 3}, 12), ("add", {"a": 12, "b": 2}, 14)
)


@pytest.fixture
def library():
    """The primitives."""
    return primitive_library()


async def test_the_model_sees_the_solution_the_tools_and_the_language(library):
    """The prompt holds the successful calls with results, the signatures, and what is allowed."""
    model = ScriptedModel(["NOTHING"])
    assert await propose_composites([EPISODE], library, model) == ()
    system, user = (message.text for message in model.requests[0].messages)
    assert all(name in system for name in BUILTINS)
    assert "1. mul(a=4, b=3) -> 12\n2. add(a=12, b=2) -> 14" in user
    assert "b=0" not in user
    assert "add(a: float, b: float) -> float" in user
    assert "requires: isfinite(a)" in user
    assert "With" not in user.split("# Task")[0]
    assert EPISODE.request in user
    assert model.requests[0].settings.temperature == 0.2


async def test_problems_are_sent_back_until_the_text_is_sound(library):
    """The author hears code, line, column and advice, and is heard again."""
    model = ScriptedModel([fenced(UNKNOWN), fenced(GOOD)])
    (candidate,) = await propose_composites(EPISODE, library, model)
    assert candidate.definition.name == "order_total"
    assert candidate.attempts == 2
    assert candidate.problems == ()
    repair = model.requests[1].messages
    assert "multiply" in repair[-2].text
    assert "unknown_tool" in repair[-1].text
    assert "line 10, column 16" in repair[-1].text
    assert candidate.usage.requests == 1


async def test_a_model_that_never_repairs_gives_a_candidate_with_reasons(library):
    """The last text and its problems are a value; the number of repairs is bounded."""
    model = FunctionModel(
        lambda _request: fenced(UNKNOWN.replace("order_total", f"total_{len(model.requests)}"))
    )
    (candidate,) = await propose_composites(EPISODE, library, model, max_repairs=3)
    assert candidate.definition is None
    assert candidate.problems[0].code == "unknown_tool"
    assert candidate.attempts == 4
    assert len(model.requests) == 4
