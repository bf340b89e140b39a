"""Searching tools in the database, and reading them with SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from agentkit import ToolDefinition
from agentkit.errors import UsageError
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


def found(store: PostgresStore, words: str) -> list[str]:
    """Names that a search gives."""
    return [one.name for one in store.search_tools(words)]


def test_words_find_tools(store: PostgresStore) -> None:
    """Any of the words in the name or the texts finds a tool; the best come first."""
    assert found(store, "split the bill")[0] == "bill_split"
    assert {name.partition("_")[0] for name in found(store, "weather forecasts")} >= {"weather"}
    assert found(store, "no such words as xyzzy") == []
    assert found(store, "") == found(store, "the ' & | ! \0 :*") == []


def test_names_are_cut_into_words(store: PostgresStore) -> None:
    """A word within a name finds it, however the name is written."""
    names = ("getQuokkaPrice", "get_quokka_price_v2", "get.quokka/price", "QUOKKAPrice")
    change = LibraryChange(proposal_id="more", upserts=tuple(map(tool, names)))
    store.commit(change, expected_version=1)
    assert sorted(found(store, "quokkas")) == sorted(names)


def test_only_current_tools_are_found(store: PostgresStore) -> None:
    """A text that was replaced and a tool that was removed are found no more."""
    edit = LibraryChange(proposal_id="2", upserts=(tool("new", "Plays the xylophone."),))
    store.commit(edit, expected_version=1)
    (one,) = store.search_tools("xylophones")
    assert (one.name, one.summary, one.version) == ("new", "Plays the xylophone.", 2)
    assert one.score > 0
    other = LibraryChange(proposal_id="3", upserts=(tool("new", "Plays the tuba."),))
    store.commit(other, expected_version=2)
    assert (found(store, "xylophone"), found(store, "tuba")) == ([], ["new"])
    store.commit(LibraryChange(proposal_id="4", removals=("new",)), expected_version=3)
    assert found(store, "tuba") == []


def test_a_limit_is_kept(store: PostgresStore) -> None:
    """At most so many are given; a negative limit is a mistake."""
    assert len(store.search_tools("calendar weather car money", limit=3)) == 3
    assert store.search_tools("calendar", limit=0) == ()
    assert len(store.search_tools("calendar", limit=2**70)) == 4
    with pytest.raises(UsageError, match="-1"):
        store.search_tools("calendar", limit=-1)


@pytest.mark.parametrize(
    "summary", [" ".join(f"word{n}" for n in range(200_000)), "x" * 2_000_000, "\0 odd \u2400"]
)
def test_texts_that_no_index_takes_are_kept(store: PostgresStore, summary: str) -> None:
    """A text that is too long for the index, or has a NUL in it, is kept whole all the same."""
    odd = tool("odd\0name", summary)
    store.commit(LibraryChange(proposal_id="2", upserts=(odd,)), expected_version=1)
    assert store.load()["odd\0name"].definition == odd
    assert found(store, "odd")[0] == "odd\0name"
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
