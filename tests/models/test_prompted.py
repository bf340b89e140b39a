"""A model that is offered tools in its prompt: what it reads, how it is understood, and what it shows while it writes."""

from __future__ import annotations

import json
from itertools import pairwise

import jsonschema
import pytest
from hypothesis import given, strategies as st

from agentkit.messages import (
    AssistantMessage,
    ProviderItem,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import (
    ChatModel,
    ModelRequest,
    ModelResponse,
    StreamingChatModel,
    TextDelta,
)
from agentkit.models.prompted import PromptedModel
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools.definition import ToolDefinition

WEATHER = ToolDefinition.from_schema(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CALL = ToolCall(call_id="call_1", name="get_weather", arguments={"city": "Oslo"})
QUESTION = UserMessage(text="How is the weather in Oslo?")


def request(*messages, **changes):
    return ModelRequest(messages=messages or (QUESTION,), **{"tools": (WEATHER,), **changes})


async def sent(model_options, asked, answer="ok"):
    """The request that reaches the wrapped model."""
    inner = FunctionModel(lambda _: answer)
    await PromptedModel(inner, **model_options).complete(asked)
    return inner.requests[0]


@pytest.mark.parametrize(
    ("style", "answer"),
    [
        ("python", '[get_weather(city="Oslo")]'),
        ("json", '{"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}'),
        ("json", '[get_weather(city="Oslo")]'),
    ],
)
async def test_text_becomes_calls(style, answer):
    """The answer is read in either format, whatever the prompt asked for."""
    model = PromptedModel(ScriptedModel([answer]), format=style)
    response = await model.complete(request())
    assert response.message == AssistantMessage(tool_calls=(CALL,))
    assert response.finish_reason == "tool_calls"
    assert isinstance(model, ChatModel)
    assert model.name == "scripted"


async def test_text_without_calls_is_the_answer():
    """Prose comes through as it is, and so does the reason for stopping."""
    answer = ModelResponse(message=AssistantMessage(text="It is cold."), finish_reason="length")
    response = await PromptedModel(ScriptedModel([answer])).complete(request())
    assert response.message == AssistantMessage(text="It is cold.")
    assert response.finish_reason == "length"


@pytest.mark.parametrize("style", ["python", "json"])
async def test_tools_move_into_one_system_message(style):
    """The wrapped model gets text only; the instructions stay, after the tools."""
    asked = request(SystemMessage(text="Be brief."), QUESTION, SystemMessage(text="Be kind."))
    inner = await sent({"format": style}, asked)
    assert (inner.tools, inner.tool_choice) == ((), "none")
    system, question = inner.messages
    assert "get_weather" in system.text
    assert system.text.endswith("Be brief.\n\nBe kind.")
    assert question == QUESTION


@pytest.mark.parametrize(
    ("style", "written"),
    [
        ("python", '[get_weather(city="Oslo")]'),
        ("json", '{"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}'),
    ],
)
async def test_history_is_told_as_text_in_turns(style, written):
    """Calls are shown as they would be written; results are said by the user; turns alternate."""
    asked = request(
        QUESTION,
        AssistantMessage(tool_calls=(CALL,)),
        ToolMessage(call_id="call_1", name="get_weather", text="4 degrees"),
        UserMessage(text="And in Rome?"),
    )
    _, *conversation = (await sent({"format": style}, asked)).messages
    assert conversation == [
        QUESTION,
        AssistantMessage(text=written),
        UserMessage(text="Result of get_weather: 4 degrees\nAnd in Rome?"),
    ]


async def test_a_proposal_shown_for_refinement_keeps_the_format():
    """Self-refinement shows calls as text; they are shown as this model wrote them."""
    shown = AssistantMessage(text='[get_weather(city="Oslo")]')
    refine = UserMessage(text="Please refine your answer.")
    inner = await sent({"format": "json"}, request(QUESTION, shown, refine))
    assert json.loads(inner.messages[2].text)["calls"][0]["name"] == "get_weather"


async def test_call_ids_go_on_through_the_conversation():
    """A second call does not take the id of the first."""
    asked = request(QUESTION, AssistantMessage(tool_calls=(CALL,)), UserMessage(text="Again."))
    model = PromptedModel(ScriptedModel(['[get_weather(city="Rome")]']))
    response = await model.complete(asked)
    assert response.message.tool_calls[0].call_id == "call_2"


async def test_constrained_answers_are_held_to_a_schema():
    """The wrapped model gets the schema of calls, and of text unless calls are required."""
    free = (await sent({"format": "json", "constrained": True}, request())).output_schema
    forced = (
        await sent({"format": "json", "constrained": True}, request(tool_choice="required"))
    ).output_schema
    call = {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}
    for schema in (free, forced):
        jsonschema.validate(call, schema)
    jsonschema.validate({"answer": "It is cold."}, free)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"answer": "It is cold."}, forced)


async def test_a_constrained_answer_in_text_is_unwrapped():
    """The caller sees the answer, not the object that carried it; history carries it again."""
    inner = ScriptedModel(['{"answer": "It is cold."}', '{"answer": "Yes."}'])
    model = PromptedModel(inner, format="json", constrained=True)
    first = await model.complete(request())
    assert first.message.text == "It is cold."
    await model.complete(request(QUESTION, first.message, UserMessage(text="Really?")))
    assert inner.requests[1].messages[2].text == '{"answer": "It is cold."}'


async def test_structured_output_goes_with_tools():
    """Calls or an answer in the shape asked for; the answer comes out as JSON text."""
    shape = {
        "type": "object",
        "properties": {"degrees": {"type": "integer"}},
        "required": ["degrees"],
    }
    inner = ScriptedModel(['{"answer": {"degrees": 4}}'])
    model = PromptedModel(inner, format="json", constrained=True)
    response = await model.complete(request(output_schema=shape))
    assert json.loads(response.message.text) == {"degrees": 4}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"answer": {"degrees": "4"}}, inner.requests[0].output_schema)
    free = await sent({"format": "python"}, request(output_schema=shape))
    assert free.output_schema is None  # it would rule out the calls
    assert '"degrees"' in free.messages[0].text


@pytest.mark.parametrize("changes", [{"tools": ()}, {"tool_choice": "none"}])
async def test_without_tools_the_model_writes_freely(changes):
    """Nothing is added to the prompt, and nothing is read out of the text."""
    text = '[get_weather(city="Oslo")]'
    inner = ScriptedModel([text])
    response = await PromptedModel(inner, format="json", constrained=True).complete(
        request(**changes)
    )
    assert response.message == AssistantMessage(text=text)
    assert inner.requests[0].messages == (QUESTION,)
    assert inner.requests[0].output_schema is None


async def test_an_output_schema_without_tools_reaches_the_model():
    """As it is, or in the words of grammars where the answer is constrained by one."""
    shape = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asked = request(tools=(), output_schema=shape)
    assert (await sent({}, asked)).output_schema == shape
    held = (await sent({"format": "json", "constrained": True}, asked)).output_schema
    assert held["properties"]["name"]["maxLength"] == 2000


async def test_the_same_tools_give_the_same_objects():
    """Prompt and schema are made once for a tuple of tools, so that engines can cache them."""
    inner = ScriptedModel(["a", "b", "c"])
    model = PromptedModel(inner, format="json", constrained=True)
    tools = (WEATHER,)
    for _ in range(2):
        await model.complete(request(tools=tools))
    await model.complete(request(tools=(WEATHER, ToolDefinition(name="wait"))))
    first, second, third = inner.requests
    assert first.messages[0].text == second.messages[0].text
    assert first.output_schema is second.output_schema
    assert third.output_schema != first.output_schema


async def test_what_a_provider_wants_back_goes_back():
    """Items that the wrapped model gave with a call come to it again in the next request."""
    item = ProviderItem(protocol="thinking", data={"kept": True})
    calling = AssistantMessage(text='[get_weather(city="Oslo")]', provider_items=(item,))
    inner = FunctionModel(lambda _: ModelResponse(message=calling))
    model = PromptedModel(inner)
    answer = (await model.complete(request())).message
    assert answer == AssistantMessage(tool_calls=(CALL,), provider_items=(item,))
    await model.complete(request(QUESTION, answer))
    (_, _, spoken) = inner.requests[1].messages
    assert spoken.provider_items == (item,)


WAIT = ToolDefinition.from_schema("wait", "Wait.", {"type": "object", "properties": {}})


async def streamed(answer, *, tools=(WAIT,), constrained=True):
    """The pieces shown, and the response."""
    style = "json" if constrained else "python"
    inner = answer if isinstance(answer, Letters) else FunctionModel(lambda _: answer)
    model = PromptedModel(inner, format=style, constrained=constrained)
    assert isinstance(model, StreamingChatModel)
    request = ModelRequest(messages=(UserMessage(text="Hello"),), tools=tools)
    events = [event async for event in model.stream(request)]
    assert all(isinstance(event, TextDelta) for event in events[:-1])
    assert isinstance(events[-1], ModelResponse)
    return [event.text for event in events[:-1]], events[-1]


class Letters:
    """A model that writes letter by letter, or in the pieces given."""

    name = "letters"

    def __init__(self, pieces):
        self.pieces = pieces

    async def complete(self, request):
        return ModelResponse(message=AssistantMessage(text="".join(self.pieces)))

    async def stream(self, request):
        for letter in self.pieces:
            yield TextDelta(text=letter)
        yield await self.complete(request)


async def test_words_come_without_their_wrapping():
    """The words of a constrained answer are shown one by one, the JSON around them never."""
    pieces, response = await streamed(Letters('{"answer": "A \\"dog\\"\\n\\ud83d\\ude00 \\u00e9"}'))
    assert pieces == list('A "dog"\n😀 é')
    assert response.message.text == 'A "dog"\n😀 é'


async def test_a_call_shows_nothing():
    """Of a call the caller gets the response alone."""
    pieces, response = await streamed(Letters('{"calls": [{"name": "wait", "arguments": {}}]}'))
    assert pieces == []
    assert response.message.tool_calls[0].name == "wait"
    assert response.finish_reason == "tool_calls"


async def test_text_without_tools_passes_through():
    """Nothing is wrapped there, so each piece is shown as it comes."""
    pieces, _ = await streamed(Letters('{"answer": 1}'), tools=())
    assert pieces == list('{"answer": 1}')


async def test_what_could_still_be_a_call_waits_for_the_end():
    """Free text may turn into a call, so it is shown in one piece when it did not."""
    pieces, _ = await streamed("It is cold.", constrained=False)
    assert pieces == ["It is cold."]
    pieces, response = await streamed("[wait()]", constrained=False)
    assert pieces == []
    assert response.message.tool_calls


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data(), st.booleans())
async def test_any_text_cut_anywhere_is_shown_whole(text, data, is_ascii):
    """However the pieces fall, together they are the answer."""
    written = json.dumps({"answer": text}, ensure_ascii=is_ascii)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(written)), max_size=9)) | {0, len(written)})
    pieces, _ = await streamed(Letters([written[a:b] for a, b in pairwise(cuts)]))
    assert "".join(pieces) == text
