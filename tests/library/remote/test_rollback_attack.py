"""A server that goes back to an old state is refused, also after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.app_stage import AppStage

from agentkit import open_store
from agentkit.errors import StoreFormatError
from agentkit.library import Store


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
def test_an_older_or_other_history_is_refused(
    serve: Callable,
    open_remote: Callable,
    histories: dict[str, Store],
    name: str,
    client_is: str,
) -> None:
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


def test_emptying_the_cache_accepts_what_there_is(
    serve: Callable, open_remote: Callable, histories: dict[str, Store], tmp_path: Path
) -> None:
    """After a store was restored from a backup, an operator decides to go on with it."""
    url = serve(histories["now"])
    open_remote(f"{url}?cache={tmp_path / 'one'}").load()
    serve(histories["older"])
    refused = open_remote(f"{url}?cache={tmp_path / 'one'}")
    assert refused.load().version == 2
    assert refused.is_away
    assert open_remote(f"{url}?cache={tmp_path / 'new'}").load().version == 1


def test_a_replica_of_the_server_that_lags_is_waited_for(
    stage: AppStage,
    serve: Callable,
    open_remote: Callable,
    histories: dict[str, Store],
    put: Callable,
    tool: Callable,
) -> None:
    """Behind a balancer one server may be behind another; once it has caught up all is well."""
    client = open_remote(serve(histories["now"]))
    client.load()
    serve(histories["older"])
    assert client.load().version == 2
    put(histories["older"], tool("b"))
    assert client.refresh().version == 2
    assert not client.is_away
