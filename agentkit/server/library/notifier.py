"""``ChangeNotifier``: what is newest, read once for all who ask, and told to those who wait."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from agentkit.errors import StoreError
from agentkit.library.capabilities import Watch, Watchable
from agentkit.library.remote.wire import Head, encode
from agentkit.library.store import Store
from agentkit.server.library.pages import LibraryReader

_LOG = logging.getLogger(__name__)

_LISTEN_SECONDS = 1.0
"""A hint may be missed, so the store is looked at this often while somebody waits."""

_IDLE_ROUNDS = 3
"""How often it is listened on with nobody waiting: a client that got news is soon back."""

_POLL_SECONDS = 0.25
"""How often a store is looked at that gives no hints, while somebody waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownHead:
    """A head as it is sent.

    Attributes:
        head: What is newest.
        body: The same as JSON.
        etag: Names the content.
    """

    head: Head
    body: bytes
    etag: str


class ChangeNotifier:
    """The newest head of one store, for everybody who asks in one event loop.

    However many ask at a time, the store is looked at once; and however many wait, one thread
    listens to the store, or one poll is made.

    Args:
        reader: Reads the head.
    """

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        # Of its own: pages of old versions may hold up all other threads for long.
        self._heads = ThreadPoolExecutor(1, thread_name_prefix="agentkit-library-head")
        self._listening = ThreadPoolExecutor(1, thread_name_prefix="agentkit-library-watch")
        self._turn = asyncio.Lock()
        self._asked_at = float("-inf")
        self._told: KnownHead | None = None
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.waiting = 0

    @property
    def known(self) -> KnownHead | None:
        """The head as it was last read."""
        return self._told

    async def newest(self) -> KnownHead:
        """The head as it is now.

        Raises:
            StoreError: The store can not be read.
        """
        loop = asyncio.get_running_loop()
        came = loop.time()
        async with self._turn:
            if self._told is None or self._asked_at < came:
                began = loop.time()
                head = await loop.run_in_executor(self._heads, self._reader.head)
                self._take(head)
                self._asked_at = began
            assert self._told is not None
            return self._told

    async def other_than(self, is_known: Callable[[str], bool]) -> KnownHead:
        """The head as soon as its ETag is one that the client does not know.

        Never returns before, unless the server stops; whoever calls sets the time.
        """
        told = await self.newest()
        self.waiting += 1
        self._listen()
        try:
            while is_known(told.etag) and not self._stopping.is_set():
                await self._changed.wait()
                told = self._told or told
        finally:
            self.waiting -= 1
        return told

    def stop(self) -> None:
        """Let everybody go who waits."""
        self._stopping.set()
        self._tell()

    async def close(self) -> None:
        """Stop, and end what listens. A second call does nothing."""
        self.stop()
        if self._task is not None:
            await self._task
            self._task = None
        self._listening.shutdown()
        await asyncio.to_thread(self._heads.shutdown, cancel_futures=True)

    def _take(self, head: Head) -> None:
        if self._told is not None and self._told.head == head:
            return
        body = encode(head.to_json())
        etag = hashlib.sha256(body).hexdigest()[:32]
        self._told = KnownHead(head=head, body=body, etag=etag)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        if not self._stopping.is_set():
            self._changed = asyncio.Event()

    def _listen(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listened())

    async def _listened(self) -> None:
        """Look at the store when it hints at news, until nobody has waited for a while."""
        ear = _Ear(self._reader.store)
        stopped = asyncio.create_task(self._stopping.wait())
        idle = 0
        hear: Callable[[], None] = ear.open  # then look: what came before it listened is no hint
        try:
            while idle < _IDLE_ROUNDS and not stopped.done():
                heard = asyncio.get_running_loop().run_in_executor(self._listening, hear)
                either: set[asyncio.Future[Any]] = {heard, stopped}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    ear.close()
                await heard
                await self._look()
                idle = 0 if self.waiting else idle + 1
                hear = ear.hear
        finally:
            stopped.cancel()
            ear.close()

    async def _look(self) -> None:
        try:
            await self.newest()
        except StoreError as error:  # those who ask for the head are told; here nobody asks
            _LOG.warning("the library can not be read: %s", error)


class _Ear:
    """Waits for a hint of a store, or for the time after which it is looked at anyway."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch: Watch | None = None
        self._closed = threading.Event()

    def open(self) -> None:
        """Begin to listen, where the store can be listened to."""
        if self._watch is not None or not isinstance(self._store, Watchable):
            return
        try:
            self._watch = self._store.watch()
        except StoreError as error:
            _LOG.warning("nobody tells of news of the library, so it is polled: %s", error)
        if self._closed.is_set():
            self.close()

    def hear(self) -> None:
        """Return when there may be news."""
        self.open()
        watch = self._watch
        if watch is None:
            self._closed.wait(_POLL_SECONDS)
            return
        try:
            watch.wait(_LISTEN_SECONDS)
        except StoreError as error:
            if not self._closed.is_set():
                _LOG.warning("nobody tells of news of the library for now: %s", error)
                watch.close()
                self._watch = None
                self._closed.wait(_POLL_SECONDS)

    def close(self) -> None:
        """Hear nothing more; a wait in another thread ends. A second call does nothing."""
        self._closed.set()
        if self._watch is not None:
            self._watch.close()
