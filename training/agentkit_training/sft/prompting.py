"""The prompts that rollouts would have, without writing an answer to them.

A sample is taught with the prompt that the policy reads when it acts. So prompts are not put
together here: each task is asked by the runtime's own agent, and what its model was to read is
kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit.messages import AssistantMessage, TokenIds, ToolCall, UserMessage
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.models.prompt_format import PromptFormat, render_answer, render_calls
from agentkit.models.prompted import PromptedModel
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.samples import Rollout

_PROBE = "agentkit"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompting:
    """How tools and calls are written: one choice for rollouts, training and evaluation.

    Attributes:
        format: Of tools and calls, see ``PromptedModel``.
        constrained: Whether the prompt is that of constrained decoding.
    """

    format: PromptFormat = "json"
    constrained: bool = True

    def model(self, policy: Policy, *, max_tokens: int = 128, batch_size: int = 64) -> PolicyModel:
        """The policy as a chat model that is prompted this way."""
        return PolicyModel(
            policy,
            format=self.format,
            constrained=self.constrained,
            max_tokens=max_tokens,
            batch_size=batch_size,
        )

    def answer(self, calls: Sequence[ToolCall], text: str = "") -> str:
        """An answer as the policy would have to write it: calls, or words where there are none."""
        if calls:
            return render_calls(calls, self.format)
        return render_answer(text) if self.constrained and self.format == "json" else text


class PromptReader:
    """Stands in for ``PolicyModel``: renders each prompt and answers with nothing.

    Args:
        policy: Whose tokenizer and chat template to use; its weights are not touched.
        prompting: How tools are written.
    """

    def __init__(self, policy: Policy, prompting: Prompting = Prompting()) -> None:
        constrained = prompting.constrained and prompting.format == "json"
        self._inner = _Rendering(policy)
        self._prompted = PromptedModel(
            self._inner, format=prompting.format, constrained=constrained
        )

    @property
    def name(self) -> str:
        """The policy's name."""
        return self._inner.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """An empty answer, with the tokens of the prompt."""
        return await self._prompted.complete(request)

    def expect(self, runs: int) -> None:
        """Nothing waits here, so that it does not matter how many runs are under way."""

    def forget(self) -> None:
        """Nothing is remembered."""


class _Rendering:
    """Answers nothing, and says what it read."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self._renderer = Renderer(policy)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        prompt = self._renderer.prompt(request.messages, {})
        return ModelResponse(
            message=AssistantMessage(text=""),
            model=self.name,
            tokens=TokenIds(prompt=prompt.ids),
        )


async def read_prompts(
    policy: Policy,
    benchmark: Benchmark,
    *,
    prompting: Prompting = Prompting(),
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
) -> tuple[Rollout, ...]:
    """One rollout for each task, without an answer: its sequence holds the prompt alone.

    Args:
        policy: Whose tokenizer and chat template to use.
        benchmark: The tasks.
        prompting: How tools are written.
        library: What the tools are called and described as, see ``collect``.
        settings: How the tasks are asked; those of the rollouts.
    """
    reader = cast("PolicyModel", PromptReader(policy, prompting))  # it has all that collect asks
    return await collect(
        reader, benchmark, library=library, attempts=1, temperature=0, settings=settings
    )


def closing_token(policy: Policy) -> int:
    """The end token that the chat template writes after an answer.

    Raises:
        PolicyError: The template writes none of the policy's end tokens there.
    """
    renderer = Renderer(policy)
    said = (UserMessage(text=_PROBE), AssistantMessage(text=_PROBE))
    after = renderer.text(said, asks=False).rpartition(_PROBE)[2]
    for token in renderer.tokens(after):
        if token in policy.end_ids:
            return token
    raise PolicyError(
        f"after an answer the chat template of {policy.name} writes {after!r}, which holds none of "
        f"the end tokens {sorted(policy.end_ids)}; name the right one in the policy's end_ids"
    )
