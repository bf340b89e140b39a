"""``RunResult``: what a run gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentkit.episodes import Episode, StopReason
from agentkit.messages import Message, ToolCall, Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """The outcome of one run.

    Attributes:
        output: The answer: text, or an instance of the agent's ``output_type``. None when the
            run stopped before there was one.
        episode: The full record.
        messages: The whole conversation, history included; pass it as ``history`` to go on.
        is_kept: Whether the store has the episode, where there is one. False only with an agent
            that goes on while its store fails; see ``Agent(on_store_failure=...)``.
    """

    output: Any
    episode: Episode
    messages: tuple[Message, ...]
    is_kept: bool = True

    @property
    def text(self) -> str:
        """The text of the model's last message."""
        return self.episode.turns[-1].message.text if self.episode.turns else ""

    @property
    def stop_reason(self) -> StopReason:
        """Why the run ended."""
        return self.episode.stop_reason

    @property
    def usage(self) -> Usage:
        """All model use of the run."""
        return self.episode.usage

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every call that the model made, in order."""
        return self.episode.calls

    @property
    def deferred(self) -> tuple[ToolCall, ...]:
        """Calls that wait for an approval or for an answer from outside; see ``Agent.resume``."""
        return deferred_calls(self.episode)


def deferred_calls(episode: Episode) -> tuple[ToolCall, ...]:
    """Calls of the last turn that have no result yet."""
    if not episode.turns:
        return ()
    last = episode.turns[-1]
    waiting = {result.call_id for result in last.results if result.status == "deferred"}
    return tuple(call for call in last.message.tool_calls if call.call_id in waiting)
