"""Files of definitions: every shape is read, bad entries are reported, nothing is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from agentkit.tools.sources import definitions_from_json

ADD, SUB = {"name": "add"}, {"name": "sub", "parameters": {"type": "object", "properties": {}}}


def names(data) -> list[str]:
    """Names of the usable definitions; nothing may be rejected."""
    batch = definitions_from_json(data)
    assert batch.rejected == ()
    return [definition.name for definition in batch.definitions]


@pytest.mark.parametrize(
    "data",
    [
        [ADD, SUB],
        json.dumps([ADD, SUB]),
        json.dumps([ADD, SUB], indent=1).encode(),
        f"{json.dumps(ADD)}\n\n{json.dumps(SUB)}\n",
        "\ufeff" + json.dumps([ADD, SUB]),
        {"tools": [ADD, SUB]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [ADD, SUB]}},
        [{"functionDeclarations": [ADD]}, {"functionDeclarations": [SUB]}],
        {"functions": [ADD, {"type": "function", "function": SUB}]},
    ],
)
def test_shapes_of_files(data) -> None:
    """Lists, JSON lines and answers of servers hold the same two tools."""
    assert names(data) == ["add", "sub"]


def test_single_record_and_nothing() -> None:
    """One record is a file of one; an empty text or list is a file of none."""
    assert names(ADD) == names(json.dumps(ADD)) == ["add"]
    assert names("") == names(" \n") == names([]) == names("[]") == []


def test_bad_entries_are_reported_in_place() -> None:
    """A bad entry is returned with its index and the reason, and the good ones are kept."""
    batch = definitions_from_json([ADD, {"nom": "x"}, 3, SUB])
    assert [definition.name for definition in batch.definitions] == ["add", "sub"]
    assert [(entry.index, entry.entry) for entry in batch.rejected] == [(1, {"nom": "x"}), (2, 3)]
    assert "needs a name" in batch.rejected[0].reason


def test_an_entry_nested_without_end_is_reported() -> None:
    """One server's broken schema does not keep the tools of the others out."""
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    schema = {"type": "object", "properties": {"a": {"enum": [deep]}}}
    batch = definitions_from_json([ADD, {"name": "deep", "parameters": schema}, SUB])
    assert [definition.name for definition in batch.definitions] == ["add", "sub"]
    assert "nested too deeply" in batch.rejected[0].reason


def test_bad_line_keeps_its_text() -> None:
    """A line that is not JSON is returned as text; the other lines are read."""
    batch = definitions_from_json('{"name": "add"}\n{"name": \n{"name": "sub"}')
    assert [definition.name for definition in batch.definitions] == ["add", "sub"]
    assert (batch.rejected[0].index, batch.rejected[0].entry) == (1, '{"name": ')
    assert "not JSON" in batch.rejected[0].reason


@pytest.mark.parametrize(
    "data", ['[{"name": "add"},\n {"name": }]', "hello", b"\xff\xfe{", "[" * 100_000]
)
def test_broken_document_is_one_problem(data) -> None:
    """One mistake in one document is reported once, not once a line."""
    batch = definitions_from_json(data)
    assert batch.definitions == ()
    assert len(batch.rejected) == 1
    assert "not JSON" in batch.rejected[0].reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "parameters", "properties", "type", "tools", "function", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON.filter(lambda entry: not isinstance(entry, list)), max_size=5))
def test_nothing_is_lost(entries) -> None:
    """Whatever a list holds, each entry that holds no further list is read or reported."""
    entries = [e for e in entries if not (isinstance(e, dict) and isinstance(e.get("tools"), list))]
    batch = definitions_from_json(entries)
    assert len(batch.definitions) + len(batch.rejected) == len(entries)
    again = definitions_from_json([definition.to_json() for definition in batch.definitions])
    assert again.definitions == batch.definitions
