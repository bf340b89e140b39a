"""What every SDK adapter shares: deadlines, retries, translated errors."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import ModuleType

import pytest

from agentkit.errors import (
    ModelConnectionError,
    ModelResponseError,
    ModelStatusError,
    ModelTimeoutError,
)
from agentkit.messages import AssistantMessage
from agentkit.models.base import ModelResponse, ModelSettings, TextDelta
from agentkit.models.http_model import RemoteModel
from agentkit.models.litellm import translated_sdk_error
from agentkit.models.retries import RetryPolicy
from agentkit.models.status import Endpoint

ENDPOINT = Endpoint(place="http://x", model="m", key_source="the variable X", api_key="sk-secret")
ANSWER = ModelResponse(message=AssistantMessage(text="well"))


class Provider(RemoteModel):
    """Plays a script: an exception is raised, ``None`` hangs, anything else is streamed."""

    def __init__(self, *script: object, **options: object) -> None:
        retry = RetryPolicy(sleep=no_wait)
        super().__init__("m", provider_name="provider", retry=retry, **options)
        self.script = list(script)

    async def close(self) -> None:
        """Nothing to close."""

    async def _answer(self, request, idle):
        return [event async for event in self._events(request, idle)][-1]

    async def _events(self, request, idle):
        while True:
            step = self.script.pop(0)
            if step is None:
                await idle.wait(asyncio.sleep(60))
            if isinstance(step, Exception):
                raise step
            yield step
            if isinstance(step, ModelResponse):
                return


async def no_wait(seconds: float) -> None:
    """Return at once."""


async def collect(model: RemoteModel, request, into: list) -> None:
    """Add the events of a stream to ``into``, as far as it goes."""
    async for event in model.stream(request):
        into.append(event)  # noqa: PERF401 - an extend would keep nothing when the stream fails


async def test_failures_that_can_pass_are_retried(question) -> None:
    """A lost connection is tried again; a bug is not dressed up as a model's failure."""
    lost = ModelConnectionError("reset")
    async with Provider(lost, lost, ANSWER) as model:
        assert await model.complete(question) == ANSWER
        assert model.name == "m"
    with pytest.raises(ZeroDivisionError):
        await Provider(ZeroDivisionError()).complete(question)


@pytest.mark.parametrize(("own", "asked"), [(0.05, None), (60.0, 0.05)])
async def test_deadline(question, own, asked) -> None:
    """The wait ends with the model's deadline, or with that of the request."""
    request = replace(question, settings=ModelSettings(timeout_seconds=asked))
    model = Provider(None, None, ANSWER, timeout_seconds=own)
    assert await model.complete(request) == ANSWER
    model = Provider(None, None, None, timeout_seconds=own)
    with pytest.raises(ModelTimeoutError, match=r"Provider\('m'\) sent nothing usable for 0\.05 s"):
        await model.complete(request)


async def test_streams_start_again_only_before_they_show_anything(question) -> None:
    """A failure after the first piece is raised, one before is retried."""
    events: list = []
    piece = TextDelta(text="we")
    await collect(Provider(ModelConnectionError("cut"), piece, ANSWER), question, events)
    assert events == [piece, ANSWER]
    events.clear()
    with pytest.raises(ModelConnectionError, match="cut"):
        await collect(Provider(piece, ModelConnectionError("cut"), ANSWER), question, events)
    assert events == [piece]


@pytest.fixture
def sdk() -> ModuleType:
    """A module with the error classes that the SDKs have in common."""
    module = ModuleType("sdk")

    class APIError(Exception):
        body: object = None

    module.APIError = APIError
    for name, base in (
        ("APIConnectionError", APIError),
        ("APIStatusError", APIError),
        ("APIResponseValidationError", APIError),
    ):
        setattr(module, name, type(name, (base,), {}))
    module.APITimeoutError = type("APITimeoutError", (module.APIConnectionError,), {})
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("APITimeoutError", ModelTimeoutError),
        ("APIConnectionError", ModelConnectionError),
        ("APIResponseValidationError", ModelResponseError),
        ("APIStatusError", ModelStatusError),
        ("APIError", ModelStatusError),
    ],
)
def test_each_kind_of_error(sdk, name, expected) -> None:
    """Each kind has its counterpart."""
    assert type(translated_sdk_error(getattr(sdk, name)("oops"), sdk, ENDPOINT)) is expected


def test_status_and_body_are_kept(sdk) -> None:
    """The status, the provider's words and the advice are in the error; the key is not."""
    error = sdk.APIStatusError("oops")
    error.status_code, error.body = 401, {"message": "bad key sk-secret"}
    translated = translated_sdk_error(error, sdk, ENDPOINT)
    assert isinstance(translated, ModelStatusError)
    assert translated.status == 401
    assert "bad key ***. Check the key: the variable X" in str(translated)


def test_errors_of_the_http_library_and_of_json(sdk) -> None:
    """SDKs let both through while they read a stream."""
    import httpx

    lost = translated_sdk_error(httpx.RemoteProtocolError("cut"), sdk, ENDPOINT)
    assert isinstance(lost, ModelConnectionError)
    broken = translated_sdk_error(json.JSONDecodeError("oops", "{", 1), sdk, ENDPOINT)
    assert isinstance(broken, ModelResponseError)
    assert translated_sdk_error(ValueError("mine"), sdk, ENDPOINT) is None
