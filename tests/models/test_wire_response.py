"""Answers, whole and streamed, as responses."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import ModelResponseError
from agentkit.messages import Usage
from agentkit.models.base import ModelResponse
from agentkit.models.chat_completions import CompletionAssembler, decode_completion
from agentkit.models.wire import WireNames

NAMES = WireNames(["a.b"])
json_objects = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


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


def test_refusal_is_the_text_and_says_so() -> None:
    """A refusal is shown as the answer, under its own finish reason."""
    for message in ({"content": None, "refusal": "No."}, {"content": "", "refusal": "No."}):
        response = completion(message, finish_reason="stop")
        assert (response.message.text, response.finish_reason) == ("No.", "content_filter")


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
    ],
)
def test_usage(usage, expected) -> None:
    """Token counts in the forms that servers have."""
    answer = {"choices": [{"message": {}}], "usage": usage}
    assert decode_completion(answer, NAMES).usage == expected


def chunk(delta: dict, reason: str | None = None) -> dict:
    """One chunk of a stream."""
    return {"model": "s", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


@given(json_objects, st.lists(st.integers(0, 200), max_size=5), st.text(max_size=10))
def test_stream_gives_what_the_whole_answer_gives(
    arguments: dict, cuts: list[int], text: str
) -> None:
    """However arguments and text are cut into deltas, the result is that of one piece."""
    raw = json.dumps(arguments)
    stops = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    assembler = CompletionAssembler()
    for letter in text:
        assembler.add(chunk({"content": letter}))
    first = {"index": 0, "id": "1", "function": {"name": "a_b", "arguments": ""}}
    assembler.add(chunk({"tool_calls": [first]}))
    for start, end in itertools.pairwise(stops):
        part = {"index": 0, "function": {"arguments": raw[start:end]}}
        assembler.add(chunk({"tool_calls": [part]}))
    assembler.add(chunk({}, "tool_calls"))
    call = {"id": "1", "function": {"name": "a_b", "arguments": raw}}
    whole = decode_completion(
        {
            "model": "s",
            "choices": [
                {
                    "message": {"content": text, "tool_calls": [call]},
                    "finish_reason": "tool_calls",
                }
            ],
        },
        NAMES,
    )
    assert decode_completion(assembler.finish(), NAMES) == whole


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
    ("delta", "message"),
    [
        ({"content": 5}, r"delta\.content should be str or list, got 5"),
        ({"tool_calls": "f"}, r"delta\.tool_calls should be list, got 'f'"),
        ({"tool_calls": [{"index": 0, "id": 5}]}, r"\.id should be str, got 5"),
        (
            {"tool_calls": [{"function": {"arguments": {}, "name": 3}}]},
            r"name should be str, got 3",
        ),
    ],
)
def test_chunk_off_the_protocol(delta, message) -> None:
    """A chunk of another shape is an error that names the place."""
    with pytest.raises(ModelResponseError, match=message):
        CompletionAssembler().add(chunk(delta))


def test_streamed_call_without_a_name() -> None:
    """A call that never got a name can not be made."""
    assembler = CompletionAssembler()
    assembler.add(chunk({"tool_calls": [{"index": 0, "id": "1"}]}))
    with pytest.raises(ModelResponseError, match=r"function\.name should be str, got nothing"):
        decode_completion(assembler.finish(), NAMES)
