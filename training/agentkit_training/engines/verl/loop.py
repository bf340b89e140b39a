"""``AgentkitLoop``: one rollout of verl, made by the runtime's own agent.

Imports verl, and is imported by it alone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import (  # type: ignore[import-not-found]
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)

from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import read_config
from agentkit_training.config.sections import reward_named
from agentkit_training.export.manifest import library_of
from agentkit_training.generation.decoding import Completion, Prompt
from agentkit_training.policy.loading import end_ids
from agentkit_training.rewards import rewarded
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.samples import Rollout
from agentkit_training.tasks.loading import load_tasks_for_training

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_LOG = logging.getLogger(__name__)


@cache
def opened(settings: str) -> tuple[CoevolveConfig, Mapping[str, Any], Any]:
    """Configuration, tasks and library; verl makes a loop for every rollout, they share these."""
    config = read_config(settings, CoevolveConfig)
    return config, dict(load_tasks_for_training(config.tasks)), library_of(config.library)


@dataclass(frozen=True, kw_only=True)
class ServedSpeaker:
    """What is known here of the weights behind the servers: a ``Speaker``."""

    name: str
    tokenizer: PreTrainedTokenizerBase
    end_ids: frozenset[int]
    context_tokens: int


@dataclass(kw_only=True)
class ServerWriter:
    """Has verl's server write the answers of one rollout, with the sampling that verl says.

    Attributes:
        server: Writes: verl's ``LLMServerClient``.
        end_ids: The tokens that end an answer.
        sampling: What verl says about sampling; of a prompt only its tokens and limit count.
        request_id: Of the rollout; verl sends all its turns to one server, which has read them.
        seconds: Spent waiting for the server.
        has_logprobs: Whether every answer came with log-probabilities.
        error: What the server raised; None while it did not.
    """

    server: Any
    end_ids: frozenset[int]
    sampling: Mapping[str, Any]
    request_id: str
    seconds: float = field(init=False, default=0.0)
    has_logprobs: bool = field(init=False, default=True)
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
        )
        ids = tuple(int(token) for token in served.token_ids)
        self.has_logprobs = self.has_logprobs and (bool(served.log_probs) or not ids)
        return Completion(
            ids=ids,
            logprobs=tuple(served.log_probs or ()) or (0.0,) * len(ids),
            is_ended=bool(ids) and ids[-1] in self.end_ids,
        )


class AgentkitLoop(AgentLoopBase):  # type: ignore[misc]  # no stubs
    """Has the runtime's agent do the task of a row, with verl's servers as its model.

    Args:
        of_verl: What verl gives every loop.
        settings: The configuration of the run; the exported file of agent loops names it.
    """

    def __init__(self, *of_verl: Any, settings: str, **more_of_verl: Any) -> None:
        super().__init__(*of_verl, **more_of_verl)
        self._settings, self._parts, self._library = opened(settings)
        self._ends = end_ids(self.tokenizer)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Make one rollout.

        Args:
            sampling_params: Temperature and the like.
            row: The columns of the row.

        Returns:
            One output for each training sequence; several where a template rewrites what came
            before. None for a rollout with a fault: verl fills the batch up.

        Raises:
            Exception: What verl's server raised, so that verl knows.
        """
        started = time.perf_counter()
        writer = ServerWriter(
            server=self.server_manager,
            end_ids=self._ends,
            sampling=sampling_params,
            request_id=uuid4().hex,
        )
        rollout = await self._tried(writer, row["extra_info"], sampling_params)
        if writer.error is not None:
            raise writer.error
        fault = rollout.fault or self._unfit(rollout)
        if fault:
            _LOG.warning("rollout of %s left out: %s", rollout.task_id, fault)
            return []
        return list(self._outputs(rollout, writer, time.perf_counter() - started))

    async def _tried(
        self, writer: ServerWriter, info: Mapping[str, Any], sampling: Mapping[str, Any]
    ) -> Rollout:
        """The rollout of a row's task, rewarded."""
        part = self._parts[info["part"]]
        task = next(one for one in part.tasks if one.task_id == info["task_id"])
        policy, limits = self._settings.policy, self.rollout_config
        speaker = ServedSpeaker(
            name=policy.weights,
            tokenizer=self.tokenizer,
            end_ids=self._ends,
            context_tokens=limits.prompt_length + limits.response_length,
        )
        model = PolicyModel(
            speaker,
            writer=writer,
            tools_in=policy.tools_in,
            format=policy.format,
            constrained=policy.constrained,
            max_tokens=policy.answer_tokens,
            batch_size=1,  # verl's servers put requests together
        )
        tried = await collect(
            model,
            replace(part, tasks=(task,)),
            library=self._library,
            attempts=1,
            temperature=float(sampling.get("temperature", 1.0)),
            settings=self._settings.asked,
        )
        (judged,) = rewarded(tried, reward_named(self._settings.reward, part))
        return judged

    def _unfit(self, rollout: Rollout) -> str:
        """Why verl could not train on a rollout; empty where it can."""
        if not any(len(one.completion) for one in rollout.sequences):
            return "the server wrote nothing"
        size, most = len(rollout.sequences[0].prompt), self.rollout_config.prompt_length
        too_long = f"the prompt has {size} tokens, and verl.prompt_tokens is {most}"
        return too_long if size > most else ""  # verl would cut off its beginning, the tools

    def _outputs(self, rollout: Rollout, writer: ServerWriter, seconds: float) -> Any:
        longest = self.rollout_config.response_length
        for one in rollout.sequences:
            yield AgentLoopOutput(
                prompt_ids=list(one.prompt),
                response_ids=list(one.completion[:longest]),
                response_mask=[int(written) for written in one.written[:longest]],
                response_logprobs=list(one.logprobs[:longest]) if writer.has_logprobs else None,
                reward_score=rollout.reward,
                num_turns=sum(1 + len(episode.turns) for episode in rollout.episodes),
                metrics=AgentLoopMetrics(
                    generate_sequences=writer.seconds,
                    tool_calls=max(0.0, seconds - writer.seconds),
                ),
                extra_fields={
                    "task_id": rollout.task_id,
                    "labels": list(rollout.labels),
                    "reward_extra_info": {"passed": float(rollout.passed), **rollout.reward_parts},
                    "turn_scores": [],  # verl's own loops give these two
                    "tool_rewards": [],
                },
            )
