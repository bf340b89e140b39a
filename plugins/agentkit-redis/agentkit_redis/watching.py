"""``RedisWatch``: hears of commits over pub/sub, on a connection of its own."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, TypeAlias

from agentkit.errors import StoreError, StoreUnavailableError
from agentkit_redis.address import RedisAddress
from agentkit_redis.connection import Client, new_client, translated

PubSub: TypeAlias = Any  # a redis.client.PubSub, whose methods have no types

_LOOK_SECONDS = 0.5
"""How often a wait looks whether it was closed."""

_QUIET_SECONDS = 10.0
"""After so long without a word the server is asked whether it is there."""


class RedisWatch:
    """A ``Watch`` of the commits to one library. Any thread may close it, which ends a wait.

    Args:
        address: Of the server.
        channel: Where commits are told.

    Raises:
        StoreUnavailableError: The server can not be reached.
    """

    def __init__(self, address: RedisAddress, channel: str) -> None:
        self._address = address
        self._channel = channel
        self._closed = threading.Event()
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._client: Client | None = None
        self._heard: PubSub | None = None
        self._last_word = self._asked = 0.0
        with translated(address):
            self._listen()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit; see ``Watch.wait``."""
        from redis import RedisError

        with self._turn, translated(self._address):
            self._check_open()
            try:
                if self._heard is None:
                    self._listen()
                    return True  # there may have been commits while nobody listened
                return self._hear(self._heard, timeout_seconds)
            except (RedisError, StoreUnavailableError):
                self._drop()
                raise

    def close(self) -> None:
        """Listen no longer. A second call does nothing."""
        self._closed.set()
        if self._process == os.getpid():
            with self._turn:
                self._drop()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise StoreError(f"this watch of {self._address} is closed; ask the store for another")
        if self._process != os.getpid():
            raise StoreError(
                f"this watch of {self._address} belongs to process {self._process}; ask the store "
                "for another one in its fork"
            )

    def _listen(self) -> None:
        """Subscribe, and wait until the server has said that it knows."""
        from redis import exceptions

        client = new_client(self._address, idle_seconds=0)
        self._client, self._heard = client, client.pubsub()
        try:
            self._heard.subscribe(self._channel)
            answer = self._heard.get_message(timeout=self._address.timeout_seconds)
        except BaseException:
            self._drop()
            raise
        if answer is None:
            self._drop()
            raise exceptions.TimeoutError(f"no answer to SUBSCRIBE {self._channel}")
        self._last_word, self._asked = time.monotonic(), 0.0

    def _hear(self, heard: PubSub, timeout_seconds: float) -> bool:
        end = time.monotonic() + timeout_seconds
        while True:
            left = max(0.0, end - time.monotonic())
            if self._next_is_commit(heard, min(left, _LOOK_SECONDS)):
                while self._next_is_commit(heard, 0.0):
                    pass  # of those that came together one word is enough
                return True
            self._check_open()
            if left == 0:
                return False
            self._check_alive(heard)

    def _next_is_commit(self, heard: PubSub, timeout_seconds: float) -> bool:
        message = heard.get_message(timeout=timeout_seconds)
        if message is None:
            return False
        self._last_word, self._asked = time.monotonic(), 0.0
        return bool(message["type"] == "message")

    def _check_alive(self, heard: PubSub) -> None:
        """Ask a quiet server for a word, and say so when none comes."""
        now = time.monotonic()
        if now - self._last_word < _QUIET_SECONDS:
            return
        if not self._asked:
            self._asked = now
            heard.ping()
        elif now - self._asked > self._address.timeout_seconds:
            raise StoreUnavailableError(
                f"{self._address} said nothing for {now - self._last_word:.0f} s, not even when it "
                "was asked; the next wait tries to reach it again"
            )

    def _drop(self) -> None:
        heard, self._heard = self._heard, None
        client, self._client = self._client, None
        if heard is not None:
            heard.close()
        if client is not None:
            client.close()
            client.connection_pool.disconnect()
