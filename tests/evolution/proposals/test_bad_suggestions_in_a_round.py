"""Bad input of proposers, taken through a whole round: a typed rejection, and a library unchanged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import ToolManager
from agentkit.evolution.gates import PairedScore
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.proposers.streams import FeedbackStream
from agentkit.evolution.round import evolve
from agentkit.library.events import Author
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.testing import FunctionModel
from agentkit.tools.definition import ChildReference, Specification
from agentkit.tools.rules import Between

SCHEMA = {
    "type": "object",
    "properties": {"periods": {"type": "integer", "description": "Loan term."}},
}
LOAN = ToolDefinition.from_schema("loan", "What a loan costs a month.", SCHEMA)
PING = ToolDefinition.from_schema("ping", "Ping a host.", {"type": "object", "properties": {}})
MODEL = Author(kind="model", name="m")
HUGE = "1" + "0" * 5_000
CYCLE = {
    "format": 1,
    "kind": "Program",
    "parameters": ["periods"],
    "body": [{"kind": "Return", "value": {"kind": "Call", "tool": "loan", "arguments": {}}}],
}


def block(**fields):
    """A block of an answer."""
    return f"<description>{json.dumps(fields)}</description>"


def better(summary="What a loan costs each month."):
    """The loan with other words."""
    return replace(LOAN, description=replace(LOAN.description, summary=summary))


def failed(number):
    """An episode that went wrong with the loan."""
    call = ToolCall(call_id="1", name="loan", arguments={"periods": 31})
    failure = ToolFailure(kind="retry_requested", rule="no such term")
    result = ToolResult(call_id="1", name="loan", status="failed", failure=failure)
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    return Episode(
        episode_id=f"e{number}",
        request="A loan.",
        turns=(turn,),
        verdict=Verdict(passed=False),
    )


class Suggesting:
    """A proposer that suggests what it was made with."""

    name = "feedback:m"

    def __init__(self, *suggestions, then=lambda: None):
        self._suggestions = suggestions
        self._then = then

    async def propose(self, observations):
        """What it has, after something else has happened."""
        self._then()
        return self._suggestions


async def compare(_tool, _control, _candidate):
    """Held-out tasks on which everything gains."""
    return [PairedScore(task=str(at), control=0.0, candidate=1.0) for at in range(30)]


@pytest.fixture
def manager():
    """Two tools in memory."""
    made = ToolManager(open_store("memory:"))
    made.register([LOAN, PING])
    return made


async def outcome_of(manager, *proposers):
    """State and codes of each proposal of a round in which every comparison gains."""
    outcome = await evolve(manager, proposers, episodes=[failed(1)], compare=compare)
    json.dumps(outcome.to_json())
    return [(one.record.state, *(c.code for c in one.record.failed)) for one in outcome.considered]


@pytest.mark.parametrize(
    ("answer", "codes"),
    [
        ("", ["empty_answer"]),
        ("word " * 210_000, ["answer_too_long"]),
        (block(tool="ping", summary="Ping all hosts."), ["other_tool"]),
        (block(tool="lo\u0430n", summary="A loan."), ["unknown_tool"]),
        (
            block(tool="loan", parameters={"rate": "Interest."}),
            ["unknown_parameter"],
        ),
        (block(tool="loan", body=CYCLE), ["unknown_field"]),
        (f'<description>{{"tool": "loan", "rules": [{HUGE}]}}</description>', ["invalid_json"]),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
async def test_a_bad_answer_is_rejected_with_its_code(manager, answer, codes):
    """Whatever a model answers, the library stays, and the record says what was wrong."""
    before = manager.library.digest
    stream = FeedbackStream(FunctionModel(lambda _: answer, name="m"))
    assert await outcome_of(manager, stream) == [("rejected", *codes)]
    assert manager.library.digest == before


def composite(name, child):
    """A composite that calls a tool."""
    children = (ChildReference(name=child, digest="0" * 64),)
    return replace(
        LOAN, name=name, body=CYCLE, signature=replace(LOAN.signature, children=children)
    )


def ruled(rules):
    """The loan with these rules."""
    return replace(LOAN, specification=Specification(rules=rules))


@pytest.mark.parametrize(
    ("candidate", "code"),
    [
        (replace(better(), name="loan2"), "unknown_tool"),
        (replace(LOAN, body=CYCLE), "body_changed"),
        (composite("loan", "loan"), "body_changed"),
        (replace(LOAN, description=None), "malformed"),
        (ruled(("periods > 0",)), "malformed"),
        (ruled((Between(parameter="periods", minimum="3"),)), "malformed"),
        (ruled((Between(parameter="periods", minimum=float("nan")),)), "malformed"),
    ],
    ids=str,
)
async def test_a_bad_candidate_is_rejected_and_the_next_one_is_not(manager, candidate, code):
    """A proposer of one's own may make anything; neither the round nor the ledger breaks of it."""
    bad = Proposal(
        proposal_id="bad", stream="feedback", author=MODEL, base=LOAN.digest, candidate=candidate
    )
    good = Proposal.of(LOAN, better(), stream="feedback", author=MODEL)
    first, second = await outcome_of(manager, Suggesting(bad, good))
    assert first[0] == "rejected"
    assert code in first
    assert second == ("active",)
