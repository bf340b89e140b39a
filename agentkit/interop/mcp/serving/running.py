"""One call of a client: through the executor of agents, into an episode."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import Execution
from agentkit.agent.selection import SelectedTools
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import Approver
from agentkit.episodes import Episode, Turn
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, ToolCall, ToolResult


@dataclass(kw_only=True)
class CallRunner:
    """Runs calls as an agent would: arguments checked, contracts kept, failures as values.

    Attributes:
        queue: Takes episodes to their store.
        execution: How calls are run; who is asked for approval is said with each call.
    """

    queue: EpisodeQueue
    execution: Execution
    _running: int = field(init=False, default=0)
    _quiet: asyncio.Event | None = field(init=False, default=None)

    async def idle(self, seconds: float) -> None:
        """Wait until no call runs, at most so long."""
        self._quiet = asyncio.Event()
        if self._running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), seconds)

    async def run(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        library: Library,
        approve: Approver | None,
        client: str,
    ) -> ToolResult:
        """Run one call and keep it as an episode, whatever came of it.

        Args:
            name: What the library calls the tool.
            arguments: What the client sent.
            library: The snapshot that the call is pinned to.
            approve: Decides about a tool that needs approval.
            client: Who called, as it names itself.
        """
        call = ToolCall(call_id=new_episode_id(), name=name, arguments=dict(arguments))
        begun = _Begun(call=call, client=client, version=library.version)
        executor = self.execution.executor(library, SelectedTools.whole(library))
        executor.approve = approve
        self._running += 1
        try:
            (result,) = await executor.execute((call,))
        except asyncio.CancelledError:
            await self.queue.put(begun.episode(None))
            raise
        finally:
            self._running -= 1
            if self._quiet is not None and not self._running:
                self._quiet.set()
        unkept = await self.queue.put(begun.episode(result))
        if unkept is not None:
            raise unkept
        return result


@dataclass(frozen=True, kw_only=True, slots=True)
class _Begun:
    """A call that was started.

    Attributes:
        call: The call.
        client: Who called.
        version: The library's.
        at: When, for people.
        clock: When, to measure.
    """

    call: ToolCall
    client: str
    version: int
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.perf_counter)

    def episode(self, result: ToolResult | None) -> Episode:
        """The record of the call; without a result it was cancelled."""
        seconds = time.perf_counter() - self.clock
        results = () if result is None else (result,)
        message = AssistantMessage(tool_calls=(self.call,))
        return Episode(
            episode_id=self.call.call_id,
            request="",
            turns=(Turn(message=message, results=results, seconds=seconds),),
            stop_reason="cancelled" if result is None else "finished",
            output=None if result is None else result.text,
            model=f"mcp:{self.client}",
            library_version=self.version,
            started_at=self.at.isoformat(timespec="milliseconds"),
            seconds=seconds,
            error="CancelledError: the client cancelled the call" if result is None else None,
            metadata={"source": "mcp", "client": self.client},
        )
