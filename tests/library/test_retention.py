"""Pruning lets the same episodes go in every store, and pages are read in proportion to their size."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Episode, open_store
from agentkit.episodes import Turn
from agentkit.library import EpisodeFilter
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import Retention
from agentkit.messages import AssistantMessage, ToolCall

NOW = datetime.now(UTC)


def episode(name: str, *, days: float = 0, text: str = "", started_at: str | None = None):
    """An episode that began so many days ago."""
    began = (NOW - timedelta(days=days)).isoformat() if started_at is None else started_at
    turn = Turn(message=AssistantMessage(tool_calls=(ToolCall(call_id="1", name="add"),)))
    return Episode(
        episode_id=name, request=text, turns=(turn,), started_at=began, session_id=name[0]
    )


def ids(store, **matching):
    """The episodes that are there, oldest first."""
    wanted = EpisodeFilter(oldest_first=True, **matching)
    return [one.episode_id for one in store.select(wanted)]


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """An empty store."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 's.db'}"
    with closing(open_store(url)) as opened:
        yield opened


AGES = st.lists(st.integers(0, 20), max_size=12)
BOUNDS = st.builds(
    Retention,
    max_age=st.none()
    | st.integers(0, 20).map(lambda days: timedelta(days=days, hours=-1) if days else timedelta()),
    max_bytes=st.none() | st.integers(0, 4000),
    max_count=st.none() | st.integers(0, 12),
)


@settings(max_examples=40)
@given(ages=AGES, bounds=st.lists(BOUNDS, max_size=3))
def test_memory_and_sqlite_agree(tmp_path_factory, ages, bounds):
    """Whatever the bounds, both let the same go, the rest holds them, and a second time none goes."""
    file = tmp_path_factory.mktemp("agree") / "s.db"
    with closing(open_store("memory:")) as one, closing(SQLiteStore(file)) as other:
        for store in (one, other):
            store.append_many([episode(f"e{i}", days=days) for i, days in enumerate(ages)])
        for bound in bounds:
            expected = one.prunable(bound)
            assert other.prunable(bound) == expected
            assert one.prune(bound) == other.prune(bound) == expected
            assert ids(one) == ids(other)
            left = one.volume()
            assert left == other.volume()
            assert bound.max_count is None or left.count <= bound.max_count
            assert bound.max_bytes is None or left.bytes <= bound.max_bytes
            assert other.prunable(bound).count == 0


def test_a_second_pruner_takes_no_more(tmp_path):
    """What one program deletes while another one does is not deleted twice over."""
    path = tmp_path / "s.db"
    other = SQLiteStore(path)
    met = []

    def meanwhile(sql: str, _: object) -> None:
        if sql.startswith("BEGIN") and armed and not met:
            met.append(other.prune(Retention(max_count=500)).count)

    armed = False
    with closing(other), closing(SQLiteStore(path, tracer=meanwhile)) as store:
        store.append_many([episode(f"e{i}", days=i) for i in range(1000)])
        armed = True
        assert store.prune(Retention(max_count=500)).count == 0
        assert (met, store.volume().count) == ([500], 500)


@pytest.mark.parametrize("oldest_first", [True, False])
@pytest.mark.parametrize("narrowed", [{}, {"session_id": "e"}, {"tool_name": "add"}])
def test_a_page_does_not_walk_over_those_before_it(tmp_path, narrowed, oldest_first):
    """Reading all takes steps in proportion to how many there are, whatever the order or filter."""
    pages = []
    with closing(SQLiteStore(tmp_path / "s.db")) as store:
        store.append_many([episode(f"e{i}") for i in range(4_000)])
        raw = store._connection.raw
        raw.set_progress_handler(lambda: pages.append(1) and 0, 1_000)
        matching = EpisodeFilter(oldest_first=oldest_first, **narrowed)
        assert sum(1 for _ in store.select(matching)) == 4_000
        raw.set_progress_handler(None, 0)
    assert len(pages) < 4_000 * 30 // 1_000  # instructions of SQLite's machine, in thousands
