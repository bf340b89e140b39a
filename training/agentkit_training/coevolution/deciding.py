"""``decided``: what one process makes of the step that all processes tried."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from agentkit.episodes import Episode
from agentkit.evaluation import EvaluationSettings
from agentkit.library import Library
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.library_round import LibraryRound, library_size
from agentkit_training.coevolution.records import (
    CoevolutionStep,
    Memory,
    RolloutSums,
    StepSeconds,
    UpdateFigures,
)
from agentkit_training.coevolution.settings import CoevolutionSettings, as_learned_from
from agentkit_training.coevolution.tasks import block_count
from agentkit_training.engines.base import StepReport
from agentkit_training.rollout.samples import Rollout
from agentkit_training.weighting import Weighting


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutNote:
    """What the record of a step needs of one rollout.

    Attributes:
        task_id: The task.
        passed: Whether all that was judged passed.
        fault: Why it says nothing about the policy; empty for any other.
        reward: Its reward.
        reward_parts: What the reward is made of.
        reward_notes: What the reward function recorded beside it.
        weight: Of its advantage.
        labels: Of its turns.
        blocks: Answers with a ``<description>`` block.
        calls: Tool calls.
    """

    task_id: str
    passed: bool
    fault: str
    reward: float
    reward_parts: Mapping[str, float]
    reward_notes: Mapping[str, float]
    weight: float
    labels: tuple[str, ...]
    blocks: int
    calls: int

    @classmethod
    def of(cls, rollout: Rollout) -> RolloutNote:
        """The note of a rollout."""
        return cls(
            task_id=rollout.task_id,
            passed=rollout.passed,
            fault=rollout.fault,
            reward=rollout.reward,
            reward_parts=dict(rollout.reward_parts),
            reward_notes=dict(rollout.reward_notes),
            weight=rollout.weight,
            labels=rollout.labels,
            blocks=block_count(rollout),
            calls=sum(len(episode.calls) for episode in rollout.episodes),
        )

    def to_json(self) -> dict[str, Any]:
        """The note as a JSON object."""
        return asdict(self)


def summed(notes: Sequence[RolloutNote]) -> RolloutSums:
    """Add up the notes of one step, of all processes in order."""
    sound = [one for one in notes if not one.fault]
    labels = Counter(label for one in sound for label in one.labels)
    return RolloutSums(
        tasks=tuple(dict.fromkeys(one.task_id for one in notes)),
        count=len(notes),
        passed=sum(one.passed for one in sound),
        faults=len(notes) - len(sound),
        fault=next((one.fault for one in notes if one.fault), ""),
        blocks=sum(one.blocks > 0 for one in notes),
        calls=sum(one.calls for one in notes),
        reward=_mean(one.reward for one in sound),
        reward_parts=_means(one.reward_parts for one in sound),
        reward_notes=_means(one.reward_notes for one in sound),
        weight=_mean((one.weight for one in sound), empty=1.0),
        labels=dict(sorted(labels.items())),
    )


def _means(several: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name, over those that have it."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for values in several:
        for name, value in values.items():
            found[name].append(value)
    return {name: fmean(values) for name, values in sorted(found.items())}


def _mean(values: Iterable[float], *, empty: float = 0.0) -> float:
    found = list(values)
    return fmean(found) if found else empty


_COUNTED = ("rows", "read_rows", "read_tokens", "loss_tokens", "too_long")
"""Figures of an engine's report that are of one process; the others are of all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """The rollouts of one process in the step under way.

    Attributes:
        step: Its number.
        library: What the prompts were rendered from.
        rollouts: With rewards and weights.
        weighting: As it is after them; None where nothing is weighted.
    """

    step: int
    library: Library
    rollouts: tuple[Rollout, ...]
    weighting: Weighting | None = None

    @property
    def episodes(self) -> list[Episode]:
        """What the library may learn from: episodes of rollouts without a fault."""
        sound = (one for one in self.rollouts if not one.fault)
        return [as_learned_from(episode) for one in sound for episode in one.episodes]

    def told(self, report: StepReport) -> dict[str, Any]:
        """What the process that decides must know, as JSON data.

        Args:
            report: What the engine says of this process's part of the update.
        """
        return {
            "notes": [RolloutNote.of(one).to_json() for one in self.rollouts],
            "episodes": [one.to_json() for one in self.episodes],
            "counts": {name: getattr(report, name) for name in _COUNTED},
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What came of a step.

    Attributes:
        record: Of the step.
        memory: After it.
        library: What the next step begins with.
    """

    record: CoevolutionStep
    memory: Memory
    library: Library

    def told(self) -> dict[str, Any]:
        """What the other processes must know beside the library, as JSON data.

        Episodes that wait are left out: who decides alone needs them.
        """
        memory = replace(self.memory, pending=())
        return {"record": self.record.to_json(), "memory": memory.to_json()}


def decided(
    keeper: LibraryKeeper,
    settings: CoevolutionSettings,
    memory: Memory,
    *,
    report: StepReport,
    before: Library,
    told: Sequence[Mapping[str, Any]],
    asking: EvaluationSettings | None = None,
) -> Decision:
    """Let the profile and, when it is due, the library learn from a step.

    Nothing but the library's store is changed, so that a call that failed can be made again: what
    was committed by then is known there and not committed twice.

    Args:
        keeper: The library.
        settings: What may change it, and when.
        memory: Before the step.
        report: Of the engine.
        before: The library that the prompts were rendered from.
        told: What each process tried, in order.
        asking: How tasks are asked, without what training prompts have more.
    """
    started = time.perf_counter()
    episodes = [Episode.from_json(one) for each in told for one in each["episodes"]]
    notes = [RolloutNote(**one) for each in told for one in each["notes"]]
    after = memory.after(episodes, decay=settings.decay)
    done = LibraryRound()
    if (report.step + 1) % settings.every == 0:
        if settings.changes_library:
            keeper.keep(after.pending)
            done = keeper.decide(after.pending, after.profile, step=report.step, asking=asking)
        after = replace(after, pending=())
    library = keeper.library
    record = CoevolutionStep(
        step=report.step,
        version=before.version,
        digest=before.digest,
        next_version=library.version,
        next_digest=library.digest,
        rollouts=summed(notes),
        proposals=done.proposals,
        silent=done.silent,
        library=library_size(library),
        loss=report.loss,
        gradient_norm=report.gradient_norm,
        update=UpdateFigures.of(_of_all(report, told)),
        seconds=StepSeconds(
            rollouts=report.rollout_seconds,
            update=report.update_seconds,
            library=time.perf_counter() - started,
        ),
    )
    return Decision(record=record, memory=after, library=library)


def _of_all(report: StepReport, told: Sequence[Mapping[str, Any]]) -> StepReport:
    """The report of the whole step, with what each process counted."""
    counts = {name: sum(int(one["counts"][name]) for one in told) for name in _COUNTED}
    return replace(report, **counts)
