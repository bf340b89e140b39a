"""Writing through verl's servers: token ids in, token ids out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from agentkit_training.generation.decoding import Completion, Prompt
from agentkit_training.rollout.samples import Rollout

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


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


class ServedTokens(Protocol):
    """What a server wrote: verl's ``TokenOutput``."""

    token_ids: list[int]
    log_probs: list[float] | None
    num_preempted: int | None
    extra_fields: dict[str, Any]


class TokenServer(Protocol):
    """Writes with the weights of the moment: verl's ``LLMServerClient``."""

    async def generate(
        self,
        request_id: str,
        *,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        **more: Any,
    ) -> ServedTokens:
        """An answer to one prompt."""
        ...


@dataclass(frozen=True, kw_only=True)
class ServedSpeaker:
    """What is known here of the weights behind the servers.

    Attributes:
        name: For records.
        tokenizer: Their tokenizer.
        end_ids: The tokens that end an answer.
        context_tokens: The longest prompt and answer together.
    """

    name: str
    tokenizer: PreTrainedTokenizerBase
    end_ids: frozenset[int]
    context_tokens: int


@dataclass(kw_only=True)
class ServerWriter:
    """Has a server write the answers of one rollout.

    Temperature and nucleus are those that verl says, since it trains on what they gave; of a prompt
    only its tokens and its longest answer count. verl's servers draw by themselves: seeds are not
    passed on.

    Attributes:
        server: Writes.
        end_ids: The tokens that end an answer.
        sampling: What verl says about sampling.
        request_id: Of the rollout; verl sends all its turns to one server, which has read them.
        priority: Which rollouts a server takes first.
        seconds: Spent waiting for the server.
        preempted: How often the server put a request off; -1 while it says nothing.
        has_logprobs: Whether every answer came with log-probabilities.
        steps: Versions of the weights that wrote, as the server counts them.
        error: What the server raised; None while it did not.
    """

    server: TokenServer
    end_ids: frozenset[int]
    sampling: Mapping[str, Any]
    request_id: str
    priority: int = 0
    seconds: float = field(init=False, default=0.0)
    preempted: int = field(init=False, default=-1)
    has_logprobs: bool = field(init=False, default=True)
    steps: list[int] = field(init=False, default_factory=list)
    error: Exception | None = field(init=False, default=None)

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """An answer to each prompt; what the server raises is noted and goes through."""
        started = time.perf_counter()
        try:
            return await asyncio.gather(*(self._answer(one) for one in prompts))
        except Exception as error:
            self.error = error
            raise
        finally:
            self.seconds += time.perf_counter() - started

    async def _answer(self, prompt: Prompt) -> Completion:
        served = await self.server.generate(
            self.request_id,
            prompt_ids=list(prompt.ids),
            sampling_params={**self.sampling, "max_tokens": prompt.max_tokens},
            priority=self.priority,
        )
        ids = tuple(int(token) for token in served.token_ids)
        self._note(served)
        return Completion(
            ids=ids,
            logprobs=tuple(served.log_probs or ()) or (0.0,) * len(ids),
            is_ended=bool(ids) and ids[-1] in self.end_ids,
        )

    def _note(self, served: ServedTokens) -> None:
        if served.token_ids and not served.log_probs:
            self.has_logprobs = False
        if served.num_preempted is not None:
            self.preempted = max(self.preempted, 0) + served.num_preempted
        for name in ("min_global_steps", "max_global_steps"):
            if served.extra_fields.get(name) is not None:
                self.steps.append(int(served.extra_fields[name]))
