"""Self-refinement of tool calls before they run (ToolACE-R, section 3.3 and Algorithm 1).

The model proposes calls, is asked to refine them, and stops when two consecutive proposals are
equal (``adaptive``), or after a fixed number of rounds (``vanilla``: the last proposal;
``self_consistency``: the most frequent one). As in the paper, each round sees the question, the
tools and the previous proposal only.

Where we differ from the paper, on purpose:

* Equality is on canonical calls, not on text: ``3`` and ``"3"`` for an integer parameter, another
  key order or another order of parallel calls are the same answer.
* A round that answers without any call ("it is already perfect") counts as agreement.
* Self-consistency votes over all proposals, the direct answer included; ties go to the earliest.
* Only proposals that contain calls are refined; an answer in text is left alone.
* Where answers have a seed, each round has one of its own: a round that sees what the round before
  saw is asked anew, and does not repeat its answer because of the seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from agentkit import models
from agentkit.agent.checks import normalize_response
from agentkit.agent.types import RefineSettings
from agentkit.episodes import RefineMode, RefineTrace
from agentkit.messages import AssistantMessage, ToolCall, Usage, UserMessage
from agentkit.metrics.calls import canonical_calls
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.tools.definition import ToolDefinition

_SEEDS_APART = 10_007  # from round to round; runs may take the seeds beside each other

Ask: TypeAlias = Callable[[ModelRequest, int], Awaitable[ModelResponse]]
"""Asks the model in a round of refinement; told its number, from 1."""


async def refine_calls(
    ask: Ask, request: ModelRequest, first: ModelResponse, settings: RefineSettings
) -> tuple[ModelResponse, RefineTrace]:
    """Refine the calls of ``first`` by asking again.

    Args:
        ask: Asks the model that answered ``request`` with ``first``.
        request: The question and the tools.
        first: The direct answer; must contain calls.
        settings: Strategy and bounds.

    Returns:
        The answer to go on with, and the trace. The usage of the answer is that of ``first``; the
        trace holds what the rounds cost on top, and the tokens of every answer. Tokens, finish
        reason and what has to go back to the provider are those of the round that wrote the chosen
        calls.
    """
    proposals: list[tuple[ToolCall, ...]] = [first.message.tool_calls]
    writers, tokens = [first], [first.tokens]
    usage, converged = Usage(), False
    for number in range(1, settings.max_refinements + 1):
        response = await ask(_refinement(request, proposals[-1], settings.prompt, number), number)
        usage += response.usage
        tokens.append(response.tokens)
        refined = normalize_response(response.message, ()).tool_calls
        proposals.append(refined or proposals[-1])
        writers.append(response if refined else writers[-1])
        converged = _equal(proposals[-2], proposals[-1], request.tools)
        if converged and settings.mode == "adaptive":
            break
    chosen = _chosen(proposals, request.tools, settings.mode)
    trace = RefineTrace(
        mode=settings.mode,
        proposals=tuple(proposals),
        chosen=chosen,
        converged=converged,
        usage=usage,
        tokens=tuple(one for one in tokens if one is not None),
    )
    writer = writers[chosen]
    message = replace(
        first.message,
        tool_calls=proposals[chosen],
        provider_items=writer.message.provider_items,
    )
    answer = replace(
        first, message=message, tokens=writer.tokens, finish_reason=writer.finish_reason
    )
    return answer, trace


def _refinement(
    request: ModelRequest, proposal: tuple[ToolCall, ...], prompt: str, number: int
) -> ModelRequest:
    """The request for a round. The proposal travels as text, since its calls have no results."""
    shown = AssistantMessage(text=models.render_calls(proposal))
    settings = request.settings
    if settings.seed is not None:
        settings = replace(settings, seed=settings.seed + number * _SEEDS_APART)
    messages = (*request.messages, shown, UserMessage(text=prompt))
    return replace(request, messages=messages, settings=settings)


def _equal(
    one: Sequence[ToolCall], other: Sequence[ToolCall], tools: Sequence[ToolDefinition]
) -> bool:
    return canonical_calls(one, tools) == canonical_calls(other, tools)


def _chosen(
    proposals: list[tuple[ToolCall, ...]], tools: Sequence[ToolDefinition], mode: RefineMode
) -> int:
    if mode != "self_consistency":
        return len(proposals) - 1
    canonical = [canonical_calls(proposal, tools) for proposal in proposals]
    votes = Counter(canonical)
    winner = max(votes, key=lambda answer: (votes[answer], -canonical.index(answer)))
    return canonical.index(winner)
