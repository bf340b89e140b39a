"""A network that is silent for a while, or breaks connections: nothing is lost or made twice."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from support.faults import fault_seconds
from support.store_race import Racer, race_faults

from agentkit import open_store
from agentkit.errors import StoreUnavailableError

pytestmark = pytest.mark.faults


class Writer(threading.Thread):
    """Offers one proposal after the other until it is told to stop."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._over = threading.Event()
        self.made = 0
        self.unavailable = 0

    def run(self) -> None:
        """Offer, again where the store is away."""
        with closing(open_store(self._url)) as store:
            racer = Racer(store, patience_seconds=120)
            while not self._over.is_set():
                racer.offer(self.made)
                self.made += 1
                self.unavailable = racer.answers["unavailable"]

    def wait_for(self, more: int) -> None:
        """Wait until so many more are made."""
        wanted = self.made + more
        while self.made < wanted:
            assert self.is_alive()
            time.sleep(0.01)

    def stop(self) -> None:
        """Let it finish the proposal at hand."""
        self._over.set()
        self.join()


def test_a_network_that_is_cut_and_mended_loses_nothing(served_store, proxy, url_through):
    """A writer goes on after the silence, and each of its proposals was made once."""
    writer = Writer(url_through)
    writer.start()
    for _ in range(2):
        writer.wait_for(5)
        proxy.cut()
        time.sleep(fault_seconds(0.5, 30.0))
        proxy.mend()
    writer.wait_for(5)
    writer.stop()
    with closing(open_store(served_store.url)) as store:
        assert race_faults(store, writer.made) == ()


def test_connections_that_break_lose_nothing(served_store, proxy, url_through):
    """A writer whose connections are reset again and again makes each proposal once."""
    writer = Writer(url_through)
    writer.start()
    for _ in range(10):
        writer.wait_for(2)
        proxy.reset()
    writer.wait_for(5)
    writer.stop()
    with closing(open_store(served_store.url)) as store:
        assert race_faults(store, writer.made) == ()


def test_a_reader_is_told_and_recovers(served_store, proxy, url_through):
    """A store whose connections break says that it is unavailable or answers, never wrongly."""
    with closing(open_store(served_store.url)) as near, closing(open_store(url_through)) as far:
        racer = Racer(near)
        for number in range(10):
            racer.offer(number)
            proxy.reset()
            for _ in range(20):
                try:
                    assert far.load().version == number + 1
                    assert len(far.events()) == number + 1
                except StoreUnavailableError:
                    continue
                break
            else:
                pytest.fail("the store did not come back")
