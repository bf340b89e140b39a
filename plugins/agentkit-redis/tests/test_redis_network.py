"""Networks that are cut, silent or broken: an error that says so, and no commit lost or doubled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.tcp_proxy import TcpProxy

from agentkit import ToolDefinition
from agentkit.errors import StoreUnavailableError
from agentkit.library import LibraryChange


def _put(number):
    return LibraryChange(proposal_id=f"p{number}", upserts=(ToolDefinition(name=f"t{number}"),))


@pytest.fixture
def proxy(start_server):
    """A network between a store and a server of its own."""
    with TcpProxy(port=start_server().port) as proxy:
        yield proxy


@pytest.fixture
def through(proxy, open_redis):
    """A store behind the network, which waits half a second."""
    return open_redis(f"redis://127.0.0.1:{proxy.port}/0?timeout=0.5")


def test_a_cut_network_is_told_in_time_and_mended(proxy, through):
    """While nothing comes through every call ends in an error; afterwards the same store works."""
    through.commit(_put(0), expected_version=0)
    proxy.cut()
    for work in (
        through.load,
        through.versions,
        lambda: through.commit(_put(1), expected_version=1),
    ):
        with pytest.raises(StoreUnavailableError, match=r"no answer in 0\.5 s"):
            work()
    proxy.mend()
    version = through.load().version
    assert through.commit(_put(1), expected_version=version) == 2
    assert list(through.versions()) == [1, 2]
    assert list(through.check()) == []


def test_broken_connections_are_replaced_unseen(proxy, through):
    """A router that forgets connections costs nothing: what was asked is asked again, once."""
    for number in range(20):
        proxy.reset()
        assert through.commit(_put(number), expected_version=number) == number + 1
        proxy.reset()
        assert through.load().version == number + 1


def test_a_commit_whose_answer_is_lost_is_known_when_it_is_sent_again(start_server, open_redis):
    """The server took it after we gave up; the second time the first version is answered."""
    server = start_server()
    store = open_redis(f"{server.url}?timeout=0.3")
    store.commit(_put(0), expected_version=0)
    server.pause()
    with pytest.raises(StoreUnavailableError, match="nothing is done twice"):
        store.commit(_put(1), expected_version=1)
    server.resume()
    while len(store.versions()) < 2:
        """It does what it was asked before."""
    assert store.commit(_put(1), expected_version=1) == 2
    assert list(store.versions()) == [1, 2]
    assert list(store.check()) == []


def test_an_ended_server_is_unavailable_until_it_is_back(start_server, open_redis):
    """Without a server calls fail at once; the same store works when it was started again."""
    server = start_server()
    store = open_redis(server.url)
    store.commit(_put(0), expected_version=0)
    server.stop()
    with pytest.raises(StoreUnavailableError, match="can not be reached"):
        store.load()
    server.start()
    assert store.load().version == 1
    assert store.commit(_put(1), expected_version=1) == 2  # the scripts are new to it


FORK = """
import os, sys
from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange

store = open_store(sys.argv[1])

def put(name):
    version = store.load().version
    change = LibraryChange(proposal_id=name, upserts=(ToolDefinition(name=name),))
    assert store.commit(change, expected_version=version) == version + 1

put("parent")
child = os.fork()
if child == 0:
    try:
        for number in range(20):
            put(f"child-{number}")
        store.close()
        os._exit(0)
    finally:
        os._exit(1)
_, status = os.waitpid(child, 0)
assert status == 0, status
put("parent again")
assert store.load().version == 22
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system can not fork")
def test_a_fork_goes_on_with_the_store(library_url):
    """Parent and child use the store one after the other, each over connections of its own."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, library_url], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
