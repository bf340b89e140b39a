"""``RaisingModel``: whatever a model raises is an error of the model."""

from __future__ import annotations

from agentkit.errors import AgentKitError, ModelError
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse


class RaisingModel:
    """Passes requests on, and turns foreign exceptions into ``ModelError``.

    Adapters of plugins let the exceptions of their clients through. One of these is an attempt that
    the model failed, not the end of a run of thousands.

    Args:
        model: Answers.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The model's answer.

        Raises:
            ModelError: The model raised.
        """
        try:
            return await self._model.complete(request)
        except AgentKitError:
            raise
        except Exception as error:
            message = f"{self.name} raised {type(error).__name__}: {error}"
            raise ModelError(message) from error
