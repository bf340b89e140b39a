"""The calls that an episode made, and where in it each of them stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentkit.agent.selection import SEARCH_TOOL
from agentkit.diagnosis.labels import breaks_learned_rule
from agentkit.episodes import Episode, Evidence, Turn
from agentkit.messages import ToolCall, ToolResult


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeCalls:
    """The calls of all turns of an episode, under ids that are unique.

    Models may use an id twice in one conversation. Here each call goes by its position, so that a
    finding about it can be put where it belongs. Searches for tools (``search_tools``) are left
    out: they are part of how tools are offered, and no gold answer knows of them.

    Attributes:
        calls: The calls in order, their ids replaced by their positions.
        turns: The turn of each.
        ids: The id that the model gave to each.
        results: What came of each; None where there is no result.
        broke_off: How the run ended, when that was not the model's doing; empty otherwise.
    """

    calls: tuple[ToolCall, ...]
    turns: tuple[int, ...]
    ids: tuple[str, ...]
    results: tuple[ToolResult | None, ...] = ()
    broke_off: str = ""

    @classmethod
    def of(cls, episode: Episode) -> MadeCalls:
        """The calls of an episode."""
        made = [
            (turn, call, result)
            for turn, step in enumerate(episode.turns)
            for call, result in _answered(step)
            if not (step.searches and call.name == SEARCH_TOOL)
        ]
        return cls(
            calls=tuple(replace(call, call_id=str(at)) for at, (_, call, _) in enumerate(made)),
            turns=tuple(turn for turn, _, _ in made),
            ids=tuple(call.call_id for _, call, _ in made),
            results=tuple(result for _, _, result in made),
            broke_off=_broke_off(episode),
        )

    @property
    def is_answer(self) -> bool:
        """Whether calls that are not there were left out by the model.

        Without this, an agent whose model can not be reached would be perfect at abstaining.
        """
        return bool(self.calls) or not self.broke_off

    @property
    def refused(self) -> frozenset[int]:
        """Positions of the calls that a learned rule kept from running: they answer nothing."""
        return frozenset(
            at
            for at, result in enumerate(self.results)
            if result is not None
            and result.failure is not None
            and breaks_learned_rule(result.failure)
        )

    def refusals(self, positions: Iterable[int]) -> Iterator[Evidence]:
        """A finding for each of these calls that a learned rule refused, for ``placed``.

        Otherwise a rule that locks a tool would cost nothing where only the calls are compared.
        """
        for at in sorted(self.refused.intersection(positions)):
            call, result = self.calls[at], self.results[at]
            rule = result.failure.rule if result is not None and result.failure else ""
            yield Evidence(
                kind="call_failed",
                message=f"{call.name} did not run, because it breaks a learned rule: {rule}",
                call_id=call.call_id,
                tool=call.name,
            )

    def unanswered(self) -> Iterator[Evidence]:
        """A finding when the run broke off before the model had called anything."""
        if not self.is_answer:
            yield Evidence(kind="missing_answer", message=self.broke_off)

    def only(self, positions: Sequence[int]) -> MadeCalls:
        """Some of the calls; their ids stay those of the whole."""
        return replace(self, calls=tuple(self.calls[at] for at in positions))

    def placed(self, evidence: Iterable[Evidence]) -> Iterator[Evidence]:
        """Findings about ``calls`` with the turn and the model's own id filled in."""
        for finding in evidence:
            if not finding.call_id:
                yield finding
            else:
                at = int(finding.call_id)
                yield replace(finding, turn=self.turns[at], call_id=self.ids[at])


def share(matched: int, gold: int, made: MadeCalls) -> float:
    """How many of the calls are right, of those that should be and of those that are."""
    most = max(gold, len(made.calls))
    return matched / most if most else float(made.is_answer)


def _answered(turn: Turn) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    """Each call of a turn with its result; both stand in one order, unless results are missing."""
    calls, results = turn.message.tool_calls, turn.results
    if len(calls) == len(results):
        yield from zip(calls, results, strict=True)
    else:
        by_id = {result.call_id: result for result in results}
        yield from ((call, by_id.get(call.call_id)) for call in calls)


def _broke_off(episode: Episode) -> str:
    if episode.stop_reason not in {"error", "cancelled"}:
        return ""
    why = f": {episode.error}" if episode.error else ""
    return f"the run ended by {episode.stop_reason} before there was an answer{why}"
