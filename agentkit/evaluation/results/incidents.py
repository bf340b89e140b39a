"""What happened to a run rather than to the agent: errors of the model, broken references."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evaluation.results.records import Incident
from agentkit.evaluation.results.rows import EpisodeRow

MOST_INCIDENTS = 30


def error_incidents(rows: Iterable[EpisodeRow]) -> tuple[Incident, ...]:
    """Errors of the model by type, the most frequent first.

    Args:
        rows: The episodes to look at.
    """
    failed: dict[str, list[EpisodeRow]] = {}
    for row in rows:
        if row.stop_reason in {"error", "cancelled"}:
            kind = row.error.partition(":")[0] or row.stop_reason
            failed.setdefault(kind, []).append(row)
    return _ordered(
        Incident(
            what=kind,
            count=len(own),
            example=first.place.episode_id,
            task=first.place.task,
            message=first.error,
        )
        for kind, own in failed.items()
        for first in [min(own, key=lambda row: row.place)]
    )


def fault_incidents(rows: Iterable[EpisodeRow]) -> tuple[Incident, ...]:
    """Each episode whose verdict has a fault.

    Args:
        rows: The episodes to look at.
    """
    return _ordered(
        Incident(
            what=row.fault,
            count=1,
            example=row.place.episode_id,
            task=row.place.task,
            message=row.message,
        )
        for row in rows
        if row.fault is not None
    )


def _ordered(incidents: Iterable[Incident]) -> tuple[Incident, ...]:
    ordered = sorted(incidents, key=lambda one: (-one.count, one.what, one.task, one.example))
    return tuple(ordered[:MOST_INCIDENTS])
