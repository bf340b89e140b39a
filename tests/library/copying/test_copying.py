"""A copy holds all that the source holds; a target that holds something else is left alone."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.histories import BareStore, HistoryStep, all_told, write_history

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError, UsageError
from agentkit.interop.export import ArtifactStore, artifact_of
from agentkit.library import Author, LibraryChange
from agentkit.library.comparing import compare_stores
from agentkit.library.copying import Amount, copy_store
from agentkit.library.event_chain import EventDraft, chained

STEPS = [
    HistoryStep(wishes={"a": ("one", "here"), "b": ("", "")}, events=2, episodes=2, reason="x"),
    HistoryStep(events=3),
    HistoryStep(wishes={"a": ("one", "there")}),
    HistoryStep(wishes={"b": None}, events=1, episodes=1),
    HistoryStep(wishes={"b": ("back", "")}, episodes=1),
    HistoryStep(events=2),
]


@pytest.fixture
def source():
    """A store with a history."""
    store = open_store("memory:")
    write_history(store, STEPS)
    return store


@pytest.fixture(params=["memory", "sqlite"])
def target(request, tmp_path):
    """An empty store of each kind."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'target.db'}"
    with closing(open_store(url)) as store:
        yield store


def test_the_report_says_what_was_copied_and_compared(source, target):
    """Versions, events and episodes are counted, before, now and in the comparison."""
    report = copy_store(source, target)
    assert report.held == Amount()
    assert report.copied == Amount(versions=4, events=8, episodes=4)
    assert (report.compared.versions, report.compared.tools) == (4, 2)
    assert (report.compared.events, report.compared.episodes) == (8, 4)
    assert all_told(target) == all_told(source)


def test_episodes_may_stay_behind(source, target):
    """Without episodes only definitions and events are copied; a later copy may bring them."""
    report = copy_store(source, target, episodes=False)
    assert report.copied == Amount(versions=4, events=8)
    assert list(target.select()) == []
    assert copy_store(source, target).copied == Amount(episodes=4)


def test_an_empty_store_is_copied(target):
    """Of a store that holds nothing there is nothing to copy."""
    assert copy_store(open_store("memory:"), target).copied == Amount()


def test_events_alone_are_copied(target):
    """A chain without any library version comes along."""
    source = open_store("memory:")
    write_history(source, [HistoryStep(events=2)])
    assert copy_store(source, target).copied == Amount(events=2)
    assert all_told(target) == all_told(source)


def test_very_many_events_of_one_version_are_copied(target):
    """More events than go along with one change are copied too, in their order."""
    source = open_store("memory:")
    many = [HistoryStep(events=900), HistoryStep(wishes={"a": ("", "")}, events=1100)]
    write_history(source, [*many, HistoryStep(events=700), HistoryStep(wishes={"b": ("", "")})])
    assert copy_store(source, target).copied.events == 2700
    assert all_told(target) == all_told(source)


@pytest.mark.parametrize("told", [0, 1, 99])
def test_events_may_tell_of_any_version(target, told):
    """Events whose version is not that of their change, as others may write them, come along."""
    source, last = open_store("memory:"), None
    for number in range(4):
        draft = EventDraft(
            kind="written",
            author=Author(kind="program", name="another"),
            library_version=told if number % 2 else number,
        )
        events = chained(last, [draft], at="2026-11-21T10:00:00+00:00")
        upserts = (ToolDefinition(name=f"t{number}"),)
        change = LibraryChange(proposal_id=str(number), upserts=upserts, events=events)
        source.commit(change, expected_version=number)
        last = events[-1]
    copy_store(source, target)
    assert all_told(target) == all_told(source)
    assert copy_store(source, target).copied == Amount()


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ([HistoryStep(wishes={"a": ("other", "")})], "version 1"),
        ([*STEPS, HistoryStep(wishes={"a": ("more", "")})], "goes on.*version 5"),
        ([HistoryStep(events=1)], "event 1"),
        ([HistoryStep(episodes=1)], "episode 'step 0-0'"),
    ],
    ids=["another version", "a version more", "another event", "another episode"],
)
def test_another_history_is_left_alone(source, target, own, place):
    """A target that parts from the source is refused with the first difference, and untouched."""
    if len(own) > 1:
        copy_store(source, target)
        own = own[len(STEPS) :]
        write_history(target, own, name="own")
    else:
        write_history(target, own)
    before = all_told(target)
    with pytest.raises(StoreError, match=f"{place}.*Nothing was written"):
        copy_store(source, target)
    assert all_told(target) == before


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_interrupted_copy_is_ended_by_another(source, target, cut):
    """After a failure at any write, copying again gives what an undisturbed copy gives."""

    class Cut(BareStore):
        """Fails at one of its writes, as a lost connection does."""

        left = cut

        def _write(self, write, *arguments, **options):
            self.left -= 1
            if self.left == 0:
                raise StoreUnavailableError("the connection was lost")
            return write(*arguments, **options)

        def __init__(self, store):
            super().__init__(store)
            commit, append = self.commit, self.append
            self.commit = lambda *a, **o: self._write(commit, *a, **o)
            self.append = lambda *a, **o: self._write(append, *a, **o)

    cutting = Cut(target)
    try:
        copy_store(source, cutting)
    except StoreUnavailableError:
        copy_store(source, target)
    assert all_told(target) == all_told(source)


def test_what_comes_meanwhile_is_left_for_the_next_time(source, target):
    """A source that is written to is copied as it was at the start; the rest comes next time."""

    class Busy(BareStore):
        """Gets a version, an event and an episode whenever it is asked for its episodes."""

        def __init__(self, store):
            super().__init__(store)
            self.writes = 0
            self.select = self._select

        def _select(self, matching):
            found = store_select(matching)
            if matching.oldest_first and self.writes < 1:
                self.writes += 1
                more = [HistoryStep(wishes={"new": ("", "")}, events=1, episodes=1)]
                write_history(source, more, name="meanwhile")
            return found

    store_select = source.select
    before = len(source.versions())
    report = copy_store(Busy(source), target)
    assert report.is_behind
    assert len(target.versions()) == before
    assert not copy_store(source, target).is_behind
    assert all_told(target) == all_told(source)


def test_a_damaged_definition_is_not_copied(tmp_path, target):
    """A definition that is not the one of its digest is found before it is written."""
    path = tmp_path / "damaged.db"
    with closing(open_store(str(path))) as source:
        write_history(source, STEPS)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE definitions SET body = replace(body, 'back', 'evil')")
    with closing(open_store(str(path))) as source:
        with pytest.raises(StoreFormatError, match=r"'b' that was changed.*agentkit check"):
            copy_store(source, target)
        assert list(target.versions()) == [1, 2, 3]


def test_words_that_not_every_store_keeps_do_not_stop_a_copy(target):
    """Half a surrogate pair, which SQLite keeps as text, counts as the same."""
    source = open_store("memory:")
    change = LibraryChange(
        proposal_id="p\ud83d", upserts=(ToolDefinition(name="a"),), author="\ud83d", reason="\ud83d"
    )
    source.commit(change, expected_version=0)
    source.append(Episode(episode_id="e\ud83d", request="\ud83d"))
    assert copy_store(source, target).compared.is_equal
    assert copy_store(source, target).copied == Amount()


def test_an_artifact_is_a_source(source, target):
    """An artifact with its history is copied like a store that has no episodes."""
    artifact = ArtifactStore(artifact_of(source))
    report = copy_store(artifact, target)
    assert report.copied == Amount(versions=4, events=8)
    assert compare_stores(source, target, episodes=False).is_equal


def test_an_artifact_without_its_history_is_refused(source, target):
    """What does not begin with version 1 can not keep its numbers; the words say what to do."""
    artifact = ArtifactStore(artifact_of(source, history=False))
    with pytest.raises(UsageError, match="agentkit import"):
        copy_store(artifact, target)
    assert list(target.versions()) == []


def test_an_artifact_can_not_be_written_to(source):
    """A target that nobody can write to says so."""
    artifact = ArtifactStore(artifact_of(source))
    write_history(source, [HistoryStep(wishes={"more": ("", "")})], name="more")
    with pytest.raises(StoreError, match="can not be written"):
        copy_store(source, artifact, episodes=False)


def test_times_are_compared_as_moments(source, target):
    """The same moment in another time zone is no difference, and another moment is one."""
    first = next(iter(source.changes()))
    moved = replace(first.change, created_at="2026-11-21T12:00:00+02:00")
    source_again, other = open_store("memory:"), open_store("memory:")
    source_again.commit(moved, expected_version=0)
    other.commit(replace(moved, created_at="2026-11-21T10:00:00+00:00"), expected_version=0)
    assert compare_stores(source_again, other).is_equal
    target.commit(replace(moved, created_at="2026-11-21T10:00:01+00:00"), expected_version=0)
    (difference,) = compare_stores(source_again, target).differences
    assert "made at" in difference.message


def test_memory_does_not_grow_with_episodes(tmp_path):
    """Forty megabytes of episodes are copied with a few megabytes of memory."""
    url = f"sqlite:///{tmp_path / 'source.db'}"
    with closing(open_store(url)) as source, closing(open_store(str(tmp_path / "t.db"))) as target:
        for first in range(0, 2000, 100):
            some = [
                Episode(episode_id=f"e{number}", request="x" * 20_000)
                for number in range(first, first + 100)
            ]
            source.append_many(some)
        del some
        tracemalloc.start()
        try:
            assert copy_store(source, target).copied.episodes == 2000
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000


STEPS_TEST_CHANGES = st.lists(
    st.builds(
        HistoryStep,
        wishes=st.dictionaries(
            st.sampled_from("abcdeé"),
            st.none() | st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from(["", "here"])),
            max_size=6,
        ),
    ),
    max_size=8,
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """An empty store of each kind."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'store.db'}"
    store = open_store(url)
    yield store
    store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@given(steps=STEPS_TEST_CHANGES, after=st.integers(0, 3))
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_changes_make_the_same_library_again(tmp_path_factory, kind, steps, after):
    """Committed into an empty store, changes give the same tools, in order, at each version."""
    folder = tmp_path_factory.mktemp("store")
    source = open_store("memory:" if kind == "memory" else f"sqlite:///{folder / 'store.db'}")
    write_history(source, steps)
    changes = list(source.changes())
    again = open_store("memory:")
    for one in changes:
        assert again.commit(one.change, expected_version=one.version - 1) == one.version
    for version in (0, *source.versions()):
        ours, theirs = source.load(version), again.load(version)
        assert list(ours.tools) == list(theirs.tools)
        assert ours.definitions == theirs.definitions
        assert [tool.origin for tool in ours.definitions] == [
            tool.origin for tool in theirs.definitions
        ]
    for name in "abcdeé":
        assert list(source.history(name)) == list(again.history(name))
    if after <= len(changes):
        assert list(source.changes(after=after)) == changes[after:]
    source.close()


def test_many_versions_are_read_page_by_page(store):
    """More versions than are read at a time come back complete and in order."""
    for version in range(100):
        change = LibraryChange(
            proposal_id=str(version), upserts=(ToolDefinition(name=f"t{version % 7}"),)
        )
        store.commit(change, expected_version=version)
    assert [one.version for one in store.changes()] == list(range(1, 101))
    assert [one.change.proposal_id for one in store.changes(after=90)] == list(
        map(str, range(90, 100))
    )
    assert list(store.changes(after=100)) == []


def test_changes_carry_no_events(store):
    """What a change tells of itself is its own; events are read from the chain."""
    write_history(store, [HistoryStep(wishes={"a": ("", "")}, events=2)])
    (only,) = store.changes()
    assert only.change.events == ()
    assert len(store.events()) == 2
