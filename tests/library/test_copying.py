"""A copy of a store tells the same, and is ended by another when it was interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest
from support.histories import BareStore, HistoryStep, all_told, write_history

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.library.checking import check_store
from agentkit.library.copying import Amount, compare_stores, copy_store

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


@pytest.mark.parametrize("cut", [1, 2, 5, 8, 11])
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
    """What is written to a source behind the copy stays for the next time, and is told."""

    class Busy(BareStore):
        """Gets a version, an event and an episode when its episodes are about to be copied."""

        def __init__(self, store):
            super().__init__(store)
            self.asked = 0
            self.select = self._select

        def _select(self, matching):
            found = store_select(matching)
            self.asked += 1
            if self.asked == 2:
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


KILLS = int(os.environ.get("AGENTKIT_FAULT_RUNS", "3"))
LONGEST_PAUSE = 0.15
"""Seconds from the first thing that is copied to the kill; a whole copy takes about a second."""

COPY = "import sys; from agentkit.cli.main import main; main(sys.argv[1:])"

KILLED_STEPS = [
    HistoryStep(
        wishes={f"t{number % 9}": (f"text {number}", "x" * 500), f"u{number % 5}": None},
        events=number % 3,
        episodes=number % 4,
        reason="why " * 50,
    )
    for number in range(120)
]


@pytest.fixture
def long_source(tmp_path):
    """The URL of a store with a history."""
    url = f"sqlite:///{tmp_path / 'source.db'}"
    with closing(open_store(url)) as store:
        write_history(store, KILLED_STEPS)
    return url


def start(long_source, target):
    """Begin to copy, in a process of its own."""
    command = [sys.executable, "-c", COPY, "store", "copy", long_source, target, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def held(folder):
    """How many bytes the target takes, whoever writes to it."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a temporary one
            total += file.stat().st_size
    return total


def kill_in_the_middle(process, folder, pause):
    """Kill a copy a moment after it wrote something; whether it was still at work."""
    before = held(folder)
    while process.poll() is None and held(folder) == before:
        time.sleep(0.002)
    time.sleep(pause)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize("kind", ["sqlite:///{}/copy.db", "dir:{}/copy"])
def test_a_killed_copy_is_ended_by_the_next(long_source, tmp_path, kind):
    """After several kills in the middle, one more run gives what an undisturbed copy gives."""
    folder, draw, killed = tmp_path / "target", random.Random(7), 0
    folder.mkdir()
    target = kind.format(folder)
    while killed < KILLS:
        killed += kill_in_the_middle(
            start(long_source, target), folder, draw.random() * LONGEST_PAUSE
        )
        with closing(open_store(long_source)) as ours, closing(open_store(target)) as theirs:
            found = compare_stores(ours, theirs)
        assert all(one.ended == "second" for one in found.differences)  # a beginning of it
        if found.is_equal and killed < KILLS:  # the rest of the kills need something to do
            shutil.rmtree(folder)
            folder.mkdir()
    process = start(long_source, target)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(output)["compared"]["is_equal"]
    with closing(open_store(long_source)) as ours, closing(open_store(target)) as theirs:
        assert all_told(theirs) == all_told(ours)
        assert check_store(theirs).is_sound
