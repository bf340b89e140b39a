"""What the ledger knows of one proposal and of one proposer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from agentkit.evolution.proposals.proposal import OPEN, Proposal, ProposalState
from agentkit.evolution.validation.overruling import OVERRULABLE, OVERRULABLE_OF_ARRIVALS
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author, LibraryEvent
from agentkit.tools.definition import ToolDefinition

Consent = Literal["judge", "person"]
"""Who may have to agree to a proposal: a judge of another model, a person."""


def outstanding(needs: Iterable[Consent], agreed: Collection[Consent]) -> tuple[Consent, ...]:
    """Who must still agree. A person answers for a judge where no person is asked for besides.

    Example:
        >>> outstanding(("judge",), ("person",)), outstanding(("judge", "person"), ("person",))
        ((), ('judge',))
    """
    needed = tuple(needs)
    if "person" in agreed and "person" not in needed:
        return ()
    return tuple(who for who in needed if who not in agreed)


@dataclass(frozen=True, kw_only=True, slots=True)
class TestPlace:
    """The place of a proposal among all that were tested; what e-LOND asks for.

    Both are fixed when the test begins, so that the level of a running test does not move. Fewer
    discoveries than there are by the end only make that level smaller, which keeps its promise.

    Attributes:
        number: 1 for the first proposal that was ever tested.
        discoveries: How many that were tested had passed by then.
    """

    __test__ = False  # no test of pytest, whatever its name

    number: int
    discoveries: int


@dataclass(frozen=True, kw_only=True)
class ProposalRecord:
    """One proposal with all that happened to it.

    Attributes:
        proposal_id: Which.
        state: Where it stands.
        tool_name: The tool that it would change.
        author: Who suggests it.
        events: All that happened to it, oldest first.
        needs: Who has to agree, as the checks and the policy found.
        agreed: Who has agreed.
        base: Digest of the revision that it changes by now; it moves when the proposal is rebased.
        moved: The event that last moved its candidate to another revision; None for never.
        place: Its place among the proposals tested; None before.
    """

    proposal_id: str
    state: ProposalState
    tool_name: str
    author: Author
    events: tuple[LibraryEvent, ...]
    needs: tuple[Consent, ...] = ()
    agreed: tuple[Consent, ...] = ()
    base: str = ""
    moved: LibraryEvent | None = None
    place: TestPlace | None = None

    @cached_property
    def proposal(self) -> Proposal | None:
        """The proposal as it was made; None for an answer that could not be read."""
        kept = self.events[0].facts.get("proposal")
        return None if kept is None else Proposal.from_json(kept)

    @cached_property
    def candidate(self) -> ToolDefinition | None:
        """The definition as it would be by now; None for an answer that could not be read."""
        if self.moved is not None:
            return ToolDefinition.from_json(self.moved.facts["candidate"])
        return None if self.proposal is None else self.proposal.candidate

    @property
    def stream(self) -> str:
        """Where it comes from."""
        facts = self.events[0].facts
        stream: str = (facts.get("proposal") or facts.get("unreadable") or {}).get("stream", "")
        return stream

    @property
    def proposer(self) -> str:
        """Who it is filed under; see ``proposer_name``."""
        return proposer_name(self.stream, self.author)

    @property
    def unreadable_text(self) -> str:
        """The start of an answer that could not be read; empty for a proposal."""
        text: str = self.events[0].facts.get("unreadable", {}).get("text", "")
        return text

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided yet."""
        return self.state in OPEN

    @property
    def awaits(self) -> tuple[Consent, ...]:
        """Who has to agree and has not yet."""
        return outstanding(self.needs, self.agreed)

    @property
    def reason(self) -> str:
        """Why it was suggested, in words."""
        return self.events[0].reason

    @property
    def last_word(self) -> str:
        """Why it stands where it stands: the reason of the event that brought it here."""
        return next(event.reason for event in reversed(self.events) if event.kind == self.state)

    @property
    def failed(self) -> tuple[FailedCheck, ...]:
        """Every check that failed when it was rejected; empty when it is not."""
        if self.state != "rejected":
            return ()
        return _checks(self.rejection.facts.get("failed", ()))

    @property
    def rejection(self) -> LibraryEvent:
        """The event that rejected it last; for a proposal that is rejected."""
        return next(event for event in reversed(self.events) if event.kind == "rejected")

    @property
    def overruled(self) -> tuple[FailedCheck, ...]:
        """What checks said of its words that a person has overruled."""
        events = (event for event in self.events if event.kind == "overruled")
        return tuple(check for event in events for check in _checks(event.facts["overruled"]))

    @property
    def is_arrival(self) -> bool:
        """Whether it brings a tool from another library; see ``Proposal.is_arrival``."""
        return self.proposal is not None and self.proposal.is_arrival

    @property
    def may_be_overruled(self) -> frozenset[str]:
        """The codes that a person may overrule, of a proposal of this kind."""
        return OVERRULABLE_OF_ARRIVALS if self.is_arrival else OVERRULABLE

    @property
    def overrulable(self) -> tuple[str, ...]:
        """The codes for which it is rejected, where a person may overrule all; else none."""
        codes = tuple(dict.fromkeys(check.code for check in self.failed))
        return codes if self.may_be_overruled.issuperset(codes) else ()

    @property
    def assessments(self) -> tuple[LibraryEvent, ...]:
        """What gates said of it, oldest first."""
        return tuple(event for event in self.events if event.kind == "assessed")

    @property
    def has_passed_test(self) -> bool:
        """Whether a comparison with the active definition, offline or in shadow, let it go on.

        A canary is no such test: it asks whether the candidate is worse, not whether it is better.
        """
        return any(
            event.facts.get("decision") == "pass" and event.facts.get("stage") != "canary"
            for event in self.assessments
        )

    @property
    def activation(self) -> LibraryEvent | None:
        """The event that made it active; None when none did."""
        return next((event for event in self.events if event.kind == "active"), None)

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object, with the candidate and all events."""
        candidate = self.candidate
        return {
            "proposal_id": self.proposal_id,
            "state": self.state,
            "tool": self.tool_name,
            "stream": self.stream,
            "author": self.author.name,
            "proposer": self.proposer,
            "reason": self.reason,
            "last_word": self.last_word,
            "needs": list(self.needs),
            "awaits": list(self.awaits),
            "failed": [check.to_json() for check in self.failed],
            "overruled": [check.to_json() for check in self.overruled],
            "base": self.base,
            "candidate": None if candidate is None else candidate.to_json(),
            "events": [event.to_json() for event in self.events],
        }


def _checks(kept: Iterable[Mapping[str, str]]) -> tuple[FailedCheck, ...]:
    return tuple(map(FailedCheck.from_json, kept))


def proposer_name(stream: str, author: Author) -> str:
    """What a proposer is filed under: its stream and its author, as ``Proposer.name`` has it.

    One model may be asked for by several streams with prompts of their own, and each answers for
    itself.

    Example:
        >>> proposer_name("feedback", Author(kind="model", name="small-model"))
        'feedback:small-model'
    """
    return f"{stream}:{author.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposerRecord:
    """How a proposer fares.

    Attributes:
        name: Who it is; see ``proposer_name``.
        rejected_in_a_row: Proposals rejected by checks, a judge or a person since the last one that
            was validated.
        is_quarantined: Whether nothing is taken from it until a person releases it.
    """

    name: str
    rejected_in_a_row: int = 0
    is_quarantined: bool = False
