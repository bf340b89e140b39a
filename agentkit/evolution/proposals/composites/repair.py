"""The repair loop: a model's text, what is wrong with it, and the model's next try."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agentkit.errors import CompositeError, SourceProblem
from agentkit.evolution.insertion.outcome import Rejected
from agentkit.evolution.proposals.composites.prompt import (
    code_blocks,
    refusal_prompt,
    repair_prompt,
)
from agentkit.messages import AssistantMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, ModelRequest
from agentkit.tools.definition import ToolDefinition

Compose = Callable[[str], ToolDefinition]
"""Source text to definition; raises ``CompositeError`` with all that is wrong."""

Review = Callable[[ToolDefinition], Awaitable[Rejected | None]]
"""Tries a definition out; None when there is nothing to say against it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """Where a repair loop ended.

    Attributes:
        source: The last text.
        definition: What it says; None when it is still outside the language.
        problems: What is wrong with the text.
        rejection: What trying it out showed, when that was asked for.
        attempts: Texts that the model wrote, the first one included.
        usage: What the repairs cost.
    """

    source: str
    definition: ToolDefinition | None = None
    problems: tuple[SourceProblem, ...] = ()
    rejection: Rejected | None = None
    attempts: int = 1
    usage: Usage = field(default_factory=Usage)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is known to be wrong."""
        return self.definition is not None and self.rejection is None


async def repaired(
    source: str,
    request: ModelRequest,
    model: ChatModel,
    *,
    compose: Compose,
    review: Review | None = None,
    max_repairs: int = 3,
) -> Repaired:
    """Ask the author of a text to mend it until it is sound.

    The model sees its own last text and what is wrong with it, not its whole history of errors.
    The loop also ends when the model gives up, or writes the same text again.

    Args:
        source: The first text.
        request: The conversation that led to it, without the answer.
        model: The author.
        compose: Reads the text.
        review: Tries out what was read.
        max_repairs: Most further texts to ask for.

    Raises:
        ModelError: The model could not answer.
    """
    state = await _read(Repaired(source=source), compose, review)
    for _ in range(max_repairs):
        if state.is_sound:
            break
        response = await model.complete(_asking(request, state))
        state = replace(state, usage=state.usage + response.usage)
        blocks = code_blocks(response.message.text)
        if not blocks or blocks[0] == state.source:
            break
        state = replace(state, source=blocks[0], attempts=state.attempts + 1)
        state = await _read(state, compose, review)
    return state


async def _read(state: Repaired, compose: Compose, review: Review | None) -> Repaired:
    try:
        definition = compose(state.source)
    except CompositeError as error:
        return replace(state, definition=None, problems=error.problems, rejection=None)
    rejection = await review(definition) if review is not None else None
    return replace(state, definition=definition, problems=(), rejection=rejection)


def _asking(request: ModelRequest, state: Repaired) -> ModelRequest:
    words = repair_prompt(state.problems)
    if state.rejection is not None:
        words = refusal_prompt(state.rejection.explanation, state.rejection.advice)
    answer = AssistantMessage(text=f"```python\n{state.source.rstrip()}\n```")
    return replace(request, messages=(*request.messages, answer, UserMessage(text=words)))
