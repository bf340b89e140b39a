"""Disks that are full, read-only, or hold half of what was written."""

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
from agentkit.errors import AgentKitError, StoreError
from agentkit.library import LibraryChange
from agentkit.library.chain import verify_chain, verify_library
from agentkit.testing.conformance.writer import batch, commit_many, with_event
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
            asked = with_event(change(version), last, version=version + 1)
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


DAMAGES = {
    "empty": lambda content: content[:0],
    "half": lambda content: content[: len(content) // 2],
    "without its last byte": lambda content: content[:-1],
    "with a tail": lambda content: content + b"\x00" * 100,
    "zeroes in the middle": lambda content: _with(content, b"\x00" * 64),
    "noise in the middle": lambda content: _with(content, bytes(range(128, 192))),
}


def _with(content, noise):
    middle = len(content) // 2
    return content[:middle] + noise + content[middle + len(noise) :]


@pytest.fixture
def filled(url_in, tmp_path):
    """A closed store of three versions, and what they are."""
    folder = tmp_path / "whole"
    folder.mkdir()
    with closing(open_store(url_in(folder))) as store:
        commit_many(store, "p", 3)
        digests = [store.load(version).digest for version in (1, 2, 3)]
    return folder, digests


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_or_does_no_harm(url_in, filled, tmp_path, damage):
    """Whichever file is damaged: old versions are as they were, or somebody says what is wrong."""
    folder, digests = filled
    silent = []
    for place, path in enumerate(sorted(one for one in folder.rglob("*") if one.is_file())):
        copy = tmp_path / str(place)
        shutil.copytree(folder, copy)
        broken = copy / path.relative_to(folder)
        broken.write_bytes(DAMAGES[damage](path.read_bytes()))
        try:
            found = read(url_in(copy))
        except AgentKitError:
            continue
        if found != digests:
            silent.append(str(path.relative_to(folder)))
    assert silent == []


def read(url):
    """The digests of the first three versions; raises what is wrong with them."""
    with closing(open_store(url)) as store:
        events = store.events()
        faults = [*verify_chain(events), *verify_library(store, events), *store.check()]
        if faults:
            raise AgentKitError(f"{faults[0]}")
        return [store.load(version).digest for version in (1, 2, 3)]


def contents(folder):
    """The bytes of all files."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_and_commit(url, library):
    """Open a store, see that it holds the library, and commit to it."""
    with closing(open_store(url)) as store:
        assert store.load().definitions == library.definitions
        store.commit(batch("q", 0), expected_version=3)


def test_a_read_only_disk_is_named(url_in, small_disk):
    """A store there is opened to be read, or refused with the reason; a commit is refused."""
    url = url_in(small_disk.folder)
    with closing(open_store(url)) as store:
        commit_many(store, "p", 3)
        library = store.load()
    before = contents(small_disk.folder)
    small_disk.make_read_only()
    with pytest.raises(StoreError, match=r"read-only|Read-only|may not write|right to write"):
        read_and_commit(url, library)
    assert contents(small_disk.folder) == before
    small_disk.make_writable()
    with closing(open_store(url)) as store:
        assert store.load().digest == library.digest
        assert store.commit(batch("q", 0), expected_version=3) == 4
