"""``OutsideModel``: any chat model of the runtime, where a policy's own model would try tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentkit.models.base import ChatModel, ModelRequest, ModelResponse


@dataclass(frozen=True, kw_only=True, slots=True)
class OutsideModel:
    """A ``RolloutModel`` that records no tokens: for runs in which only the library learns.

    A small model that writes freely makes hardly a call that can be read, and nothing is learned
    from it. Through the runtime the same weights answer under a grammar, and every call comes to
    the tool that refuses it.

    Attributes:
        model: Answers, one request after another or as it likes.
        max_tokens: Longest answer, unless a request's settings say otherwise.
    """

    model: ChatModel
    max_tokens: int

    @property
    def name(self) -> str:
        """The model's name, for records."""
        return self.model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The model could not answer.
        """
        settings = request.settings
        if settings.max_tokens is None:
            settings = replace(settings, max_tokens=self.max_tokens)
        return await self.model.complete(replace(request, settings=settings))

    def expect(self, runs: int) -> None:
        """Nothing to prepare: requests are not answered together."""

    def forget(self) -> None:
        """Nothing is kept of earlier answers."""
