"""Reading tools with SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.testing import sample_library
from agentkit.tools.definition import Description
from agentkit_postgres import PostgresStore

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]


def tool(name: str, summary: str = "") -> ToolDefinition:
    """A tool with a few words."""
    return ToolDefinition(name=name, description=Description(summary=summary))


@pytest.fixture
def store(store_url: str) -> Iterator[PostgresStore]:
    """The sample tools."""
    with closing(PostgresStore(store_url)) as store:
        change = LibraryChange(proposal_id="all", upserts=sample_library().definitions)
        store.commit(change, expected_version=0)
        yield store


@pytest.mark.parametrize(
    "summary", [" ".join(f"word{n}" for n in range(200_000)), "x" * 2_000_000, "\0 odd \u2400"]
)
def test_texts_that_no_index_takes_are_kept(store: PostgresStore, summary: str) -> None:
    """A text that is too long for the index, or has a NUL in it, is kept whole all the same."""
    odd = tool("odd\0name", summary)
    store.commit(LibraryChange(proposal_id="2", upserts=(odd,)), expected_version=1)
    assert store.load()["odd\0name"].definition == odd
    assert list(store.check()) == []


def test_the_view_shows_the_current_tools(store: PostgresStore, store_url: str, raw: Raw) -> None:
    """People can ask the view ``tools`` in SQL, down to each part of a definition."""
    store.commit(LibraryChange(proposal_id="2", removals=("bill_split",)), expected_version=1)
    rows = raw(store_url).execute(
        'SELECT tool_name FROM tools WHERE document @> \'{"description": {"tags": ["calendar"]}}\''
    )
    tagged = [t.name for t in store.load().definitions if "calendar" in t.description.tags]
    assert sorted(name for (name,) in rows) == sorted(tagged)
    (count,) = raw(store_url).execute("SELECT count(*) FROM tools").fetchone() or ()
    assert count == len(store.load())
