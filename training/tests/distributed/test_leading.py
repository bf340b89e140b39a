"""What rank 0 does for all: the others wait for its end, and hear of its errors."""

import pytest

from agentkit.errors import UsageError
from agentkit_training import tiny_policy
from agentkit_training.distributed.ranks import ALONE, Alone, check_weights, in_turn, led
from agentkit_training.errors import PeerError, TrainingError
from agentkit_training.jobs.running import own_device


def test_rank_0_works_alone(two_ranks):
    """The work is done once, however often it says that it goes on."""
    done, (_, together) = [], two_ranks

    def work(beat):
        done.append("once")
        beat()
        beat()
        return "written"

    assert together(lambda ranks: led(ranks, work)) == ("written", None)
    assert done == ["once"]
    assert led(ALONE, work) == "written"


def test_an_error_of_rank_0_ends_the_waiting(two_ranks):
    """Rank 0 raises its own error, the others one that names it."""

    def work(_):
        raise OSError("the disk is full")

    _, together = two_ranks
    first, second = together(lambda ranks: led(ranks, work))
    assert isinstance(first, OSError)
    assert isinstance(second, PeerError)
    assert "OSError: the disk is full" in str(second)


def test_what_all_load_is_loaded_in_turn(two_ranks):
    """Rank 0 fetches; when the others come, it is there."""
    loaded, (_, together) = [], two_ranks

    def work(ranks):
        def load():
            loaded.append(ranks.rank)
            return f"tasks of {ranks.rank}"

        return in_turn(ranks, load)

    assert together(work) == ("tasks of 0", "tasks of 1")
    assert loaded == [0, 1]


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)])
def test_policies_are_compared_bit_by_bit(seeds, two_ranks):
    """Equal weights pass; where they differ, every process hears which."""
    policies, (_, together) = [tiny_policy(seed=seed) for seed in seeds], two_ranks
    first, second = together(lambda ranks: check_weights(policies[ranks.rank], ranks))
    if seeds[0] == seeds[1]:
        assert (first, second) == (None, None)
    else:
        assert isinstance(first, TrainingError)
        assert str(first) == str(second)
        assert "rank 1" in str(first)


def test_each_process_takes_a_gpu_of_its_own(monkeypatch):
    """``cuda`` becomes the GPU of the process; one GPU for all is refused, one process takes it."""
    two = Alone(rank=1, world=2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert own_device("cuda", two) == "cuda:1"
    assert own_device("cpu", two) == "cpu"
    assert own_device("cuda:3", ALONE) == "cuda:3"
    with pytest.raises(UsageError, match=r"set policy\.device: cuda"):
        own_device("cuda:0", two)
