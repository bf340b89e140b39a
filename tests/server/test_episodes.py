"""Every run that begins leaves an episode, whatever becomes of it."""

import asyncio
import json

import httpx
import pytest

from agentkit.errors import ModelStatusError, ModelTimeoutError
from agentkit.testing import FunctionModel

URL = "/v1/chat/completions"
SLOW = 'call nap {"seconds": 30}'


def events(text):
    """The JSON of each event of a stream."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelTimeoutError("slow"), 504, "model_timeout"),
        (
            ModelStatusError("secret-of-upstream", status=400, body="b", retry_after=None),
            502,
            "model_failed",
        ),
        (
            ModelStatusError("busy", status=429, body="b", retry_after=7.0),
            503,
            "model_overloaded",
        ),
        (KeyError("secret-of-a-defect"), 500, "internal_error"),
    ],
)
async def test_a_model_that_fails(make_app, talk, body, store, stream, error, status, code):
    """The client gets a status and the episode's id, and none of the upstream's words."""

    def fail(request):
        raise error

    async with talk(make_app(fail)) as client:
        answer = await client.post(URL, json=body("Hi", stream=stream))
    told = answer.json()["error"]
    assert (answer.status_code, told["code"], told["type"]) == (status, code, "server_error")
    assert "secret" not in answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers.get("retry-after") == ("7" if status == 503 else None)
    (episode,) = store.select()
    assert (episode.stop_reason, episode.episode_id) == ("error", told["episode_id"])


async def test_a_stream_that_breaks_says_so(make_app, talk, body, store):
    """After the first text there is no status left: an error event ends it, without [DONE]."""

    class HalfModel(FunctionModel):
        """Says two words and fails."""

        async def stream(self, request):
            from agentkit.models.base import TextDelta

            yield TextDelta(text="Two ")
            yield TextDelta(text="words ")
            raise ModelTimeoutError("gone")

    async with talk(make_app(HalfModel(str))) as client:
        answer = await client.post(URL, json=body("Hi", stream=True))
    *said, last = events(answer.text)
    assert "".join(e["choices"][0]["delta"].get("content") or "" for e in said) == "Two words "
    assert last["error"]["code"] == "model_timeout"
    assert "[DONE]" not in answer.text
    (episode,) = store.select()
    assert episode.stop_reason == "error"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_its_run(make_app, served, body, store, stream, no_tls):
    """The run is cancelled and kept; what the server still holds is nothing."""
    app = make_app()
    with served(app) as url:
        async with httpx.AsyncClient(verify=no_tls, base_url=url) as client:
            with pytest.raises(httpx.TimeoutException):
                await client.post(URL, json=body(SLOW, stream=stream), timeout=0.2)
        while len(app.state.runs):
            await asyncio.sleep(0.01)
    (episode,) = store.select()
    assert episode.stop_reason == "cancelled"
    assert [call.name for call in episode.calls] == ["nap"]


async def test_a_quiet_stream_is_kept_open(make_app, talk, body):
    """While a tool works, comments are sent that clients skip."""
    from agentkit.server import ServerLimits

    app = make_app(limits=ServerLimits(heartbeat_seconds=0.05))
    async with talk(app) as client:
        answer = await client.post(URL, json=body('call nap {"seconds": 0.3}', stream=True))
    assert answer.text.count(": still working\n\n") >= 2
    assert events(answer.text)[0]["choices"][0]["delta"]["role"] == "assistant"
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_answers_that_never_match_their_schema(make_app, talk, body, store):
    """They are no answer; the episode holds them."""
    app = make_app(lambda _: "no json", agent={"output_type": {"type": "object"}})
    async with talk(app) as client:
        answer = await client.post(URL, json=body("Hi"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "output_invalid")
    assert next(store.select()).stop_reason == "output_invalid"


async def test_a_model_that_never_waits_keeps_nobody_waiting(make_app, talk, body):
    """While it talks without a pause, other requests are answered."""

    def talk_much(request):
        return "word " * 20_000

    app = make_app(talk_much)
    order = []

    async def ask(name, request):
        await request
        order.append(name)

    async with talk(app) as client:
        long = ask("long", client.post(URL, json=body("Hi", stream=True)))
        await asyncio.gather(long, ask("short", client.get("/healthz")))
    assert order == ["short", "long"]
