"""Our stores pass the shipped suites, a store made from the page does, and wrong stores are caught."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.first_release import TABLES
from support.store_conformance import ServedStoreConformance
from support.store_killer import KilledWriterError, kill_writers
from support.store_race import race_faults, run_race

from agentkit import open_store
from agentkit.library import Replica
from agentkit.library.opening import file_of
from agentkit.testing import StoreConformance


class TestMemoryStore(StoreConformance):
    """A store of this process: it cannot be opened again, so those tests are skipped."""

    @pytest.fixture
    def store(self):
        store = open_store("memory:")
        yield store
        store.close()


class TestReplica(StoreConformance):
    """Over a store in memory; what another program commits comes a little later, by design."""

    @pytest.fixture
    def store(self):
        """A replica of an empty store that nobody looks at but who writes."""
        with Replica("memory:", refresh_seconds=3600) as replica:
            yield replica


class TestDirectoryStore(ServedStoreConformance):
    """A folder: everything applies."""

    @pytest.fixture
    def store_url(self, tmp_path):
        return f"dir:{tmp_path / 'library'}"

    @pytest.fixture
    def newer_store_url(self, tmp_path):
        folder = tmp_path / "newer"
        folder.mkdir()
        (folder / "log.jsonl").write_text(json.dumps({"format": 99, "news": []}) + "\n")
        return f"dir:{folder}"

    @pytest.fixture
    def raw_contents(self):
        def read(url: str) -> object:
            folder = Path(url.removeprefix("dir:"))
            return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

        return read

    @pytest.fixture
    def edit_definitions(self):
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            folder = Path(url.removeprefix("dir:"))
            log = folder / "log.jsonl"
            lines = log.read_text().splitlines()
            for row in (row for line in lines for row in json.loads(line).get("upserts", ())):
                text = json.dumps(row["definition"], ensure_ascii=False)
                lines = [line.replace(text, edit(text)) for line in lines]
            log.write_text("\n".join([*lines, ""]))

        return edit_all


OLDEST_SHAPE = (
    TABLES
    + """INSERT INTO definitions VALUES (
    'DIGEST', 'ping',
    '{"format":1,"name":"ping","signature":{"parameters":{"type":"object","properties":{}}}}'
);
INSERT INTO versions VALUES (1, 'first', 'Ada', 'import', '["e1"]', '2026-03-02T10:00:00+00:00');
INSERT INTO revisions VALUES (1, 'ping', 'DIGEST', '{"kind":"function"}', 1, 0);
"""
)
"""What the first release made, frozen."""

PING = "22bbda25fb5f9a911dc33e59955a7724fe19e8fb89049681a86549142a6314a6"


class TestSQLiteStore(ServedStoreConformance):
    """A file store: everything applies."""

    @pytest.fixture
    def store_url(self, tmp_path):
        return f"sqlite:///{tmp_path / 'store.db'}"

    @pytest.fixture
    def oldest_store_url(self, tmp_path):
        path = tmp_path / "oldest.db"
        with closing(sqlite3.connect(path)) as raw:
            raw.executescript(OLDEST_SHAPE.replace("DIGEST", PING))
        return f"sqlite:///{path}"

    @pytest.fixture
    def newer_store_url(self, tmp_path):
        path = tmp_path / "newer.db"
        open_store(path).close()
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute(
                "INSERT INTO _sqlite_migrations (migration_set, name) VALUES ('agentkit', 'm9999_new')"
            )
        return f"sqlite:///{path}"

    @pytest.fixture
    def raw_contents(self):
        def read(url: str) -> object:
            path = file_of(url)
            return {one.name: one.read_bytes() for one in path.parent.iterdir()}

        return read

    @pytest.fixture
    def edit_definitions(self):
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            with closing(sqlite3.connect(file_of(url))) as raw, raw:
                raw.create_function("edit", 1, edit)
                raw.execute("UPDATE definitions SET body = edit(body)")

        return edit_all


pytestmark = pytest.mark.long  # starts a pytest of its own for each

FILES = {"folder_store.py", "pyproject.toml", "tests/conftest.py", "tests/test_folder_store.py"}


def files_of(page: str) -> dict[str, str]:
    """The blocks of a page that begin with the name of a file, by that name."""
    blocks = re.findall(
        r"^```\w+(?: \{no-run\})?\n# (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    return dict(blocks)


@pytest.fixture
def distribution(project_root, tmp_path):
    """The page's files in a folder, with the metadata that installing them makes."""
    page = (project_root / "docs" / "write-a-store.md").read_text(encoding="utf-8")
    files = files_of(page)
    assert set(files) == FILES
    folder = tmp_path / "agentkit-folder"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    metadata = folder / f"agentkit_folder-{project['version']}.dist-info"
    metadata.mkdir()
    about = {"Metadata-Version": "2.1", "Name": project["name"], "Version": project["version"]}
    (metadata / "METADATA").write_text("".join(f"{k}: {v}\n" for k, v in about.items()))
    points = project["entry-points"]["agentkit.stores"]
    lines = ["[agentkit.stores]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.mark.timeout(600)
def test_its_tests_pass(distribution):
    """The suite runs with one fixture and all of it passes, but what the store does not have."""
    search_path = [str(distribution), os.environ.get("PYTHONPATH", "")]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-rs", "-p", "no:cacheprovider", "tests"],
        cwd=distribution,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search_path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    skipped = set(re.findall(r"^SKIPPED \[\d+\] \S+ (.*)$", ran.stdout, re.MULTILINE))
    assert skipped == {
        "nobody edits this store behind its back (fixture edit_definitions)",
        "this store has no check()",
        "this store has no older shape (fixture oldest_store_url)",
        "no store of a newer release was made (fixture newer_store_url)",
    }


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
