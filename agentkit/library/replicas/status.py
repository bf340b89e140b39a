"""What a replica says about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

ReplicaState = Literal["current", "behind", "away"]
"""``current``: the last look at the store found nothing newer, or took it up. ``behind``: the store
answers, and what it holds can not be taken up. ``away``: the store does not answer."""

WhenStale = Literal["serve", "refuse"]
"""What becomes of runs that begin while the library is staler than it may be: they are served with
it, and the status says so; or they are refused with an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaStatus:
    """What a replica knows, and how well.

    Attributes:
        state: How it stands to its store.
        version: Of the snapshot that it serves.
        staleness_seconds: Time since it last knew that this is the newest, by a clock of this
            machine that nobody sets. It grows to the time between two looks while all is well;
            of a kept copy nobody knows it, and it is infinite.
        is_too_stale: Whether that is more than the replica's ``max_staleness_seconds``.
        refuses: Whether runs that begin now are refused for it.
        last_error: What the last look failed of; empty when it did not.
        looks: How often it looked at the store.
        failed_looks: How many of these failed.
        refreshes: How often it took up another version.
        hints: How often the store called for a look.
        is_listening: Whether it hears such hints; without them it finds what is new at its next
            look.
    """

    state: ReplicaState
    version: int
    staleness_seconds: float
    is_too_stale: bool = False
    refuses: bool = False
    last_error: str = ""
    looks: int = 0
    failed_looks: int = 0
    refreshes: int = 0
    hints: int = 0
    is_listening: bool = False

    @property
    def summary(self) -> str:
        """The state in words that anybody may read: no address, no name of a file.

        Example:
            >>> ReplicaStatus(state="away", version=7, staleness_seconds=12.3).summary
            'the store is away; library version 7 was the newest 12 s ago'
        """
        words = {
            "current": "library version {} is the newest",
            "behind": "the newest library can not be taken up; version {} was the newest",
            "away": "the store is away; library version {} was the newest",
        }
        told = words[self.state].format(self.version)
        if self.state == "current":
            return told
        if math.isinf(self.staleness_seconds):
            return f"{told} when it was kept in a file"
        return f"{told} {self.staleness_seconds:.0f} s ago"
