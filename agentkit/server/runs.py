"""Active runs and how they are cut short; whether the server is ready."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from agentkit.agent.agent import Agent
from agentkit.agent.episode_queue import error_text
from agentkit.errors import StoreUnavailableError
from agentkit.library.replicas import replica_of
from agentkit.library.store import append_all
from agentkit.server.middleware import Receive
from agentkit.tools.invocation import run_in_daemon_thread

T = TypeVar("T")

_SETTLE_SECONDS = 12.0
"""How long runs that were cut may take to record themselves."""

Cut = Literal["disconnected", "late", "stopping"]
"""Why a run was ended from outside: its client left, its time was up, the server stops."""


class Runs:
    """The requests that are being answered."""

    def __init__(self) -> None:
        self._open = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._draining = False
        self._cut_all = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return self._open

    @property
    def is_draining(self) -> bool:
        """Whether the server is about to stop, and takes on nothing new."""
        return self._draining

    @contextmanager
    def entered(self) -> Iterator[None]:
        """One request is being answered inside; the server does not stop before its end."""
        self._open += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()

    async def see_through(
        self, work: Coroutine[Any, Any, T], *, receive: Receive, seconds: float
    ) -> T | Cut:
        """Carry out ``work`` and give what it returns, or say why it was cut short.

        Work that is cut has ended, with whatever it does at its end, when this returns.

        Args:
            work: The run.
            receive: Reports when the client disconnects.
            seconds: How long it may take.

        Raises:
            Exception: What ``work`` raises.
            asyncio.CancelledError: The caller was cancelled; so was the work.
        """
        if self._cut_all.is_set():  # its body came after the others were cut
            work.close()
            return "stopping"
        task = asyncio.create_task(work)
        gone = asyncio.create_task(_left(receive))
        self._tasks.add(task)
        try:
            await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            has_ended = task.done()
            cut: Cut = "disconnected" if gone.done() else "late"
        finally:
            gone.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            self._tasks.discard(task)
        if task.cancelled() and has_ended and not self._cut_all.is_set():
            raise RuntimeError("code of the run raised CancelledError; nobody had cancelled it")
        if task.cancelled():
            return "stopping" if self._cut_all.is_set() else cut
        return task.result()

    async def drain(self, seconds: float) -> None:
        """Take on nothing new, wait for what is under way, and cut what takes longer.

        Args:
            seconds: How long to wait before.
        """
        self._draining = True
        if await self._at_rest(seconds):
            return
        self._cut_all.set()
        for task in self._tasks:
            task.cancel()
        await self._at_rest(_SETTLE_SECONDS)

    async def _at_rest(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


async def _left(receive: Receive) -> None:
    """Returns when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


_PROBE_SECONDS = 0.75
_SLOW_SECONDS = 1.0
"""An episode that has waited longer for its store says that the store is in trouble."""

_LOG = logging.getLogger(__name__)
_LOG_EVERY_SECONDS = 60.0


class Readiness:
    """Whether a server can take a request; its store, which may hang, is asked once at a time.

    Args:
        agent: Answers.
        runs: Knows whether the server is about to stop.
    """

    def __init__(self, agent: Agent, runs: Runs) -> None:
        self._agent, self._runs = agent, runs
        self._replica = replica_of(agent.store)
        self._log = MinuteLog(_LOG)
        self._asking: asyncio.Future[Any] | None = None

    async def state(self) -> Mapping[str, str]:
        """``ok``, ``unavailable`` with the reason, or ``degraded`` with an old library."""
        if reason := await self._why_not():
            return {"status": "unavailable", "reason": reason}
        status = None if self._replica is None else self._replica.status
        if status is None or status.state == "current":
            return {"status": "ok"}
        return {"status": "degraded", "reason": status.summary}

    async def _why_not(self) -> str:
        if self._runs.is_draining:
            return "stopping"
        state = self._agent.queue.state
        if state.failures or state.oldest_seconds > _SLOW_SECONDS:
            return "store"
        if self._agent.store is not None and (error := await self._store_error()) is not None:
            self._log.error("not ready, the store does not answer", error)
            return "store"
        return ""

    async def _store_error(self) -> Exception | None:
        """Why the store is not well. What takes long is waited for by the next ones who ask."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(run_in_daemon_thread(self._ask))
            # There may be no further request, and asyncio would complain of an unseen error.
            self._asking.add_done_callback(lambda future: future.cancelled() or future.exception())
        try:
            await asyncio.wait_for(asyncio.shield(self._asking), _PROBE_SECONDS)
        except TimeoutError:
            return StoreUnavailableError(f"the store did not answer within {_PROBE_SECONDS:g} s")
        except Exception as error:  # noqa: BLE001 - whatever it is, all is not well
            return error
        return None

    def _ask(self) -> None:
        """See whether the store can be read, and written to: nothing is appended to it."""
        if (store := self._agent.store) is not None:
            store.get("")
            append_all(store, ())


class MinuteLog:
    """Writes a failure that recurs with each request to the log once a minute.

    Args:
        logger: Where to write.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._last: dict[str, float] = {}
        self._silent: dict[str, int] = {}

    def error(self, what: str, error: Exception) -> None:
        """Write one line, with how many of this kind were left out since the last one."""
        now = time.monotonic()
        if now - self._last.get(what, -_LOG_EVERY_SECONDS) < _LOG_EVERY_SECONDS:
            self._silent[what] = self._silent.get(what, 0) + 1
            return
        self._last[what] = now
        left_out = self._silent.pop(what, 0)
        more = f" ({left_out} more since the last line)" if left_out else ""
        self._logger.error("%s: %s%s", what, error_text(error), more)
