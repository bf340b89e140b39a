"""``PolicyModel``: the policy as a ``ChatModel``, so that the runtime's own agent drives it.

Requests of many runs are answered together. Every answer carries the tokens that were read and
written, with log-probabilities.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from agentkit.errors import UsageError
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.models.prompt_format import PromptFormat
from agentkit.models.prompted import PromptedModel
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.batching import BatchingModel, GenerationCounts
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.templated import TemplatedModel
from agentkit_training.rollout.writing import PolicyWriter, Speaker, Writer

__all__ = ["GenerationCounts", "PolicyModel", "ToolsIn"]

ToolsIn: TypeAlias = Literal["prompt", "template"]


class PolicyModel:
    """A chat model that writes with a policy.

    Tools travel in the prompt, exactly as ``LocalModel`` puts them there, so that what is learned
    here holds in the runtime. With ``tools_in="template"`` the chat template of the tokenizer
    writes them, as servers do for models that were trained for tools.

    Args:
        policy: Writes the answers; with a ``writer``, what speaks as its weights do.
        writer: Writes in the place of weights in this process, such as a server; None for those.
        tools_in: Who writes tools, calls and results: ``prompt`` or the tokenizer's ``template``.
        format: How tools and calls are written in a prompt, see ``PromptedModel``.
        constrained: For tools in a prompt, whether it is that of constrained decoding, as
            ``LocalModel`` has it by default. What the policy writes is free all the same.
        max_tokens: Longest answer, unless a request's settings say otherwise.
        batch_size: Most answers written at the same time.

    Raises:
        PolicyError: The tokenizer's template has no place for tools, and is to write them.
        UsageError: There is no writer, and no weights are in this process.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit_training import tiny_policy
        >>> model = PolicyModel(tiny_policy(), max_tokens=4)
        >>> episode = Agent(model).run_sync("Hello!").episode
        >>> len(episode.turns[0].tokens.completion) <= 4
        True
    """

    def __init__(
        self,
        policy: Policy | Speaker,
        *,
        writer: Writer | None = None,
        tools_in: ToolsIn = "prompt",
        format: PromptFormat = "json",  # noqa: A002 - the word of the field
        constrained: bool = True,
        max_tokens: int = 128,
        batch_size: int = 64,
    ) -> None:
        if tools_in not in get_args(ToolsIn):
            raise UsageError(f"tools_in is {tools_in!r}; use 'prompt' or 'template'")
        renderer = Renderer(policy)
        self._engine = BatchingModel(
            renderer, writer or _own_writer(policy), max_tokens=max_tokens, batch_size=batch_size
        )
        self._outer: ChatModel
        if tools_in == "template":
            renderer.require_tools()
            self._outer = TemplatedModel(self._engine)
        else:
            self._outer = PromptedModel(
                self._engine, format=format, constrained=constrained and format == "json"
            )

    @property
    def name(self) -> str:
        """The policy's name."""
        return self._engine.name

    @property
    def counts(self) -> GenerationCounts:
        """What was generated so far."""
        return self._engine.counts

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request, together with the others that wait.

        Raises:
            ModelStatusError: The prompt leaves no room for an answer.
        """
        return await self._outer.complete(request)

    def expect(self, runs: int) -> None:
        """Say how many runs are under way, so that the next batch waits for all of them.

        Each run is at any time either waiting for an answer or busy with its tools. A batch is
        written when as many requests wait as there are runs: largest batches, and the same ones in
        each repetition. Without it (0) a batch is written when nothing else can go on.
        """
        self._engine.expect(runs)

    def forget(self) -> None:
        """Drop the tokens of earlier answers; conversations that go on are tokenised again."""
        self._engine.forget()


def _own_writer(policy: Policy | Speaker) -> Writer:
    if not isinstance(policy, Policy):
        raise UsageError(f"the weights of {policy.name} are not in this process; give a writer")
    return PolicyWriter(policy=policy)
