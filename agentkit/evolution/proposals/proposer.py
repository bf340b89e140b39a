"""The seam to those who suggest changes: one method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.naming import in_library_names
from agentkit.errors import ModelError
from agentkit.evolution.proposals.proposal import Proposal, UnreadableProposal
from agentkit.library.library import Library

Suggestion: TypeAlias = Proposal | UnreadableProposal


@dataclass(frozen=True, kw_only=True, slots=True)
class Observations:
    """What a proposer may look at.

    Attributes:
        library: The tools as they are.
        episodes: What happened, with verdicts and diagnoses where there are some; in the names of
            the library, also where tools were offered under others (``in_library_names``).
        profile: The failures of these episodes and of earlier ones, counted.
        tools: Names of the tools to look at, the worst first; empty for all.
    """

    library: Library
    episodes: tuple[Episode, ...] = ()
    profile: FailureProfile = field(default_factory=FailureProfile)
    tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", tuple(map(in_library_names, self.episodes)))


class ProposerInterruptedError(ModelError):
    """A proposer's model failed when a part of its suggestions was made.

    Attributes:
        found: What it had suggested by then; answers that were paid for are not lost.
    """

    def __init__(self, message: str, *, found: Sequence[Suggestion]) -> None:
        super().__init__(message)
        self.found = tuple(found)


class Proposer(Protocol):
    """Suggests changes from what was observed.

    What it suggests is a value, also when it makes no sense: validation decides. A model that can
    not be reached raises ``ModelError``, and ``ProposerInterruptedError`` where there are
    suggestions by then.
    """

    @property
    def name(self) -> str:
        """Who it is, for records and for quarantine."""
        ...

    async def propose(self, observations: Observations) -> Sequence[Suggestion]:
        """What should change, the most urgent first; empty when nothing should."""
        ...
