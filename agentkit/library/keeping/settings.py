"""How an ``EpisodeWriter`` gathers and retries, and how it stands."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from agentkit.errors import UsageError

WhenFull = Literal["wait", "raise"]
"""What appending to a full buffer does: wait for room and then spill, or raise at once."""

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterSettings:
    """How episodes are gathered, and what happens while the store is away.

    Attributes:
        batch_count: Most episodes written in one step.
        batch_bytes: Most bytes of them, as JSON text; a bigger episode is a batch of its own.
        linger_seconds: How long an episode waits for others before it is written.
        max_count: Most episodes held in memory.
        max_bytes: Most bytes of them, as JSON text; a bigger episode is held alone.
        when_full: What appending to a full buffer does.
        wait_seconds: How long it waits for room before all that is held goes to a file.
        first_pause_seconds: Pause after the first failure of the store; it doubles each time.
        longest_pause_seconds: The longest of these pauses.
        close_seconds: How long ``close`` tries to reach the store before it spills the rest.
    """

    batch_count: int = 256
    batch_bytes: int = 4 * _MIB
    linger_seconds: float = 0.05
    max_count: int = 10_000
    max_bytes: int = 64 * _MIB
    when_full: WhenFull = "wait"
    wait_seconds: float = 10.0
    first_pause_seconds: float = 0.1
    longest_pause_seconds: float = 10.0
    close_seconds: float = 5.0

    def __post_init__(self) -> None:
        least = {"batch_count": 1, "batch_bytes": 1, "max_count": 1, "max_bytes": 1}
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name != "when_full" and not value >= least.get(setting.name, 0):
                raise UsageError(
                    f"{setting.name} is {least.get(setting.name, 0)} or more; got {value!r}"
                )
        if self.when_full not in {"wait", "raise"}:
            raise UsageError(f"when_full is 'wait' or 'raise'; got {self.when_full!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterState:
    """How a writer stands, for metrics and alarms.

    Attributes:
        pending: Episodes in memory that the store has not got yet.
        pending_bytes: Their size as JSON text.
        oldest_seconds: How long the oldest of them has waited; 0 when there is none.
        spilled: Episodes in files that the store has not got yet, those of earlier programs
            included.
        refused: Episodes that the store would not take, set aside in a file since the start.
        written: Episodes given to the store since the start.
        failures: Failed attempts in a row; 0 when the last one worked.
        last_error: What the last failure said; kept when the store is back.
    """

    pending: int = 0
    pending_bytes: int = 0
    oldest_seconds: float = 0.0
    spilled: int = 0
    refused: int = 0
    written: int = 0
    failures: int = 0
    last_error: str = ""
