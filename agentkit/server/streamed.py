"""``StreamedAnswer``: an answer as server-sent events, while it is being made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from agentkit.agent.types import RunResult
from agentkit.messages import ToolCall
from agentkit.server.completion import HEARTBEAT, Completion, answered_by
from agentkit.server.exchange import Exchange, Header
from agentkit.server.measures import Measures
from agentkit.server.problem import Problem

_MOST_PIECES = 64


class StreamedAnswer:
    """Writes an answer piece by piece; it begins with the first thing there is to say.

    What is said while the last piece is on its way goes out in one write.

    Args:
        exchange: Where it goes.
        completion: Its wire format.
        measures: Where the wait for the first text is counted.
    """

    def __init__(self, exchange: Exchange, completion: Completion, measures: Measures) -> None:
        self.exchange = exchange
        self._completion = completion
        self._measures = measures
        self._began = time.perf_counter()
        self._between = ""
        self._has_text = False
        self._pieces: list[bytes] = []
        self._said = asyncio.Event()
        self._turn = asyncio.Lock()
        self._headers: tuple[Header, ...] = ()

    @property
    def has_begun(self) -> bool:
        """Whether anything was said; then it is too late for another status."""
        return bool(self.exchange.status or self._pieces)

    def route(self, library_version: int, labels: Mapping[str, str]) -> None:
        """Note what answers; headers tell it, if they are not sent yet."""
        self._headers = answered_by(library_version, labels)

    async def say(self, text: str) -> None:
        """Send text, as soon as the connection takes it; far behind, wait for it."""
        if not text:
            return
        if not self._has_text:
            self._has_text = True
            self._measures.first_text.observe(time.perf_counter() - self._began)
        text, self._between = self._between + text, ""
        self._add(self._completion.piece(text))
        if len(self._pieces) >= _MOST_PIECES:
            await self._flush()
            await asyncio.sleep(0)  # a model that never waits must not keep others from the loop

    def paragraph_ended(self) -> None:
        """What is said next begins a new paragraph: it belongs to another turn of the model."""
        self._between = "\n\n"

    async def write(self, quiet_seconds: float) -> None:
        """Send what was said, and a comment whenever nothing was for so long; until cancelled."""
        while True:
            try:
                async with asyncio.timeout(quiet_seconds):
                    await self._said.wait()
            except TimeoutError:
                self._add(HEARTBEAT)
            await self._flush()

    async def finish(
        self, result: RunResult, calls: tuple[ToolCall, ...], writing: asyncio.Task[None]
    ) -> None:
        """Send the end of a good answer."""
        await self._end(self._completion.ending(result, calls), writing)

    async def fail(self, problem: Problem, writing: asyncio.Task[None]) -> None:
        """End an answer that broke after it had begun, with an error and without ``[DONE]``."""
        await self._end(self._completion.failing(problem), writing)

    async def _end(self, piece: bytes, writing: asyncio.Task[None]) -> None:
        async with self._turn:  # so that no piece is cut in two
            writing.cancel()
        self._add(piece)
        await self._flush(more=False)

    def _add(self, piece: bytes) -> None:
        if not self.has_begun:
            self._pieces.append(self._completion.opening())
        self._pieces.append(piece)
        self._said.set()

    async def _flush(self, *, more: bool = True) -> None:
        async with self._turn:
            self._said.clear()
            pieces, self._pieces = self._pieces, []
            if not self.exchange.status:
                await self.exchange.start_stream(self._headers)
            await self.exchange.send_piece(b"".join(pieces), more=more)
