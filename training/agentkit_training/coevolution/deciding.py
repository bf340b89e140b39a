"""``decided``: what one process makes of the step that all processes tried."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.episodes import Episode
from agentkit.evaluation import EvaluationSettings
from agentkit.library import Library
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.library_round import LibraryRound, library_size
from agentkit_training.coevolution.memory import Memory
from agentkit_training.coevolution.naming import as_learned_from
from agentkit_training.coevolution.records import CoevolutionStep, StepSeconds, UpdateFigures
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.summing import RolloutNote, summed
from agentkit_training.engines.base import StepReport
from agentkit_training.rollout.samples import Rollout
from agentkit_training.weighting.protocol import Weighting

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
