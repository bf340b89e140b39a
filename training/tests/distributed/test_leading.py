"""What rank 0 does for all: the others wait for its end, and hear of its errors."""

import threading

import pytest

from agentkit.errors import UsageError
from agentkit_training import tiny_policy
from agentkit_training.distributed.ranks import ALONE, Alone, check_weights, in_turn, led
from agentkit_training.errors import PeerError, TrainingError
from agentkit_training.jobs.running import own_device


class Threads:
    """One rank of two that are threads."""

    def __init__(self, rank, barrier, values):
        self.rank, self.world = rank, 2
        self.barrier, self.values = barrier, values

    def _exchanged(self, value):
        self.values[self.rank] = value
        self.barrier.wait()
        found = [self.values[one] for one in range(2)]
        self.barrier.wait()
        return found

    def gather(self, value):
        """The values of both, at rank 0."""
        found = self._exchanged(value)
        return found if self.rank == 0 else ()

    def broadcast(self, value):
        """The value of rank 0."""
        return self._exchanged(value)[0]


def together(work):
    """What two ranks returned or raised."""
    barrier, values, found = threading.Barrier(2, timeout=60), {}, {}

    def run(rank):
        try:
            found[rank] = work(Threads(rank, barrier, values))
        except Exception as error:  # noqa: BLE001 - looked at by the test
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found[0], found[1]


def test_rank_0_works_alone():
    """The work is done once, however often it says that it goes on."""
    done = []

    def work(beat):
        done.append("once")
        beat()
        beat()
        return "written"

    assert together(lambda ranks: led(ranks, work)) == ("written", None)
    assert done == ["once"]
    assert led(ALONE, work) == "written"


def test_an_error_of_rank_0_ends_the_waiting():
    """Rank 0 raises its own error, the others one that names it."""

    def work(_):
        raise OSError("the disk is full")

    first, second = together(lambda ranks: led(ranks, work))
    assert isinstance(first, OSError)
    assert isinstance(second, PeerError)
    assert "OSError: the disk is full" in str(second)


def test_what_all_load_is_loaded_in_turn():
    """Rank 0 fetches; when the others come, it is there."""
    loaded = []

    def work(ranks):
        def load():
            loaded.append(ranks.rank)
            return f"tasks of {ranks.rank}"

        return in_turn(ranks, load)

    assert together(work) == ("tasks of 0", "tasks of 1")
    assert loaded == [0, 1]


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)])
def test_policies_are_compared_bit_by_bit(seeds):
    """Equal weights pass; where they differ, every process hears which."""
    policies = [tiny_policy(seed=seed) for seed in seeds]
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
