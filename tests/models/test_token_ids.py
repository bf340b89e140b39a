"""Token ids of a server that reports them: from the wire, through a run, into the store and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from support.model_server import ProviderServer
from support.server_steps import RawReply, Reply

from agentkit import Agent, open_store, tool
from agentkit.agent import RefineSettings
from agentkit.agent.types import ToolCallStarted
from agentkit.episodes import Episode
from agentkit.errors import ModelResponseError
from agentkit.library.store import EpisodeFilter
from agentkit.messages import TokenIds, ToolCall
from agentkit.models import ModelRequest, ModelSettings, OpenAICompatibleModel, TextDelta

FIRST = TokenIds(prompt=(1, 2, 3), completion=(40, 41, 42), logprobs=(-0.5, -0.25, -2.0))
LAST = TokenIds(prompt=(1, 2, 3, 40, 41, 42, 9), completion=(50, 2))
CALL = ToolCall(call_id="c", name="square", arguments={"n": 4})
SETTINGS = ModelSettings(extra={"return_token_ids": True, "logprobs": True})


@tool
def square(n: int) -> int:
    """The square of n."""
    return n * n


@pytest.mark.parametrize("streamed", [False, True])
async def test_response_carries_them(
    open_model: Callable[..., OpenAICompatibleModel], question: ModelRequest, streamed
) -> None:
    """Ids and log-probabilities come back unchanged, put together from a stream."""
    with ProviderServer([Reply(text="four squared is it", tokens=FIRST)]) as server:
        async with open_model(server) as model:
            events = model.stream(question) if streamed else None
            response = (
                [event async for event in events if not isinstance(event, TextDelta)][0]  # noqa: RUF015
                if events
                else await model.complete(question)
            )
    assert response.tokens == FIRST


@pytest.mark.parametrize("ids", [["1"], [1, True], [1.5], {"1": 2}, "12"])
async def test_what_is_no_token_id(open_model, question, ids) -> None:
    """Anything but whole numbers is an answer off the protocol: training on it would be wrong."""
    choice = {"message": {"content": "well"}, "token_ids": ids}
    with ProviderServer([RawReply(body={"choices": [choice]})]) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelResponseError, match="token_ids should"):
                await model.complete(question)


async def test_a_probability_beyond_all_bounds_is_unknown(open_model, question) -> None:
    """JSON can not hold its logarithm; the answer and its tokens stay."""
    said = {"content": [{"logprob": -0.5}, {"logprob": -1e999}]}
    choice = {"message": {"content": "well"}, "token_ids": [1, 2], "logprobs": said}
    text = json.dumps({"choices": [choice]}).replace("-Infinity", "-1e999")
    with ProviderServer([RawReply(body=text)]) as server:
        async with open_model(server) as model:
            response = await model.complete(question)
    assert response.tokens == TokenIds(completion=(1, 2))


def run(server: ProviderServer, **options: object) -> Episode:
    """One run at a server that reports tokens."""
    model = OpenAICompatibleModel("m", base_url=server.base_url)
    agent = Agent(model, tools=[square], settings=SETTINGS, **options)
    return agent.run_sync("4 squared?").episode


def test_run_store_and_back(tmp_path) -> None:
    """Each turn of an episode keeps them, in JSON and in the SQLite store."""
    url = f"sqlite:///{tmp_path}/agent.db"
    script = [Reply(tool_calls=[CALL], tokens=FIRST), Reply(text="16", tokens=LAST)]
    with ProviderServer(script) as server:
        episode = run(server, store=url)
        assert server.requests[0].body["return_token_ids"] is True
    assert [turn.tokens for turn in episode.turns] == [FIRST, LAST]
    assert episode.format == 3
    assert Episode.from_json(json.loads(json.dumps(episode.to_json()))) == episode
    store = open_store(url)
    kept = next(iter(store.select()))
    store.close()
    assert [turn.tokens for turn in kept.turns] == [FIRST, LAST]


def test_refinement_keeps_those_of_the_chosen_answer() -> None:
    """The ids belong to the calls that were run, not to the proposal they replaced."""
    better = ToolCall(call_id="d", name="square", arguments={"n": 5})
    script = [
        Reply(tool_calls=[CALL], tokens=FIRST),
        Reply(tool_calls=[better], tokens=LAST),
        "25",
    ]
    with ProviderServer(script) as server:
        episode = run(server, refine=RefineSettings(mode="vanilla", max_refinements=1))
    assert dict(episode.calls[0].arguments) == {"n": 5}
    assert [turn.tokens for turn in episode.turns] == [LAST, None]


async def test_cancelled_run_keeps_the_tokens_of_its_last_answer() -> None:
    """The turn that a cancel interrupts is kept with the tokens that made its calls."""

    @tool
    async def wait() -> str:
        """Take long."""
        await asyncio.sleep(60)
        return ""

    store = open_store("memory:")
    tokens = TokenIds(prompt=(1, 2), completion=(3, 4))
    call = ToolCall(call_id="c", name="wait", arguments={})
    with ProviderServer([Reply(tool_calls=[call], tokens=tokens)]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url) as model:
            stream = Agent(model, tools=[wait], store=store).stream("go")
            async for event in stream:
                if isinstance(event, ToolCallStarted):
                    break
            await stream.aclose()
    (episode,) = store.select(EpisodeFilter())
    assert episode.stop_reason == "cancelled"
    assert [turn.tokens for turn in episode.turns] == [tokens]
    store.close()
