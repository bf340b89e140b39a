"""How often and how long tests keep a fault up; ``AGENTKIT_FAULT_RUNS`` asks for more."""

from __future__ import annotations

import os


def fault_runs(few: int, *, most: int | None = None) -> int:
    """How often a test repeats a fault: ``few``, unless ``AGENTKIT_FAULT_RUNS`` says how often.

    ``most`` bounds what the environment asks for, where one fault takes seconds: a server restarts.
    """
    asked = int(os.environ.get("AGENTKIT_FAULT_RUNS", "") or few)
    return asked if most is None else min(asked, most)


def fault_seconds(few: float, many: float) -> float:
    """How long a test keeps a fault up: ``few``; ``many`` where ``AGENTKIT_FAULT_RUNS`` is set."""
    return many if os.environ.get("AGENTKIT_FAULT_RUNS") else few
