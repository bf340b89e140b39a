"""The evolution stream learns from perfect episodes, and from nothing else."""

from __future__ import annotations

import json

import pytest

from agentkit.episodes import Evidence, Verdict
from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.streams import EvolutionStream, Prompt, is_perfect
from agentkit.testing import ScriptedModel

PERFECT = Verdict(passed=True, score=1.0, metrics={"format": 1.0, "perfect_match": 1.0})
CALL = ("calculate_loan", {"total_price": 8.5, "periods": 36}, 250.0)


def said(**fields):
    """One block."""
    return f"<description>{json.dumps({'tool': 'calculate_loan', **fields})}</description>"


@pytest.mark.parametrize(
    "verdict",
    [
        None,
        Verdict(passed=False),
        Verdict(passed=True, score=0.99),
        Verdict(passed=True, score=1.0, fault="checker_error"),
        Verdict(passed=True, score=1.0, metrics={"format": 0.0, "perfect_match": 1.0}),
        Verdict(passed=True, score=1.0, metrics={"param_value": 0.5}),
        Verdict(passed=True, score=1.0, evidence=(Evidence(kind="other", message="but"),)),
    ],
)
async def test_only_perfect_episodes_count(library, make_episode, verdict):
    """Anything short of r = 1 is left out, whatever block the answer holds (algorithm 1)."""
    episode = make_episode("e", CALL, verdict=verdict, text=said(summary="Better."))
    assert not is_perfect(episode)
    seen = Observations(library=library, episodes=(episode,))
    assert list(await EvolutionStream().propose(seen)) == []


async def test_blocks_of_the_policy_are_taken(library, make_episode):
    """In training the policy's own answers hold the blocks; it is their author."""
    episode = make_episode("e", CALL, verdict=PERFECT, text=said(summary="Monthly rate."))
    [found] = await EvolutionStream().propose(Observations(library=library, episodes=(episode,)))
    assert isinstance(found, Proposal)
    assert (found.author.name, found.stream, found.evidence) == ("policy", "evolution", ("e",))


async def test_a_model_is_asked_with_perfect_episodes(library, make_episode):
    """One request a tool, with the shipped prompt, whose hash is kept."""
    episodes = [
        make_episode(f"e{at}", CALL, verdict=PERFECT, request="A loan over 8.5?") for at in range(3)
    ]
    flawed = make_episode("bad", CALL, verdict=Verdict(passed=False), request="Do not show this.")
    model = ScriptedModel([said(parameters={"periods": "Loan term in months."})], name="writer")
    stream = EvolutionStream(model)
    seen = Observations(library=library, episodes=(*episodes, flawed))
    [found] = await stream.propose(seen)
    assert found.candidate.description.parameters["periods"] == "Loan term in months."
    assert found.author.prompt_hash == Prompt.shipped("evolution_v1").hash
    assert found.evidence == ("e0", "e1", "e2")
    asked = model.requests[0].messages[-1].text
    assert "A loan over 8.5?" in asked
    assert "Do not show this." not in asked


async def test_words_that_repeat_an_episode_are_no_proposal(library, make_episode):
    """A text with a value of the episodes it was made from is told as such."""
    call = ("search_used_cars", {"query": "Passat380"}, ["Passat380"])
    episodes = [make_episode(f"e{at}", call, verdict=PERFECT) for at in range(2)]
    answer = json.dumps(
        {"tool": "search_used_cars", "parameters": {"query": "Write models like Passat380."}}
    )
    model = ScriptedModel([f"<description>{answer}</description>"])
    seen = Observations(library=library, episodes=tuple(episodes))
    [found] = await EvolutionStream(model).propose(seen)
    assert isinstance(found, UnreadableProposal)
    assert [check.code for check in found.failed] == ["instance_value"]
