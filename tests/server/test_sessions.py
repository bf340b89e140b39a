"""Conversations that the server keeps."""

import asyncio

import pytest
from opentelemetry import propagate
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentkit.tracing import Tracing

URL = "/v1/chat/completions"
A, B = "sk-0123456789abcdef", "sk-fedcba9876543210"


def count_messages(request):
    """Says how many messages it read."""
    return f"{len(request.messages)} messages"


def text(answer):
    """The text of an answer."""
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


async def test_a_session_remembers(make_app, talk, body, store):
    """The client sends what is new; header and field name the same session."""
    async with talk(make_app(count_messages)) as client:
        first = await client.post(URL, json=body("One"), headers={"x-session-id": "s1"})
        second = await client.post(URL, json=body("Two", session_id="s1"))
        other = await client.post(URL, json=body("One", session_id="s2"))
    assert [text(a) for a in (first, second, other)] == ["1 messages", "3 messages", "1 messages"]
    assert {episode.session_id for episode in store.select()} == {"s1", "s2"}


async def test_no_key_reaches_the_sessions_of_another(make_app, talk, body, keys, store):
    """The same name is another conversation for another key."""
    app = make_app(count_messages, keys=keys)
    for key in (A, B):
        async with talk(app, key) as client:
            assert text(await client.post(URL, json=body("Hi", session_id="s1"))) == "1 messages"
    assert {episode.session_id for episode in store.select()} == {"shop/s1", "desk/s1"}


async def test_one_request_of_a_session_at_a_time(make_app, talk, body, store):
    """A second one meanwhile is told to come back: both would go on from the same words."""
    async with talk(make_app()) as client:
        slow = asyncio.create_task(
            client.post(URL, json=body('call nap {"seconds": 0.2}', session_id="s1"))
        )
        await asyncio.sleep(0.05)
        meanwhile = await client.post(URL, json=body("Hi", session_id="s1"))
        await slow
        after = await client.post(URL, json=body("Hi", session_id="s1"))
    assert meanwhile.status_code == 409
    assert meanwhile.json()["error"]["code"] == "session_busy"
    assert meanwhile.headers["retry-after"] == "1"
    assert after.status_code == 200
    assert len(list(store.select())) == 2


async def test_sessions_need_a_store(make_app, talk, body):
    """Without one the client is told to keep the conversation."""
    async with talk(make_app(agent={"store": None})) as client:
        answer = await client.post(URL, json=body("Hi", session_id="s1"))
        without = await client.post(URL, json=body("Hi"))
    assert answer.json()["error"]["code"] == "no_sessions"
    assert without.status_code == 200


URL = "/v1/chat/completions"


@pytest.fixture
def spans():
    """Where spans are exported to."""
    return InMemorySpanExporter()


@pytest.fixture
def provider(spans):
    """Makes them."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_hangs_below_its_client(make_app, talk, body, store, spans, provider, stream):
    """The client's span is the parent of the run's, and the episode has the id of its trace."""
    app = make_app(agent={"tracing": Tracing(tracer_provider=provider)})
    headers = {}
    with provider.get_tracer("client").start_as_current_span("client") as client_span:
        propagate.inject(headers)
    async with talk(app) as client:
        await client.post(URL, json=body("Hi", stream=stream), headers=headers)
        await client.post(URL, json=body("Hi", stream=stream))
        await client.post(URL, json=body("Hi"), headers={"traceparent": "00-nonsense-01"})
    mine = client_span.get_span_context()
    runs = [span for span in spans.get_finished_spans() if span.name.startswith("invoke_agent")]
    parents = [run.parent.span_id if run.parent else None for run in runs]
    assert parents == [mine.span_id, None, None]
    assert [span.context.trace_id == mine.trace_id for span in runs] == [True, False, False]
    kept = {episode.metadata["trace_id"] for episode in store.select()}
    assert f"{mine.trace_id:032x}" in kept
    assert len(kept) == 3
