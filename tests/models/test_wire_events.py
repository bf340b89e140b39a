"""Server-sent events, however their bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.models.wire import EventParser

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
