"""Chat completions as OpenAI's client sees them: answers, bad requests, and the episode of each run."""

from __future__ import annotations

import asyncio
import json

import httpx
import openai
import pytest
from support.app_stage import ended

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.errors import ModelStatusError, ModelTimeoutError
from agentkit.library.memory import MemoryStore
from agentkit.messages import ToolCall
from agentkit.models import OpenAICompatibleModel
from agentkit.server import create_app
from agentkit.testing import FunctionModel
from tests.support.media import PDF, RED, WAV
from tests.support.model_server import ProviderServer, Reply

HELLO = [{"role": "user", "content": "Hello"}]
KEY = "sk-0123456789abcdef"


async def test_an_answer_comes_whole(client, make_app, store, keys):
    """Text, finish reason and usage are where the SDK looks, and the id is that of the episode."""
    async with client(make_app(keys=keys)) as sdk:
        answer = await sdk.chat.completions.create(model="agent", messages=HELLO)
    (choice,) = answer.choices
    assert choice.message.content == "You said: Hello"
    assert choice.finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 3)
    assert answer.usage.prompt_tokens_details.cached_tokens == 2
    (episode,) = store.select()
    assert answer.id == f"chatcmpl-{episode.episode_id}"
    assert answer.model_extra["agentkit"]["episode_id"] == episode.episode_id
    named = {"user": "shop", "key": "shop", "witness": "shop"}  # two keys may ask
    assert episode.metadata == named | {"request_id": answer._request_id}


async def test_reasoning_is_streamed_apart_from_the_answer(client, make_app):
    """In the field that vLLM and DeepSeek have for it."""
    with ProviderServer([Reply(reasoning="Three eights.", text="24")]) as provider:
        model = OpenAICompatibleModel("m", base_url=provider.base_url)
        async with client(make_app(model)) as sdk:
            stream = await sdk.chat.completions.create(model="agent", messages=HELLO, stream=True)
            deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
    thoughts = [(one.model_extra or {}).get("reasoning_content") or "" for one in deltas]
    assert "".join(thoughts) == "Three eights."
    assert "".join(one.content or "" for one in deltas) == "24"


async def test_an_answer_comes_in_pieces(client, make_app, store):
    """The pieces come to the text, each has the same id, and the usage ends the stream."""
    async with client(make_app()) as sdk:
        stream = await sdk.chat.completions.create(
            model="agent", messages=HELLO, stream=True, stream_options={"include_usage": True}
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


async def test_images_and_files_reach_the_provider_and_stay_in_the_session(client, make_app, store):
    """Through ``serve`` and the adapter they are what the client sent; the episode holds them."""
    pdf = {"file_data": f"data:application/pdf;base64,{PDF.base64}", "filename": "bill.pdf"}
    parts = [picture(RED.data_url), {"type": "file", "file": pdf}]
    audio = {"type": "input_audio", "input_audio": {"data": WAV.base64, "format": "wav"}}
    with ProviderServer(["A bill.", "Still one."]) as provider:
        takes = {"image/png", "application/pdf", "audio/wav"}
        model = OpenAICompatibleModel("m", base_url=provider.base_url, accepts=takes)
        async with client(make_app(model, agent={"tools": ()})) as sdk:
            for said in (question(*parts, audio), HELLO):
                await sdk.chat.completions.create(
                    model="agent", messages=said, extra_body={"session_id": "s"}
                )
    for one in provider.requests:
        assert one.body["messages"][0]["content"][1:] == [*parts, audio]
    first = list(store.select())[-1]
    assert first.request == "What is this?"
    assert [one.data for one in first.media] == [RED.data, PDF.data, WAV.data]


async def test_a_model_of_text_alone_refuses_pictures_before_a_run(client, make_app, store):
    """The client reads what cannot be taken; nothing is sent, and no run begins."""
    with ProviderServer([]) as provider:
        app = make_app(OpenAICompatibleModel("m", base_url=provider.base_url))
        async with client(app) as sdk:
            with pytest.raises(openai.BadRequestError, match=r"does not accept \[image: image/png"):
                await sdk.chat.completions.create(
                    model="agent", messages=question(picture(RED.data_url))
                )
        assert provider.requests == []
    assert list(store.select()) == []


async def test_urls_of_images_are_handed_on_and_not_fetched(client, make_app):
    """Where the owner allows them, and only https; nobody at this end opens them."""
    seen = []

    def look(request):
        seen.extend(request.messages[-1].media)
        return "A bill."

    with ProviderServer([]) as elsewhere:
        async with client(make_app(look, media_urls=True)) as sdk:
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


async def test_a_conversation_that_the_client_keeps(client, make_app, store):
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
    async with client(make_app(remember, agent={"instructions": "You sell cars."})) as sdk:
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


async def test_the_model_is_listed(client, make_app):
    """``GET /v1/models`` names the one model."""
    async with client(make_app(model_name="shop-agent")) as sdk:
        models = [model.id async for model in sdk.models.list()]
    assert models == ["shop-agent"]


@pytest.mark.parametrize(
    ("key", "fields", "error", "code"),
    [
        ("sk-wrong-wrong-wrong", {}, openai.AuthenticationError, "invalid_api_key"),
        (KEY, {"model": "gpt-5"}, openai.NotFoundError, "model_not_found"),
        (KEY, {"n": 2}, openai.BadRequestError, "unsupported_parameter"),
    ],
)
async def test_errors_are_those_of_the_sdk(client, make_app, keys, key, fields, error, code):
    """The SDK raises its own exception, with our code, message and request id."""
    async with client(make_app(keys=keys), key) as sdk:
        with pytest.raises(error) as caught:
            await sdk.chat.completions.create(**{"model": "agent", "messages": HELLO, **fields})
    assert caught.value.code == code
    assert caught.value.request_id.startswith("req_")
    assert key not in str(caught.value)


async def test_labels_come_into_the_episode(client, make_app, store):
    """``user`` and ``metadata`` are kept; a client cannot write labels of agentkit's own."""
    async with client(make_app()) as sdk:
        await sdk.chat.completions.create(
            model="agent", messages=HELLO, user="ann", metadata={"shadow_of": "e1"}
        )
    (episode,) = store.select()
    assert episode.metadata["user"] == "ann"
    assert episode.metadata["client.shadow_of"] == "e1"
    assert "shadow_of" not in episode.metadata


async def test_structured_answers_are_json_in_both_forms(client, make_app):
    """An agent with an output type answers with the value, streamed in one piece."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def three(request):
        return '{"n":   3}'

    app = make_app(three, agent={"output_type": schema})
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    fields = {"model": "agent", "messages": HELLO, "response_format": wanted}
    async with client(app) as sdk:
        whole = await sdk.chat.completions.create(**fields)
        stream = await sdk.chat.completions.create(**fields, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert whole.choices[0].message.content == '{"n": 3}' == "".join(pieces)


URL = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(messages, **fields):
    """A body with these messages."""
    return {"model": "agent", "messages": messages, **fields}


def called(**fields):
    """A message of an assistant with one call."""
    return {"role": "assistant", "tool_calls": [{**CALL, **fields}]}


HALF = b'{"model": "agent", "messages": [{"role": "user", "content": "\\ud800"}]}'
IMAGE = {"role": "user", "content": [{"type": "image_url"}]}


def part(kind, held, role="user"):
    """A message with one part beside its text."""
    return chat(
        [
            {"role": role, "content": [{"type": "text", "text": "?"}, {"type": kind, kind: held}]},
            USER,
        ]
    )


def image(url):
    """A message with an image."""
    return part("image_url", {"url": url})


CONTENT = "messages[0].content"
BAD = {
    "no json": (b"{", "invalid_json", None),
    "not utf-8": (b'{"model": "\xff"}', "invalid_json", None),
    "wide": (b'{"x":[' + b"[]," * 600_000 + b"[]]}", "invalid_json", None),
    "nothing": ({}, "missing_model", "model"),
    "no role": (chat([{"content": "Hi"}]), "invalid_value", "messages[0].role"),
    "image": (chat([IMAGE]), "unsupported_content", "messages[0].content"),
    "image of a false type": (image("data:image/png;base64,R0lGODlh"), "invalid_value", CONTENT),
    "image in bad base64": (image("data:image/gif;base64,R0lG ODlh!"), "invalid_value", CONTENT),
    "image on the web": (image("https://x.example/a.png"), "invalid_value", CONTENT),
    "image in our network": (image("http://169.254.169.254/"), "invalid_value", CONTENT),
    "image of the system": (
        part("image_url", {"url": "data:image/gif;base64,R0lGODlh"}, "system"),
        "unsupported_content",
        CONTENT,
    ),
    "file by its id": (part("file", {"file_id": "file-1"}), "unsupported_content", CONTENT),
    "half a character": (HALF, "invalid_value", "messages[0].content"),
    "empty": (chat([{**USER, "content": " "}]), "invalid_value", "messages[0].content"),
    "assistant last": (chat([USER, called()]), "invalid_value", "messages[1].role"),
    "result for nobody": (
        chat([{"role": "tool", "tool_call_id": "x.y", "content": "1"}]),
        "unknown_tool_call",
        "messages",
    ),
    "many messages": (chat([USER] * 9), "too_many_messages", "messages"),
    "many calls": (
        chat([{**called(), "tool_calls": called()["tool_calls"] * 9}, USER]),
        "too_many_messages",
        "messages",
    ),
    "many parts": (
        chat([{"role": "user", "content": [{"type": "text", "text": ""}] * 60_000}]),
        "invalid_json",
        None,
    ),
    "tools": (chat([USER], tools=[{}]), "unsupported_parameter", "tools"),
    "json": (
        chat([USER], response_format={"type": "json_object"}),
        "unsupported_value",
        "response_format",
    ),
    "session with a slash": (chat([USER], session_id="a/b"), "invalid_session", "session_id"),
    "session and history": (chat([USER] * 2, session_id="a"), "history_with_session", "messages"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_request_is_refused(make_app, talk, store, case):
    """The error names what is wrong and where; no run begins."""
    from agentkit.server import ServerLimits

    sent, code, param = BAD[case]
    content = sent if isinstance(sent, bytes) else json.dumps(sent)
    app = make_app(limits=ServerLimits(max_messages=8))
    async with talk(app) as client:
        answer = await client.post(
            URL, content=content, headers={"content-type": "application/json"}
        )
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert (error["code"], error["param"]) == (code, param), error
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert list(store.select()) == []


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", URL, 405), ("GET", "/", 404), ("POST", f"{URL}/", 404)]
)
async def test_other_paths_and_methods(make_app, talk, method, path, status):
    """They are errors in the same form, with an id."""
    async with talk(make_app()) as client:
        answer = await client.request(method, path, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]["code"] in {"not_found", "bad_method"}
    assert answer.json()["error"]["message"].endswith(f": {method} {path}")
    assert answer.headers["x-request-id"]


async def test_a_user_is_named_whatever_a_client_leaves_out(make_app, talk, body, store, keys):
    """Requests of one person never count as two witnesses: ``user``, the key, or anonymous."""
    for app, key in ((make_app(keys=keys), "sk-0123456789abcdef"), (make_app(), None)):
        async with talk(app, key) as client:
            await client.post(URL, json=body("Hi"))
            await client.post(URL, json=body("Hi", user="ann", metadata={"user": "bob"}))
    users = [(one.metadata["user"], one.metadata.get("client.user")) for one in store.select()]
    assert users[::-1] == [("shop", None), ("ann", "bob"), ("anonymous", None), ("ann", "bob")]


async def test_users_of_the_only_application_are_witnesses(make_app, talk, body, store, keys):
    """One key beside those that only approve knows its users; of several each is one witness."""
    for app in (make_app(keys=keys, approvers=["desk"]), make_app(keys=keys)):
        async with talk(app, KEY) as client:
            await client.post(URL, json=body("Hi", user="ann", metadata={"witness": "bob"}))
    newest, first = store.select()
    assert "witness" not in first.metadata
    assert newest.metadata["witness"] == "shop"


@pytest.mark.parametrize("user", ["", "   ", "\u200b", "\u3164 \u200b", "\u00a0\u061c\t"])
async def test_a_user_in_whom_nobody_sees_anything_is_left_out(
    make_app, talk, body, store, keys, user
):
    """An empty, blank or invisible ``user`` is none, so that no client becomes two witnesses."""
    for app, key in ((make_app(keys=keys), "sk-0123456789abcdef"), (make_app(), None)):
        async with talk(app, key) as client:
            answer = await client.post(URL, json=body("Hi", user=user))
            assert answer.status_code == 200
    assert [one.metadata["user"] for one in store.select()] == ["anonymous", "shop"]


async def test_a_request_id_of_the_client_is_kept(make_app, talk, body, store):
    """A usable id comes back and is in the episode; any other is replaced."""
    async with talk(make_app()) as client:
        good = await client.post(URL, json=body("Hi"), headers={"x-request-id": "trace-7"})
        bad = await client.post(URL, json=body("Hi"), headers={"x-request-id": "a\tb" * 100})
    assert good.headers["x-request-id"] == "trace-7"
    assert bad.headers["x-request-id"].startswith("req_")
    assert [e.metadata["request_id"] for e in store.select()][-1] == "trace-7"


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
        (ModelStatusError("busy", status=429, body="b", retry_after=7.0), 503, "model_overloaded"),
        (KeyError("secret-of-a-defect"), 500, "internal_error"),
        (asyncio.CancelledError("secret-of-a-defect"), 500, "internal_error"),
        (SystemExit("secret-of-a-defect"), 500, "internal_error"),
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


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_after_a_run_is_not_asked_again(
    make_app, talk, body, store, monkeypatch, stream
):
    """What its tools did is done: no client repeats the request, and a stream ends with the error."""

    def fails(self, episode):
        raise RuntimeError("secret-of-a-defect")

    monkeypatch.setattr("agentkit.server.metrics.Metrics.observe", fails)
    async with talk(make_app()) as client:
        answer = await client.post(URL, json=body("Hi", stream=stream))
    assert "secret" not in answer.text
    assert len(list(store.select())) == 1
    if stream:
        last = answer.text.strip().rpartition("data: ")[2]
        assert json.loads(last)["error"]["code"] == "internal_error"
    else:
        assert (answer.status_code, answer.headers["x-should-retry"]) == (500, "false")


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
        await ended(app)
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


TOLD = "postgres://app:s3cr3tpw@db/x password=hunter2horse"


def _fail(*_, **__):
    raise RuntimeError(TOLD)


@tool(effects=["destructive"])
def wipe(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


class _FailingStore(MemoryStore):
    is_away = True

    def append_many(self, episodes):
        if self.is_away:
            raise OSError(TOLD)
        super().append_many(episodes)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "broken",
    ["model", "instructions", "approve", "retriever", "router", "history", "deps", "store"],
)
async def test_no_secret_of_an_exception_reaches_the_log(talk, body, broken, stream, caplog):
    """Whatever part of an application raises, the log tells of it without what looks like one."""

    def answer(request):
        if broken == "model":
            _fail()
        if request.messages[-1].role == "tool":
            return "Done."
        return [ToolCall(call_id="1", name="wipe", arguments={"path": "/"})]

    class Failing:
        retrieve = route = __call__ = _fail

    options = {
        "instructions": {"instructions": _fail},
        "approve": {"tool_policy": ToolPolicy(approve=_fail)},
        "retriever": {"retriever": Failing()},
        "router": {"router": Failing()},
        "history": {"history_processors": [_fail]},
    }
    store = _FailingStore() if broken == "store" else MemoryStore()
    agent = Agent(FunctionModel(answer), tools=[wipe], store=store, **options.get(broken, {}))
    app = create_app(agent, deps_factory=_fail if broken == "deps" else None)
    with caplog.at_level("DEBUG"):
        async with talk(app, None) as client:
            answer = await client.post(URL, json=body("Hi", stream=stream))
    shown = caplog.text + answer.text
    store.is_away = False  # or what it did not take is tried again, and told in other tests' logs
    assert "s3cr3tpw" not in shown
    assert "hunter2horse" not in shown
    if broken not in {"history", "store"}:
        assert "RuntimeError" in caplog.text
