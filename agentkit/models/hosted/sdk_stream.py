"""Requests through an SDK that stay JSON: the SDK signs, sends and checks them, we do the rest.

The SDKs' typed methods walk every argument through its type hints and make an object of every
event, which grows with the conversation: 10 CPU milliseconds a request of 20 messages, 50 for 200.
Their ``post``, documented for endpoints that have no method yet, does neither.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from agentkit.messages import JsonObject
from agentkit.models.status import Endpoint, embedded_error
from agentkit.models.wire.events import EventParser
from agentkit.models.wire.reading import parse_object, read_body


class OpenAnswer(Protocol):
    """An answer of an SDK whose body is still arriving."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        ...

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        ...


@asynccontextmanager
async def posted(client: Any, path: str, body: JsonObject | bytes) -> AsyncIterator[OpenAnswer]:
    """Send a request through an SDK's client; the answer is closed at the end.

    Args:
        client: An ``AsyncOpenAI``, an ``AsyncAnthropic`` or a client derived from one.
        path: The endpoint below the client's base URL.
        body: The request, as an object or as JSON. Clients that read or rewrite requests (Azure,
            Bedrock, Vertex) need the object.

    Raises:
        Exception: What the SDK raises, for an answer that is an error too.
    """
    headers = {"X-Stainless-Raw-Response": "stream"}  # what ``with_streaming_response`` sets
    sent: dict[str, Any] = {"body": body}
    if isinstance(body, bytes):
        sent = {"content": body}
        headers["Content-Type"] = "application/json"
    answer = await client.post(path, cast_to=object, options={"headers": headers}, **sent)
    try:
        yield answer
    finally:
        await answer.close()


async def read_object(answer: OpenAnswer, endpoint: Endpoint) -> JsonObject:
    """What an answer that came as a whole holds.

    Raises:
        ModelResponseError: It is not a JSON object, or far longer than answers are.
    """
    body = await read_body(answer.iter_bytes())
    return parse_object(body, f"the answer of {endpoint.place}")


async def stream_objects(
    opening: AbstractAsyncContextManager[OpenAnswer], endpoint: Endpoint
) -> AsyncGenerator[JsonObject, None]:
    """What each event of a stream holds, until ``[DONE]`` or the end.

    Args:
        opening: Gives the answer; raises what the SDK raises.
        endpoint: Who is asked.

    Raises:
        ModelStatusError: An event reports an error.
        ModelResponseError: An event is not a JSON object.
    """
    parser = EventParser()
    async with opening as answer:
        async for piece in answer.iter_bytes():
            for event in parser.feed(piece):
                if event.data == "[DONE]":
                    return
                found = parse_object(event.data, f"an event in the stream of {endpoint.place}")
                error = embedded_error(endpoint, found, answer.headers)
                if error is not None:
                    raise error
                yield found
