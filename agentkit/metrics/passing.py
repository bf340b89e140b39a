"""pass@k and pass^k: what several attempts at one task say about more or fewer of them.

Both are estimated without bias from ``passed`` of ``attempts`` by counting the ways to choose ``k``
attempts. They are computed with exact integers and rounded once, so no number of attempts is too
large. For a benchmark, take the mean over its tasks.
"""

from __future__ import annotations

from math import comb

from agentkit.errors import UsageError


def pass_at_k(passed: int, attempts: int, k: int) -> float:
    """The chance that at least one of ``k`` attempts passes.

    Chen et al., "Evaluating Large Language Models Trained on Code" (2021), Eq. 1.

    Args:
        passed: How many attempts passed.
        attempts: How many were made.
        k: How many would be made.

    Raises:
        UsageError: The numbers contradict each other, or there are fewer attempts than ``k``.

    Example:
        >>> pass_at_k(3, 10, 1), round(pass_at_k(3, 10, 5), 4)
        (0.3, 0.9167)
    """
    _check(passed, attempts, k)
    chosen = comb(attempts, k)
    return (chosen - comb(attempts - passed, k)) / chosen


def pass_hat_k(passed: int, attempts: int, k: int) -> float:
    """The chance that all of ``k`` attempts pass: how reliable an agent is (pass^k).

    Yao et al., "tau-bench" (2024), section 3.

    Args:
        passed: How many attempts passed.
        attempts: How many were made.
        k: How many would be made.

    Raises:
        UsageError: The numbers contradict each other, or there are fewer attempts than ``k``.

    Example:
        >>> pass_hat_k(3, 4, 1), pass_hat_k(3, 4, 2), pass_hat_k(3, 4, 4)
        (0.75, 0.5, 0.0)
    """
    _check(passed, attempts, k)
    return comb(passed, k) / comb(attempts, k)


def _check(passed: int, attempts: int, k: int) -> None:
    if not 0 <= passed <= attempts:
        raise UsageError(f"{passed} of {attempts} attempts can not have passed")
    if not 1 <= k <= attempts:
        raise UsageError(
            f"k = {k} can not be estimated from {attempts} attempts; make at least k attempts, and "
            "ask for k of 1 or more"
        )
