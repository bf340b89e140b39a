"""Going on with a run that was interrupted: what is finished is never asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from agentkit.episodes import Episode
from agentkit.episodes.labels import is_extra_record
from agentkit.errors import UsageError
from agentkit.evaluation.labels import EvaluationLabels
from agentkit.library import EpisodeFilter, EpisodeStore
from agentkit.messages import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """What an earlier start of the run left behind.

    Attributes:
        finished: Task and number of each finished attempt.
        settings: The settings that it ran under, as text; None when there was no earlier start.
    """

    finished: frozenset[tuple[str, int]] = frozenset()
    settings: str | None = None


def episodes_of_run(store: EpisodeStore, run: str) -> Iterator[Episode]:
    """The episodes of one run, newest first.

    Shadow runs and views bear the labels of the attempt that they repeat, and are no attempts.

    Args:
        store: Where they are kept.
        run: The run's name.
    """
    found = store.select(EpisodeFilter(labels={"run": run}))
    return (episode for episode in found if not is_extra_record(episode.metadata))


def earlier_start(store: EpisodeStore, run: str) -> Earlier:
    """What ``store`` holds of the run.

    Args:
        store: Where episodes are kept.
        run: The run's name.
    """
    finished: set[tuple[str, int]] = set()
    settings: str | None = None
    for episode in episodes_of_run(store, run):
        labels = EvaluationLabels.of(episode)
        if labels is None:
            continue
        settings = labels.settings or settings
        if labels.ends:
            finished.add((labels.task, labels.attempt))
    return Earlier(finished=frozenset(finished), settings=settings)


def check_settings(run: str, earlier: Earlier, settings: str) -> None:
    """Make sure that a run is gone on with as it was begun.

    Raises:
        UsageError: It was begun under other settings; the message names them.
    """
    if earlier.settings is None or earlier.settings == settings:
        return
    old, new = json.loads(earlier.settings), json.loads(settings)
    changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    told = "; ".join(f"{key} was {_told(old, key)}, is {_told(new, key)}" for key in changed)
    raise UsageError(
        f"the run {run!r} was begun under other settings ({told}); repeat them to go on with it, "
        "or give the new run another name"
    )


def _told(settings: JsonObject, key: str) -> str:
    return repr(settings[key]) if key in settings else "not set"
