"""The openai SDK, talking to an agent."""

import openai
import pytest

from agentkit import RunContext, tool
from agentkit.errors import ModelTimeoutError
from agentkit.models import OpenAICompatibleModel
from tests.support.media import PDF, RED, WAV
from tests.support.model_server import ProviderServer, Reply

HELLO = [{"role": "user", "content": "Hello"}]
KEY = "sk-0123456789abcdef"


@pytest.fixture
def client(no_tls):
    """Makes the SDK's client, which does not try again."""

    def make(url, key=KEY, max_retries=0):
        http = openai.DefaultAsyncHttpxClient(verify=no_tls)
        return openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=max_retries, http_client=http
        )

    return make


async def test_an_answer_comes_whole(client, make_app, served, store, keys):
    """Text, finish reason and usage are where the SDK looks, and the id is that of the episode."""
    with served(make_app(keys=keys)) as url:
        async with client(url) as sdk:
            answer = await sdk.chat.completions.create(model="agent", messages=HELLO)
    (choice,) = answer.choices
    assert choice.message.content == "You said: Hello"
    assert choice.finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 3)
    assert answer.usage.prompt_tokens_details.cached_tokens == 2
    (episode,) = store.select()
    assert answer.id == f"chatcmpl-{episode.episode_id}"
    assert answer.model_extra["agentkit"]["episode_id"] == episode.episode_id
    named = {"user": "shop", "key": "shop"}
    assert episode.metadata == named | {"request_id": answer._request_id}


async def test_reasoning_is_streamed_apart_from_the_answer(client, make_app, served):
    """In the field that vLLM and DeepSeek have for it."""
    with ProviderServer([Reply(reasoning="Three eights.", text="24")]) as provider:
        model = OpenAICompatibleModel("m", base_url=provider.base_url)
        with served(make_app(model)) as url:
            async with client(url) as sdk:
                stream = await sdk.chat.completions.create(
                    model="agent", messages=HELLO, stream=True
                )
                deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
    thoughts = [(one.model_extra or {}).get("reasoning_content") or "" for one in deltas]
    assert "".join(thoughts) == "Three eights."
    assert "".join(one.content or "" for one in deltas) == "24"


@pytest.mark.parametrize("stream", [False, True])
async def test_tools_get_deps_made_from_the_request(client, make_app, served, store, stream):
    """``deps_factory`` sees the HTTP request, and may be async."""

    @tool
    def who(ctx: RunContext[str]) -> str:
        """Who asks."""
        return ctx.deps

    async def deps_of(request):
        return request.headers["x-customer"]

    app = make_app(agent={"tools": [who], "deps_type": str}, deps_factory=deps_of)
    with served(app) as url:
        async with client(url) as sdk:
            answer = await sdk.chat.completions.create(
                model="agent",
                messages=[{"role": "user", "content": "call who"}],
                stream=stream,
                extra_headers={"x-customer": "Ada"},
            )
            if stream:
                assert [piece async for piece in answer]
    (episode,) = store.select()
    assert [result.value for result in episode.results] == ["Ada"]


async def test_an_answer_comes_in_pieces(client, make_app, served, store):
    """The pieces come to the text, each has the same id, and the usage ends the stream."""
    with served(make_app()) as url:
        async with client(url) as sdk:
            stream = await sdk.chat.completions.create(
                model="agent",
                messages=HELLO,
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = [chunk async for chunk in stream]
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [text for text in texts if text] == ["You ", "said: ", "Hello"]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 10
    (episode,) = store.select()
    assert {chunk.id for chunk in chunks} == {f"chatcmpl-{episode.episode_id}"}


def question(*parts):
    """A user message with parts beside its text, as a client sends it."""
    return [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, *parts]}]


def picture(url):
    """An image as a part of a message."""
    return {"type": "image_url", "image_url": {"url": url}}


async def test_images_and_files_reach_the_provider_and_stay_in_the_session(
    client, make_app, served, store
):
    """Through ``serve`` and the adapter they are what the client sent; the episode holds them."""
    pdf = {"file_data": f"data:application/pdf;base64,{PDF.base64}", "filename": "bill.pdf"}
    parts = [picture(RED.data_url), {"type": "file", "file": pdf}]
    audio = {"type": "input_audio", "input_audio": {"data": WAV.base64, "format": "wav"}}
    with ProviderServer(["A bill.", "Still one."]) as provider:
        takes = {"image/png", "application/pdf", "audio/wav"}
        model = OpenAICompatibleModel("m", base_url=provider.base_url, accepts=takes)
        with served(make_app(model, agent={"tools": ()})) as url:
            async with client(url) as sdk:
                for said in (question(*parts, audio), HELLO):
                    await sdk.chat.completions.create(
                        model="agent", messages=said, extra_body={"session_id": "s"}
                    )
    for one in provider.requests:
        assert one.body["messages"][0]["content"][1:] == [*parts, audio]
    first = list(store.select())[-1]
    assert first.request == "What is this?"
    assert [one.data for one in first.media] == [RED.data, PDF.data, WAV.data]


async def test_the_responses_api_takes_images_and_files(client, make_app, served):
    """Its parts have other names there."""
    seen = []

    def look(request):
        seen.extend(request.messages[-1].media)
        return "A bill."

    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": RED.data_url},
        {"type": "input_file", "file_data": PDF.data_url, "filename": "bill.pdf"},
    ]
    with served(make_app(look)) as url:
        async with client(url) as sdk:
            await sdk.responses.create(model="agent", input=[{"role": "user", "content": content}])
    assert [(one.name, one.data) for one in seen] == [("", RED.data), ("bill.pdf", PDF.data)]


async def test_a_model_of_text_alone_refuses_pictures_before_a_run(client, make_app, served, store):
    """The client reads what cannot be taken; nothing is sent, and no run begins."""
    with ProviderServer([]) as provider:
        app = make_app(OpenAICompatibleModel("m", base_url=provider.base_url))
        with served(app) as url:
            async with client(url) as sdk:
                with pytest.raises(openai.BadRequestError, match=r"cannot take \[image: image/png"):
                    await sdk.chat.completions.create(
                        model="agent", messages=question(picture(RED.data_url))
                    )
        assert provider.requests == []
    assert list(store.select()) == []


async def test_urls_of_images_are_handed_on_and_not_fetched(client, make_app, served):
    """Where the owner allows them, and only https; nobody at this end opens them."""
    seen = []

    def look(request):
        seen.extend(request.messages[-1].media)
        return "A bill."

    with ProviderServer([]) as elsewhere, served(make_app(look, media_urls=True)) as url:
        async with client(url) as sdk:
            for address in ("https://x.example/a.png", f"{elsewhere.base_url}/a.png"):
                asked = sdk.chat.completions.create(
                    model="agent", messages=question(picture(address))
                )
                if address.startswith("https:"):
                    await asked
                else:
                    with pytest.raises(openai.BadRequestError, match="not an https URL"):
                        await asked
        assert elsewhere.connections == 0
    assert [one.url for one in seen] == ["https://x.example/a.png"]


async def test_a_conversation_that_the_client_keeps(client, make_app, served, store):
    """Earlier messages reach the model as they were; the last one is the request."""
    seen = []

    def remember(request):
        seen.extend((message.role, message.text) for message in request.messages)
        return "Ann."

    messages = [
        {"role": "developer", "content": "Be short."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "I am "}, {"type": "text", "text": "Ann"}],
        },
        {"role": "assistant", "content": "Hello Ann."},
        {"role": "user", "content": "Who am I?"},
    ]
    with served(make_app(remember, agent={"instructions": "You sell cars."})) as url:
        async with client(url) as sdk:
            await sdk.chat.completions.create(model="agent", messages=messages)
    assert seen == [
        ("system", "You sell cars."),
        ("system", "Be short."),
        ("user", "I am Ann"),
        ("assistant", "Hello Ann."),
        ("user", "Who am I?"),
    ]
    (episode,) = store.select()
    assert (episode.request, episode.history_length) == ("Who am I?", 3)


async def test_the_model_is_listed(client, make_app, served):
    """``GET /v1/models`` names the one model."""
    with served(make_app(model_name="shop-agent")) as url:
        async with client(url) as sdk:
            models = [model.id async for model in sdk.models.list()]
    assert models == ["shop-agent"]


@pytest.mark.parametrize(
    ("key", "fields", "error", "code"),
    [
        ("sk-wrong-wrong-wrong", {}, openai.AuthenticationError, "invalid_api_key"),
        (KEY, {"model": "gpt-5"}, openai.NotFoundError, "model_not_found"),
        (KEY, {"n": 2}, openai.BadRequestError, "unsupported_parameter"),
        (
            KEY,
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
            openai.BadRequestError,
            "unsupported_parameter",
        ),
    ],
)
async def test_errors_are_those_of_the_sdk(
    client, make_app, served, keys, key, fields, error, code
):
    """The SDK raises its own exception, with our code, message and request id."""
    with served(make_app(keys=keys)) as url:
        async with client(url, key) as sdk:
            with pytest.raises(error) as caught:
                await sdk.chat.completions.create(**{"model": "agent", "messages": HELLO, **fields})
    assert caught.value.code == code
    assert caught.value.request_id.startswith("req_")
    assert key not in str(caught.value)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_that_began_is_not_repeated(client, make_app, served, store, stream):
    """The SDK tries again by itself after a 5xx; after one that cost a run it does not."""

    def slow(request):
        raise ModelTimeoutError("slow")

    with served(make_app(slow)) as url:
        async with client(url, max_retries=2) as sdk:
            with pytest.raises(openai.InternalServerError) as caught:
                await sdk.chat.completions.create(model="agent", messages=HELLO, stream=stream)
    assert caught.value.code == "model_timeout"
    (episode,) = store.select()
    assert episode.episode_id == caught.value.body["episode_id"]


async def test_labels_come_into_the_episode(client, make_app, served, store):
    """``user`` and ``metadata`` are kept; a client cannot write labels of agentkit's own."""
    with served(make_app()) as url:
        async with client(url) as sdk:
            await sdk.chat.completions.create(
                model="agent", messages=HELLO, user="ann", metadata={"shadow_of": "e1"}
            )
    (episode,) = store.select()
    assert episode.metadata["user"] == "ann"
    assert episode.metadata["client.shadow_of"] == "e1"
    assert "shadow_of" not in episode.metadata


async def test_structured_answers_are_json_in_both_forms(client, make_app, served):
    """An agent with an output type answers with the value, streamed in one piece."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def three(request):
        return '{"n":   3}'

    app = make_app(three, agent={"output_type": schema})
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    fields = {"model": "agent", "messages": HELLO, "response_format": wanted}
    with served(app) as url:
        async with client(url) as sdk:
            whole = await sdk.chat.completions.create(**fields)
            stream = await sdk.chat.completions.create(**fields, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert whole.choices[0].message.content == '{"n": 3}' == "".join(pieces)
