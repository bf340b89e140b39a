"""A disk that fills up: what was acknowledged is kept, and the rest goes in once there is room."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange
from agentkit.library.chain_faults import verify_chain
from agentkit.testing.store_writer import told
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
