"""``summarise``: the episodes of one run to its report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.evaluation.results.counting import (
    ChosenExamples,
    by_task,
    distribution,
    error_incidents,
    fault_incidents,
    group_report,
    macro_mean,
    pass_table,
    recovery_counts,
    task_outcome,
    task_result,
    tool_confusions,
    total_usage,
)
from agentkit.evaluation.results.records import (
    EvaluationReport,
    GroupReport,
    LeftOutReason,
)
from agentkit.evaluation.results.rows import (
    EpisodeRow,
    ExampleShelf,
    SortedAttempts,
    blames_of,
    failed_turns,
    row_of,
    sort_attempts,
)
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.evaluation.task import LeftOut
from agentkit.messages import JsonObject

_WHERE = 5


def summarise(
    episodes: Iterable[Episode],
    *,
    planned: Mapping[str, int] | int | None = None,
    left_out: Iterable[LeftOut] = (),
    command: str = "",
) -> EvaluationReport:
    """Count the episodes of one run of ``agentkit.evaluation.evaluate``.

    Episodes are read one by one and not kept; their order changes nothing. Only finished attempts
    count, and of two finished tries at the same attempt the first. An attempt passed when all that
    the user says was answered and every judged answer passed. What has no verdict, or one with a
    fault, is counted apart.

    Args:
        episodes: Episodes with the labels that ``evaluate`` gives them.
        planned: Attempts that were planned, in all or by category.
        left_out: What the source holds beside the tasks (``Benchmark.left_out``).
        command: How to repeat the run, for the reader.

    Raises:
        UsageError: The episodes are of more than one run.
    """
    reading = _Reading()
    for episode in episodes:
        reading.take(episode)
    attempts = sort_attempts(reading.rows)
    by_category = None if isinstance(planned, int) else planned
    total = planned if isinstance(planned, int) or planned is None else sum(planned.values())
    categories = tuple(
        group_report(name, own, None if by_category is None else by_category.get(name, 0))
        for name, own in _by_category(attempts, by_category or {})
    )
    return _report(
        reading,
        attempts,
        total=group_report("", attempts, total),
        categories=categories,
        left_out=tuple(_reasons(left_out)),
        command=command,
    )


@dataclass(kw_only=True, slots=True)
class _Reading:
    """What is kept of the episodes while they are read."""

    rows: list[EpisodeRow] = field(default_factory=list)
    by_label: ExampleShelf = field(default_factory=lambda: ExampleShelf(most=20))
    by_tool: ExampleShelf = field(default_factory=lambda: ExampleShelf(most=4))
    runs: set[str] = field(default_factory=set)
    benchmarks: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    started: str = ""
    ended: str = ""
    seen: set[str] = field(default_factory=set)
    strangers: int = 0

    def take(self, episode: Episode) -> None:
        """Keep what the report needs of an episode; one that was read before is passed over."""
        if episode.episode_id in self.seen:
            return
        self.seen.add(episode.episode_id)
        labels = EvaluationLabels.of(episode)
        if labels is None:
            self.strangers += 1
            return
        self._note_run(episode, labels)
        row = row_of(episode, labels)
        self.rows.append(row)
        for turn in () if row.fault is not None else failed_turns(episode):
            self.by_label.offer((turn.label,), row.place, episode, turn)
            for blame in blames_of(turn):
                if blame.tool:
                    self.by_tool.offer((blame.tool,), row.place, episode, turn)
                if blame.parameter:
                    self.by_tool.offer((blame.tool, blame.parameter), row.place, episode, turn)

    def _note_run(self, episode: Episode, labels: EvaluationLabels) -> None:
        self.runs.add(labels.run)
        self.benchmarks.add(labels.benchmark)
        self.settings.add(labels.settings)
        self.models.add(episode.model)
        self.versions.add(episode.library_version)
        if episode.started_at:
            self.started = min(self.started or episode.started_at, episode.started_at)
            self.ended = max(self.ended, episode.started_at)
        if len(self.runs) > 1:
            one, other = sorted(self.runs)
            raise UsageError(
                f"these episodes are of the runs {one!r} and {other!r}, and a report is about one; "
                "select the episodes of one run (the label 'run')"
            )


def _report(
    reading: _Reading,
    attempts: SortedAttempts,
    *,
    total: GroupReport,
    categories: tuple[GroupReport, ...],
    left_out: tuple[LeftOutReason, ...],
    command: str,
) -> EvaluationReport:
    rows = [row for attempt in attempts.counted for row in attempt.rows]
    tasks = by_task(attempts.counted).values()
    examples = ChosenExamples.of(rows, reading.by_label, reading.by_tool)
    settings, mixed = _settings(reading.settings)
    return EvaluationReport(
        run=", ".join(reading.runs),
        benchmark=", ".join(sorted(reading.benchmarks)),
        models=tuple(sorted(reading.models)),
        library_versions=tuple(sorted(reading.versions)),
        settings=settings,
        mixed=mixed,
        command=command,
        started=reading.started,
        ended=reading.ended,
        total=total,
        categories=categories,
        macro=macro_mean([one.accuracy for one in categories if one.accuracy is not None]),
        pass_at=pass_table([task_outcome(own) for own in tasks]),
        tokens=distribution(attempt.tokens for attempt in attempts.counted),
        seconds=distribution(attempt.seconds for attempt in attempts.counted),
        tools=examples.tools,
        parameters=examples.parameters,
        confusions=tool_confusions(rows),
        recoveries=recovery_counts(rows),
        errors=error_incidents(rows),
        faults=fault_incidents(row for attempt in attempts.faulty for row in attempt.rows),
        examples=examples.examples,
        results=tuple(
            sorted((task_result(own) for own in tasks), key=lambda one: (one.category, one.task))
        ),
        left_out=left_out,
        spent=total_usage(row.usage for row in reading.rows),
        repeated=attempts.repeated,
        strangers=reading.strangers,
        undiagnosed=sum(row.label is None and row.passed is not None for row in rows),
    )


def _by_category(
    attempts: SortedAttempts, planned: Iterable[str]
) -> Iterator[tuple[str, SortedAttempts]]:
    """The attempts of each category, those without any included if they were planned."""
    groups = {name: SortedAttempts() for name in planned}
    for kind in ("counted", "faulty", "unjudged", "unfinished"):
        for attempt in getattr(attempts, kind):
            group = groups.setdefault(attempt.category, SortedAttempts())
            getattr(group, kind).append(attempt)
    yield from sorted(groups.items())


def _settings(texts: Iterable[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """The settings, and the names of those that are not the same in all episodes."""
    records = [_decoded(text) for text in sorted(texts)]
    if not records:
        return {}, ()
    names = sorted({name for record in records for name in record})
    mixed = (name for name in names if any(r.get(name) != records[0].get(name) for r in records))
    return records[0], tuple(mixed)


def _decoded(text: str) -> JsonObject:
    try:
        record = json.loads(text) if text else {}
    except ValueError:
        record = None
    return record if isinstance(record, dict) else {"settings": text}


def _reasons(left_out: Iterable[LeftOut]) -> Iterator[LeftOutReason]:
    """What was left out, by reason, the most frequent first."""
    where: dict[str, list[str]] = {}
    for one in left_out:
        where.setdefault(one.reason, []).append(one.where)
    for reason, places in sorted(where.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield LeftOutReason(reason=reason, count=len(places), where=tuple(places[:_WHERE]))
