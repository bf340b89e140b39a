"""A process that was forked reads on its own, and leaves its parent's connection alone."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from agentkit.library import Store


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_makes_a_connection_of_its_own(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
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
