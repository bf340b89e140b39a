"""Any sequence of commits, appends and prunings gives the same library and episodes in every store."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn
from agentkit.errors import AgentKitError, UsageError
from agentkit.library import EpisodeFilter, LibraryChange, Store, ToolRevision
from agentkit.library.chain import verify_chain
from agentkit.library.changes import rollback_change
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import Retention
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.tools.definition import Description, Example, Origin

NAMES = st.sampled_from(["a", "b", "c", "d", "é", ""])
SESSIONS = st.sampled_from([None, "", "s", "t"])
JSON_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
DEFINITIONS = st.builds(
    ToolDefinition,
    name=NAMES.filter(bool),
    description=st.builds(Description, summary=st.text(max_size=20)),
    examples=st.lists(
        st.builds(
            Example,
            arguments=st.dictionaries(st.text(max_size=5), JSON_DATA, max_size=2),
            result=JSON_DATA,
        ),
        max_size=1,
    ).map(tuple),
    origin=st.builds(Origin, reference=st.text(max_size=5)),
)
CHANGES = st.builds(
    LibraryChange,
    proposal_id=st.integers(0, 99).map(str) | st.text(max_size=2),
    upserts=(
        st.lists(DEFINITIONS, max_size=4, unique_by=lambda tool: tool.name)
        | st.lists(DEFINITIONS, max_size=2)
    ).map(tuple),
    removals=st.just(()) | st.just(()) | st.lists(NAMES, max_size=2).map(tuple),
    author=st.text(max_size=5),
    reason=st.text(max_size=5),
    evidence=st.lists(st.text(max_size=3), max_size=2).map(tuple),
)
WISHES = st.dictionaries(
    st.sampled_from("dcbaé"), st.none() | st.sampled_from(["x", "y"]), min_size=1, max_size=5
)
"""By tool name: the text that it shall have, or None to take it out."""

FILTERS = st.builds(
    EpisodeFilter,
    session_id=SESSIONS,
    tool_name=st.none() | NAMES,
    stop_reason=st.sampled_from([None, "finished", "error"]),
    limit=st.none() | st.integers(-1, 4),
    oldest_first=st.booleans(),
)


def timeless(history: object) -> list[ToolRevision]:
    """A history without the times, in which two stores differ."""
    return [replace(revision, created_at="") for revision in history]


class Stores(RuleBasedStateMachine):
    """Does the same to a memory store and a SQLite store, and compares every answer."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.memory: Store = MemoryStore()
        self.sqlite: Store = SQLiteStore(self.folder / "store.db")

    def teardown(self) -> None:
        self.sqlite.close()
        shutil.rmtree(self.folder)

    def both(self, ask) -> object:
        """What both stores answer or raise to a question, which must be the same."""
        answers = []
        for store in (self.memory, self.sqlite):
            try:
                answers.append(ask(store))
            except AgentKitError as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]
        return answers[0]

    @rule(wishes=WISHES)
    def commit(self, wishes: dict[str, str | None]) -> None:
        library = self.memory.load()
        change = LibraryChange(
            proposal_id=f"wish {library.version}",
            upserts=tuple(
                ToolDefinition(name=name, description=Description(summary=text or ""))
                for name, text in wishes.items()
                if text is not None or name not in library
            ),
            removals=tuple(n for n, text in wishes.items() if text is None and n in library),
        )
        version = self.both(lambda store: store.commit(change, expected_version=library.version))
        assert version == library.version + 1

    @rule(change=CHANGES, behind=st.sampled_from([0, 0, 0, 1, -1]))
    def commit_anything(self, change: LibraryChange, behind: int) -> None:
        expected = self.memory.load().version - behind
        self.both(lambda store: store.commit(change, expected_version=expected))

    @rule(
        reasons=st.lists(st.text(max_size=5), max_size=2),
        behind=st.sampled_from([0, 0, 0, 1]),
        tool=st.none() | DEFINITIONS,
        proposal_id=st.integers(0, 99).map(str),
    )
    def tell(self, reasons, behind, tool, proposal_id) -> None:
        held = self.memory.events()
        last = held[-1 - behind] if len(held) > behind else None
        author = Author(kind="person", name="Ada")
        drafts = [EventDraft(kind="assessed", author=author, reason=one) for one in reasons]
        events = chained(last, drafts, at="2026-11-21T10:00:00+00:00")
        change = LibraryChange(
            proposal_id=proposal_id, upserts=() if tool is None else (tool,), events=events
        )
        expected = self.memory.load().version
        self.both(lambda store: store.commit(change, expected_version=expected))

    @rule(name=NAMES, version=st.integers(0, 5), proposal_id=st.text(min_size=1, max_size=3))
    def roll_back(self, name: str, version: int, proposal_id: str) -> None:
        def ask(store: Store) -> int:
            change = rollback_change(store, name, to_version=version, proposal_id=proposal_id)
            return store.commit(change, expected_version=store.load().version)

        self.both(ask)

    @rule(
        episode_id=st.text(max_size=2),
        session_id=SESSIONS,
        tools=st.lists(NAMES, max_size=2),
        stop_reason=st.sampled_from(["finished", "error"]),
        output=JSON_DATA,
    )
    def append(self, episode_id, session_id, tools, stop_reason, output) -> None:
        calls = tuple(ToolCall(call_id="1", name=name) for name in tools)
        episode = Episode(
            episode_id=episode_id,
            request="?",
            turns=(Turn(message=AssistantMessage(tool_calls=calls)),),
            session_id=session_id,
            stop_reason=stop_reason,
            output=output,
        )
        self.both(lambda store: store.append(episode))

    @rule(matching=FILTERS)
    def select(self, matching: EpisodeFilter) -> None:
        self.both(lambda store: list(store.select(matching)))

    @rule(version=st.integers(-1, 6), reopen=st.booleans())
    def load_old(self, version: int, reopen: bool) -> None:  # noqa: FBT001 - a drawn value
        if reopen:
            self.sqlite.close()
            self.sqlite = SQLiteStore(self.folder / "store.db")
        self.both(lambda store: store.load(version).definitions)

    @invariant()
    def equal(self) -> None:
        self.both(lambda store: (store.load().version, store.load().definitions))
        self.both(lambda store: [tool.origin for tool in store.load().definitions])
        self.both(lambda store: list(store.versions()))
        self.both(lambda store: list(store.events()))
        assert verify_chain(self.sqlite.events()) == ()
        for name in "abcdé":
            self.both(lambda store, name=name: timeless(store.history(name)))


class TestParity(Stores.TestCase):
    """Memory and SQLite answer alike, down to the words of their errors."""

    settings = settings(
        max_examples=25,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


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


def test_age_counts_from_the_beginning(store):
    """What began too long ago goes, whenever it was kept; one without a time is as old as kept."""
    store.append_many(
        [
            episode("new", days=1),
            episode("old", days=31),
            episode("none", started_at=""),
            episode("odd", started_at="yesterday"),
            episode("zulu", started_at="2020-01-01T00:00:00Z"),
            episode("naive", started_at="2020-01-01T00:00:00"),
            episode("future", days=-3650),
        ]
    )
    assert store.prune(Retention(max_age=timedelta(days=30))).count == 3
    assert ids(store) == ["new", "none", "odd", "future"]


def test_age_beyond_the_calendar_keeps_all(store):
    """A bound of ten thousand years is none."""
    store.append(episode("a", days=9999))
    assert store.prune(Retention(max_age=timedelta.max)).count == 0


@pytest.mark.parametrize("bound", [{"max_bytes": -1}, {"max_count": -1}])
def test_a_negative_bound_is_refused(bound):
    """A bound below nothing is a mistake and says so."""
    with pytest.raises(UsageError, match="-1"):
        Retention(**bound)


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
