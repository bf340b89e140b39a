"""What the README shows is so: its code runs, its line of rights is enough, its tables are whole."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.store import Retention
from agentkit_redis.address import _OPTIONS
from agentkit_redis.reading import FORMAT, Keys

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_its_code_runs(start_server, capsys):
    """The block prints what it shows, on a server of the settings that tests have."""
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    server = start_server()
    names: dict[str, object] = {}
    exec(block.replace("localhost:6379", f"127.0.0.1:{server.port}"), names)
    names["store"].close()
    expected = re.findall(r"^#> (.*)$", block, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == expected


def test_its_rights_are_enough_and_hold(start_server, raw, caplog):
    """A user with that line does everything, of its own prefix alone."""
    (line,) = re.findall(r"^ACL SETUSER .*$", README, re.MULTILINE)
    server = start_server()
    client, _ = raw(server.url)
    client.execute_command(*line.replace(">PASSWORD", ">word").split())
    url = server.url.replace("://", "://agentkit:word@")
    draft = EventDraft(kind="written", author=Author(kind="program", name="t"))
    change = LibraryChange(
        proposal_id="first",
        upserts=(ToolDefinition(name="ping"),),
        events=chained(None, [draft], at="2026-11-21T10:00:00+00:00"),
    )
    with closing(open_store(url)) as store:
        assert store.durability.level == "everysec"
        assert store.commit(change, expected_version=0) == 1
        assert store.commit(change, expected_version=0) == 1
        gone = LibraryChange(proposal_id="gone", removals=("ping",))
        assert store.commit(gone, expected_version=1) == 2
        assert (len(store.load(1)), len(store.load()), len(store.history("ping"))) == (1, 0, 2)
        assert (len(store.events()), len(list(store.changes()))) == (1, 2)
        store.append(Episode(episode_id="e", request="?", session_id="s"))
        for oldest_first in (True, False):
            found = EpisodeFilter(session_id="s", stop_reason="finished", oldest_first=oldest_first)
            assert len(list(store.select(found))) == 1
        assert len(list(store.select())) == 1
        assert store.get("e") is not None
        assert list(store.check()) == []
        assert store.prune(Retention(max_count=0)).count == 1
    with (
        closing(open_store(f"{url}?replicas=1&timeout=2")) as store,
        pytest.raises(StoreUnavailableError, match="0 of 1 replicas"),
    ):
        store.commit(change, expected_version=0)
    assert "WARNING" not in caplog.text
    assert "returns no free memory" not in caplog.text
    with pytest.raises(StoreError, match="does not let this user"):
        open_store(f"{url}?prefix=other")


def test_every_option_and_key_is_in_its_tables():
    """The tables name all options of the URL, all keys, and the format."""
    for name in (*_OPTIONS, *(key.partition(":")[2] for key in Keys.under("p").all)):
        assert f"`{name}`" in README
    assert f"`{FORMAT}`" in README
