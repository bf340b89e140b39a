"""What hostile inputs may cost, how many of them are tried, and how long tests keep a fault up.

``make test`` tries a few of each kind; ``AGENTKIT_FUZZ_EXAMPLES=2000`` tries more, and
``AGENTKIT_FAULT_RUNS`` asks for more faults (``make test-all``).
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings

MAX_SECONDS = 0.25
"""CPU time that one input may take, beyond that of reading its bytes."""

BYTES_A_SECOND = 100_000_000
"""As fast as the bytes of an input are read: one of a hundred megabytes has a second more."""

COUNT_SECONDS = 0.02
"""CPU time of ``_count`` on a core that nobody shares; on a shared one it takes up to twice that."""

MAX_BYTES = 50_000_000
"""Memory that one input may take, beyond its own size."""

EXAMPLES = int(os.environ.get("AGENTKIT_FUZZ_EXAMPLES", "20"))

fuzzing = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking a freeze takes for ever
    print_blob=True,
)
"""How often a property is tried, as a decorator."""

Work = Callable[[], object]


def check_cost(work: Work, size: int) -> None:
    """Fail where an input costs more time or memory than any input may.

    Time is that of this thread's CPU. Where it is too long, the least of three tries counts, each
    by how quick the core is at that moment: other processes on the machine must not decide. Work
    that never ends is ended by the test's own timeout.

    Args:
        work: Reads the input and drops what came of it; errors that users are meant to see are
            caught inside.
        size: The input's size in bytes.
    """
    work()  # imports and caches are nobody's input
    seconds, most = _seconds(work), MAX_SECONDS + size / BYTES_A_SECOND
    if seconds > most:
        seconds = min(_seconds(work) / max(1, _seconds(_count) / COUNT_SECONDS) for _ in range(3))
    assert seconds <= most, f"{seconds:.3f} CPU seconds for an input of {size} bytes"
    peak = _peak(work)
    assert peak <= MAX_BYTES + size, f"{peak:,} bytes for an input of {size:,} bytes"


def _count() -> None:
    """Work of a known size, for comparison."""
    sum(number * number % 7 for number in range(300_000))


def _seconds(work: Work) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def _peak(work: Work) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fault_runs(few: int, *, most: int | None = None) -> int:
    """How often a test repeats a fault: ``few``, unless ``AGENTKIT_FAULT_RUNS`` says how often.

    ``most`` bounds what the environment asks for, where one fault takes seconds: a server restarts.
    """
    asked = int(os.environ.get("AGENTKIT_FAULT_RUNS", "") or few)
    return asked if most is None else min(asked, most)


def fault_seconds(few: float, many: float) -> float:
    """How long a test keeps a fault up: ``few``; ``many`` where ``AGENTKIT_FAULT_RUNS`` is set."""
    return many if os.environ.get("AGENTKIT_FAULT_RUNS") else few
