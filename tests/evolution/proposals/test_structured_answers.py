"""Models that can be held to a schema are asked for the block as JSON."""

from __future__ import annotations

import json

import jsonschema
import pytest

from agentkit.episodes import Evidence, Verdict
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.blocks import block_schema
from agentkit.evolution.proposers.streams import EvolutionStream, FeedbackStream
from agentkit.models.grammar import grammar_schema
from agentkit.testing import FunctionModel

CALL = ("calculate_loan", {"total_price": 8.5, "periods": 36}, 250.0)
WRONG = Verdict(
    passed=False,
    score=0.0,
    evidence=(Evidence(kind="wrong_value", message="no", tool="calculate_loan"),),
)
PERFECT = Verdict(passed=True, score=1.0)


def answering(**fields):
    """A model that keeps what it is asked, and answers with JSON as its schema wants it."""
    asked = []

    def answer(request):
        asked.append(request)
        return json.dumps({"tool": "calculate_loan", **fields})

    return FunctionModel(answer, name="critic"), asked


@pytest.mark.parametrize(
    ("stream", "verdict"),
    [
        (lambda model: FeedbackStream(model, structured=True), WRONG),
        (lambda model: EvolutionStream(model, min_episodes=1, structured=True), PERFECT),
    ],
)
async def test_both_streams_read_a_bare_object(library, make_episode, stream, verdict):
    """The answer needs no tags, and the request holds the schema of the tool's block."""
    model, asked = answering(summary="Monthly rate of a loan.")
    seen = Observations(library=library, episodes=(make_episode("e", CALL, verdict=verdict),))
    [found] = await stream(model).propose(seen)
    assert isinstance(found, Proposal)
    assert found.candidate.description.summary == "Monthly rate of a loan."
    assert asked[0].output_schema == block_schema(library["calculate_loan"].definition)


async def test_a_block_that_changes_nothing_is_nothing(library, make_episode):
    """Who has to answer with a block has no other way to say that nothing should change."""
    model, _ = answering()
    seen = Observations(library=library, episodes=(make_episode("e", CALL, verdict=WRONG),))
    assert list(await FeedbackStream(model, structured=True).propose(seen)) == []


def test_the_schema_holds_what_blocks_say(library):
    """Words for the parameters that there are and rules as data fit; other names do not."""
    schema = block_schema(library["calculate_loan"].definition)
    assert grammar_schema(schema) is not None  # local models can be held to it
    rule = {"kind": "one_of", "parameter": "periods", "values": [36, 48]}
    jsonschema.validate({"tool": "calculate_loan", "rules": [rule]}, schema)
    jsonschema.validate({"tool": "calculate_loan", "parameters": {"periods": "Months."}}, schema)
    for wrong in (
        {"tool": "transfer_money"},
        {"summary": "no tool"},
        {"tool": "calculate_loan", "parameters": {"rate": "Not there."}},
        {"tool": "calculate_loan", "name": "transfer_money"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
