"""``ChangeNotifier``: what is newest, read once for all who ask, and told to those who wait."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from agentkit.library.remote.wire import Head, encode
from agentkit.server.library.pages import LibraryReader

_POLL_SECONDS = 0.25
"""How often the store is looked at while somebody waits."""


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

    However many ask or wait at a time, the store is looked at once.

    Args:
        reader: Reads the head.
    """

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        # Of its own: pages of old versions may hold up all other threads for long.
        self._heads = ThreadPoolExecutor(1, thread_name_prefix="agentkit-library-head")
        self._turn = asyncio.Lock()
        self._asked_at = float("-inf")
        self._told: KnownHead | None = None
        self._stopping = asyncio.Event()

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
        while is_known(told.etag) and not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _POLL_SECONDS)
            told = await self._at_least_as_new(_POLL_SECONDS)
        return told

    async def _at_least_as_new(self, seconds: float) -> KnownHead:
        """The head as it was read within the last seconds, by whoever asked."""
        is_old = asyncio.get_running_loop().time() - self._asked_at >= seconds
        return await self.newest() if is_old or self._told is None else self._told

    def stop(self) -> None:
        """Let everybody go who waits."""
        self._stopping.set()

    async def close(self) -> None:
        """Stop, and end what reads. A second call does nothing."""
        self.stop()
        await asyncio.to_thread(self._heads.shutdown, cancel_futures=True)

    def _take(self, head: Head) -> None:
        if self._told is None or self._told.head != head:
            body = encode(head.to_json())
            etag = hashlib.sha256(body).hexdigest()[:32]
            self._told = KnownHead(head=head, body=body, etag=etag)
