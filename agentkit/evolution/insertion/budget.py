"""How much trying out one candidate may still cost."""

from __future__ import annotations

import time
from collections.abc import Callable

from agentkit.evolution.insertion.policy import InsertPolicy


class BudgetSpent(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """Trying out the candidate has cost as much as the policy allows."""


class Budget:
    """Time, runs and calls that are left for one candidate.

    Args:
        policy: What is allowed.
        clock: Seconds that only ever grow.
    """

    __slots__ = ("_clock", "_policy", "_until", "calls", "runs")

    def __init__(self, policy: InsertPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._until = clock() + policy.seconds
        self.runs = 0
        self.calls = 0

    def begin_run(self) -> None:
        """Count one run of a tool.

        Raises:
            BudgetSpent: It would be one too many, or it is too late.
        """
        self.runs += 1
        if self.runs > self._policy.runs:
            raise BudgetSpent(f"more than {self._policy.runs:,} runs (InsertPolicy.runs)")
        self._check_time()

    def begin_call(self) -> None:
        """Count one call of a tool within a run.

        Raises:
            BudgetSpent: It would be one too many, or it is too late.
        """
        self.calls += 1
        if self.calls > self._policy.child_calls:
            allowed = f"{self._policy.child_calls:,} calls (InsertPolicy.child_calls)"
            raise BudgetSpent(f"more than {allowed}")
        self._check_time()

    def _check_time(self) -> None:
        if self._clock() > self._until:
            raise BudgetSpent(f"more than {self._policy.seconds:g} s (InsertPolicy.seconds)")
