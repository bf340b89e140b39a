"""The seam to a judge: another model that reads a change before it may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.events import Author


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a judge says of a change.

    Attributes:
        agrees: Whether the change may go on.
        reason: Why, in words.
        author: Who judged, with the hash of the prompt.
    """

    agrees: bool
    reason: str
    author: Author


class ChangeJudge(Protocol):
    """Reads a change and agrees, or speaks against it. It must not be who proposed it."""

    async def __call__(self, change: ProposedChange) -> Judgement:
        """What it says.

        Raises:
            ModelError: The model could not answer; the proposal goes on waiting.
        """
        ...
