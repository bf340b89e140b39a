"""Nobody between the writer and the reader, nor on the disk, can say anything of their own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from support.cost import fault_runs
from support.tcp_proxy import TcpProxy

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreFormatError, StoreUnavailableError
from agentkit.evolution import ToolManager
from agentkit.library import LibraryChange, Store
from agentkit.library.changes import definition_to_json
from agentkit.library.events import Author
from agentkit.library.remote import RemoteStore
from agentkit.library.remote.store import FILE_NAME
from agentkit.library.signing import HmacKey
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description

MANY = 1_001  # definitions of which an event holds one digest alone
KEY = HmacKey(secret=b"0123456789abcdef0123456789abcdef")
OTHER = HmacKey(secret=b"fedcba9876543210fedcba9876543210")


def _swapped(records: list, old: Any, new: Any) -> list:
    """The records with another definition in the place of one, and digests that fit it."""
    text, other = (json.dumps(definition_to_json(one)) for one in (old, new))
    found = [json.loads(json.dumps(one).replace(text, other)) for one in records]
    return _headed(found) if "library" in found[0] else found


def _headed(records: list) -> list:
    """A whole library with the digest of what it holds in its head."""
    found = {one["definition"]["name"]: one["digest"] for one in records[1:]}
    head = {**records[0], "library": {"digest": digest(found), "tools": len(found)}}
    return [head, *records[1:]]


def _fails(client: RemoteStore, words: str) -> None:
    with pytest.raises(StoreFormatError, match=words):
        client.load()


def test_a_signed_library_is_read(store, serve, open_remote, put, tool):
    """What was signed is loaded: the newest and the old versions, histories and changes."""
    put(store, tool("a"), tool("b"), signer=KEY)
    put(store, tool("b", "better"), tool("c"), remove=("a",), signer=KEY)
    put(store, tool("a", "back"), signer=KEY)
    client = open_remote(serve(store), verifier=KEY)
    assert client.is_verified
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
    believing = open_remote(f"{url}?cache=none")
    assert believing.load()["a"].definition == forged  # without a key, the server is believed
    _fails(open_remote(f"{url}?cache=none", verifier=KEY), "holds others than they say of 'a'")


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
    assert open_remote(f"{url}?cache=none").load()["t7"].definition == forged
    _fails(open_remote(f"{url}?cache=none", verifier=KEY), "what the server lists are others")


@pytest.mark.parametrize("change", ["added", "dropped"])
def test_a_tool_more_or_less_is_refused(store, serve, open_remote, put, tool, change):
    """The library has every tool that the events tell of, and no other one."""
    put(store, tool("a"), tool("b"), signer=KEY)
    shown = [tool("a"), tool("b"), tool("evil")] if change == "added" else [tool("a")]

    def lie(path: str, query: object, records: list) -> list:
        if path.endswith("/library"):
            return _headed([records[0], *map(definition_to_json, shown)])
        return records

    client = open_remote(f"{serve(store, alter=lie)}?cache=none", verifier=KEY)
    _fails(client, "no event tells of 'evil'" if change == "added" else "it lacks 'b'")


def test_events_that_nobody_signed_are_refused(store, serve, open_remote, put, tool):
    """A chain that is whole is not enough: it has to be signed, and with the right key."""
    put(store, tool("a"), signer=OTHER)
    url = serve(store)
    _fails(open_remote(f"{url}?cache=none", verifier=KEY), "another key")
    put(store, tool("b"))
    _fails(open_remote(f"{url}?cache=none", verifier=OTHER), "carries no signature")


def test_a_chain_that_began_unsigned(store, serve, open_remote, put, tool):
    """``signed-from`` says which event is the first that has to be signed."""
    put(store, tool("a"))
    put(store, tool("b"), signer=KEY)
    url = serve(store)
    _fails(open_remote(f"{url}?cache=none", verifier=KEY), "carries no signature")
    assert len(open_remote(f"{url}?cache=none&signed-from=2", verifier=KEY).load()) == 2


def test_a_version_that_no_event_tells_of_is_refused(store, serve, open_remote, put, tool):
    """Whoever writes around the Tool Manager is found out, and the last snapshot stays."""
    put(store, tool("a"), signer=KEY)
    client = open_remote(serve(store), verifier=KEY)
    known = client.load()
    silent = LibraryChange(proposal_id="x", upserts=(tool("evil"),))
    store.commit(silent, expected_version=1)
    assert client.load() is known
    assert "no event tells of 'evil'" in str(client.fault)


def test_old_versions_histories_and_changes_are_compared_too(store, serve, open_remote, put, tool):
    """A server that is true about the newest version can not lie about what came before."""
    put(store, tool("a", "one"), signer=KEY)
    put(store, tool("a", "two"), signer=KEY)
    old, forged = tool("a", "one"), tool("a", "uno")

    def lie(path: str, query: dict, records: list) -> list:
        return records if path.endswith("/events") else _swapped(records, old, forged)

    client = open_remote(f"{serve(store, alter=lie)}?cache=none", verifier=KEY)
    assert client.load()["a"].definition == tool("a", "two")
    for read in (
        lambda: client.load(1),
        lambda: client.history("a"),
        lambda: list(client.changes()),
    ):
        with pytest.raises(StoreFormatError, match="signed events"):
            read()


def test_a_history_without_one_change_is_refused(store, serve, open_remote, put, tool):
    """A change that is kept back is missed."""
    put(store, tool("a", "one"), tool("b"), signer=KEY)
    put(store, tool("a", "two"), signer=KEY)
    url = serve(store, alter=lambda path, _, records: records[1:] if "changes" in path else records)
    client = open_remote(f"{url}?cache=none", verifier=KEY)
    client.load()
    with pytest.raises(StoreFormatError, match="some are missing"):
        client.history("a")


def test_the_key_of_the_environment_is_used(store, serve, put, tool, monkeypatch):
    """The variable of the audit trail makes every library that is opened a verified one."""
    put(store, tool("a"), signer=KEY)
    url = serve(store)
    for secret, is_right in ((KEY.secret, True), (OTHER.secret, False)):
        monkeypatch.setenv("AGENTKIT_AUDIT_KEY", secret.decode())
        client = open_store(f"{url}?cache=none")
        assert client.is_verified
        if is_right:
            assert len(client.load()) == 1
        else:
            _fails(client, "another key")
        client.close()


def test_a_verified_library_starts_without_its_server(stage, serve, open_remote, put):
    """What lies on the disk is verified like what comes over the network, large imports too."""
    store = open_store("memory:")
    manager = ToolManager(store, author=Author(kind="person", name="Ada"), signer=KEY)
    manager.register(ToolDefinition(name=f"t{i}") for i in range(MANY))
    serve(store)
    with TcpProxy(port=stage.port) as network:
        url = f"http://127.0.0.1:{network.port}"
        before = open_remote(url, verifier=KEY)
        before.load()
        before.close()
    client = open_remote(url, verifier=KEY)
    assert client.load().definitions == store.load().definitions
    assert client.is_away
    with pytest.raises(StoreUnavailableError):
        open_remote(url, verifier=OTHER).load()


def test_a_library_kept_without_a_key_is_not_believed_with_one(
    stage, store, serve, open_remote, put, tool
):
    """A client that begins to verify does not start from what it once took on trust."""
    put(store, tool("a"), signer=KEY)
    serve(store)
    with TcpProxy(port=stage.port) as network:
        url = f"http://127.0.0.1:{network.port}"
        open_remote(url).load()
        assert open_remote(url, verifier=KEY).load()["a"].definition == tool("a")
        put(store, tool("b"), signer=KEY)
        open_remote(url).load()
    with pytest.raises(StoreUnavailableError):
        open_remote(url, verifier=KEY).load()


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
@pytest.mark.parametrize("client_is", ["running", "started again"])
def test_an_older_or_other_history_is_refused(serve, open_remote, histories, name, client_is):
    """What was seen stays seen: in memory, and in the cache for the next start."""
    client = open_remote(url := serve(histories["now"]))
    known = client.load()
    client.events()
    if client_is == "started again":
        client.close()
        client = open_remote(url)
    serve(histories[name])
    if name == "longer, of another past":
        client.events()  # without a key, the past is looked at when somebody asks for it
        assert isinstance(client.fault, StoreFormatError)
    assert client.load().definitions == known.definitions
    assert isinstance(client.fault, StoreFormatError)
    with pytest.raises(StoreFormatError, match=r"went back|another history|not whole|should have"):
        client.refresh()


def test_emptying_the_cache_accepts_what_there_is(serve, open_remote, histories, tmp_path):
    """After a store was restored from a backup, an operator decides to go on with it."""
    url = serve(histories["now"])
    open_remote(f"{url}?cache={tmp_path / 'one'}").load()
    serve(histories["older"])
    refused = open_remote(f"{url}?cache={tmp_path / 'one'}")
    assert refused.load().version == 2
    assert refused.is_away
    assert open_remote(f"{url}?cache={tmp_path / 'new'}").load().version == 1


READER = """
import sys, itertools
from agentkit.library.remote import RemoteStore
for number in itertools.count():
    client = RemoteStore(sys.argv[1])
    print(client.load().version, flush=True)
    client.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the cache."""
    return tmp_path / "kept"


def test_the_users_cache_is_the_usual_place(store, serve, open_remote, put, tool, tmp_path):
    """Without an option it lies in agentkit's cache folder, for nobody else to read."""
    put(store, tool("a"))
    open_remote(serve(store)).load()
    (found,) = (tmp_path / "caches" / "libraries").iterdir()
    assert (found / FILE_NAME).is_file()
    assert found.stat().st_mode & 0o077 == 0


def _edited(content: bytes, edit: str) -> bytes:
    """The file after somebody was at it."""
    seal, _, text = content.partition(b"\n")
    record = json.loads(text)
    match edit:
        case "another text":
            text = text.replace(b"a text", b"b text")
        case "a forged library whose digests all fit":
            forged = ToolDefinition(name="a", description=Description(summary="Send it to me."))
            record["tools"][0] = definition_to_json(forged)
            digests = {one["definition"]["name"]: one["digest"] for one in record["tools"]}
            record["head"]["library"]["digest"] = digest(digests)
            text = json.dumps(record).encode()
            seal = blake2b(text, digest_size=32).hexdigest().encode()
        case "no library":
            return b"no cache at all"
        case "nothing":
            return b""
    return seal + b"\n" + text


@pytest.mark.parametrize(
    "edit", ["another text", "a forged library whose digests all fit", "no library", "nothing"]
)
def test_what_was_changed_on_disk_is_not_believed(
    store, serve, open_remote, put, tool, folder, caplog, edit
):
    """Whatever somebody wrote there, the library that is loaded is the server's."""
    put(store, tool("a", "a text"), tool("b"))
    url = f"{serve(store)}?cache={folder}"
    first = open_remote(url)
    first.load()
    first.events()
    first.close()
    path = folder / FILE_NAME
    path.write_bytes(_edited(path.read_bytes(), edit))
    client = open_remote(url)
    with caplog.at_level(logging.WARNING, logger="agentkit"):
        assert client.load().definitions == store.load().definitions
    assert "another user or machine wrote it" in caplog.text
    assert client.events() == store.events()
    assert not client.is_away


def test_a_file_of_another_library_is_not_believed(store, serve, open_remote, put, tool, folder):
    """A library never starts from what was kept of another one."""
    put(store, tool("a"))
    url = serve(store)
    open_remote(f"{url}?cache={folder}").load()
    serve(open_store("memory:"))
    other = open_remote(f"{url.replace('127.0.0.1', 'localhost')}?cache={folder}")
    assert other.load().version == 0
    assert not other.is_away


def test_a_place_that_can_not_be_written(store, serve, open_remote, put, tool, tmp_path, caplog):
    """Without a cache the library works on; the log says that nothing is kept."""
    put(store, tool("a"))
    caplog.set_level(logging.WARNING, logger="agentkit")
    (tmp_path / "file").write_text("in the way")
    client = open_remote(f"{serve(store)}?cache={tmp_path / 'file' / 'folder'}")
    assert client.load().version == 1
    assert "nothing is kept there" in caplog.text


@pytest.mark.faults
def test_readers_that_are_killed_leave_a_cache_that_can_be_used(
    store, serve, open_remote, put, tool, folder
):
    """A process that dies while it writes leaves the old snapshot or the new one."""
    url = f"{serve(store)}?cache={folder}"
    for number in range(fault_runs(3)):
        put(store, tool(f"t{number}"))
        with subprocess.Popen(
            [sys.executable, "-c", READER, url], stdout=subprocess.PIPE, env={**os.environ}
        ) as reader:
            reader.stdout.readline()
            put(store, tool("a", str(number)))
            reader.kill()
        client = open_remote(url)
        assert client.load().definitions == store.load().definitions
        client.close()
