"""What tokens cost, limits on costs that hold, and models that answer in another's place."""

from __future__ import annotations

import json
import sys

import pytest

from agentkit import Agent
from agentkit.agent import Limits
from agentkit.errors import ModelConnectionError, ModelStatusError, RunError, UsageError
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models import FallbackModel, ModelResponse, OpenAICompatibleModel, Price, prices
from agentkit.models.base import TextDelta
from agentkit.testing import FunctionModel, ScriptedModel

MILLION = Usage(requests=1, prompt_tokens=1_000_000)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Prices that were told are kept in a folder of the test."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path))


class SilentModel:
    """A model of a user, which says nothing of costs."""

    def __init__(self, name, response):
        self.name, self._response = name, response

    async def complete(self, request):
        """Answer."""
        return self._response


def test_a_cost_limit_needs_a_price():
    """Without a known price making the agent fails; with prices, or a model that reports, it works."""
    limits = Limits(max_cost_usd=0.01)
    unknown = OpenAICompatibleModel("nobody-knows-1", base_url="http://localhost:9/v1")
    with pytest.raises(UsageError, match="no price is known for the model 'nobody-knows-1'"):
        Agent(unknown, limits=limits)
    with pytest.raises(UsageError, match="no price is known"):
        Agent(FallbackModel(ScriptedModel([]), unknown), limits=limits)

    known = [SilentModel(name, REFUSAL) for name in ("gpt-4o", "gpt-4o-mini")]
    assert prices.limit_price(FallbackModel(*known)).prompt == 2.5

    Agent(unknown)
    price = Price(prompt=1, completion=2)
    given = OpenAICompatibleModel("x", base_url="http://localhost:9/v1", prices={"x": price})
    Agent(given, limits=limits)
    prices.tell_price("nobody-knows-1", price)
    Agent(unknown, limits=limits)


async def test_a_cost_limit_holds_by_the_table():
    """A model that says nothing of costs is priced, so the limit stops the run and the episode tells."""
    calls = AssistantMessage(tool_calls=(ToolCall(call_id="1", name="x"),))
    model = SilentModel("gpt-4o-mini-2024-07-18", ModelResponse(message=calls, usage=MILLION))

    result = await Agent(model, limits=Limits(max_cost_usd=0.2)).run("go")

    assert (result.stop_reason, len(result.episode.turns)) == ("cost_limit", 2)
    assert result.usage.cost_usd == pytest.approx(0.3)


def test_prices_that_were_told_go_first(tmp_path, monkeypatch):
    """Yours before litellm's, which is read without importing it, before ours, which has a date."""
    folder = tmp_path / "litellm"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit")
    row = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "supports_vision": True}
    table = {"gpt-4o": row, "new-model": row, "odd": {"mode": "image"}}
    (folder / prices._OF_LITELLM).write_text(json.dumps(table))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "litellm", raising=False)  # the real one, where tests use it
    prices._of_litellm.cache_clear()
    prices._litellm_rows.cache_clear()

    assert prices.known_price("new-model") == Price(prompt=1.0, completion=2.0)
    assert prices.known_price("odd") is None
    assert prices.known_price("gpt-4o-mini").prompt == 0.15
    own = {"base_url": "http://localhost:1/v1"}
    assert "image/png" in OpenAICompatibleModel("new-model", **own).accepts
    assert OpenAICompatibleModel("odd", **own).accepts == frozenset()
    prices.tell_price("gpt-4o", Price(prompt=7, completion=8, cached=1))
    told = {name: (price.prompt, source) for name, price, source in prices.all_prices()}
    assert told["gpt-4o"] == (7, "yours")
    assert told["gpt-4o-mini"][1].startswith("20")
    prices._of_litellm.cache_clear()
    prices._litellm_rows.cache_clear()


def test_a_broken_table_is_named(tmp_path):
    """A file of told prices that cannot be read is an error that says which file."""
    (tmp_path / "prices.json").write_text("{")
    with pytest.raises(UsageError, match=r"prices.json is not a table of prices"):
        prices.known_price("gpt-4o")


def failing(error):
    """A model that fails."""

    def answer(request):
        raise error

    return FunctionModel(answer, name="first")


REFUSAL = ModelResponse(
    message=AssistantMessage(text="I cannot."),
    usage=Usage(requests=1, completion_tokens=5),
    finish_reason="content_filter",
)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_next_model_answers_after_an_error_or_a_refusal(stream):
    """What a refusal cost is counted; a stream shows the words of one model alone."""
    overloaded = ModelStatusError("busy", status=529, body="", retry_after=None)
    for first, requests in ((failing(overloaded), 1), (SilentModel("first", REFUSAL), 2)):
        agent = Agent(FallbackModel(first, ScriptedModel(["Hello."])))
        if stream:
            events = [event async for event in agent.stream("Hi")]
            text = "".join(one.text for one in events if isinstance(one, TextDelta))
            assert text.strip() == "Hello."
            result = events[-1].result
        else:
            result = await agent.run("Hi")
        assert (result.output, result.usage.requests) == ("Hello.", requests)
        assert result.episode.model == "first"


async def test_the_last_word_is_the_last_models():
    """Its error ends the run, its refusal stands, and errors that are not named pass nobody over."""
    away = ModelConnectionError("away")
    with pytest.raises(RunError, match="away"):
        await Agent(FallbackModel(SilentModel("a", REFUSAL), failing(away))).run("Hi")
    second = FallbackModel(SilentModel("a", REFUSAL), ScriptedModel(["x"]), failing(away))
    assert (await Agent(second).run("Hi")).usage.requests == 2
    refused = await Agent(FallbackModel(failing(away), SilentModel("a", REFUSAL))).run("Hi")
    assert refused.output == "I cannot."
    picky = FallbackModel(failing(away), ScriptedModel(["x"]), on_errors=(ModelStatusError,))
    with pytest.raises(RunError):
        await Agent(picky).run("Hi")
    with pytest.raises(UsageError, match="at least one"):
        FallbackModel()


async def test_a_stream_that_has_spoken_is_not_begun_anew():
    """Words of two models would mix, so the error ends the run."""

    class HalfModel(SilentModel):
        """Breaks off in the middle."""

        async def stream(self, request):
            """Say something, then fail."""
            yield TextDelta(text="Hel")
            raise ModelConnectionError("hung up")

    agent = Agent(FallbackModel(HalfModel("half", REFUSAL), ScriptedModel(["Hello."])))
    said = []

    async def listen():
        async for event in agent.stream("Hi"):
            said.extend([event.text] if isinstance(event, TextDelta) else [])

    with pytest.raises(RunError, match="hung up"):
        await listen()
    assert said == ["Hel"]
