"""The Responses API: the openai SDK talking to an agent by ``/v1/responses``."""

import json

import openai
import pytest

from agentkit.agent.session import happened
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models import OpenAICompatibleModel
from tests.support.model_server import ErrorStatus, HalfStream, ProviderServer, Reply

OTHER_KEY = "sk-fedcba9876543210"


async def streamed(opened, request):
    """The events of an answer, and the whole that the SDK makes of them."""
    async with opened as sdk, sdk.responses.stream(model="agent", input=request) as stream:
        events = [event async for event in stream]
        return events, await stream.get_final_response()


async def test_an_answer_comes_whole(client, make_app, store, keys):
    """Text, status and usage are where the SDK looks, and the id is that of the episode."""
    async with client(make_app(keys=keys)) as sdk:
        answer = await sdk.responses.create(
            model="agent", input="Hello", metadata={"team": "a"}, temperature=0.5
        )
    assert (answer.output_text, answer.status) == ("You said: Hello", "completed")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)
    assert answer.usage.input_tokens_details.cached_tokens == 2
    (episode,) = store.select()
    assert answer.id == f"resp_{episode.episode_id}"
    assert answer.metadata == {"team": "a"}
    assert episode.metadata["client.team"] == "a"
    assert answer.model_extra["agentkit"]["not_honoured"] == ["temperature"]


async def test_a_stream_has_the_items_of_the_whole_answer(client, make_app):
    """Reasoning and text come as deltas; the last event holds both as items."""
    with ProviderServer([Reply(reasoning="Three eights.", text="24 it is")]) as provider:
        model = OpenAICompatibleModel("m", base_url=provider.base_url)
        events, final = await streamed(client(make_app(model)), "3 x 8?")
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    thought = [e.delta for e in events if e.type == "response.reasoning_text.delta"]
    said = [e.delta for e in events if e.type == "response.output_text.delta"]
    assert "".join(thought) == final.output[0].content[0].text == "Three eights."
    assert "".join(said) == final.output_text == "24 it is"
    assert [item.type for item in final.output] == ["reasoning", "message"]
    assert all(item.status == "completed" for item in final.output)


async def test_each_turn_has_its_own_reasoning(client, make_app):
    """Items stand in the order in which the model thought and spoke, around a call between them."""
    call = ToolCall(call_id="1", name="add", arguments={"a": 1, "b": 2})
    replies = [
        Reply(reasoning="I add.", text="One moment.", tool_calls=(call,)),
        Reply(reasoning="Three.", text="It is 3."),
    ]
    with ProviderServer(replies) as provider:
        model = OpenAICompatibleModel("m", base_url=provider.base_url)
        events, final = await streamed(client(make_app(model)), "1 + 2?")
    assert [item.type for item in final.output] == ["reasoning", "message"] * 2
    assert [item.content[0].text.strip() for item in final.output] == [
        *("I add.", "One moment.", "Three.", "It is 3.")
    ]
    deltas = [(e.output_index, e.item_id) for e in events if e.type.endswith("_text.delta")]
    assert list(dict.fromkeys(deltas)) == [(n, one.id) for n, one in enumerate(final.output)]


async def test_a_conversation_goes_on_by_the_last_id(client, make_app, store, keys):
    """The server keeps it; an id that is not the last one, or another key's, is refused."""
    async with client(make_app(keys=keys)) as sdk:
        other = sdk.with_options(api_key=OTHER_KEY)
        first = await sdk.responses.create(model="agent", input="One")
        second = await sdk.responses.create(
            model="agent", input="Two", previous_response_id=first.id
        )
        with pytest.raises(openai.ConflictError, match=second.id):
            await sdk.responses.create(model="agent", input="Again", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError):
            await other.responses.create(
                model="agent", input="Mine?", previous_response_id=second.id
            )
        alone = await sdk.responses.create(model="agent", input="Once", store=False)
        with pytest.raises(openai.BadRequestError, match="not kept"):
            await sdk.responses.create(model="agent", input="More", previous_response_id=alone.id)
    two, one = [e for e in store.select() if e.request in {"One", "Two"}]
    assert one.session_id == two.session_id
    assert two.history_length == len(one.messages())
    assert second.previous_response_id == first.id


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_waits_is_answered(client, make_app, store, stream):
    """The call is an item, and its output goes back by the call's id."""
    async with client(make_app()) as sdk:
        asked = {"model": "agent", "input": 'call desk.ask {"about": "keys"}'}
        if stream:
            async with sdk.responses.stream(**asked) as events:
                waits = await events.get_final_response()
        else:
            waits = await sdk.responses.create(**asked)
        (call,) = [item for item in waits.output if item.type == "function_call"]
        assert json.loads(call.arguments) == {"about": "keys"}
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "Room 4"}
        answer = await sdk.responses.create(
            model="agent", previous_response_id=waits.id, input=[output]
        )
    assert answer.output_text == "It gave: Room 4"
    assert len(list(happened(store.select()))) == 2


async def test_a_call_stands_behind_the_text_before_it(client, make_app):
    """Each item of a stream has its place, and the last event has them in that order."""
    call = ToolCall(call_id="c1", name="desk.ask")
    said = AssistantMessage(text="I ask.", tool_calls=(call,))
    events, final = await streamed(client(make_app(lambda _: said)), "Ask")
    added = [e.output_index for e in events if e.type == "response.output_item.added"]
    assert added == [0, 1]
    assert [item.type for item in final.output] == ["message", "function_call"]


async def test_a_whole_conversation_of_items_is_taken(client, make_app, store):
    """Calls and outputs of before are history; instructions are a system message."""
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Add 1 and 2"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": '{"a":1,"b":2}'},
        {"type": "function_call", "call_id": "b", "name": "add", "arguments": '{"a":2,"b":2}'},
        {"type": "function_call_output", "call_id": "a", "output": "3"},
        {"type": "function_call_output", "call_id": "b", "output": "4"},
        {"type": "message", "role": "assistant", "content": "3 and 4."},
        {"role": "user", "content": "Thanks"},
    ]
    async with client(make_app()) as sdk:
        answer = await sdk.responses.create(model="agent", input=items, instructions="Be brief.")
    assert answer.output_text == "You said: Thanks"
    (episode,) = store.select()
    assert (episode.history_length, episode.session_id) == (6, None)


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0].type"),
        ({"background": True}, "background"),
        ({"text": {"format": {"type": "json_object"}}}, "response_format"),
        ({"previous_response_id": "chatcmpl-1"}, "previous_response_id"),
        ({"previous_response_id": "resp_1", "store": False}, "store"),
        ({"conversation": "conv_1"}, "conversation"),
    ],
)
async def test_what_cannot_be_answered_is_refused(client, make_app, store, options, param):
    """With the field that is wrong; no run begins."""
    async with client(make_app()) as sdk:
        with pytest.raises(openai.BadRequestError) as refused:
            await sdk.responses.create(**{"model": "agent", "input": "Hi", **options})
    assert refused.value.param == param or param is None
    assert list(store.select()) == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_fails_ends_the_answer(client, make_app, stream):
    """As a status where nothing was said, and as a failed response in a stream that had begun."""
    broken = HalfStream() if stream else ErrorStatus(status=500)
    with ProviderServer([broken] * 4) as provider:
        model = OpenAICompatibleModel("m", base_url=provider.base_url)
        async with client(make_app(model)) as sdk:
            if not stream:
                with pytest.raises(openai.APIStatusError):
                    await sdk.responses.create(model="agent", input="Hi")
                return
            events = await sdk.responses.create(model="agent", input="Hi", stream=True)
            found = [event async for event in events]
    last = found[-1]
    assert last.type == "response.failed"
    assert last.response.error.code == "model_failed"
    said = [one.delta for one in found if one.type == "response.output_text.delta"]
    assert last.response.output_text == "".join(said)
    assert said
