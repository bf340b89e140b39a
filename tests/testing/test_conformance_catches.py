"""The shipped suite, and the programs that race and kill, find stores that are wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.store_killer import KilledWriterError, kill_writers
from support.store_race import race_faults, run_race

from agentkit import open_store

pytestmark = pytest.mark.long  # starts a pytest of its own for each

MODULE = '''
"""Stores with one fault each, over SQLite."""

import time
from dataclasses import replace
from threading import Timer

from agentkit.library import EpisodeFilter
from agentkit.library.sqlite import SQLiteStore


class Good(SQLiteStore):
    def __init__(self, url):
        super().__init__(url.partition(":")[2])


class Torn(Good):
    """Writes definitions first and their events in a second step."""

    def commit(self, change, *, expected_version):
        made = super().commit(replace(change, events=()), expected_version=expected_version) if (
            change.makes_version) else expected_version
        time.sleep(0.002)
        if change.events:
            super().commit(replace(change, upserts=(), removals=()), expected_version=made)
        return made


class Forgetful(Good):
    """Answers before it has written."""

    writing = None

    def commit(self, change, *, expected_version):
        if self.writing is not None:
            self.writing.join()
        self.writing = Timer(0.005, self._write, [change, expected_version])
        self.writing.start()
        return expected_version + change.makes_version

    def _write(self, change, version):
        super().commit(change, expected_version=version)


class Twice(Good):
    """Does not know a proposal again."""

    count = 0

    def commit(self, change, *, expected_version):
        if change.makes_version:
            Twice.count += 1
            change = replace(change, proposal_id=f"{change.proposal_id} {time.time_ns()}")
        return super().commit(change, expected_version=self.load().version)


class Composing(Good):
    """Takes two forms of one letter for the same name."""

    def commit(self, change, *, expected_version):
        from unicodedata import normalize

        tools = tuple(replace(one, name=normalize("NFC", one.name)) for one in change.upserts)
        return super().commit(replace(change, upserts=tools), expected_version=expected_version)


class Timed(Good):
    """Notes its own time whatever a change says."""

    def commit(self, change, *, expected_version):
        plain = change if not change.created_at else replace(change, created_at="")
        return super().commit(plain, expected_version=expected_version)


class Greedy(Good):
    """Lets the newest episodes go."""

    def prune(self, retention):
        gone = len(list(self.select())) - (retention.max_count or 0)
        keep = list(self.select(EpisodeFilter(oldest_first=True)))[: retention.max_count]
        volume = super().prune(replace(retention, max_count=0))
        self.append_many(keep)
        return replace(volume, count=max(gone, 0))
'''

TESTS = """
import pytest
from agentkit.testing import StoreConformance


class TestWrong(StoreConformance):
    @pytest.fixture
    def store_url(self, tmp_path):
        return f"wrong:{tmp_path / 'store'}"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs one of the stores above for the scheme ``wrong``, for this process and others."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "wrong_stores.py").write_text(MODULE)
    (folder / "test_wrong.py").write_text(TESTS)
    search_path = [str(folder), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, search_path)))
    monkeypatch.syspath_prepend(folder)

    def install(name: str) -> str:
        metadata = folder / "wrong-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(
            f"[agentkit.stores]\nwrong = wrong_stores:{name}\n"
        )
        return f"wrong:{tmp_path / 'store'}"

    return install


def failed_tests(folder: Path, chosen: str) -> set[str]:
    """Which of the chosen tests of the suite fail for the installed store."""
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-k", chosen]
    ran = subprocess.run(
        [*command, "test_wrong.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line.startswith("FAILED ")]
    return {
        line.partition("::TestWrong::")[2].partition("[")[0].partition(" ")[0] for line in lines
    }


def test_the_good_one_is_let_through(install):
    """The store over which the wrong ones stand survives races and kills."""
    url = install("Good")
    assert kill_writers(url, 3).in_commit == 3


@pytest.mark.parametrize("name", ["Torn", "Forgetful"])
def test_killing_finds(install, name):
    """A store that writes in two steps, or answers too early, is found by killing its writers."""
    with pytest.raises(KilledWriterError, match=r"are kept|of versions|tools that say|events, "):
        kill_writers(install(name), 30)


def test_racing_finds_what_is_made_twice(install):
    """A store that does not know proposals again has versions that nobody offered, and it shows."""
    url = install("Twice")
    report = run_race(url, writers=2, each=5, is_shared=True)
    with closing(open_store(url)) as store:
        assert race_faults(store, report.proposals)


@pytest.mark.parametrize(
    ("name", "chosen", "failed"),
    [
        ("Composing", "alike", "test_names_that_look_alike_are_different_tools"),
        ("Timed", "copied_change", "test_the_time_of_a_copied_change_is_kept"),
        ("Greedy", "by_count", "test_retention_by_count_takes_the_oldest"),
        ("Twice", "exactly_once", "test_a_proposal_is_applied_exactly_once"),
        ("Good", "alike or copied_change or by_count or exactly_once", None),
    ],
)
def test_the_suite_finds(install, tmp_path, name, chosen, failed):
    """Each fault fails the test that is about it; without one they pass."""
    install(name)
    assert failed_tests(tmp_path / "site", chosen) == ({failed} if failed else set())
