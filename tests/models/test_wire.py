"""The wire: names, events, requests and answers, and what the types of the official SDKs say of them."""

from __future__ import annotations

import gc
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import ModelResponseError
from agentkit.messages import Usage, UserMessage
from agentkit.models.anthropic import AnthropicCodec
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.models.chat_completions import CompletionAssembler, RequestEncoder, decode_completion
from agentkit.models.prices import Price
from agentkit.models.responses import ResponsesCodec
from agentkit.models.wire import EventParser, WireNames
from agentkit.tools.definition import ToolDefinition

names = st.one_of(
    st.text(min_size=1, max_size=80),
    st.sampled_from(["a.b", "a_b", "a-b", "a b", "a/b", "x" * 64, "x" * 65, "x" * 66, "é", "ü"]),
)


@given(st.sets(names, max_size=20), st.randoms())
def test_mapping_is_acceptable_and_reversible(
    given_names: set[str], shuffle: random.Random
) -> None:
    """Whatever tools are called, wire names are accepted, distinct, and lead back."""
    wire = WireNames(given_names)
    encoded = {name: wire.encode(name) for name in given_names}
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in encoded.values())
    assert len(set(encoded.values())) == len(given_names)
    assert {wire.decode(name) for name in encoded.values()} == given_names
    again = sorted(given_names)
    shuffle.shuffle(again)
    assert {name: WireNames(again).encode(name) for name in given_names} == encoded


def test_accepted_name_is_never_changed() -> None:
    """A name that providers accept wins over one that would become the same."""
    wire = WireNames(["math.sqrt", "math_sqrt"])
    assert wire.encode("math_sqrt") == "math_sqrt"
    assert re.fullmatch(r"math_sqrt_[0-9a-f]{8}", wire.encode("math.sqrt"))


def test_unknown_names_pass() -> None:
    """A name that a model made up comes back as it is; one of an old turn is made acceptable."""
    wire = WireNames(["a.b"])
    assert wire.decode("made_up") == "made_up"
    assert wire.encode("gone.tool") == "gone_tool"


fields = st.sampled_from(["data", "event", "id", "retry", "", "other"])
values = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=6)
lines = st.builds(
    lambda field, gap, value: f"{field}:{gap}{value}", fields, st.sampled_from(["", " "]), values
)
blocks = st.lists(st.one_of(lines, st.just("data"), st.just("")), max_size=12)
ends = st.sampled_from(["\n", "\r", "\r\n"])


def parse(*pieces: bytes) -> list[str]:
    """The events of a stream that arrives in these pieces."""
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@given(st.data(), blocks, st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_cuts_do_not_matter(data: st.DataObject, block: list[str], mark: bytes) -> None:
    """Any chunking of a byte stream, inside characters and line ends too, gives the same events."""
    text = "".join(line + data.draw(ends) for line in block)
    stream = mark + text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = parse(stream)
    assert parse(*pieces) == whole
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == whole


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b": comment\n\ndata: a\n\n", ["a"]),
        (b"event: error\ndata: a\ndata:b\n\n", ["a\nb"]),
        (b"data\n\n", [""]),
        (b"event: ping\n\ndata: a\n\n", ["a"]),
        (b"data: cut off", []),
        (b"data: cut off\n", []),
        (b"data:  two spaces\n\n", [" two spaces"]),
        (b"id: 7\nretry: 10\ndata: a\r\r", ["a"]),
        (b"data: \xff\n\n", ["�"]),
    ],
)
def test_rules_of_the_standard(stream: bytes, events: list[str]) -> None:
    """Comments, several data lines, unknown fields, unfinished events and broken text."""
    assert parse(stream) == events


class CountingSchema(Mapping):
    """A schema that knows how often it was read for serialising."""

    def __init__(self, content: dict) -> None:
        self._content = content
        self.reads = 0

    def __getitem__(self, key):
        return self._content[key]

    def __iter__(self):
        self.reads += 1
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


def definition(name: str, schema: Mapping | None = None) -> ToolDefinition:
    """A tool of that name."""
    return ToolDefinition.from_schema(name, f"About {name}.", schema or {"type": "object"})


def encoder() -> RequestEncoder:
    """An encoder that has serialised nothing yet."""
    return RequestEncoder("m", max_tokens_field="max_tokens")


def body(one: RequestEncoder, request: ModelRequest, *, stream: bool = False) -> dict:
    """The decoded body of a request."""
    return json.loads(one.encode(request, stream=stream)[0])


REQUEST = ModelRequest(messages=(UserMessage(text="hi"),))


def test_tool_is_serialised_once() -> None:
    """A definition that is offered again, in another tuple, is not walked again."""
    enum = CountingSchema({"type": "string"})
    schema = {"type": "object", "properties": {"x": {"anyOf": [enum]}}}
    counted, other = definition("counted", schema), definition("other")
    one = encoder()
    one.encode(replace(REQUEST, tools=(counted,)), stream=False)
    reads = enum.reads
    assert reads > 0
    for tools in ((counted,), (other, counted), (counted, other)):
        one.encode(replace(REQUEST, tools=tools), stream=False)
    assert enum.reads == reads


def test_same_tools_give_the_same_bytes_in_their_order() -> None:
    """A prompt cache sees one prefix: the order is that of the request, each time."""
    tools = tuple(definition(name) for name in "zma")
    one = encoder()
    first = one.encode(replace(REQUEST, tools=tools), stream=False)[0]
    again = one.encode(replace(REQUEST, tools=tuple(tools)), stream=False)[0]
    fresh = encoder().encode(replace(REQUEST, tools=tools), stream=False)[0]
    assert first == again == fresh
    assert [tool["function"]["name"] for tool in json.loads(first)["tools"]] == ["z", "m", "a"]


def test_forgotten_definitions_are_not_kept() -> None:
    """The cache holds what is in use: many short-lived tools leave only the newest tuples."""
    one = encoder()
    for number in range(200):
        one.encode(replace(REQUEST, tools=(definition(f"t{number}"),)), stream=False)
    gc.collect()
    assert len(one._tools) <= 20
    assert len(one._blocks) <= 20


NAMES = WireNames(["a.b"])


def completion(message: dict, **choice: object) -> ModelResponse:
    """The response to a completion with this message."""
    return decode_completion({"choices": [{"message": message, **choice}]}, NAMES)


def with_call(**function: object) -> ModelResponse:
    """The response to a completion with one call."""
    return completion({"tool_calls": [{"id": "1", "function": {"name": "f", **function}}]})


@pytest.mark.parametrize(
    ("text", "arguments", "malformed"),
    [
        ('{"x": 1}', {"x": 1}, None),
        ("", {}, None),
        ("  ", {}, None),
        (None, {}, None),
        ({"x": 1}, {"x": 1}, None),  # some servers send the object itself
        ('{"x": 1', {}, '{"x": 1'),
        ("[1]", {}, "[1]"),
        ("null", {}, "null"),
        ('{"x": NaN}', {}, '{"x": NaN}'),
        ('{"x": "\\ud83d"}', {}, '{"x": "\\ud83d"}'),  # half a character
        ('{"to": {"x": 1, "x": 2}}', {}, '{"to": {"x": 1, "x": 2}}'),  # readers differ on it
        ("[" * 5000, {}, "[" * 5000),
        ([1], {}, "[1]"),
    ],
)
def test_arguments(text, arguments, malformed) -> None:
    """Argument text is a JSON object, or kept as it came."""
    call = with_call(arguments=text).message.tool_calls[0]
    assert (call.arguments, call.malformed) == (arguments, malformed)


def test_ids_are_made_up_and_distinct() -> None:
    """A call without an id, and one that repeats another's, get one of their own."""
    calls = [
        {"function": {"name": "f"}},
        {"id": "", "function": {"name": "f"}},
        {"id": "x", "function": {"name": "f"}},
        {"id": "x", "function": {"name": "f"}},
    ]
    ids = [call.call_id for call in completion({"tool_calls": calls}).message.tool_calls]
    assert len(set(ids)) == 4
    assert ids[2] == "x"
    assert all(re.fullmatch(r"call_[0-9a-f]{16}", i) for i in (ids[0], ids[1], ids[3]))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({}, ""),
        ({"content": None}, ""),
        ({"content": "a"}, "a"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        (
            {"content": [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": "a"}]},
            "a",
        ),
        ({"content": "half \ud83d"}, "half �"),
    ],
)
def test_content(message, text) -> None:
    """Content is a string, a list of parts or nothing."""
    assert completion(message).message.text == text


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("eos", "unknown"),
        (None, "unknown"),
    ],
)
def test_finish_reasons(reason, finish) -> None:
    """The protocol's words, and unknown for any other."""
    assert completion({"content": "a"}, finish_reason=reason).finish_reason == finish
    call = {"tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    beside = completion(call, finish_reason=reason).finish_reason
    assert beside == ("tool_calls" if reason == "stop" else finish)  # some servers say so


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage(requests=1)),
        ({}, Usage(requests=1)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(requests=1, prompt_tokens=9, cached_tokens=4),
        ),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 3, "completion_tokens": 1},
            Usage(requests=1, prompt_tokens=9, cached_tokens=3, completion_tokens=1),
        ),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(requests=1, prompt_tokens=9)),
        ({"prompt_tokens": 9, "prompt_tokens_details": [1]}, Usage(requests=1, prompt_tokens=9)),
        (["many"], Usage(requests=1)),
    ],
)
def test_usage(usage, expected) -> None:
    """Token counts in the forms that servers have."""
    answer = {"choices": [{"message": {}}], "usage": usage}
    assert decode_completion(answer, NAMES).usage == expected


@pytest.mark.parametrize(
    "stated", [-5, 10**400, 10**12 + 1, 1.5, True, "9" * 500, None, [], float("inf")]
)
@pytest.mark.parametrize("codec", [None, AnthropicCodec, ResponsesCodec])
def test_counts_that_are_none_are_unknown(codec, stated) -> None:
    """Whatever a server states, the answer stands, totals never fall, and records hold numbers."""
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    usage = dict.fromkeys(names, stated)
    answer = {"choices": [{"message": {}}], "content": [], "output": [], "usage": usage}
    request = ModelRequest(messages=(UserMessage(text="Hi"),))
    read = codec(request).decode(answer) if codec else decode_completion(answer, NAMES)
    assert read.usage == Usage(requests=1)
    kept = Usage.from_json({"requests": 1, "prompt_tokens": stated, "cost_usd": stated})
    known = Usage(requests=1, prompt_tokens=7, cost_usd=0.5)
    assert (known + kept).prompt_tokens == 7
    assert (known + kept).cost_usd >= 0.5


def test_more_cached_than_read_is_unknown() -> None:
    """So that no price is negative; and sums end at the bound."""
    odd = Usage(prompt_tokens=4, cached_tokens=10**9)
    assert Price(prompt=1.0, cached=0.1, completion=1.0).cost_of(odd) == 4e-6
    most = Usage(prompt_tokens=10**12)
    assert (most + most).prompt_tokens == 10**12


def chunk(delta: dict, reason: str | None = None) -> dict:
    """One chunk of a stream."""
    return {"model": "s", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def streamed_calls(*parts: dict) -> list[tuple[str, dict]]:
    """Name and arguments of the calls that these deltas make."""
    assembler = CompletionAssembler()
    for part in parts:
        assembler.add(chunk({"tool_calls": [part]}))
    response = decode_completion(assembler.finish(), NAMES)
    return [(call.name, dict(call.arguments)) for call in response.message.tool_calls]


def test_calls_that_alternate() -> None:
    """Deltas of two calls may come in turn; the index tells them apart."""
    assert streamed_calls(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": '{"y"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
        {"index": 1, "function": {"arguments": ": 2}"}},
    ) == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("index", [{}, {"index": 0}, {"index": None}])
def test_calls_without_an_index_of_their_own(index) -> None:
    """Servers that give no index, or the same to each call, give each call an id."""
    assert streamed_calls(
        {**index, "id": "a", "function": {"name": "f", "arguments": '{"x": '}},
        {**index, "function": {"arguments": "1}"}},
        {**index, "id": "b", "function": {"name": "g", "arguments": "{}"}},
    ) == [("f", {"x": 1}), ("g", {})]


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 5},
        {"tool_calls": "f"},
        {"tool_calls": [{"index": 0, "id": 5}]},
        {"tool_calls": [{"function": {"arguments": {}, "name": 3}}]},
    ],
)
def test_chunk_off_the_protocol(delta) -> None:
    """A chunk of another shape is an error that says so."""
    with pytest.raises(ModelResponseError, match="does not follow the provider's protocol"):
        CompletionAssembler().add(chunk(delta))


def test_streamed_call_without_a_name() -> None:
    """A call that never got a name cannot be made."""
    assembler = CompletionAssembler()
    assembler.add(chunk({"tool_calls": [{"index": 0, "id": "1"}]}))
    with pytest.raises(ModelResponseError, match="KeyError: 'name'"):
        decode_completion(assembler.finish(), NAMES)
