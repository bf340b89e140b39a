"""Which samples are trained on."""

from __future__ import annotations

from hypothesis import given, strategies as st

from agentkit_training.toolace.difficulty import TaskDifficulty
from agentkit_training.toolace.records import SelectionSettings, select

DIFFICULTIES = st.lists(st.floats(0, 1), max_size=30)


def tasks(values):
    return [
        TaskDifficulty(task_id=f"t{n}", difficulty=value, attempts=(), shortfalls=())
        for n, value in enumerate(values)
    ]


@given(values=DIFFICULTIES)
def test_what_lies_between_alpha_and_beta_is_taken(values):
    """Exactly the samples with ``0 < D < 0.9`` are taken, and each other one has its reason."""
    found = select(tasks(values))
    assert found.taken == tuple(f"t{n}" for n, d in enumerate(values) if 0 < d < 0.9)
    assert dict(found.excluded) == {
        f"t{n}": "too_easy" if d == 0 else "too_difficult"
        for n, d in enumerate(values)
        if not 0 < d < 0.9
    }
    assert len(found.taken) + sum(found.counts.values()) == len(values)


@given(values=DIFFICULTIES, seed=st.integers(0, 5))
def test_random_takes_as_many_as_selected(values, seed):
    """The control draws a sample of the same size from all, the same one for the same seed."""
    settings = SelectionSettings(strategy="random", seed=seed)
    found = select(tasks(values), settings)
    assert len(found.taken) == len(select(tasks(values)).taken)
    assert found == select(tasks(values), settings)
    assert set(found.taken) | set(found.excluded) == {f"t{n}" for n in range(len(values))}
    assert list(found.taken) == sorted(found.taken, key=lambda name: int(name[1:]))


def test_other_thresholds_keep_the_easy_or_the_difficult():
    """The paper's Table 4: ``alpha = -1`` keeps D = 0, ``beta = 2`` keeps D = 1."""
    values = tasks([0.0, 0.5, 1.0])
    assert select(values, SelectionSettings(low=-1)).taken == ("t0", "t1")
    assert select(values, SelectionSettings(low=0.1, high=2)).taken == ("t1", "t2")
