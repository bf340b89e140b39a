"""``ProviderServer``: a scripted server that also knows its models, its key and its paths."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from agentkit.testing.faulty_server import DIALECTS, FaultyServer, dialect_of
from agentkit.testing.server_steps import ErrorStatus, ReceivedRequest, Step


class ProviderServer(FaultyServer):
    """Speaks chat completions, OpenAI's responses and Anthropic's messages, as providers do.

    A request with a wrong key, for an unknown model or to an unknown path is refused as the
    provider would, and takes no step of the script.

    Args:
        script: As for ``FaultyServer``.
        models: The models that it has; empty takes any name.
        api_key: The key that it wants, as ``Authorization: Bearer`` or ``x-api-key``; empty takes
            any.

    Example:
        >>> import asyncio
        >>> from agentkit.models.base import ModelRequest
        >>> from agentkit.models.openai_compatible import OpenAICompatibleModel
        >>> from agentkit.messages import UserMessage
        >>> request = ModelRequest(messages=(UserMessage(text="hi"),))
        >>> with ProviderServer(["hello"], models=["qwen3"]) as server:
        ...     model = OpenAICompatibleModel("qwen3", base_url=server.base_url)
        ...     asyncio.run(model.complete(request)).message.text
        'hello'
    """

    def __init__(
        self,
        script: Iterable[Step | str] | Callable[[ReceivedRequest], Step | str],
        *,
        models: Collection[str] = (),
        api_key: str = "",
    ) -> None:
        super().__init__(script)
        self._models = frozenset(models)
        self._api_key = api_key

    def step_for(self, request: ReceivedRequest) -> Step:
        """A refusal, or the next step of the script."""
        return self._refusal(request) or super().step_for(request)

    def _refusal(self, request: ReceivedRequest) -> ErrorStatus | None:
        if dialect_of(request.path) is None:
            known = ", ".join(dialect.path for dialect in DIALECTS)
            return ErrorStatus(status=404, message=f"no path {request.path}; known: {known}")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._api_key and self._api_key not in {given, request.headers.get("x-api-key")}:
            return ErrorStatus(status=401, message="invalid API key")
        model = request.body.get("model")
        if self._models and model not in self._models:
            return ErrorStatus(status=404, message=f"the model {model!r} does not exist")
        return None
