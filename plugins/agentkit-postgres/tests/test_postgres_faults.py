"""What breaks between a store and its server: clear errors, nothing lost, nothing doubled."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TypeVar

import psycopg
import pytest
from support.cost import fault_runs
from support.postgres_server import PostgresServer, with_schema
from support.tcp_proxy import TcpProxy

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StaleVersionError, StoreError, StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.library.chain import verify_chain
from agentkit.library.store import Store
from agentkit.testing.conformance.fixtures import together
from agentkit.testing.conformance.writer import batch, with_event
from agentkit.tools.definition import Description
from agentkit_postgres.address import Address

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]

T = TypeVar("T")

LONG = 100.0


@pytest.fixture
def proxy(own_server):
    """A network to the server that a test can cut."""
    with TcpProxy(port=own_server.port) as proxy:
        yield proxy


@pytest.fixture
def far_url(own_server, own_store_url, proxy):
    """The store's URL through the network, for a program that is not patient."""
    url = with_schema(own_server.url_of(port=proxy.port), Address.parse(own_store_url).schema)
    return f"{url}&timeout=1&statement_timeout=1"


def ping(number: int) -> LibraryChange:
    """A change of one tool."""
    tool = ToolDefinition(name="ping", description=Description(summary=str(number)))
    return LibraryChange(proposal_id=f"p-{number}", upserts=(tool,))


def patiently(work: Callable[[], T]) -> T:
    """Do it until the store is there."""
    deadline = time.monotonic() + LONG
    while True:
        try:
            return work()
        except StoreUnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def commit(store: Store, name: str, number: int) -> int:
    """Commit one change with its event, built anew when another writer was faster."""
    while True:
        held = store.events()
        last, version = (held[-1] if held else None), store.load().version
        try:
            change = with_event(batch(name, number), last, version=version + 1)
            return store.commit(change, expected_version=version)
        except StaleVersionError:
            continue


class Writer(threading.Thread):
    """Commits and keeps episodes until told to stop, sending again whatever got no answer."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self.url, self.writer = url, name
        self.made: list[int] = []
        self.done = threading.Event()
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            with closing(patiently(partial(open_store, self.url))) as store:
                while not self.done.is_set():
                    self.write(store, len(self.made))
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.problem = error

    def write(self, store: Store, number: int) -> None:
        self.made.append(patiently(partial(commit, store, self.writer, number)))
        episode = Episode(episode_id=f"{self.writer}-{number}", request="?", session_id=self.writer)
        patiently(partial(store.append, episode))

    def wait_for(self, count: int) -> None:
        """Wait until it has made so many changes."""
        deadline = time.monotonic() + LONG
        while len(self.made) < count:
            self.check()
            assert time.monotonic() < deadline, f"{self.writer} made {len(self.made)} of {count}"
            time.sleep(0.02)

    def stop(self) -> None:
        self.done.set()
        self.join(LONG)
        self.check()
        if self.is_alive():
            faulthandler.dump_traceback()
            pytest.fail(f"{self.writer} does not end after {len(self.made)} changes")

    def check(self) -> None:
        if self.problem is not None:
            raise AssertionError(f"{self.writer} ended early") from self.problem


def check_whole(store: Store, writers: list[Writer]) -> None:
    """Every acknowledged change and episode is there, once, under the version that was told."""
    made = sorted(version for writer in writers for version in writer.made)
    assert made == list(store.versions()) == list(range(1, len(made) + 1))
    for writer in writers:
        history = store.history(f"{writer.writer}_0")
        assert [one.version for one in history] == writer.made
        assert [one.proposal_id for one in history] == [
            f"{writer.writer}-{number}" for number in range(len(writer.made))
        ]
        for number in range(len(writer.made)):
            assert store.get(f"{writer.writer}-{number}") is not None
    assert verify_chain(store.events()) == ()
    assert len(store.events()) == len(made)
    assert sum(1 for _ in store.select()) == len(made)
    assert list(store.check()) == []  # type: ignore[attr-defined]


@pytest.mark.faults
def test_a_server_that_ends_in_the_middle_of_load(own_server, own_store_url):
    """A server killed or ended while two write loses nothing acknowledged and doubles nothing."""
    open_store(own_store_url).close()
    writers = [Writer(own_store_url, name) for name in ("p", "q")]
    for writer in writers:
        writer.start()
    ways = [
        lambda: own_server.restart(kill=True),
        own_server.restart,
        lambda: (own_server.stop(signal.SIGQUIT), own_server.start()),
    ]
    try:
        for run in range(fault_runs(3, most=50)):
            wanted = [len(writer.made) + 2 for writer in writers]
            ways[run % len(ways)]()
            for writer, count in zip(writers, wanted, strict=True):
                writer.wait_for(count)
    finally:
        for writer in writers:
            writer.done.set()
    for writer in writers:
        writer.stop()
    with closing(open_store(own_store_url)) as store:
        check_whole(store, writers)


def test_an_open_store_outlives_a_restart(own_server, own_store_url):
    """A store whose connections all broke goes on with the next call, without an error."""
    with closing(open_store(own_store_url)) as store:
        together([partial(store.load)] * 4)  # several connections
        store.commit(ping(1), expected_version=0)
        own_server.restart()
        assert store.load().version == 1
        assert store.commit(ping(2), expected_version=1) == 2
        assert together([partial(store.commit, ping(2), expected_version=1)] * 4) == [2] * 4


def test_a_server_that_is_away_is_told_and_comes_back(own_server, own_store_url):
    """While the server is away each call says so at once; when it is back the store works."""
    with closing(open_store(f"{own_store_url}&timeout=100")) as store:
        store.commit(ping(1), expected_version=0)
        own_server.stop()
        try:
            for _ in range(2):
                with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                    store.load()
                with pytest.raises(StoreUnavailableError):
                    store.commit(ping(2), expected_version=1)
        finally:
            own_server.start()
        assert store.load().version == 1
        assert store.commit(ping(2), expected_version=1) == 2


@pytest.mark.faults
def test_a_silent_network_ends_calls_in_time(far_url, proxy):
    """A cut that nobody tells of ends each call with an error; mended, the same change goes in once."""
    with closing(open_store(far_url)) as store:
        store.commit(ping(1), expected_version=0)
        proxy.cut()
        with pytest.raises(StoreUnavailableError, match="no answer"):
            store.commit(ping(2), expected_version=1)
        with pytest.raises(StoreUnavailableError):
            store.load()
        proxy.mend()
        assert patiently(lambda: store.commit(ping(2), expected_version=1)) == 2
        assert list(store.versions()) == [1, 2]
        assert [one.proposal_id for one in store.history("ping")] == ["p-1", "p-2"]


def test_a_writer_that_holds_the_lock_too_long(own_store_url, raw):
    """A commit that waits too long for another program says so, and changed nothing."""
    with closing(open_store(f"{own_store_url}&timeout=0.3")) as store:
        other = raw(own_store_url)
        with other.transaction():
            other.execute(
                "SELECT pg_advisory_xact_lock((1634430836::bigint << 32) "
                "| 'versions'::regclass::oid::bigint)"
            )
            with pytest.raises(StoreUnavailableError, match=r"another program held.*timeout="):
                store.commit(ping(1), expected_version=0)
            assert store.load().version == 0
        assert store.commit(ping(1), expected_version=0) == 1


def test_a_statement_that_takes_too_long_is_ended(own_store_url, raw):
    """A statement that the server cannot do in time ends with advice."""
    with closing(open_store(f"{own_store_url}&statement_timeout=0.3&timeout=5")) as store:
        other = raw(own_store_url)
        with other.transaction():
            other.execute("LOCK TABLE versions IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreUnavailableError, match=r"0\.3 s.*statement_timeout="):
                store.load()
        assert store.load().version == 0


def test_more_threads_than_connections_wait_for_each_other(own_store_url):
    """Threads share a small pool; one that gets none in time is told which parameter to raise."""
    with closing(open_store(f"{own_store_url}&pool_size=1&timeout=1")) as store:
        changes = [Episode(episode_id=str(number), request="?") for number in range(12)]
        assert together([partial(store.append, one) for one in changes]) == [None] * 12
        release = threading.Event()
        held = threading.Thread(
            target=store._connections.run,  # type: ignore[attr-defined]
            args=(lambda _: release.wait(LONG),),
        )
        held.start()
        time.sleep(0.1)
        with pytest.raises(StoreUnavailableError, match=r"became free in 1 s.*pool_size="):
            store.load()
        release.set()
        held.join()
        assert store.load().version == 0


def test_closing_ends_everything(own_store_url, raw):
    """After close no connection of the store is left, nor a thread, and every use says so."""
    before = threading.active_count()
    store = open_store(f"{own_store_url}&application_name=closing_test")
    together([store.load] * 4)
    store.close()
    store.close()
    for use in (store.load, store.versions, store.events, store.select, store.check):  # type: ignore[attr-defined]
        with pytest.raises(StoreError, match="closed"):
            list(use())
    assert threading.active_count() <= before  # threads of tools may end meanwhile
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'closing_test'"
    deadline = time.monotonic() + LONG
    while raw(own_store_url).execute(left).fetchone() != (0,):
        assert time.monotonic() < deadline


FORKING = """
import os, sys
from agentkit import open_store
from agentkit.errors import StoreError

store = open_store(sys.argv[1])
store.load()
child = os.fork()
if not child:
    try:
        store.load()
    except StoreError as error:
        print(error, flush=True)
    store.close()
    del store
    again = open_store(sys.argv[1])
    print(again.load(), flush=True)
    again.close()
    os._exit(0)
os.waitpid(child, 0)
print(store.load(), flush=True)
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_is_told_to_open_again(store_url):
    """A store used in a forked process raises there, and goes on working in its own."""
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, store_url]
    done = subprocess.run(program, capture_output=True, text=True, timeout=LONG, check=True)
    refused, child, parent = done.stdout.splitlines()
    assert "open the store again" in refused
    assert child == parent == "Library(0 tools, version=0)"
    assert done.stderr == ""


def test_a_server_that_does_not_flush_is_told_of(caplog):
    """A server with fsync=off is used, with a warning about what may be lost."""
    try:
        server = PostgresServer(options=("fsync=off", "synchronous_commit=off"))
    except StoreError as error:
        pytest.skip(str(error))
    with server, closing(open_store(server.url)) as store:
        assert "fsync=off" in caplog.text
        assert store._connections.execute("SHOW synchronous_commit") == [("on",)]  # type: ignore[attr-defined]
