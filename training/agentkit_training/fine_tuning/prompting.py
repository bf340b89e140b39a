"""The prompts that rollouts would have, without writing an answer to them.

A sample is taught with the prompt that the policy reads when it acts. So prompts are not put
together here: each task is asked by the runtime's own agent, and what its model was to read is
kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.messages import AssistantMessage, TokenIds, ToolCall, UserMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.models.prompt_format import PromptFormat, render_answer, render_calls
from agentkit.models.prompted import PromptedModel
from agentkit.tools.definition import ToolDefinition
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.policy_model import PolicyModel, ToolsIn
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.templated import TemplatedModel
from agentkit_training.rollout.writing import Writer

_PROBE = "agentkit"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompting:
    """How tools and calls are written: one choice for rollouts, training and evaluation.

    Attributes:
        format: Of tools and calls, see ``PromptedModel``.
        constrained: Whether the prompt is that of constrained decoding.
        tools_in: Who writes the tools, see ``PolicyModel``; with ``template`` the others do not
            count.
    """

    format: PromptFormat = "json"
    constrained: bool = True
    tools_in: ToolsIn = "prompt"

    def model(
        self,
        policy: Policy,
        *,
        writer: Writer | None = None,
        max_tokens: int = 128,
        batch_size: int = 64,
    ) -> PolicyModel:
        """The policy as a chat model that is prompted this way; see there."""
        return PolicyModel(
            policy,
            writer=writer,
            tools_in=self.tools_in,
            format=self.format,
            constrained=self.constrained,
            max_tokens=max_tokens,
            batch_size=batch_size,
        )

    @property
    def is_constrained(self) -> bool:
        """Whether answers without calls are JSON, too."""
        return self.constrained and self.format == "json" and self.tools_in == "prompt"

    def answer(
        self,
        renderer: Renderer,
        calls: Sequence[ToolCall],
        text: str = "",
        tools: Sequence[ToolDefinition] = (),
    ) -> str:
        """An answer as the policy would have to write it, up to its end token.

        Args:
            renderer: Writes conversations with the chat template.
            calls: The calls.
            text: What is said where there are none.
            tools: What was offered, under the names that the calls use.
        """
        if self.tools_in == "template":
            return _templated(renderer, AssistantMessage(text=text, tool_calls=tuple(calls)), tools)
        if calls:
            return render_calls(calls, self.format)
        return render_answer(text) if self.is_constrained else text


class PromptReader:
    """Stands in for ``PolicyModel``: renders each prompt and answers with nothing.

    Args:
        policy: Whose tokenizer and chat template to use; its weights are not touched.
        prompting: How tools are written.
    """

    def __init__(self, policy: Policy, prompting: Prompting = Prompting()) -> None:
        self._inner = _Rendering(policy)
        self._outer: ChatModel
        if prompting.tools_in == "template":
            self._outer = TemplatedModel(self._inner)
        else:
            self._outer = PromptedModel(
                self._inner, format=prompting.format, constrained=prompting.is_constrained
            )
        self._offered: dict[tuple[int, ...], tuple[ToolDefinition, ...]] = {}

    @property
    def name(self) -> str:
        """The policy's name."""
        return self._inner.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """An empty answer, with the tokens of the prompt."""
        response = await self._outer.complete(request)
        if response.tokens is not None:
            self._offered[response.tokens.prompt] = request.tools
        return response

    def offered(self, prompt: tuple[int, ...]) -> tuple[ToolDefinition, ...]:
        """The tools that a prompt offers, under the names that it gives them."""
        return self._offered[prompt]

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
        prompt = self._renderer.prompt(request.messages, {}, tools=request.tools)
        return ModelResponse(
            message=AssistantMessage(text=""),
            model=self.name,
            tokens=TokenIds(prompt=prompt.ids),
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


def _templated(
    renderer: Renderer, answer: AssistantMessage, tools: Sequence[ToolDefinition]
) -> str:
    """What the chat template writes for an answer, without the end of the turn."""
    asked = (UserMessage(text=_PROBE),)
    before = renderer.text(asked, asks=True, tools=tools)
    whole = renderer.text((*asked, answer), asks=False, tools=tools)
    ends = [renderer.said([token]) for token in renderer.speaker.end_ids]
    place = max(whole.rfind(end) for end in ends)
    if not whole.startswith(before) or place < len(before):
        raise PolicyError(
            f"the chat template of {renderer.speaker.name} writes an answer otherwise than behind "
            "its own request for one, so that no answer can be taught; use tools_in='prompt'"
        )
    return whole[len(before) : place]
