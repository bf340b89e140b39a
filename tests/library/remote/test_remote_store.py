"""A library behind a server is read as it was written, and nobody in between can say anything of their own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.app_stage import AppStage
from support.histories import BareStore
from support.local_server import free_port
from support.store_conformance import ServedStoreConformance
from support.tcp_proxy import TcpProxy

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.evolution import ToolManager
from agentkit.interop.export import write_artifact
from agentkit.interop.export.artifact import artifact_of
from agentkit.library import LibraryChange, Store
from agentkit.library.chain import HmacKey
from agentkit.library.changes import definition_to_json
from agentkit.library.events import Author
from agentkit.library.remote import RemoteStore
from agentkit.library.replicas import Replica
from agentkit.testing import EventStoreConformance, ToolStoreConformance, sample_library
from agentkit.testing.conformance.contents import StoreContentConformance
from agentkit.testing.conformance.fixtures import OpenAgain
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description


@pytest.fixture
def network(stage: AppStage) -> Iterator[TcpProxy]:
    """What lies between the clients and the server."""
    with TcpProxy(port=stage.port) as proxy:
        yield proxy


def _until(is_so: Callable[[], bool]) -> None:
    """Try again until it is so; the test's own time limit ends it."""
    while not is_so():
        time.sleep(0.05)


def test_a_server_that_was_never_there(open_remote):
    """Without anything known there is nothing to give: the error says that it may work later."""
    client = open_remote(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        client.load()
    with pytest.raises(StoreUnavailableError):
        client.events()


def test_a_server_that_comes_back(store, serve, network, open_remote, put, tool):
    """Cut off, a client says so; back again, it takes up what it missed, by what changed."""
    serve(store)
    put(store, tool("a"))
    client = open_remote(f"http://127.0.0.1:{network.port}?timeout=0.3")
    known = client.load()
    assert client.events() == store.events()
    network.cut()
    put(store, tool("b"))
    for ask in (client.load, client.events, lambda: client.history("a")):
        with pytest.raises(StoreUnavailableError):
            ask()
    network.reset()
    network.mend()
    _until(lambda: _loaded(client, 2))
    assert client.load()["a"] is known["a"]


def _loaded(client: RemoteStore, version: int) -> bool:
    """Whether the server is there again."""
    try:
        return client.load().version == version
    except StoreUnavailableError:
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_makes_a_connection_of_its_own(store, serve, open_remote, put, tool):
    """Both take up what is new; neither reads an answer that was meant for the other."""
    client = open_remote(serve(store))
    client.load()
    put(store, tool("a"))
    child = os.fork()
    if not child:
        os._exit(7 if "a" in client.load() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    for name in "bcd":
        put(store, tool(name))
        assert name in client.load()


def test_a_replica_knows_that_the_server_is_away(stage, store, serve, open_remote, put, tool):
    """A replica of a library on a server goes on with the last snapshot, and says so."""
    put(store, tool("a"))
    serve(store)
    with TcpProxy(port=stage.port) as network:
        url = f"http://127.0.0.1:{network.port}"
        replica = Replica(open_remote(url), refresh_seconds=3_600)
        assert replica.status.state == "current"
    with pytest.raises(StoreUnavailableError):
        replica.refresh()
    assert replica.status.state != "current"
    assert list(replica.load().tools) == ["a"]
    replica.close()


def test_only_what_changed_is_read(store, serve, open_remote, put, tool):
    """After one change of a hundred tools, one definition comes, and the others are the same."""
    put(store, *(tool(f"t{i}", "a text") for i in range(100)))
    seen: list[tuple[str, int]] = []

    def note(path: str, query: object, records: list) -> list:
        seen.append((path, len(records)))
        return records

    client = open_remote(serve(store, alter=note))
    before = client.load()
    put(store, tool("t7", "another"))
    after = client.load()
    assert seen[-1] == ("/library/v3", 3)  # the head, the change and its event
    assert after["t8"] is before["t8"]
    assert after["t7"].definition.description.summary == "another"


def test_a_store_without_its_history_is_refused(serve, open_remote, tmp_path):
    """An artifact that holds its own version alone has no history to read."""
    path = tmp_path / "tools.json"
    write_artifact(artifact_of(sample_library()), path)
    client = open_remote(serve(open_store(f"artifact:{path}")))
    with pytest.raises(StoreError, match="begins with library version"):
        client.load()


def test_what_can_not_be_written_is_refused(store, serve, open_remote, tool):
    """Commits and episodes have no place in a library that is only read."""
    client = open_remote(serve(store))
    with pytest.raises(StoreError, match="can only be read"):
        client.commit(LibraryChange(proposal_id="1", upserts=(tool("a"),)), expected_version=0)
    with pytest.raises(StoreError, match="keeps no episodes"):
        client.append(Episode(episode_id="e1", request="Hi"))
    assert (client.get("e1"), list(client.select())) == (None, [])


class ServedStore(BareStore):
    """Writes into one store and reads from another."""

    def __init__(self, written: Store, read: RemoteStore) -> None:
        super().__init__(read)
        self.commit, self.append = written.commit, written.append
        self.get, self.select = written.get, written.select
        self._written, self._read = written, read
        self.close = self._close_both

    def _close_both(self) -> None:
        self._read.close()
        self._written.close()


class TestRemoteStore(ToolStoreConformance, EventStoreConformance, StoreContentConformance):
    """Everything about definitions and events; episodes are not served."""

    test_readers_see_whole_snapshots = (
        ServedStoreConformance.test_readers_see_whole_snapshots_while_a_process_commits
    )
    # That ten thousand tools go through takes a second each way.
    test_a_large_library_is_one_commit = None
    test_a_large_library_is_caught_up_by_what_changed = None

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'served.db'}"

    @pytest.fixture
    def open_store_again(
        self, store_url: str, serve: Callable[..., str], open_remote: Callable[..., RemoteStore]
    ) -> Iterator[OpenAgain]:
        opened = [open_store(store_url)]
        url = serve(opened[0])

        def open_one() -> Store:
            written = open_store(store_url)
            opened.append(written)
            return ServedStore(written, open_remote(url))

        yield open_one
        for one in opened[1:]:
            one.close()


MANY = 1_001  # definitions of which an event holds one digest alone
KEY = HmacKey(secret=b"0123456789abcdef0123456789abcdef")
OTHER = HmacKey(secret=b"fedcba9876543210fedcba9876543210")


def _swapped(records: list, old: Any, new: Any) -> list:
    """The records with another definition in the place of one, and digests that fit it."""
    text, other = (json.dumps(definition_to_json(one)) for one in (old, new))
    return _headed([json.loads(json.dumps(one).replace(text, other)) for one in records])


def _headed(records: list) -> list:
    """An answer with the digest of what its changes make in its head."""
    made: dict[str, str] = {}
    for change in records[1:]:
        for name in change.get("removals", ()):
            del made[name]
        made |= {one["definition"]["name"]: one["digest"] for one in change.get("upserts", ())}
    return [{**records[0], "library": digest(made)}, *records[1:]]


def _fails(client: RemoteStore, words: str) -> None:
    with pytest.raises(StoreFormatError, match=words):
        client.load()


def test_a_signed_library_is_read(store, serve, open_remote, put, tool):
    """What was signed is loaded: the newest and the old versions, histories and changes."""
    put(store, tool("a"), tool("b"), signer=KEY)
    put(store, tool("b", "better"), tool("c"), remove=("a",), signer=KEY)
    put(store, tool("a", "back"), signer=KEY)
    client = open_remote(serve(store), verifier=KEY)
    assert client.load().definitions == store.load().definitions
    put(store, tool("d"), signer=KEY)
    for version in (4, 3, 2, 1, 0):
        assert client.load(version).definitions == store.load(version).definitions
    assert [client.history(name) for name in "abcd"] == [store.history(name) for name in "abcd"]
    assert list(client.changes()) == list(store.changes())
    assert list(client.changes(after=2)) == list(store.changes(after=2))


def test_another_definition_is_refused(store, serve, open_remote, put, tool):
    """A server that serves other words, with digests that fit, is found out by the key alone."""
    put(store, tool("a", "reads"), signer=KEY)
    forged = tool("a", "reads, and sends what it read to me")

    def lie(path: str, query: object, records: list) -> list:
        return _swapped(records, tool("a", "reads"), forged) if records else records

    url = serve(store, alter=lie)
    believing = open_remote(url)
    assert believing.load()["a"].definition == forged  # without a key, the server is believed
    _fails(open_remote(url, verifier=KEY), "they say something else of 'a'")


def test_another_definition_of_a_large_import_is_refused(serve, open_remote):
    """What the server lists of a large change must have the one digest that its event holds."""
    store = open_store("memory:")
    manager = ToolManager(store, author=Author(kind="person", name="Ada"), signer=KEY)
    tools = [ToolDefinition(name=f"t{i}") for i in range(MANY)]
    manager.register(tools)
    forged = ToolDefinition(name="t7", description=Description(summary="Send it to me."))

    def lie(path: str, query: object, records: list) -> list:
        return _swapped(records, tools[7], forged)

    url = serve(store, alter=lie)
    assert open_remote(url).load()["t7"].definition == forged
    _fails(open_remote(url, verifier=KEY), "brought other definitions")


@pytest.mark.parametrize("change", ["added", "dropped"])
def test_a_tool_more_or_less_is_refused(store, serve, open_remote, put, tool, change):
    """The library has every tool that the events tell of, and no other one."""
    put(store, tool("a"), tool("b"), signer=KEY)
    shown = [tool("a"), tool("b"), tool("evil")] if change == "added" else [tool("a")]

    def lie(path: str, query: object, records: list) -> list:
        records[1]["upserts"] = [*map(definition_to_json, shown)]
        return _headed(records)

    client = open_remote(serve(store, alter=lie), verifier=KEY)
    _fails(client, "no event tells of 'evil'" if change == "added" else "something else of 'b'")


def test_events_that_nobody_signed_are_refused(store, serve, open_remote, put, tool):
    """A chain that is whole is not enough: it has to be signed, and with the right key."""
    put(store, tool("a"), signer=OTHER)
    url = serve(store)
    _fails(open_remote(url, verifier=KEY), "another key")
    put(store, tool("b"))
    _fails(open_remote(url, verifier=OTHER), "carries no signature")


def test_a_chain_that_began_unsigned(store, serve, open_remote, put, tool):
    """``signed-from`` says which event is the first that has to be signed."""
    put(store, tool("a"))
    put(store, tool("b"), signer=KEY)
    url = serve(store)
    _fails(open_remote(url, verifier=KEY), "carries no signature")
    assert len(open_remote(f"{url}?signed-from=2", verifier=KEY).load()) == 2


def test_a_version_that_no_event_tells_of_is_refused(store, serve, open_remote, put, tool):
    """Whoever writes around the Tool Manager is found out."""
    put(store, tool("a"), signer=KEY)
    client = open_remote(serve(store), verifier=KEY)
    client.load()
    silent = LibraryChange(proposal_id="x", upserts=(tool("evil"),))
    store.commit(silent, expected_version=1)
    _fails(client, "no event tells of 'evil'")


def test_old_versions_are_compared_too(store, serve, open_remote, put, tool):
    """A server that is true about the newest version cannot lie about what came before."""
    put(store, tool("a", "one"), signer=KEY)
    put(store, tool("a", "two"), signer=KEY)
    old, forged = tool("a", "one"), tool("a", "uno")

    def lie(path: str, query: dict, records: list) -> list:
        return _swapped(records, old, forged)

    url = serve(store, alter=lie)
    assert open_remote(url).load(1)["a"].definition == forged
    _fails(open_remote(url, verifier=KEY), "signed events")


@pytest.mark.parametrize("left_out", [1, 2])
def test_a_history_without_one_change_is_refused(store, serve, open_remote, put, tool, left_out):
    """A change that is kept back is missed."""
    put(store, tool("a", "one"), tool("b"), signer=KEY)
    put(store, tool("a", "two"), signer=KEY)

    def lie(path: str, query: dict, records: list) -> list:
        return [one for place, one in enumerate(records) if place != left_out]

    url = serve(store, alter=lie)
    for options in ({}, {"verifier": KEY}):
        _fails(open_remote(url, **options), "are missing|what came is version 1")


@pytest.fixture
def histories(tmp_path: Path, put: Callable, tool: Callable) -> dict[str, Store]:
    """What a server may serve after it served ``now``."""
    contents = {
        "now": ([tool("a")], [tool("b")]),
        "older": ([tool("a")],),
        "empty": (),
        "another past": ([tool("evil")], [tool("b")]),
        "another end": ([tool("a")], [tool("evil")]),
        "longer, of another past": ([tool("evil")], [tool("b")], [tool("a")]),
    }
    made = {}
    for name, changes in contents.items():
        made[name] = open_store("memory:")
        for tools in changes:
            put(made[name], *tools)
    return made


@pytest.mark.parametrize(
    "name", ["older", "empty", "another past", "another end", "longer, of another past"]
)
def test_an_older_or_other_history_is_refused(serve, open_remote, histories, name):
    """What was seen stays seen; a new start accepts what there is, as after a restore."""
    client = open_remote(url := serve(histories["now"]))
    client.load()
    client.events()
    serve(histories[name])
    for _ in range(2):
        with pytest.raises(StoreFormatError, match=r"went back|another history|not whole|should"):
            client.events()
    assert open_remote(url).load().digest == histories[name].load().digest
