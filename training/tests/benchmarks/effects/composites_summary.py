"""Tables of what ``composites.py`` has measured: shares, paired differences and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Counts = Mapping[str, float]


def line(tasks: Sequence[Counts]) -> str:
    """Success, calls per solved task, share of composites, and shortened rollouts that failed."""
    solved = [one for one in tasks if one["passed"]]
    calls = sum(one["calls"] for one in tasks)
    composites = sum(one["composite_calls"] for one in tasks)
    shortened = [one for one in tasks if one["saved"]]
    lost = sum(not one["passed"] for one in shortened)
    per_solved = sum(one["calls"] for one in solved) / max(1, len(solved))
    return (
        f"passed {len(solved):3d}/{len(tasks)} ({len(solved) / max(1, len(tasks)):5.1%})  "
        f"calls per solved {per_solved:.2f}  composite calls {composites / max(1, calls):5.1%}  "
        f"shortened {len(shortened)}, of these failed {lost}"
    )
