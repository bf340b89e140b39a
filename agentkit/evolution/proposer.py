"""The seam to those who suggest changes: one method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names
from agentkit.errors import ModelError
from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.library.library import Library

Suggestion: TypeAlias = Proposal | UnreadableProposal


PassedOverReason = Literal[
    "too_few",  # too few refusals, or from too few episodes
    "disagreement",  # the refusals contradict each other
    "contradicts_accepted",  # the tool took calls that the rule would refuse
    "already_said",  # the definition says it
    "says_nothing",  # the refusals name no value, range, form or order
    "not_in_library",  # the library has no such tool
    "already_proposed",  # decided in an earlier round
    "quarantine",  # nothing is taken from its proposer
]
"""Why nothing came of something that went wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassedOver:
    """Something that went wrong, and of which nothing came.

    Attributes:
        tool: The tool.
        parameter: The parameter; empty for the tool as a whole.
        reason: Why nothing came of it.
        why: The same in words, with the numbers.
        failures: How many calls failed for it.
        command: What may be typed to change that; empty for nothing.
    """

    tool: str
    parameter: str = ""
    reason: PassedOverReason
    why: str
    failures: int = 0
    command: str = ""

    @property
    def place(self) -> str:
        """The tool, with the parameter if there is one."""
        return f"{self.tool}.{self.parameter}" if self.parameter else self.tool

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        return asdict(self)


def _ignored(found: PassedOver) -> None:
    """Where findings go when nobody asks for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observations:
    """What a proposer may look at.

    Attributes:
        library: The tools as they are.
        episodes: What happened, with verdicts and diagnoses where there are some; in the names of
            the library, also where tools were offered under others (``in_library_names``).
        profile: The failures of these episodes and of earlier ones, counted.
        tools: Names of the tools to look at, the worst first; empty for all.
        pass_over: Takes what a proposer saw and suggests nothing about, with the reason.
    """

    library: Library
    episodes: tuple[Episode, ...] = ()
    profile: FailureProfile = field(default_factory=FailureProfile)
    tools: tuple[str, ...] = ()
    pass_over: Callable[[PassedOver], None] = _ignored

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
