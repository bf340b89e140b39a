"""Wilson and bootstrap intervals."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.metrics import Observation, bootstrap_interval, wilson_interval


def observed(values):
    return [Observation(value=value, task=str(task)) for task, value in enumerate(values)]


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_published_values(passed, total, low, high):
    """Four published intervals, at the level of .95."""
    found = wilson_interval(passed, total)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(total=st.integers(0, 200), level=st.floats(0.5, 0.999), data=st.data())
def test_wilson_holds_the_share_and_stays_between_0_and_1(total, level, data):
    """The share lies inside, the ends inside [0, 1], and turning pass into fail mirrors it."""
    passed = data.draw(st.integers(0, total))
    found, mirrored = (
        wilson_interval(count, total, level=level) for count in (passed, total - passed)
    )
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_agrees_with_scipy(method):
    """The same ends, up to the noise of drawing, as ``scipy.stats.bootstrap``."""
    stats = pytest.importorskip("scipy.stats")
    np = pytest.importorskip("numpy")
    values = np.random.default_rng(3).exponential(size=60)
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(4)
    ).confidence_interval
    found = bootstrap_interval(observed(values), resamples=20_000, method=method)
    assert found.low == pytest.approx(expected.low, abs=0.012)
    assert found.high == pytest.approx(expected.high, abs=0.012)


def test_the_same_seed_gives_the_same_interval_in_any_order():
    """Nothing depends on the order of the observations, and another seed changes little."""
    values = observed([0, 1, 1, 0, 1, 1, 1, 0, 1, 1] * 4)
    shuffled = random.Random(1).sample(values, len(values))
    first, again = bootstrap_interval(values, seed=5), bootstrap_interval(shuffled, seed=5)
    other = bootstrap_interval(values, seed=6)
    assert first == again
    assert other.low == pytest.approx(first.low, abs=0.05)


def test_repeated_attempts_do_not_make_it_narrower():
    """Ten identical attempts at each task tell no more than one: tasks are drawn, not attempts."""
    once = observed([0, 1, 1, 0, 1, 1])
    tenfold = [one for one in once for _ in range(10)]
    assert bootstrap_interval(once) == bootstrap_interval(tenfold)


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (lambda: wilson_interval(3, 2), "can not have passed"),
        (lambda: wilson_interval(1, 2, level=95), "between 0 and 1"),
        (lambda: bootstrap_interval([]), "at least one"),
        (lambda: bootstrap_interval(observed([float("nan")])), "finite"),
        (lambda: bootstrap_interval(observed([1]), resamples=0), "1 or more"),
    ],
)
def test_what_has_no_interval_is_refused(work, says):
    """Impossible counts, levels and values are the caller's mistake, and said so."""
    with pytest.raises(UsageError, match=says):
        work()
