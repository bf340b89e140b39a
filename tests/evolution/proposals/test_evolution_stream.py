"""The evolution stream learns from perfect episodes, and from nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit import Agent, Library, ToolDefinition
from agentkit.episodes import Evidence, Verdict
from agentkit.errors import ModelTimeoutError
from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.streams import EvolutionStream, Prompt, is_imperfect, is_perfect
from agentkit.messages import ToolCall
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


def test_a_mended_call_is_not_perfect(make_episode):
    """A refusal on the way is an execution defect, though the episode passed."""
    failed = ("calculate_loan", {"periods": 31}, "!periods must be one of 36, 48, 60")
    assert is_perfect(make_episode("a", CALL, verdict=PERFECT))
    assert not is_perfect(make_episode("b", failed, CALL, verdict=PERFECT))
    assert is_imperfect(make_episode("b", failed, CALL, verdict=PERFECT))
    assert not is_imperfect(make_episode("c", CALL))


async def test_calls_that_nobody_runs_can_be_perfect():
    """Benchmarks of single calls run no tool: their episodes end with calls that wait."""
    model = ScriptedModel([[ToolCall(call_id="1", name="look", arguments={})]])
    result = await Agent(model, library=Library([ToolDefinition(name="look")])).run("Look.")
    judged = replace(result.episode, verdict=PERFECT)
    assert judged.stop_reason == "deferred"
    assert is_perfect(judged)
    assert not is_perfect(replace(judged, stop_reason="step_limit"))


@pytest.mark.parametrize(("calls", "is_answer"), [(1, True), (2, False), (0, False)])
def test_the_limit_of_steps_ends_runs_of_one_step(make_episode, calls, is_answer):
    """Where one answer was asked for, its calls are the answer; a longer run was cut off."""
    episode = make_episode("e", *[CALL] * calls, verdict=PERFECT)
    assert is_perfect(replace(episode, stop_reason="step_limit")) is is_answer


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


async def test_a_tool_that_was_used_once_is_not_asked_about(library, make_episode):
    """``min_episodes`` keeps single successes from shaping a text."""
    seen = Observations(library=library, episodes=(make_episode("e", CALL, verdict=PERFECT),))
    assert await EvolutionStream(ScriptedModel([])).propose(seen) == []


async def test_a_model_that_can_not_be_reached(library, make_episode):
    """That is an error of the model, not a suggestion."""
    episodes = tuple(make_episode(f"e{at}", CALL, verdict=PERFECT) for at in range(2))
    model = ScriptedModel([ModelTimeoutError("no answer in 30 s")])
    with pytest.raises(ModelTimeoutError):
        await EvolutionStream(model).propose(Observations(library=library, episodes=episodes))
