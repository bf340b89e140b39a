"""What the tests of hosted models share."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
from support.model_server import FaultyServer

from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.models.retries import RetryPolicy


@pytest.fixture(autouse=True)
def _loopback_without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine behind a proxy reaches its own loopback interface directly."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


@pytest.fixture(params=["httpx", "aiohttp"])
def transport(request: pytest.FixtureRequest) -> str:
    """The name of each transport that can be used here."""
    name: str = request.param
    pytest.importorskip(name, reason=f"{name} is not installed")
    return name


@pytest.fixture
def need() -> Callable[[str], None]:
    """Skips where what an adapter needs is not installed.

    It imports nothing: litellm would fetch prices, unless our adapter is the one that imports it.
    """

    def check(adapter: str) -> None:
        package = "httpx" if adapter == "responses" else adapter.partition("-")[0]
        for one in (package, "mcp") if package == "litellm" else (package,):
            if find_spec(one) is None:
                pytest.skip(f"the extra {package!r} is not installed: {one} is missing")

    return check


@pytest.fixture
def question() -> ModelRequest:
    """The simplest request."""
    return ModelRequest(messages=(UserMessage(text="hi"),))


@pytest.fixture
def waits() -> list[float]:
    """The waits between attempts of ``open_model``'s models, in seconds; none is really waited."""
    return []


@pytest.fixture
def open_model(transport: str, waits: list[float]) -> Callable[..., OpenAICompatibleModel]:
    """Opens a model at a server, over each transport, with retries that do not wait."""

    async def note(seconds: float) -> None:
        waits.append(seconds)

    def open_at(
        server: FaultyServer, attempts: int = 3, **options: object
    ) -> OpenAICompatibleModel:
        return OpenAICompatibleModel(
            "m",
            base_url=server.base_url,
            transport=transport,
            retry=RetryPolicy(attempts=attempts, jitter=0, sleep=note),
            **options,
        )

    return open_at
