"""Episodes as JSON lines: append-only, and a broken line never hides the others."""

from __future__ import annotations

import json

import pytest

from agentkit import Episode
from agentkit.episodes import Turn
from agentkit.episodes.jsonl import read_episodes, write_episodes
from agentkit.errors import EpisodeFormatError
from agentkit.messages import AssistantMessage, ToolCall, ToolResult


def episode(episode_id: str, text: str = "4") -> Episode:
    """A small episode with one call."""
    call = ToolCall(call_id="1", name="add", arguments={"a": 2, "b": 2})
    result = ToolResult(call_id="1", name="add", status="ok", value=4, text="4")
    turn = Turn(message=AssistantMessage(text=text, tool_calls=(call,)), results=(result,))
    return Episode(episode_id=episode_id, request="2 + 2?", turns=(turn,), output=text)


def test_a_file_gives_back_what_was_written(tmp_path):
    """Episodes come back equal and in order, and a second write is appended."""
    path = tmp_path / "episodes.jsonl"
    assert write_episodes(path, [episode("1"), episode("2")]) == 2
    assert write_episodes(str(path), [episode("3")]) == 1
    assert list(read_episodes(path)) == [episode("1"), episode("2"), episode("3")]


@pytest.fixture
def half_written(tmp_path):
    """A file with two episodes and half of a third, as a crash leaves it."""
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [episode("1"), episode("2"), episode("3")])
    path.write_bytes(path.read_bytes()[:-100])
    return path


def test_a_half_written_line_is_reported_with_its_number(half_written):
    """The half line is reported with file and number, and the rest is still read."""
    broken = []
    read = [one.episode_id for one in read_episodes(half_written, on_broken=broken.append)]
    assert read == ["1", "2"]
    (line,) = broken
    assert (line.path, line.line) == (half_written, 3)
    assert str(line).startswith(f"{half_written}, line 3: not JSON")


def test_a_half_written_line_raises_when_nobody_listens(half_written):
    """Without a listener the episodes before the half line are given, then it raises."""
    reading = read_episodes(half_written)
    assert [next(reading).episode_id, next(reading).episode_id] == ["1", "2"]
    with pytest.raises(EpisodeFormatError, match=r"line 3: .*on_broken"):
        next(reading)


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"7", b"null", b'{"format": 1}', b'{"format": "x"}', b"\xff\xfe", b"[" * 100_000,
     b'{"format":1,"episode_id":"e","request":"?","usage":{},"turns":[7]}',
     b'{"format":1,"episode_id":"e","request":"?","usage":7,"turns":[]}'],
)  # fmt: skip
def test_a_line_that_is_no_episode_is_reported(tmp_path, line):
    """Whatever stands in a line, it is reported and the next one is read."""
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(line + b"\n")
    write_episodes(path, [episode("2")])
    broken = []
    assert list(read_episodes(path, on_broken=broken.append)) == [episode("2")]
    assert [one.line for one in broken] == [1]


def test_a_newer_format_says_what_to_upgrade(tmp_path):
    """An episode of a later format is reported with the way out, not misread."""
    path = tmp_path / "episodes.jsonl"
    record = episode("1").to_json() | {"format": 99}
    path.write_text(json.dumps(record))
    with pytest.raises(EpisodeFormatError, match="upgrade agentkit-evolve"):
        list(read_episodes(path))


def test_a_value_that_json_can_not_hold_is_refused(tmp_path):
    """An episode that is not JSON raises with its id; the ones before it are written whole."""
    path = tmp_path / "episodes.jsonl"
    bad = Episode(episode_id="bad", request="?", output={1, 2})
    with pytest.raises(EpisodeFormatError, match="'bad'"):
        write_episodes(path, [episode("1"), bad, episode("3")])
    assert list(read_episodes(path)) == [episode("1")]
