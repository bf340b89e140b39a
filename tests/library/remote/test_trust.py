"""Nobody between the writer and the reader, nor on the disk, can say anything of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreFormatError
from agentkit.evolution import ToolManager
from agentkit.library import LibraryChange, Store
from agentkit.library.chain import HmacKey
from agentkit.library.changes import definition_to_json
from agentkit.library.events import Author
from agentkit.library.remote import RemoteStore
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description

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
    _fails(open_remote(url, verifier=KEY), "what the server lists are others")


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
        _fails(open_remote(url, **options), "some are missing|what came is version 1")


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
