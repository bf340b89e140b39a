"""Composites behind the protocol of proposers."""

from __future__ import annotations

from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.composites import CompositeStream
from agentkit.testing import ScriptedModel, primitive_library

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


async def test_what_is_outside_the_language_is_unreadable(make_episode):
    """A function that never got into the language comes with the reasons, line by line."""
    calls = (("mul", {"a": 4, "b": 3}, 12), ("add", {"a": 12, "b": 2}, 14))
    episode = make_episode("e1", *calls)
    bad = "```python\ndef f(a: int) -> int:\n    import os\n    return add(a, a)\n```"
    model = ScriptedModel([bad, "NOTHING"])
    seen = Observations(library=primitive_library(), episodes=(episode,))
    [found] = await CompositeStream(model, max_repairs=1).propose(seen)
    assert isinstance(found, UnreadableProposal)
    assert found.failed
    assert "import os" in found.text
