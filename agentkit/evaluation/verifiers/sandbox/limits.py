"""``CodeLimits``: what foreign code may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLimits:
    """Bounds of one run.

    Attributes:
        cpu_seconds: Processor time of the process. This is the bound that a loop without end
            meets; unlike wall time it is the same on a busy machine.
        seconds: Wall time, for code that waits.
        memory_bytes: Address space of the process.
        file_bytes: Largest file that may be written in its folder; 0 for no writing at all.
    """

    cpu_seconds: int = 5
    seconds: float = 20.0
    memory_bytes: int = 1 << 30
    file_bytes: int = 0
