"""``Proposal``: one suggested change of one tool, its record, and the seam to those who suggest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names
from agentkit.errors import ModelError
from agentkit.evolution.gate_statistics import Elond
from agentkit.evolution.validation.report import FailedCheck, OriginKind, TextOrigin
from agentkit.library.events import Author, EventDraft, EventKind, LibraryEvent, cut
from agentkit.library.library import Library
from agentkit.records import Record
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Takes

# --- ``Proposal``: one change of one tool that somebody suggests, before anybody believes it -----


Stream = Literal[
    "evolution", "feedback", "evidence", "composite", "optimizer", "import", "person", "code"
]
"""Where a proposal comes from; see ``docs/evolution.md``. ``code`` is what was learned about a tool
whose contract then changed in code (``agentkit.library.code_binding``)."""

Subject = Literal["tools", "instructions"]
"""What proposals may change: the definitions of tools, the instructions of agents."""

SUBJECTS: tuple[Subject, ...] = ("tools", "instructions")

ProposalState = Literal[
    "proposed",  # nobody has looked at it, or somebody who must agree has not yet
    "validated",  # every check passed, and everybody agreed who must
    "shadow",  # run beside the answers of the active definition, unseen by users
    "canary",  # serves a share of the sessions
    "active",  # serves all
    "superseded",  # a later proposal took its place
    "rejected",  # a check, a gate or a person said no
    "quarantined",  # earlier releases held back the proposals of a proposer that was often wrong
    "rolled_back",  # it was active or in canary, and was taken back
]

OPEN: frozenset[ProposalState] = frozenset({"proposed", "validated", "shadow", "canary"})
"""States in which nothing is decided yet."""

NEXT: dict[ProposalState, frozenset[ProposalState]] = {
    "proposed": frozenset({"validated", "rejected", "quarantined"}),
    "validated": frozenset({"shadow", "canary", "active", "rejected", "quarantined"}),
    "shadow": frozenset({"canary", "active", "rejected", "quarantined"}),
    "canary": frozenset({"active", "rejected", "quarantined", "rolled_back"}),
    "active": frozenset({"superseded", "rolled_back"}),
    "superseded": frozenset({"rolled_back"}),
    "rejected": frozenset({"proposed"}),  # in earlier releases, once a person overruled the checks
    "quarantined": frozenset({"proposed", "rejected"}),
    "rolled_back": frozenset(),
}
"""Which state may follow which. Stages may be left out by policy, never gone through backwards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal(Record):
    """One change of one tool, with who suggests it and why.

    Attributes:
        proposal_id: Recognises a retry. Made of the content when not given, so that the same change
            suggested twice by the same proposer is one proposal, whatever worked calls the tool
            learned between them and however many calls show it by now.
        stream: Where it comes from.
        author: Who suggests it.
        base: Digest of the revision that it changes; empty for a tool that is new.
        candidate: The whole definition as it would be.
        reason: Why, in words.
        evidence: Ids of the episodes behind it.
        created_at: ISO 8601 time in UTC.
        origins: Where single texts of the candidate came from; see ``written_by`` for all others.
    """

    _OPTIONAL: ClassVar = ("origins",)

    proposal_id: str
    stream: Stream
    author: Author
    base: str
    candidate: ToolDefinition
    reason: str = ""
    evidence: tuple[str, ...] = ()
    created_at: str = ""
    origins: tuple[TextOrigin, ...] = ()

    @classmethod
    def of(
        cls,
        base: ToolDefinition | None,
        candidate: ToolDefinition,
        *,
        stream: Stream,
        author: Author,
        reason: str = "",
        evidence: Iterable[str] = (),
        proposal_id: str | None = None,
        origins: Iterable[TextOrigin] = (),
    ) -> Proposal:
        """A proposal to put ``candidate`` in the place of ``base``, made now.

        Without a base the tool is new: a composite, or a tool of another library that a person
        imports (``is_arrival``).
        """
        before, origins = "" if base is None else base.digest, tuple(dict.fromkeys(origins))
        if base is not None and base.examples == candidate.examples:
            ends = lasting_digest(base), lasting_digest(candidate)
        else:
            ends = before, candidate.digest
        content = [stream, author.name, ends[0], candidate.name, ends[1]]
        if any(isinstance(rule, Takes) for rule in candidate.specification.rules):
            content += sorted({f"{one.kind} {one.is_used} {one.text}" for one in origins})
        return cls(
            proposal_id=proposal_id or f"{stream}-{digest(content)[:20]}",
            stream=stream,
            author=author,
            base=before,
            candidate=candidate,
            reason=reason,
            evidence=tuple(evidence),
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            origins=origins,
        )

    @property
    def written_by(self) -> OriginKind:
        """Whose words the texts are that ``origins`` does not name; of a program nobody knows.

        An origin without a text is that of all of them.
        """
        for origin in self.origins:
            if not origin.text:
                return origin.kind
        return "unknown" if self.author.kind == "program" else self.author.kind

    @property
    def tool_name(self) -> str:
        """The tool that it changes."""
        return self.candidate.name

    @property
    def is_arrival(self) -> bool:
        """Whether it brings a tool from another library, whole, on the word of a person.

        Only a person may: of a primitive there is no code here to try.
        """
        return not self.base and self.stream == "import" and self.author.kind == "person"


def lasting_digest(definition: ToolDefinition) -> str:
    """The digest of a tool without its worked calls, and without counts of calls in its rules.

    These grow with every round, and no proposal is another one for it.
    """
    rules = definition.specification.rules
    if definition.examples or any(isinstance(rule, Takes) for rule in rules):
        counted = (replace(one, calls=0) if isinstance(one, Takes) else one for one in rules)
        specification = replace(definition.specification, rules=tuple(counted))
        definition = replace(definition, examples=(), specification=specification)
    return definition.digest


# --- What the ledger knows of one proposal --------------------------------------------------------


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


RejectedBy = Literal["checks", "judge", "person", "gate", "library", "parents"]
"""Who said no. ``library``: the library has moved on, and the change with it has lost its place;
``parents``: a composite above would break."""


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
        place: Its place among the proposals tested, and how many had passed by then; both are fixed
            when its test begins, so that the level of a running test does not move. None before.
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
    place: Elond | None = None

    @cached_property
    def proposal(self) -> Proposal | None:
        """The proposal as it was made; None for an unreadable answer that earlier releases kept."""
        kept = self.events[0].facts.get("proposal")
        return None if kept is None else Proposal.from_json(kept)

    @cached_property
    def candidate(self) -> ToolDefinition | None:
        """The definition as it would be by now; None where there is no proposal."""
        if self.moved is not None:
            return ToolDefinition.from_json(self.moved.facts["candidate"])
        return None if self.proposal is None else self.proposal.candidate

    @property
    def current(self) -> Proposal:
        """The proposal as it is by now, moved to the revision ``base``; of one that can be read."""
        if self.proposal is None or self.candidate is None:
            raise AssertionError("what cannot be read is rejected with codes that stand")
        return replace(self.proposal, candidate=self.candidate, base=self.base)

    @property
    def stream(self) -> str:
        """Where it comes from."""
        facts = self.events[0].facts
        stream: str = (facts.get("proposal") or facts.get("unreadable") or {}).get("stream", "")
        return stream

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
    def doubts(self) -> tuple[FailedCheck, ...]:
        """What may be wrong with its words, which a person is asked about."""
        told = (one for one in reversed(self.events) if one.kind == "proposed")
        return _checks(next(told).facts.get("doubts", ())) if self.is_open else ()

    @property
    def is_arrival(self) -> bool:
        """Whether it brings a tool from another library; see ``Proposal.is_arrival``."""
        return self.proposal is not None and self.proposal.is_arrival

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

    def event(self, kind: EventKind, author: Author, why: str = "", /, **facts: Any) -> EventDraft:
        """That something happened to it, and why, to be written."""
        return EventDraft(
            kind=kind,
            author=author,
            reason=cut(why),
            proposal_id=self.proposal_id,
            tool_name=self.tool_name,
            facts=facts,
        )

    def rejected(
        self,
        by: RejectedBy,
        author: Author,
        why: str = "",
        *,
        failed: Iterable[FailedCheck] = (),
    ) -> EventDraft:
        """That it is rejected, with every check that failed, or why else."""
        reasons = tuple(failed)
        kept = checks_to_json(reasons)
        return self.event("rejected", author, why or checks_text(reasons), by=by, failed=kept)


def checks_text(failed: Iterable[FailedCheck]) -> str:
    """Failed checks as one sentence; what is said of several fields is said once."""
    fields: dict[tuple[str, str], list[str]] = {}
    for check in failed:
        fields.setdefault((check.code, check.message), []).append(check.field)
    return "; ".join(
        f"[{code}]{' in ' if any(places) else ''}{', '.join(places)}: {message}"
        for (code, message), places in fields.items()
    )


def checks_to_json(failed: Iterable[FailedCheck]) -> list[dict[str, str]]:
    """Failed checks as an event keeps them; they quote foreign text."""
    return [{name: cut(value) for name, value in check.to_json().items()} for check in failed]


def _checks(kept: Iterable[Mapping[str, str]]) -> tuple[FailedCheck, ...]:
    return tuple(map(FailedCheck.from_json, kept))


# --- ``Proposer``: the seam to those who suggest changes ------------------------------------------

PassedOverReason = Literal[
    "too_few",  # too few refusals, or from too few episodes
    "disagreement",  # the refusals contradict each other
    "contradicts_accepted",  # the tool took calls that the rule would refuse
    "already_said",  # the definition says it
    "closed_contract",  # the schema allows no parameter beside its own
    "says_nothing",  # the refusals name no value, range, form or order
    "not_in_library",  # the library has no such tool
    "already_proposed",  # decided in an earlier round
    "unreadable",  # what a model answered is no change of a tool
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


def ignored(found: PassedOver) -> None:
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
        fresh: Ids of the episodes that no round has read before; None for all.
        by_tool: The newest episodes of each tool that may have something to teach, where the round
            has such bounds; the others were decided by earlier rounds.
        pass_over: Takes what a proposer saw and suggests nothing about, with the reason.
    """

    library: Library
    episodes: tuple[Episode, ...] = ()
    profile: FailureProfile = field(default_factory=FailureProfile)
    tools: tuple[str, ...] = ()
    fresh: frozenset[str] | None = None
    by_tool: Mapping[str, tuple[Episode, ...]] | None = None
    pass_over: Callable[[PassedOver], None] = ignored

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", tuple(map(in_library_names, self.episodes)))

    def is_fresh(self, episode: Episode) -> bool:
        """Whether no round has read an episode before."""
        return self.fresh is None or episode.episode_id in self.fresh

    def with_news(self, by_tool: Mapping[str, list[Episode]]) -> dict[str, list[Episode]]:
        """The tools that have a new episode, with their episodes."""
        return {name: found for name, found in by_tool.items() if any(map(self.is_fresh, found))}


class ProposerInterruptedError(ModelError):
    """A proposer's model failed when a part of its suggestions was made.

    Attributes:
        found: What it had suggested by then; answers that were paid for are not lost.
    """

    def __init__(self, message: str, *, found: Sequence[Proposal]) -> None:
        super().__init__(message)
        self.found = tuple(found)


class Proposer(Protocol):
    """Suggests changes from what was observed.

    Validation decides whether a suggestion makes sense. What a model answered that is no proposal
    is passed over (``Observations.pass_over``). A model that cannot be reached raises
    ``ModelError``, and ``ProposerInterruptedError`` where there are suggestions by then.
    """

    @property
    def name(self) -> str:
        """Who it is, for records."""
        ...

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """What should change, the most urgent first; empty when nothing should."""
        ...
