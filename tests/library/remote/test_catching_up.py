"""A client takes up what changed, and only that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.app_stage import AppStage

from agentkit import Episode, Library, ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.interop.export import write_artifact
from agentkit.interop.export.artifact import artifact_of
from agentkit.library import LibraryChange, Store
from agentkit.library.remote import RemoteStore
from agentkit.server.library import create_library_app
from agentkit.server.library_pages import LibraryReader, Pages
from agentkit.testing import sample_library
from agentkit.tools.definition import Description, Origin

NAMES = ["a", "b", "c", "天気", "d/e ?&="]
STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(NAMES), st.text(max_size=6), max_size=4),
        st.sets(st.sampled_from(NAMES), max_size=2),
        st.booleans(),
    ),
    max_size=8,
)


def _change(library: Library, number: int, step: tuple) -> LibraryChange | None:
    """A change that the library can take, made of what was drawn."""
    texts, gone, _ = step
    removals = tuple(name for name in sorted(gone) if name in library and name not in texts)
    upserts = tuple(
        ToolDefinition(
            name=name, description=Description(summary=text), origin=Origin(reference=text)
        )
        for name, text in texts.items()
    )
    if not removals and not upserts:
        return None
    return LibraryChange(proposal_id=str(number), upserts=upserts, removals=removals)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_sequence_of_changes_is_read_as_it_was_made(stage: AppStage, steps: list) -> None:
    """Whenever a client looks, every version it reads is equal to the store's, order and all."""
    store = open_store("memory:")
    app = create_library_app(store)
    with stage.showing(app) as url:
        early, late = RemoteStore(f"{url}?cache=none"), RemoteStore(f"{url}?cache=none")
        for number, step in enumerate(steps):
            change = _change(store.load(), number, step)
            if change is not None:
                store.commit(change, expected_version=len(store.versions()))
            if step[2]:
                assert early.load().definitions == store.load().definitions
        for client in (early, late):
            _check_same(client, store)
            client.close()


def _check_same(client: RemoteStore, store: Store) -> None:
    assert list(client.versions()) == list(store.versions())
    for version in (None, 0, *store.versions()):
        mine, theirs = client.load(version), store.load(version)
        assert mine.definitions == theirs.definitions
        assert [one.origin for one in mine.definitions] == [
            one.origin for one in theirs.definitions
        ]
    assert [client.history(name) for name in NAMES] == [store.history(name) for name in NAMES]
    assert list(client.changes()) == list(store.changes())


def test_only_what_changed_is_read(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
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
    assert seen[-1] == ("/library/v1/changes", 3)  # the change, its definition, the end
    assert after["t8"] is before["t8"]
    assert after["t7"].definition.description.summary == "another"


@pytest.mark.parametrize("page_bytes", [1, 300, 10_000_000])
def test_pages_of_any_size_say_the_same(tmp_path: Path, page_bytes: int) -> None:
    """However small the pages are, together they hold every line once and in order."""
    store = open_store(tmp_path / "library.db")
    tools = tuple(ToolDefinition(name=f"t{i}") for i in range(7))
    store.commit(LibraryChange(proposal_id="1", upserts=tools), expected_version=0)
    pages = Pages(LibraryReader(store), page_bytes=page_bytes)
    names: list[str] = []
    after: int | None = 0
    while after is not None:
        *lines, end = pages.tools(1, after).plain.splitlines()
        names += [line.decode().partition('"name":"')[2].partition('"')[0] for line in lines]
        after = json.loads(end)["end"]["next"]
    assert names == [f"t{i}" for i in range(7)]
    store.close()


def test_a_library_of_several_pages_is_caught_up_by_what_changed(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
    """A client that held all of it is right after one changed, as is a new one."""
    put(store, *(tool(f"t{number}", "x" * 50_000) for number in range(200)))
    client = open_remote(f"{serve(store)}?cache=none")
    assert client.load().definitions == store.load().definitions
    put(store, tool("t7", "better"), remove=("t8",))
    put(store, tool("t8", "back"))
    caught_up, anew = client.load(), open_remote(f"{serve(store)}?cache=none").load()
    assert caught_up.definitions == anew.definitions == store.load().definitions
    assert caught_up.digest == anew.digest
    assert [one.name for one in caught_up][-2:] == ["t199", "t8"]


def test_a_store_without_versions_one_by_one(
    serve: Callable, open_remote: Callable, tmp_path: Path
) -> None:
    """An artifact is served too, though it holds its own version alone and nothing before it."""
    path = tmp_path / "tools.json"
    write_artifact(artifact_of(sample_library()), path)
    artifact = open_store(f"artifact:{path}")
    client = open_remote(serve(artifact))
    assert client.load().definitions == artifact.load().definitions
    assert list(client.versions()) == list(artifact.versions())


def test_what_can_not_be_written_is_refused(
    store: Store, serve: Callable, open_remote: Callable, tool: Callable
) -> None:
    """Commits and episodes have no place in a library that is only read."""
    client = open_remote(serve(store))
    with pytest.raises(StoreError, match="can only be read"):
        client.commit(LibraryChange(proposal_id="1", upserts=(tool("a"),)), expected_version=0)
    with pytest.raises(StoreError, match="keeps no episodes"):
        client.append(Episode(episode_id="e1", request="Hi"))
    assert (client.get("e1"), list(client.select())) == (None, [])
