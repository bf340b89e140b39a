"""One round of evolution, where something does not answer."""

from __future__ import annotations

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.errors import ModelConnectionError
from agentkit.evolution import ToolManager
from agentkit.evolution.proposals.evidence_proposer import EvidenceProposer
from agentkit.evolution.proposals.feedback_stream import FeedbackStream
from agentkit.evolution.round import evolve
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.testing import FunctionModel
from agentkit.tools.definition import Effects


def loan(*effects):
    """A tool that takes a term in months, and does not say which."""
    return ToolDefinition.from_schema(
        "loan",
        "What a loan costs a month.",
        {"type": "object", "properties": {"periods": {"type": "integer"}}},
        effects=Effects.of(effects),
    )


def refused(number):
    """An episode in which the tool refused a term, and said which it takes."""
    call = ToolCall(call_id="1", name="loan", arguments={"periods": 30 + number})
    rule = f"periods must be one of 36, 48, 60, got {30 + number}"
    failure = ToolFailure(kind="retry_requested", rule=rule)
    result = ToolResult(call_id="1", name="loan", status="failed", failure=failure)
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    return Episode(
        episode_id=f"e{number}",
        request="A loan, please.",
        turns=(turn,),
        verdict=Verdict(passed=False),
    )


def out_of_reach(request):
    """A model behind a broken line."""
    raise ModelConnectionError("the line is broken")


async def test_a_proposer_that_can_not_be_reached_ends_nothing():
    """The others are heard, and the round says who was silent and why."""
    manager = ToolManager(open_store("memory:"))
    manager.register([loan()])
    outcome = await evolve(
        manager,
        [FeedbackStream(FunctionModel(out_of_reach, name="far")), EvidenceProposer()],
        episodes=[refused(1), refused(2)],
    )
    assert [(one.proposer, one.error) for one in outcome.silent] == [
        ("feedback:far", "the line is broken")
    ]
    assert [one.record.state for one in outcome.considered] == ["validated"]


async def test_a_judge_that_can_not_be_reached_leaves_the_proposal_waiting():
    """What the judge could not read is kept, not passed and not rejected."""

    async def judge(change):
        raise ModelConnectionError("the line is broken")

    manager = ToolManager(open_store("memory:"), change_judge=judge)
    manager.register([loan("destructive")])
    outcome = await evolve(manager, [EvidenceProposer()], episodes=[refused(1), refused(2)])
    assert [one.proposer for one in outcome.silent] == ["the judge of evidence"]
    [record] = manager.ledger.proposals.values()
    assert record.state == "proposed"
    assert "judge" in record.awaits


async def test_without_held_out_tasks_nothing_is_promoted():
    """A proposal that every check let pass still waits for somebody."""
    manager = ToolManager(open_store("memory:"))
    manager.register([loan()])
    outcome = await evolve(manager, [EvidenceProposer()], episodes=[refused(1), refused(2)])
    assert outcome.promoted == ()
    assert outcome.before == outcome.after
    assert outcome.to_json()["proposals"][0]["state"] == "validated"


async def test_the_same_suggestion_twice_is_one_proposal():
    """Two rounds over the same episodes leave one proposal in the ledger."""
    manager = ToolManager(open_store("memory:"))
    manager.register([loan()])
    for _ in range(2):
        await evolve(manager, [EvidenceProposer()], episodes=[refused(1), refused(2)])
    assert len(manager.ledger.proposals) == 1


async def test_a_tool_that_is_gone_teaches_nothing():
    """Episodes that call a tool which the library no longer has make no proposal."""
    manager = ToolManager(open_store("memory:"))
    outcome = await evolve(manager, [EvidenceProposer()], episodes=[refused(1), refused(2)])
    assert outcome.considered == ()
