"""Earlier answers: judging them again, and resuming an interrupted run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.agent.types import RunResult
from agentkit.episodes import Episode, Turn
from agentkit.episodes.labels import is_extra_record
from agentkit.errors import ModelStatusError, UsageError
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.library import EpisodeFilter, EpisodeStore
from agentkit.messages import JsonObject
from agentkit.models.base import ModelRequest, ModelResponse

AttemptKey = tuple[str, int]
"""Task id and number of an attempt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedAnswers:
    """What a run answered; ``evaluate`` takes it in place of a model.

    Attributes:
        name: Name of the model that answered.
        episodes: The episodes of each finished attempt, in the order of the user's turns.
    """

    name: str
    episodes: Mapping[AttemptKey, Sequence[Episode]]

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> RecordedAnswers:
        """The answers in the episodes of one run; attempts that did not end are left out."""
        sessions: dict[tuple[str, int, str], list[tuple[EvaluationLabels, Episode]]] = {}
        for episode in episodes:
            labels = EvaluationLabels.of(episode)
            if labels is not None:
                key = (labels.task, labels.attempt, episode.session_id or "")
                sessions.setdefault(key, []).append((labels, episode))
        finished: dict[AttemptKey, Sequence[Episode]] = {}
        for (task, attempt, _), found in sessions.items():
            ordered = sorted(found, key=lambda pair: pair[0].user_turn)
            if ordered[-1][0].ends:
                finished[task, attempt] = tuple(episode for _, episode in ordered)
        names = {episode.model for found in finished.values() for episode in found}
        return cls(name=", ".join(sorted(names)), episodes=finished)

    def answer(self, attempt: AttemptKey, user_turn: int) -> Episode:
        """What was answered to one of the things the user says.

        A task may have got further user turns since it was asked. To these there is no answer:
        an episode without turns, with which ``RecordedModel`` fails.

        Args:
            attempt: One of those in ``episodes``.
            user_turn: Which of the user's turns, from 0.
        """
        found = self.episodes[attempt]
        if user_turn < len(found):
            return found[user_turn]
        return replace(found[-1], turns=(), error=None)


class RecordedModel:
    """Says what an episode's model said, turn by turn.

    Args:
        episode: The episode.
    """

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self._turns: Iterator[Turn] = iter(episode.turns)

    @property
    def name(self) -> str:
        """The name of the model that answered."""
        return self._episode.model

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The next recorded answer.

        Raises:
            ModelStatusError: The model failed here, or was never asked this.
        """
        turn = next(self._turns, None)
        if turn is None:
            message = self._episode.error or "the recorded run has no further answer"
            raise ModelStatusError(message, status=422, body="", retry_after=None)
        return ModelResponse(message=turn.message, usage=turn.usage)


def as_recorded(result: RunResult, recorded: Episode) -> RunResult:
    """The result of running an episode's answers again, with all that the model's part was.

    How calls were refined, how long the model took and when it was come from the recorded run;
    results and the way the run ended are new.

    Args:
        result: What came of the answers now.
        recorded: The episode that they are from.
    """
    turns = [
        replace(
            new,
            refine=old.refine,
            retrieval=old.retrieval,
            seconds=old.seconds,
            model_seconds=old.model_seconds,
        )
        for new, old in zip(result.episode.turns, recorded.turns, strict=False)
    ]
    episode = replace(
        result.episode,
        turns=(*turns, *result.episode.turns[len(turns) :]),
        started_at=recorded.started_at,
        seconds=recorded.seconds,
        usage=recorded.usage,
    )
    return replace(result, episode=episode)


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
