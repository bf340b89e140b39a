"""Several processes: one decides about the library, all come to the same."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace

import pytest

from agentkit.errors import UsageError
from agentkit_training.coevolution.checkpoint import FrozenEngine
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.engines.base import Share
from agentkit_training.weighting import FixedWeighting, MeanNormalised

NORMALISED = MeanNormalised(inner=FixedWeighting())


@dataclass(kw_only=True)
class Meeting:
    """Where threads that stand for processes meet; what they exchange goes through JSON."""

    world: int
    barrier: threading.Barrier = field(init=False)
    values: dict = field(init=False, default_factory=dict)

    def __post_init__(self):
        self.barrier = threading.Barrier(self.world, timeout=60)

    def exchange(self, rank, value):
        """The values of all, in order."""
        self.values[rank] = json.dumps(value)
        self.barrier.wait()
        found = [json.loads(self.values[one]) for one in range(self.world)]
        self.barrier.wait()
        return found


@dataclass(frozen=True, kw_only=True)
class Threads:
    """One rank of a meeting."""

    meeting: Meeting
    rank: int

    @property
    def world(self):
        """How many meet."""
        return self.meeting.world

    def gather(self, value):
        """All values, at rank 0."""
        found = self.meeting.exchange(self.rank, value)
        return found if self.rank == 0 else ()

    def broadcast(self, value):
        """The value of rank 0."""
        return self.meeting.exchange(self.rank, value)[0]


def together(begin, settings, *, keeping=None, steps=2, **more):
    """Two ranks of one run, and what each raised."""
    meeting, raised = Meeting(world=2), {}
    runs = []
    for rank in range(2):
        ranks = Threads(meeting=meeting, rank=rank)
        run = begin(settings, ranks=ranks, keeping=keeping if rank == 0 else None, **more)
        runs.append(replace(run, engine=FrozenEngine(share=Share(rank=rank, world=2))))

    def work(rank):
        try:
            runs[rank].train(steps)
        except Exception as error:  # noqa: BLE001 - looked at by the test
            raised[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return runs, raised


def test_all_ranks_come_to_one_library_and_one_record(begin):
    """Each tries its share; rank 0 decides; records and digests are equal, as with one process."""
    settings = CoevolutionSettings(evidence=True)
    (first, second), raised = together(begin, settings)
    assert raised == {}
    assert first.source.records == second.source.records
    assert first.source.library.digest == second.source.library.digest
    assert second.source.library.version == first.source.library.version == 2
    assert second.source.keeper.library.version == 1  # only rank 0 writes
    alone = replace(begin(settings), engine=FrozenEngine()).train(2)
    assert alone.source.library.digest == first.source.library.digest
    assert [one.rollouts.count for one in alone.source.records] == [6, 6]
    assert alone.source.records[0].rollouts.labels == first.source.records[0].rollouts.labels


def test_weights_are_those_of_one_process(begin):
    """Each process weighs by what all have tried, so that the mean weight agrees."""
    settings = CoevolutionSettings(weighting=True)
    runs, raised = together(begin, settings, weighting=NORMALISED)
    assert raised == {}
    alone = replace(begin(settings, weighting=NORMALISED), engine=FrozenEngine()).train(2)
    for run in runs:
        found = [one.rollouts.weight for one in run.source.records]
        assert found == pytest.approx([one.rollouts.weight for one in alone.source.records])


def test_a_process_without_tasks_hears_of_the_weights(begin, bank):
    """The last step of an epoch may have fewer tasks than there are processes."""
    settings = CoevolutionSettings(weighting=True)
    few = replace(bank, tasks=bank.tasks[:1])
    runs, raised = together(begin, settings, steps=1, benchmark=few, weighting=NORMALISED)
    assert raised == {}
    first, second = (run.source for run in runs)
    assert first.records == second.records


def test_a_share_that_does_not_fit_the_ranks_is_refused(begin):
    """An engine of two processes and a source of one would train on half of the tasks."""
    with pytest.raises(UsageError, match="share 1 of 2"):
        begin().source.rollouts(0, Share(rank=1, world=2))
