"""The scripted server speaks three protocols; the official SDKs read what it says."""

from __future__ import annotations

import httpx
import pytest
from support.model_server import ProviderServer
from support.server_steps import Reply

from agentkit.messages import ToolCall

CALLS = [
    ToolCall(call_id="c1", name="f", arguments={"n": 1}),
    ToolCall(call_id="c2", name="f", arguments={"n": 2}),
]
REPLY = Reply(text="one two", tool_calls=CALLS, reasoning="hm hm", piece_bytes=7)
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PATHS = ["/chat/completions", "/responses", "/messages"]


def post(server: ProviderServer, path: str, **further: object) -> httpx.Response:
    """One request, over plain HTTP."""
    return httpx.post(f"{server.base_url}{path}", json={**ASKED, **further}, trust_env=False)


@pytest.mark.parametrize("streamed", [False, True])
async def test_anthropic_sdk_accumulates_the_message(streamed) -> None:
    """Anthropic's own accumulator puts the stream together to what comes as a whole."""
    anthropic = pytest.importorskip("anthropic", reason="the extra 'anthropic' is not installed")
    with ProviderServer([REPLY]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.root_url, api_key="k", max_retries=0)
        async with client:
            if streamed:
                async with client.messages.stream(max_tokens=9, **ASKED) as stream:
                    message = await stream.get_final_message()
            else:
                message = await client.messages.create(max_tokens=9, **ASKED)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.content[0].signature == "sealed"
    assert message.content[1].text == "one two"
    assert [block.input for block in message.content[2:]] == [{"n": 1}, {"n": 2}]
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 5)


@pytest.mark.parametrize("streamed", [False, True])
async def test_openai_sdk_accumulates_the_response(streamed) -> None:
    """OpenAI's own accumulator puts the stream together to what comes as a whole."""
    openai = pytest.importorskip("openai", reason="the extra 'openai' is not installed")
    with ProviderServer([REPLY]) as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)
        async with client:
            if streamed:
                async with client.responses.stream(model="m", input="hi") as stream:
                    response = await stream.get_final_response()
            else:
                response = await client.responses.create(model="m", input="hi")
    kinds = ["reasoning", "message", "function_call", "function_call"]
    assert [item.type for item in response.output] == kinds
    assert response.output_text == "one two"
    assert [item.arguments for item in response.output[2:]] == ['{"n": 1}', '{"n": 2}']
    assert (response.status, response.usage.output_tokens) == ("completed", 5)


@pytest.mark.parametrize("streamed", [False, True])
async def test_openai_sdk_accumulates_the_completion(streamed) -> None:
    """The same for chat completions."""
    openai = pytest.importorskip("openai", reason="the extra 'openai' is not installed")
    with ProviderServer([REPLY]) as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)
        async with client:
            if streamed:
                async with client.chat.completions.stream(**ASKED) as stream:
                    completion = await stream.get_final_completion()
            else:
                completion = await client.chat.completions.create(**ASKED)
    message = completion.choices[0].message
    assert message.content == "one two"
    assert [call.function.arguments for call in message.tool_calls] == ['{"n": 1}', '{"n": 2}']
    assert completion.choices[0].finish_reason == "tool_calls"
