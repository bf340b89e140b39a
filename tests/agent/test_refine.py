"""Adaptive self-refine stops at the first two equal answers (ToolACE-R, Algorithm 1)."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

from hypothesis import given, settings, strategies as st

from agentkit import Agent, ToolDefinition, tool
from agentkit.agent.refine import refine_calls
from agentkit.agent.types import REFINE_PROMPT, RefineSettings
from agentkit.messages import AssistantMessage, ProviderItem, TokenIds, ToolCall, Usage, UserMessage
from agentkit.models.base import ModelRequest, ModelResponse, ModelSettings
from agentkit.testing import FunctionModel, ScriptedModel

ADD = ToolDefinition.from_schema(
    "add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)
REQUEST = ModelRequest(messages=(UserMessage(text="1 + 2?"),), tools=(ADD,))


def proposal(a, b=2):
    return AssistantMessage(
        tool_calls=(ToolCall(call_id="1", name="add", arguments={"a": a, "b": b}),)
    )


def refine(model, first, request=REQUEST, **options):
    """Refine a first answer with a model."""

    def ask(asked, _):
        return model.complete(asked)

    return asyncio.run(refine_calls(ask, request, first, RefineSettings(**options)))


def refined(answers, **options):
    """Refine the first of ``answers`` with a model that gives the others."""
    model = ScriptedModel(answers[1:])
    response, trace = refine(model, ModelResponse(message=answers[0]), **options)
    return [call.arguments["a"] for call in response.message.tool_calls], trace, model


def test_vanilla_takes_the_last():
    """Vanilla self-refine uses all rounds and the last answer."""
    answers = [proposal(1), proposal(5), proposal(5), proposal(7)]

    chosen, trace, _ = refined(answers, mode="vanilla", max_refinements=3)

    assert (chosen, trace.iterations) == ([7], 3)


def test_self_consistency_takes_the_most_frequent():
    """The majority answer wins, ties going to the earliest."""
    answers = [proposal(1), proposal(5), proposal(7), proposal(5)]

    assert refined(answers, mode="self_consistency", max_refinements=3)[0] == [5]
    assert refined(answers[:3], mode="self_consistency", max_refinements=2)[0] == [1]


def test_equality_is_canonical():
    """The text "5" for an integer and another key order are the same answer."""
    other = ToolCall(call_id="x", name="add", arguments={"b": 2, "a": "5"})

    _, trace, _ = refined([proposal(5), AssistantMessage(tool_calls=(other,))], mode="adaptive")

    assert trace.converged


def test_each_round_sees_only_the_previous_answer():
    """As in Algorithm 1, a round's context is the question, one answer and the prompt."""
    _, _, model = refined([proposal(1), proposal(5), proposal(5)], mode="adaptive")

    texts = [message.text for message in model.requests[1].messages]
    assert texts == ["1 + 2?", "[add(a=5, b=2)]", REFINE_PROMPT]


async def test_refinement_happens_before_execution_and_is_counted(call):
    """Only the chosen calls run; the turn's usage includes the rounds, the trace tells them apart."""
    ran = []

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    answers = iter([proposal(1), proposal(5), proposal(5), AssistantMessage(text="7")])

    def answer(request):
        usage = Usage(requests=1, prompt_tokens=10, completion_tokens=2)
        return ModelResponse(message=next(answers), usage=usage)

    result = await Agent(FunctionModel(answer), tools=[add], refine="adaptive").run("go")

    turn = result.episode.turns[0]
    assert ran == [(5, 2)]
    assert (turn.usage.requests, turn.refine.usage.requests, turn.refine.iterations) == (3, 2, 2)


def test_what_goes_back_to_the_provider_is_of_the_round_that_wrote_the_calls():
    """Tokens and provider items belong to the calls that are run; the trace keeps all tokens."""

    def answer(number, said):
        item = ProviderItem(protocol="test", data={"answer": number})
        return ModelResponse(
            message=replace(said, provider_items=(item,)),
            tokens=TokenIds(prompt=(1,), completion=(number,)),
        )

    later = iter([answer(1, proposal(5)), answer(2, AssistantMessage(text="It is perfect."))])
    model = FunctionModel(lambda _: next(later))
    response, trace = refine(model, answer(0, proposal(1)), mode="adaptive")
    assert [item.data for item in response.message.provider_items] == [{"answer": 1}]
    assert response.tokens.completion == (1,)
    assert [one.completion for one in trace.tokens] == [(0,), (1,), (2,)]


def test_each_round_has_a_seed_of_its_own():
    """Rounds that see the same would repeat one answer with one seed; without a seed there is none."""
    for seed in (None, 3):
        asked = []

        def answer(request, asked=asked):
            asked.append(request.settings.seed)
            return ModelResponse(message=proposal(1))

        request = replace(REQUEST, settings=ModelSettings(seed=seed))
        first = ModelResponse(message=proposal(1))
        refine(FunctionModel(answer), first, request, mode="vanilla")
        assert len(asked) == 5
        assert asked == [None] * 5 if seed is None else len({seed, *asked}) == 6


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6))
@settings(max_examples=50, deadline=None)
def test_adaptive_returns_a_fixed_point_or_the_last(values):
    """Whatever the model answers: n rounds at most, and the result is a fixed point or the last."""
    chosen, trace, _ = refined([proposal(v) for v in values], mode="adaptive", max_refinements=5)

    seen = [calls[0].arguments["a"] for calls in trace.proposals]
    assert trace.iterations <= 5
    assert chosen == [seen[-1]]
    assert all(a != b for a, b in itertools.pairwise(seen[:-1]))
    assert trace.converged == (len(seen) > 1 and seen[-1] == seen[-2])
