"""A small chat-completions server for measuring what a runtime adds around the model.

Standard library only, one process, loopback only. Each run costs two requests: the first answer is a
call of ``tool_0``, and once its result is in the request, the second answer is the final text.

    python stub_server.py            prints the port, then serves until it is ended

``POST /<latency in ms>/v1/chat/completions`` answers after that many milliseconds, as one JSON object
or, with ``"stream": true``, as server-sent events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

RESULT_MARK = b"STUBRES"
"""Every benchmark tool puts this into its result, so that the server knows how far a run is."""

ANSWER = " ".join(["done"] * 20)
ARGUMENTS = json.dumps({"city": "Paris", "days": 3})


def message_for(body: bytes) -> tuple[dict[str, Any], str]:
    """The answer to a request, and why the model stopped."""
    if RESULT_MARK in body:
        return {"role": "assistant", "content": ANSWER}, "stop"
    function = {"name": "tool_0", "arguments": ARGUMENTS}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def completion(body: bytes) -> bytes:
    """The whole answer as one JSON object."""
    message, reason = message_for(body)
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "stub",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": usage(body),
        }
    ).encode()


def usage(body: bytes) -> dict[str, int]:
    """Token counts, as a provider would report them."""
    prompt = len(body) // 4
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}


def deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The answer in pieces: argument text in slices, words one by one."""
    yield {"role": "assistant", "content": "" if message["content"] else None}
    for index, call in enumerate(message.get("tool_calls", ())):
        text = call["function"]["arguments"]
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{**call, "index": index, "function": function}]}
        for start in range(0, len(text), 12):
            piece = {"arguments": text[start : start + 12]}
            yield {"tool_calls": [{"index": index, "function": piece}]}
    for word in (message["content"] or "").split():
        yield {"content": f"{word} "}


def events(body: bytes) -> bytes:
    """The whole answer as server-sent events in chunked transfer encoding."""
    message, reason = message_for(body)
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    choices: list[dict[str, Any]] = [{"delta": delta} for delta in deltas(message)]
    choices.append({"delta": {}, "finish_reason": reason})
    records = [{**base, "choices": [{"index": 0, **choice}]} for choice in choices]
    if b"include_usage" in body:
        records.append({**base, "choices": [], "usage": usage(body)})
    lines = [b"data: " + json.dumps(record).encode() + b"\n\n" for record in records]
    lines.append(b"data: [DONE]\n\n")
    return b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines) + b"0\r\n\r\n"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class Connection(asyncio.Protocol):
    """One kept-alive connection; requests come one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with an empty buffer."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end])
            fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
            start, size = end + 4, int(fields.get(b"content-length", b"0"))
            if len(self.buffer) < start + size:
                return
            body = bytes(self.buffer[start : start + size])
            del self.buffer[: start + size]
            latency = head.split(b"/", 2)[1]  # POST /50/v1/chat/completions
            seconds = int(latency) / 1000 if latency.isdigit() else 0.0
            loop = asyncio.get_running_loop()
            if seconds:
                loop.call_later(seconds, self.answer, body)
            else:
                self.answer(body)

    def answer(self, body: bytes) -> None:
        """Write one answer, unless the client has gone."""
        if self.transport.is_closing():
            return
        if b'"stream":true' in body.replace(b" ", b""):
            self.transport.write(STREAM_HEAD + events(body))
        else:
            content = completion(body)
            self.transport.write(HEAD % len(content) + content)


async def serve() -> None:
    """Listen on a free port and print it."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
