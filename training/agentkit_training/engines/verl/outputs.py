"""A rollout in verl's words: token lists, a mask, and what is noted beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agentkit_training.rollout.samples import Rollout


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRow:
    """One training sequence as verl's ``AgentLoopOutput`` has it.

    Attributes:
        prompt: What was read before the first answer.
        response: Everything after it.
        mask: For each token of ``response`` 1 where the policy wrote it, 0 elsewhere.
        logprobs: For each token of ``response``; None where a server gave none.
    """

    prompt: list[int]
    response: list[int]
    mask: list[int]
    logprobs: list[float] | None


def token_rows(rollout: Rollout, *, longest: int, has_logprobs: bool) -> Iterator[TokenRow]:
    """The sequences of a rollout, in order.

    Args:
        rollout: What was tried.
        longest: Tokens of a response (``rollout.response_length``); the rest is cut off, as verl's
            own loops do.
        has_logprobs: Whether the servers gave log-probabilities.
    """
    for one in rollout.sequences:
        yield TokenRow(
            prompt=list(one.prompt),
            response=list(one.completion[:longest]),
            mask=[int(written) for written in one.written[:longest]],
            logprobs=list(one.logprobs[:longest]) if has_logprobs else None,
        )


def checked(rollout: Rollout, *, longest_prompt: int) -> Rollout:
    """The rollout, with a fault where verl could not train on it.

    Args:
        rollout: What was tried.
        longest_prompt: Tokens of a prompt (``rollout.prompt_length``). verl's own loops cut off
            the beginning of a longer one, which here would be the tools.
    """
    if rollout.fault:
        return rollout
    if not rollout.sequences or not any(len(one.completion) for one in rollout.sequences):
        return replace(rollout, fault="the server wrote nothing")
    size = len(rollout.sequences[0].prompt)
    if size > longest_prompt:
        return replace(
            rollout,
            fault=f"the prompt has {size} tokens, and data.max_prompt_length is {longest_prompt}",
        )
    return rollout


def noted(rollout: Rollout) -> dict[str, Any]:
    """What travels beside the tokens, as ``extra_fields``: plain data, with the same keys always.

    ``reward_extra_info`` is averaged by verl in validation. ``turn_scores`` and ``tool_rewards``
    are there for verl, whose own loops give them.
    """
    return {
        "task_id": rollout.task_id,
        "labels": list(rollout.labels),
        "library_version": rollout.library_version,
        "weight": rollout.weight,
        "reward": rollout.reward,
        "reward_parts": dict(rollout.reward_parts),
        "reward_extra_info": {"passed": float(rollout.passed), "weight": rollout.weight},
        "turn_scores": [],
        "tool_rewards": [],
    }


def turn_count(rollout: Rollout) -> int:
    """Messages of the conversation: what users, the policy and tools said."""
    return sum(
        1 + sum(1 + len(turn.results) for turn in episode.turns) for episode in rollout.episodes
    )
