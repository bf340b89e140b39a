"""What a proposal has to go through before it serves everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentkit.errors import UsageError

Evidence = Literal["gate_or_person", "gate", "none"]
"""Whose word it takes to make a validated proposal active; see ``LifecyclePolicy.evidence``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifecyclePolicy:
    """The rules of the life cycle. The defaults are strict, and work where there is no traffic.

    By default a proposal that every check let pass waits, as ``validated``, until an offline
    comparison on held-out tasks says that it helps, or a person approves it. Nothing becomes active
    on its own words. Where there is traffic, ask for a shadow or a canary stage too. Who must agree
    to changes of which tools is the business of ``ValidationPolicy``.

    Attributes:
        shadow: Whether a proposal is run beside the active definition, unseen by users, before it
            may go on.
        canary: Whether it serves a share of the sessions before it serves all.
        canary_share: Share of the sessions that it serves then, kept in the event that begins the
            canary; None leaves it to the router.
        evidence: Who may let a validated proposal go on: ``gate_or_person``: an offline comparison
            that says yes, a person, or, with a stage of its own to come, that stage; ``gate``: as
            before, but never a person's word alone; ``none``: nobody is asked, which is for tests
            and for libraries that nobody uses yet.
        quarantine_after: Rejections in a row, by checks, a judge or a person, after which nothing
            more is taken from a proposer; 0 for never. A gate that finds no gain is no rejection of
            this kind: most honest proposals bring nothing.
        attempts: How often a step is decided anew when another writer was faster.
        most_bytes: Largest candidate that is kept, in bytes of its canonical JSON.

    Raises:
        UsageError: A number is out of range.
    """

    shadow: bool = False
    canary: bool = False
    canary_share: float | None = None
    evidence: Evidence = "gate_or_person"
    quarantine_after: int = 10
    attempts: int = 100
    most_bytes: int = 262_144

    def __post_init__(self) -> None:
        if self.canary_share is not None and not 0 <= self.canary_share <= 1:
            raise UsageError(
                f"LifecyclePolicy.canary_share is from 0 to 1, got {self.canary_share}"
            )
        for name, least in (("quarantine_after", 0), ("attempts", 1), ("most_bytes", 1)):
            if getattr(self, name) < least:
                raise UsageError(
                    f"LifecyclePolicy.{name} is {least} or more, got {getattr(self, name)}"
                )
