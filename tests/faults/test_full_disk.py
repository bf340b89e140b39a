"""A disk that fills up: what was acknowledged is kept, and the rest goes in once there is room."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import closing
from dataclasses import replace

import pytest
from support.local_server import ServerError
from support.store_race import Racer, race_faults

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange
from agentkit.library.chain_check import verify_chain
from agentkit.testing.conformance.writer import told
from agentkit.tools.definition import Description

pytestmark = pytest.mark.faults


def change(number: int) -> LibraryChange:
    """A change of 20 kB."""
    description = Description(summary=f"text {number} " + "x" * 20_000)
    tools = (ToolDefinition(name=f"tool_{number % 5}", description=description),)
    return LibraryChange(proposal_id=f"change-{number}", upserts=tools, author="writer")


def test_commits_stop_and_go_on(url_in, small_disk):
    """A commit that finds no room is refused whole; reading goes on, and there is room again."""
    ballast = small_disk.folder / "ballast"
    ballast.write_bytes(b"x" * 700_000)
    url, version, last = url_in(small_disk.folder), 0, None
    with closing(open_store(url)) as store:
        refused = None
        while refused is None:
            asked = told(change(version), last, version=version + 1)
            try:
                version = store.commit(asked, expected_version=version)
                last = asked.events[-1]
            except StoreError as error:
                refused = error
        assert any(word in str(refused) for word in ("full", "space"))
        assert version > 3
        assert store.load().version == version
        assert tuple(store.events())[-1] == last
        ballast.unlink()
        assert store.commit(asked, expected_version=version) == version + 1
    with closing(open_store(url)) as store:
        assert list(store.versions()) == list(range(1, version + 2))
        for number in (1, version, version + 1):
            wanted = change(number - 1).upserts[0]
            assert store.load(number)[wanted.name].definition == wanted
        assert len(store.events()) == version + 1
        assert verify_chain(store.events()) == ()
        assert store.commit(asked, expected_version=0) == version + 1


def test_episodes_stop_and_go_on(url_in, small_disk):
    """An episode that finds no room is refused whole, and kept once there is room."""
    ballast = small_disk.folder / "ballast"
    ballast.write_bytes(b"x" * 700_000)
    url, kept = url_in(small_disk.folder), 0
    sample = Episode(episode_id="", request="x" * 20_000)
    with closing(open_store(url)) as store:
        refused = None
        while refused is None:
            try:
                store.append(replace(sample, episode_id=f"e{kept}"))
                kept += 1
            except StoreError as error:
                refused = error
        assert any(word in str(refused) for word in ("full", "space"))
        assert kept > 3
        assert store.get(f"e{kept - 1}") is not None
        ballast.unlink()
        store.append(replace(sample, episode_id=f"e{kept}"))
    with closing(open_store(url)) as store:
        assert [one.episode_id for one in store.select()] == [f"e{n}" for n in range(kept, -1, -1)]


def test_a_server_whose_disk_is_full_loses_nothing(mount_disk, monkeypatch):
    """PostgreSQL on a full disk refuses commits, or ends; with room again it has all it told of."""
    testing = pytest.importorskip("support.postgres_server")
    disk = mount_disk(160)
    monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))  # where a server keeps its data
    try:
        made = testing.PostgresServer(options=("min_wal_size=32MB", "max_wal_size=48MB"))
    except ServerError as error:
        pytest.skip(str(error))
    with made as server, closing(open_store(server.url)) as store:
        racer = Racer(store, patience_seconds=30)
        racer.offer(0)
        ballast = disk.folder / "ballast"
        ballast.write_bytes(b"x" * shutil.disk_usage(disk.folder).free)
        kept = append_until_refused(store)
        ballast.unlink()
        if not server.is_running:
            server.start()
        for number in range(1, 20):
            racer.offer(number)
        assert race_faults(store, 20) == ()
        assert [one.episode_id for one in store.select()] == [f"e{n}" for n in range(kept)][::-1]


def append_until_refused(store):
    """Keep episodes of 100 kB until there is no room; how many were kept."""
    kept, text = 0, random.Random(0).randbytes(50_000).hex()  # which does not become smaller
    while True:
        try:
            store.append(Episode(episode_id=f"e{kept}", request=text))
        except StoreError:
            return kept
        kept += 1
