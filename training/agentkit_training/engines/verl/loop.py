"""``AgentkitLoop``: one rollout of verl, made by the runtime's own agent.

Imports verl, and is imported by it alone.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import (  # type: ignore[import-not-found]
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)

from agentkit_training.engines.verl.serving import (
    ServedSpeaker,
    ServerWriter,
    checked,
    noted,
    token_rows,
    turn_count,
)
from agentkit_training.engines.verl.workspace import RowInfo, opened_workspace
from agentkit_training.policy.loading import end_ids
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.samples import Rollout

_LOG = logging.getLogger(__name__)


class AgentkitLoop(AgentLoopBase):  # type: ignore[misc]  # no stubs
    """Has the runtime's agent do the task of a row, with verl's servers as its model.

    The exported file of agent loops registers it. verl's decorator ``register`` must not: it runs
    when a worker first makes a loop, and takes the place of what that file says, settings included.

    Args:
        of_verl: What verl gives every loop.
        settings: The file of ``VerlSettings``; the exported file of agent loops names it.
    """

    def __init__(self, *of_verl: Any, settings: str, **more_of_verl: Any) -> None:
        super().__init__(*of_verl, **more_of_verl)
        self._workspace = opened_workspace(settings)
        self._ends = end_ids(self.tokenizer)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Make one rollout.

        Args:
            sampling_params: Temperature and the like.
            row: The columns of the row, and what the trainer says of the batch:
                ``library_version`` of ``AgentkitTrainer``. Without it the newest one is taken.

        Returns:
            One output for each training sequence; several where a template rewrites what came
            before, so that a prompt does not go on from the one before it. None for a rollout with
            a fault: it is trained on nowhere, and verl fills the batch up.

        Raises:
            Exception: What verl's server raised, so that verl knows.
        """
        started = time.perf_counter()
        writer = ServerWriter(
            server=self.server_manager,
            end_ids=self._ends,
            sampling=sampling_params,
            request_id=uuid4().hex,
            priority=int(row.get("priority", 0)),
        )
        version = row.get("library_version")
        rollout = await self._workspace.rollout(
            self._model(writer),
            RowInfo.read(row["extra_info"]),
            version=self._workspace.newest_version if version is None else int(version),
            temperature=float(sampling_params.get("temperature", 1.0)),
        )
        if writer.error is not None:
            raise writer.error
        return self._outputs(rollout, writer, time.perf_counter() - started)

    def _model(self, writer: ServerWriter) -> PolicyModel:
        """The chat model of one rollout."""
        limits, settings = self.rollout_config, self._workspace.settings
        speaker = ServedSpeaker(
            name=str(self.config.actor_rollout_ref.model.path),
            tokenizer=self.tokenizer,
            end_ids=self._ends,
            context_tokens=limits.prompt_length + limits.response_length,
        )
        return PolicyModel(
            speaker,
            writer=writer,
            tools_in=settings.tools_in,
            format=settings.format,
            constrained=settings.constrained,
            max_tokens=settings.answer_tokens or limits.response_length,
            batch_size=1,  # verl's servers put requests together
        )

    def _outputs(
        self, rollout: Rollout, writer: ServerWriter, seconds: float
    ) -> list[AgentLoopOutput]:
        rollout = checked(rollout, longest_prompt=self.rollout_config.prompt_length)
        if rollout.fault:
            _LOG.warning("rollout of %s left out: %s", rollout.task_id, rollout.fault)
            return []
        steps = {
            "min_global_steps": min(writer.steps, default=None),
            "max_global_steps": max(writer.steps, default=None),
        }
        return [
            AgentLoopOutput(
                prompt_ids=one.prompt,
                response_ids=one.response,
                response_mask=one.mask,
                response_logprobs=one.logprobs,
                reward_score=rollout.reward,
                num_turns=turn_count(rollout),
                metrics=AgentLoopMetrics(
                    generate_sequences=writer.seconds,
                    tool_calls=max(0.0, seconds - writer.seconds),
                    num_preempted=writer.preempted,
                ),
                extra_fields=noted(rollout) | steps,
            )
            for one in token_rows(
                rollout,
                longest=self.rollout_config.response_length,
                has_logprobs=writer.has_logprobs,
            )
        ]
