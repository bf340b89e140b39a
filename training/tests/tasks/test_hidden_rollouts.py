"""Hidden constraints through the runtime's own evaluation: verdicts, repairs, what can be learned."""

from __future__ import annotations

import pytest

from agentkit import open_store
from agentkit.evaluation import EvaluationSettings, episodes_of_run, evaluate
from agentkit.evolution.proposal import Observations, Proposal
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit_training.tasks.hidden_constraints.family import (
    ALL_KINDS,
    gold_calls,
    hidden_constraints,
    library_of,
    oracle_rules,
)
from agentkit_training.tasks.hidden_constraints.tools import TOOLS

NAIVE = {"term": 4, "day": "3 May", "order": "4821", "amount": 3, "time": 2}
"""What somebody would write who knows the definition alone."""


def knowing(benchmark, *, wrong_first=False):
    """A model that knows the gold calls; or that first tries what the definition suggests."""
    gold = {task.request: gold_calls(task) for task in benchmark.tasks}

    def answer(request):
        question = next(one.text for one in request.messages if one.role == "user")
        done = sum(isinstance(one, ToolMessage) for one in request.messages)
        calls = [(one.name, dict(one.arguments)) for one in gold[question]]
        if wrong_first:
            name, arguments = calls[-1]
            naive = {key: NAIVE.get(key, "something") for key in arguments}
            demand = TOOLS[name].demands["first"].parameter
            calls.insert(0, (name, {**arguments, demand: naive[demand]}))
        if done >= len(calls):
            return ModelResponse(message=AssistantMessage(text="done"))
        name, arguments = calls[done]
        call = ToolCall(call_id=str(done), name=name, arguments=arguments)
        return ModelResponse(message=AssistantMessage(tool_calls=(call,)))

    return FunctionModel(answer)


async def episodes_with(benchmark, model, library=None, kinds=(), tries=1):
    """The episodes of all tasks."""
    store = open_store("memory:")
    steps = tries * (2 if "call_before" in kinds else 1)
    choice = "required" if steps == 1 else "auto"
    settings = EvaluationSettings(max_steps=steps, tool_choice=choice)
    await evaluate(benchmark, model=model, store=store, run="r", library=library, settings=settings)
    return list(episodes_of_run(store, "r"))


@pytest.mark.parametrize("judged", ["calls", "world"])
@pytest.mark.parametrize("repair", ["fixed", "words", "rules"])
async def test_gold_calls_pass_under_every_right_text(judged, repair):
    """Whoever makes the gold calls is right, whichever of the texts the tools have."""
    parts = hidden_constraints(kinds=ALL_KINDS, train=3, judged=judged)
    library = library_of(repair)
    found = await episodes_with(parts.train, knowing(parts.train), library, ALL_KINDS)
    assert len(found) == 36
    assert all(one.verdict.passed for one in found)


async def test_a_refused_call_counts_unless_the_world_alone_is_judged():
    """Mended after a refusal, an answer is wrong by its calls and right by what came of it."""
    for judged, right in (("calls", False), ("world", True)):
        parts = hidden_constraints(kinds=["enum", "unit", "form"], train=2, judged=judged)
        model = knowing(parts.train, wrong_first=True)
        found = await episodes_with(parts.train, model, tries=2)
        assert {one.verdict.passed for one in found} == {right}
        assert all(one.results[0].status == "failed" for one in found)


async def test_the_swapped_world_refuses_what_was_right_in_the_first():
    """A policy that has learned the first world by heart fails in the other, tool by tool."""
    kinds = ["enum", "unit", "form", "condition", "call_before"]
    first, swapped = (hidden_constraints(w, kinds=kinds, train=3) for w in ("first", "swapped"))
    found = await episodes_with(swapped.train, knowing(first.train), kinds=kinds)
    assert not any(one.verdict.passed for one in found)


async def test_the_evidence_proposer_learns_oracle_rules_from_refusals():
    """Evolution finds the repair of values where refusals tell it, and nothing where not."""
    kinds = ["enum", "unit", "form"]
    for says, least in (("rule", 7), ("nothing", 0)):
        parts = hidden_constraints(kinds=kinds, train=4, says=says)
        model = knowing(parts.train, wrong_first=True)
        episodes = await episodes_with(parts.train, model, tries=2)
        library = library_of("fixed", names=[one.name for one in parts.train.definitions])
        proposer = EvidenceProposer(EvidenceConfig(min_failures=1, min_episodes=1))
        proposals = await proposer.propose(Observations(library=library, episodes=tuple(episodes)))
        learned = {
            (one.candidate.name, rule)
            for one in proposals
            if isinstance(one, Proposal)
            for rule in one.candidate.specification.rules
        }
        values = {(name, rule) for name in TOOLS for rule in oracle_rules(name)}
        assert len({name for name, _ in learned}) >= least
        assert len(learned & values) >= least - 2  # a date may be learned as one that has a name
        assert bool(learned) == bool(least)
