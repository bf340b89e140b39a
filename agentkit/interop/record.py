"""The record of a run that another framework drives: its answers and results, put into turns."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace

from agentkit.agent.output import normalize_response
from agentkit.episodes import RetrievalTrace, Turn
from agentkit.messages import AssistantMessage, ToolCall, ToolResult, Usage


@dataclass(kw_only=True)
class OpenTurn:
    """One answer of the model, whose results come in one by one.

    Attributes:
        message: The answer.
        usage: What it cost.
        seconds: Wait for the model.
        results: Results by call id, in the order in which they came; ids may repeat.
        begun: Ids of the calls that the framework has handed on.
        searches: What the model's own searches for tools found.
        began: When the answer was recorded, on the clock of ``time.perf_counter``.
        ended: When the last result came, on the same clock.
    """

    message: AssistantMessage
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    results: defaultdict[str, deque[ToolResult]] = field(default_factory=lambda: defaultdict(deque))
    begun: set[str] = field(default_factory=set)
    searches: tuple[RetrievalTrace, ...] = ()
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0

    def wants(self, call_id: str) -> bool:
        """Whether a call of that id has no result yet, or one that only says that it waits."""
        asked = sum(call.call_id == call_id for call in self.message.tool_calls)
        results = self.results.get(call_id, ())
        return sum(result.status != "deferred" for result in results) < asked

    def add(self, result: ToolResult) -> None:
        """A call has ended; one that waited before has now the result that counts."""
        results = self.results[result.call_id]
        waiting = next((one for one in results if one.status == "deferred"), None)
        if waiting is None:
            results.append(result)
        else:
            results[results.index(waiting)] = result
        self.ended = time.perf_counter()

    def to_come(self, call: ToolCall) -> list[ToolCall]:
        """The calls that stand before ``call`` in the answer and are not handed on yet."""
        ids = [one.call_id for one in self.message.tool_calls]
        before = self.message.tool_calls[: ids.index(call.call_id)] if call.call_id in ids else ()
        return [one for one in before if one.call_id not in self.begun and self.wants(one.call_id)]

    def closed(self, earlier: list[Turn]) -> Turn:
        """The turn with the results there are, under ids that no call of ``earlier`` has."""
        message = normalize_response(self.message, earlier)
        left = {call_id: deque(results) for call_id, results in self.results.items()}
        results = [
            replace(left[call.call_id].popleft(), call_id=unique.call_id)
            for call, unique in zip(self.message.tool_calls, message.tool_calls, strict=True)
            if left.get(call.call_id)
        ]
        running = max(0.0, self.ended - self.began)
        return Turn(
            message=message,
            results=tuple(results),
            usage=self.usage,
            searches=self.searches,
            seconds=self.seconds + running,
            model_seconds=self.seconds,
        )


@dataclass(kw_only=True)
class RunRecord:
    """The turns of one run, as they come about.

    Attributes:
        turns: One for each answer of the model.
    """

    turns: list[OpenTurn] = field(default_factory=list)

    def answered(self, message: AssistantMessage, usage: Usage, seconds: float) -> None:
        """The model has answered."""
        self.turns.append(OpenTurn(message=message, usage=usage, seconds=seconds))

    def turn_of(self, call: ToolCall) -> OpenTurn:
        """The newest turn that waits for the call; one is made for a call that no answer holds."""
        for turn in reversed(self.turns):
            if turn.wants(call.call_id):
                return turn
        self.answered(AssistantMessage(tool_calls=(call,)), Usage(), 0.0)
        return self.turns[-1]

    def closed(self, retrieval: RetrievalTrace | None) -> tuple[Turn, ...]:
        """The turns as an episode holds them; how tools were found stands in the first one."""
        turns: list[Turn] = []
        for turn in self.turns:
            turns.append(turn.closed(turns))
        if turns and retrieval is not None:
            turns[0] = replace(turns[0], retrieval=retrieval)
        return tuple(turns)
