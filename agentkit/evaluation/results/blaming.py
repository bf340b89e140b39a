"""Which tools and parameters the labels blame, with examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentkit.diagnosis.labels import PRECEDENCE
from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.examples import Example, ExampleShelf
from agentkit.evaluation.results.records import (
    ParameterFaults,
    RecoveryCount,
    ToolConfusion,
    ToolFaults,
)
from agentkit.evaluation.results.rows import EpisodeRow
from agentkit.evaluation.results.tally import counts

EXAMPLES_A_LABEL = 10
EXAMPLES_A_TOOL = 2
EXAMPLES_A_PARAMETER = 1
WORST = 25
"""The worst tools and parameters, of which examples are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenExamples:
    """The tools and parameters that are blamed, and the episodes that show it.

    Attributes:
        tools: Tools, the worst first.
        parameters: Parameters, the worst first.
        examples: The episodes that these refer to and some of each label, by label and task.
    """

    tools: tuple[ToolFaults, ...]
    parameters: tuple[ParameterFaults, ...]
    examples: tuple[Example, ...]

    @classmethod
    def of(
        cls, rows: Sequence[EpisodeRow], by_label: ExampleShelf, by_tool: ExampleShelf
    ) -> ChosenExamples:
        """Choose examples for the counted episodes.

        Args:
            rows: The counted episodes.
            by_label: Examples of labels.
            by_tool: Examples of tools and of parameters.
        """
        chosen = _Choice(counted={row.place.episode_id for row in rows})
        for label in sorted({blame.label for row in rows for blame in row.blames}):
            chosen.take(by_label, (label,), EXAMPLES_A_LABEL)
        tools, parameters = list(tool_faults(rows)), list(parameter_faults(rows))
        for at, tool in enumerate(tools[:WORST]):
            ids = chosen.take(by_tool, (tool.tool,), EXAMPLES_A_TOOL)
            tools[at] = replace(tool, examples=ids)
        for at, one in enumerate(parameters[:WORST]):
            ids = chosen.take(by_tool, (one.tool, one.parameter), EXAMPLES_A_PARAMETER)
            parameters[at] = replace(one, examples=ids)
        return cls(
            tools=tuple(tools), parameters=tuple(parameters), examples=tuple(chosen.ordered())
        )


class _Choice:
    """Examples chosen so far; one of each turn of an episode."""

    def __init__(self, counted: set[str]) -> None:
        self._counted = counted
        self._taken: dict[tuple[str, int], Example] = {}

    def take(self, shelf: ExampleShelf, subject: tuple[str, ...], most: int) -> tuple[str, ...]:
        """Choose the first examples of a subject and give their episodes' ids."""
        found = [one for one in shelf.of(subject) if one.episode_id in self._counted][:most]
        for one in found:
            self._taken.setdefault((one.episode_id, one.turn), one)
        return tuple(one.episode_id for one in found)

    def ordered(self) -> list[Example]:
        """All of them, by the precedence of their labels, then by task and place."""
        return sorted(
            self._taken.values(),
            key=lambda one: (
                PRECEDENCE.index(one.label),
                one.task,
                one.attempt,
                one.user_turn,
                one.turn,
            ),
        )


def tool_faults(rows: Iterable[EpisodeRow]) -> list[ToolFaults]:
    """The blamed tools: those that spoilt most episodes first, then those that surely do so often.

    Sure is the lower end of Wilson's interval.

    Args:
        rows: Episodes.
    """
    calls: Counter[str] = Counter()
    episodes: Counter[str] = Counter()
    faulty: Counter[str] = Counter()
    labels: dict[str, list[FailureLabel]] = {}
    for row in rows:
        blamed = {blame.tool for blame in row.blames if blame.tool}
        calls.update(dict(row.called))
        episodes.update(blamed.union(tool for tool, _ in row.called))
        faulty.update(blamed)
        for blame in row.blames:
            labels.setdefault(blame.tool, []).append(blame.label)
    found = [
        ToolFaults(
            tool=tool,
            calls=calls[tool],
            episodes=episodes[tool],
            faulty=spoilt,
            labels=counts(labels[tool]),
        )
        for tool, spoilt in faulty.items()
    ]
    return sorted(found, key=lambda one: (-one.faulty, -one.share.low, one.tool))


def parameter_faults(rows: Iterable[EpisodeRow]) -> list[ParameterFaults]:
    """The blamed parameters, those blamed most often first."""
    calls: Counter[str] = Counter()
    labels: dict[tuple[str, str], list[FailureLabel]] = {}
    for row in rows:
        calls.update(dict(row.called))
        for blame in row.blames:
            if blame.parameter:
                labels.setdefault((blame.tool, blame.parameter), []).append(blame.label)
    found = [
        ParameterFaults(
            tool=tool,
            parameter=parameter,
            calls=calls[tool],
            faults=len(own),
            labels=counts(own),
        )
        for (tool, parameter), own in labels.items()
    ]
    return sorted(found, key=lambda one: (-one.faults, one.calls, one.tool, one.parameter))


def tool_confusions(rows: Iterable[EpisodeRow]) -> tuple[ToolConfusion, ...]:
    """Expected against called tools, the most frequent first."""
    pairs = counts(pair for row in rows for pair in row.confusions)
    return tuple(
        ToolConfusion(expected=expected, called=called, count=count)
        for (expected, called), count in pairs.items()
    )


def recovery_counts(rows: Iterable[EpisodeRow]) -> tuple[RecoveryCount, ...]:
    """What became of failed calls, by how they failed, the most frequent first.

    A call that failed at the end of an episode is open there and settled in the next episode of
    the same conversation; it counts once, as it was settled.

    Args:
        rows: Episodes, those of one attempt in order.
    """
    last = {
        (call.episode_id, call.turn, call.call_id): (call.kind, call.outcome)
        for row in rows
        for call in row.recoveries
    }
    return tuple(
        RecoveryCount(kind=kind, outcome=outcome, count=count)
        for (kind, outcome), count in counts(last.values()).items()
    )
