"""Several processes: one decides about the library, all come to the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.errors import UsageError
from agentkit_training.coevolution.checkpoint import FrozenEngine
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.engines.base import Share


@pytest.fixture
def together(begin, two_ranks):
    """Makes two ranks of one run, and lets them take their steps."""
    ranks, work = two_ranks

    def made(settings, *, steps=2, **more):
        runs = [
            replace(
                begin(settings, ranks=one, **more),
                engine=FrozenEngine(share=Share(rank=one.rank, world=2)),
            )
            for one in ranks
        ]
        assert work(lambda one: runs[one.rank].train(steps)) == tuple(runs)
        return runs

    return made


def test_all_ranks_come_to_one_library_and_one_record(begin, together):
    """Each tries its share; rank 0 decides; records and digests are equal, as with one process."""
    settings = CoevolutionSettings(evidence=True)
    first, second = together(settings)
    assert first.source.records == second.source.records
    assert first.source.library.digest == second.source.library.digest
    assert second.source.library.version == first.source.library.version == 2
    assert second.source.keeper.library.version == 1  # only rank 0 writes
    alone = replace(begin(settings), engine=FrozenEngine()).train(2)
    assert alone.source.library.digest == first.source.library.digest
    assert [one.rollouts.count for one in alone.source.records] == [6, 6]
    assert alone.source.records[0].rollouts.labels == first.source.records[0].rollouts.labels


def test_weights_are_those_of_one_process(begin, together):
    """Each process weighs by what all have tried, so that the mean weight agrees."""
    settings = CoevolutionSettings(weighting=True)
    runs = together(settings)
    alone = replace(begin(settings), engine=FrozenEngine()).train(2)
    for run in runs:
        found = [one.rollouts.weight for one in run.source.records]
        assert found == pytest.approx([one.rollouts.weight for one in alone.source.records])


def test_a_process_without_tasks_hears_of_the_weights(bank, together):
    """The last step of an epoch may have fewer tasks than there are processes."""
    settings = CoevolutionSettings(weighting=True)
    few = replace(bank, tasks=bank.tasks[:1])
    runs = together(settings, steps=1, benchmark=few)
    first, second = (run.source for run in runs)
    assert first.records == second.records


def test_a_share_that_does_not_fit_the_ranks_is_refused(begin):
    """An engine of two processes and a source of one would train on half of the tasks."""
    with pytest.raises(UsageError, match="share 1 of 2"):
        begin().source.rollouts(0, Share(rank=1, world=2))
