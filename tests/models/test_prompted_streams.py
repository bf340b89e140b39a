"""A prompted model shows its answer while it writes it, and never the wrapping or a call."""

import json
from itertools import pairwise

from hypothesis import given, strategies as st

from agentkit.messages import AssistantMessage, UserMessage
from agentkit.models.base import ModelRequest, ModelResponse, StreamingChatModel, TextDelta
from agentkit.models.prompted import PromptedModel
from agentkit.testing import FunctionModel
from agentkit.tools.definition import ToolDefinition

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
