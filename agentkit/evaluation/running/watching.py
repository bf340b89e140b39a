"""``WatchedModel``: looks at the world whenever the model is asked for its next step."""

from __future__ import annotations

from agentkit.evaluation.task import Environment
from agentkit.messages import JsonObject, ToolMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse


class WatchedModel:
    """Passes requests on, and notes the state of the world before each turn.

    A turn begins when there are more results to read than before; rounds of refinement run no tool
    and add none.

    Args:
        model: Answers.
        world: What its calls act on.
    """

    def __init__(self, model: ChatModel, world: Environment) -> None:
        self._model = model
        self._world = world
        self._seen: dict[int, JsonObject] = {}

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The model's answer."""
        results = sum(isinstance(message, ToolMessage) for message in request.messages)
        if results not in self._seen:
            self._seen[results] = self._world.state()
        return await self._model.complete(request)

    def states(self) -> tuple[JsonObject, ...]:
        """The state before each turn, and the one now."""
        return (*self._seen.values(), self._world.state())
