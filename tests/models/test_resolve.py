"""From names to models, what they cost, who stands in for one that fails, and doubles for tests."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from agentkit import Agent
from agentkit.agent import Limits
from agentkit.errors import (
    MissingExtraError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelStatusError,
    ModelTimeoutError,
    ReplayMismatchError,
    RunError,
    UsageError,
)
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models import FallbackModel, ModelResponse, Price, prices
from agentkit.models.base import ChatModel, StreamingChatModel, TextDelta, resolve_model
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.testing import FunctionModel, ScriptedModel


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch):
    """Sets which plugins are installed: scheme to ``module:callable``."""

    def install(**targets: str) -> None:
        points = EntryPoints(
            EntryPoint(name=name, value=value, group="agentkit.models")
            for name, value in targets.items()
        )
        monkeypatch.setattr("importlib.metadata.entry_points", points.select)

    return install


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("qwen3@http://localhost:8080/v1", "qwen3", "http://localhost:8080/v1"),
        ("@cf/meta/llama@https://example.org/v1", "@cf/meta/llama", "https://example.org/v1"),
        ("a@http://user:pw@host/v1?version=2", "a", "http://host/v1"),
    ],
)
def test_server_of_ones_own(name, model, url) -> None:
    """``openai-compatible:MODEL@URL`` names both; credentials stay out of what is shown."""
    opened = resolve_model(f"openai-compatible:{name}")
    assert isinstance(opened, OpenAICompatibleModel)
    assert opened.name == model
    assert repr(opened) == f"OpenAICompatibleModel({model!r}, base_url={url!r})"


@pytest.mark.parametrize("name", ["q@localhost:8080/v1", "q@localhost", "q@ann:s3cret@box.lan:80"])
def test_an_address_without_http_is_told(name) -> None:
    """What is meant as an address is not taken for a part of the model's name, and shows no key."""
    with pytest.raises(UsageError, match=r"write @http://(localhost|box\.lan:80)") as caught:
        resolve_model(f"openai-compatible:{name}")
    assert "s3cret" not in str(caught.value)


def test_plugin_gets_the_rest_of_the_name(plugins) -> None:
    """A scheme that an entry point names is opened by it, with whatever follows the colon."""
    plugins(mine="agentkit.models.openai_compatible:own_server_model")
    assert resolve_model("mine:a:b@http://localhost/v1").name == "a:b"


def test_unknown_scheme_lists_what_there_is(plugins) -> None:
    """The message lists built-in and installed schemes, and makes up no package to install."""
    plugins(mine="json:loads")
    with pytest.raises(ModelNotFoundError, match="If a plugin provides it") as caught:
        resolve_model("moon:base")
    listed = "(anthropic, litellm, mine, openai, openai-compatible, openai-responses)"
    assert listed in str(caught.value)
    assert "pip" not in str(caught.value)


def test_a_slip_in_a_scheme_is_answered_with_the_nearest(plugins) -> None:
    """What looks like a known scheme names that one."""
    plugins()
    with pytest.raises(ModelNotFoundError, match="Did you mean 'openai'"):
        resolve_model("opnai:gpt-4o-mini")


def test_local_without_its_plugin(plugins) -> None:
    """The plugin that is known but absent is named with its pip line."""
    plugins()
    with pytest.raises(MissingExtraError, match="pip install agentkit-local"):
        resolve_model("local:smollm2-135m")


@pytest.mark.parametrize("name", ["gpt-4o-mini", "openai:", "", "http://localhost:8080/v1"])
def test_names_without_a_scheme(name) -> None:
    """A bare name or URL is answered with the forms that work."""
    with pytest.raises(ModelNotFoundError, match="write scheme:name, such as 'openai:gpt-4o-mini'"):
        resolve_model(name)


def test_what_is_no_model() -> None:
    """Something else than a name or a model is refused where it is given."""
    with pytest.raises(UsageError, match="5 is not a model"):
        resolve_model(5)


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
    assert [row[2] for row in prices.all_prices("new-model")] == ["litellm"]
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


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_stands_there_twice_is_asked_twice(stream):
    """What is left is counted by place, not by which model it is."""
    turns = iter([ModelConnectionError("away")])

    def answer(_):
        for error in turns:
            raise error
        return "Hello."

    twice = FallbackModel(*[FunctionModel(answer)] * 2)
    if stream:
        events = [event async for event in Agent(twice).stream("Hi")]
        assert events[-1].result.output == "Hello."
    else:
        assert (await Agent(twice).run("Hi")).output == "Hello."


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


CALL = ToolCall(call_id="1", name="f")


@pytest.mark.parametrize(
    ("answer", "message", "reason"),
    [
        ("hi", AssistantMessage(text="hi"), "stop"),
        ([CALL], AssistantMessage(tool_calls=(CALL,)), "tool_calls"),
        (AssistantMessage(text="a", tool_calls=(CALL,)),) * 2 + ("tool_calls",),
        (
            ModelResponse(message=AssistantMessage(text="b"), finish_reason="length"),
            AssistantMessage(text="b"),
            "length",
        ),
    ],
)
async def test_short_forms_of_an_answer(question, answer, message, reason) -> None:
    """Text, calls, a message or a response: all become a response under the model's name."""
    for model in (FunctionModel(lambda _: answer, name="n"), ScriptedModel([answer], name="n")):
        response = await model.complete(question)
        assert (response.message, response.finish_reason) == (message, reason)
        assert response.model == model.name == "n"
        assert isinstance(model, ChatModel)
        assert isinstance(model, StreamingChatModel)


async def test_function_may_be_async_and_may_raise(question) -> None:
    """A coroutine is awaited; what the function raises, the model raises."""

    async def answer(request):
        await asyncio.sleep(0)
        return f"{len(request.messages)} message"

    def fail(request):
        raise ModelTimeoutError("late")

    response = await FunctionModel(answer).complete(question)
    assert response.message.text == "1 message"
    assert response.usage == Usage(requests=1)
    with pytest.raises(ModelTimeoutError, match="late"):
        await FunctionModel(fail).complete(question)


async def test_stream_shows_word_by_word(question) -> None:
    """The pieces make up the text, white space included."""
    model = FunctionModel(lambda _: " two  words\n")
    events = [event async for event in model.stream(question)]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) == 3
    assert "".join(pieces) == events[-1].message.text == " two  words\n"


async def test_script_that_is_spent_shows_the_request(question) -> None:
    """Running out says how long the script is and what was asked."""
    model = ScriptedModel(["hi"])
    await model.complete(question)
    with pytest.raises(ReplayMismatchError, match=r"has 1 answers, but request 2 came.*'hi'"):
        await model.complete(question)


async def test_a_whole_answer_is_no_stream_put_together(question):
    """Who asks for a whole answer gets it, although its model can stream."""

    class Hosted(SilentModel):
        def stream(self, request):
            raise AssertionError("nobody asked for a stream")

    assert (await FallbackModel(Hosted("a", REFUSAL)).complete(question)).message == REFUSAL.message
