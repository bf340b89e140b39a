"""``Lifecycle``: what the Tool Manager does with proposals."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.composites.problems import CompositeLimits
from agentkit.episodes import Episode
from agentkit.errors import DefinitionError, LibraryError, ModelError, StoreError, UsageError
from agentkit.evolution.approvals import (
    Scribe,
    approval,
    judgement,
    overruling_step,
    proposed,
    record_of,
    refusal,
    rejection,
    release_step,
    screening_facts,
    unreadable,
)
from agentkit.evolution.checker import (
    ChangeJudge,
    Judgement,
    RejectedBy,
    Screen,
    Screened,
    Validate,
    change_of_new,
    source_episodes,
    source_texts,
)
from agentkit.evolution.compare import Assess
from agentkit.evolution.decide import (
    Enter,
    LifecyclePolicy,
    Move,
    Standing,
    Wait,
    consent_awaited,
    next_move,
    recorded_reports,
    standing,
)
from agentkit.evolution.gates import GateReport
from agentkit.evolution.insert_outcomes import InsertPolicy
from agentkit.evolution.insertion import Above, Procedure, Tried, look_above, marks, try_composite
from agentkit.evolution.ledger import EXPERIMENTS
from agentkit.evolution.loops import require_loop
from agentkit.evolution.proposal import (
    Consent,
    Proposal,
    ProposalRecord,
    ProposalState,
    ProposerRecord,
    UnreadableProposal,
    outstanding,
    proposer_name,
)
from agentkit.evolution.proposer import Suggestion
from agentkit.evolution.repository import Journal, Position, Step, pin_step, unpin_step
from agentkit.evolution.rollback import roll_back_step
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.library.event_chain import EventDraft, cut
from agentkit.library.events import Author
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition

# --- Taking in what proposers suggest ------------------------------------------------------------


def readable(suggestion: Suggestion, *, most_bytes: int) -> Suggestion:
    """A suggestion that an event can keep, and give back.

    A candidate that is too large, no JSON, or would not be read back as a definition is unreadable.

    Args:
        suggestion: What a proposer suggests.
        most_bytes: Largest candidate, in bytes of its canonical JSON.
    """
    if isinstance(suggestion, UnreadableProposal):
        return suggestion
    try:
        record = suggestion.to_json()
        size = len(canonical_json(record))
        ToolDefinition.from_json(record["candidate"])
    except DefinitionError as error:
        return _unreadable(suggestion, "malformed", f"the candidate is no definition: {error}")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return _unreadable(suggestion, "not_json", f"the candidate is no JSON data: {error}")
    if size > most_bytes:
        message = f"the candidate has {size:,} bytes, at most {most_bytes:,} are kept"
        return _unreadable(suggestion, "too_large", message)
    return suggestion


def _unreadable(proposal: Proposal, code: str, message: str) -> UnreadableProposal:
    failed = FailedCheck(
        code=code,
        layer="lexical",
        message=message,
        advice="answer with the changed texts alone, as JSON data",
    )
    return UnreadableProposal(
        author=proposal.author,
        stream=proposal.stream,
        tool_name=proposal.tool_name,
        text=str(getattr(proposal.candidate.description, "summary", "")),
        failed=(failed,),
    )


def identified(suggestion: Suggestion) -> tuple[str, Suggestion]:
    """The id by which the ledger knows a suggestion.

    An answer that can not be read has none of its own: the same rubbish twice is two answers.
    """
    if isinstance(suggestion, Proposal):
        return suggestion.proposal_id, suggestion
    return f"unreadable-{uuid.uuid4().hex[:20]}", suggestion


async def taken_in(
    proposal_id: str,
    suggestion: Suggestion,
    on: Position,
    *,
    screen: Screen,
    policy: LifecyclePolicy,
    author: Author,
    sources: tuple[str, ...] = (),
    episodes: Sequence[Episode] = (),
) -> Step | None:
    """What is written of a suggestion; None for a proposal that the ledger knows.

    Args:
        proposal_id: The id that ``identified`` gave it.
        suggestion: What a proposer suggests.
        on: The newest position.
        screen: What candidates are looked at with.
        policy: The rules of the life cycle.
        author: Who writes what comes of it.
        sources: Texts that a candidate must not copy from.
        episodes: Whose accepted calls a new rule may not refuse.
    """
    if proposal_id in on.ledger.proposals:
        return None
    version = on.library.version
    scribe = Scribe(
        author=author,
        proposal_id=proposal_id,
        tool_name=cut(suggestion.tool_name),
        version=version,
    )
    failed: tuple[FailedCheck, ...]
    by: RejectedBy
    needs: tuple[Consent, ...] = ()
    if isinstance(suggestion, UnreadableProposal):
        first = unreadable(suggestion, proposal_id, version=version)
        failed, by = suggestion.failed, "unreadable"
        is_rejected = True
    else:
        base, candidate = suggestion.base, suggestion.candidate
        screened = await screen.look(
            candidate, base, on, sources=sources, proposal=suggestion, episodes=episodes
        )
        first = proposed(suggestion, screened, version=version)
        failed, by, needs = screened.failed, screened.by, screened.needs
        is_rejected = bool(failed)
    proposer = proposer_name(suggestion.stream, suggestion.author)
    if on.ledger.is_quarantined(proposer):
        why = f"nothing is taken from {proposer!r} until a person releases it"
        return Step(drafts=(first, scribe.draft("quarantined", why)))
    if is_rejected:
        is_person = suggestion.author.kind == "person"
        no = rejection(
            scribe,
            on.ledger,
            policy,
            proposer=proposer,
            is_person=is_person,
            by=by,
            failed=failed,
        )
        return Step(drafts=(first, *no))
    if needs:
        return Step(drafts=(first,))
    return Step(drafts=(first, scribe.draft("validated", "every check passed")))


# --- Looking at the composites again whose children changed untried ------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Revalidation:
    """What looking again showed.

    Attributes:
        holds: Composites that do what their worked calls say; they are no longer marked.
        broken: By name: how a composite broke. It stays marked, and somebody must act.
        unknown: By name: why nobody knows; it stays marked.
    """

    holds: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What was found as a JSON object."""
        return {
            "holds": list(self.holds),
            "broken": dict(self.broken),
            "unknown": dict(self.unknown),
        }


async def look_again(
    on: Position, names: Iterable[str], *, policy: InsertPolicy, limits: CompositeLimits
) -> tuple[Revalidation, dict[str, Tried]]:
    """Try marked composites; one that was removed meanwhile holds nothing up any more."""
    tried: dict[str, Tried] = {}
    for name in names:
        tool = on.library.get(name)
        tried[name] = (
            Tried()
            if tool is None
            else await try_composite(tool.definition, on.library, policy=policy, limits=limits)
        )
    result = Revalidation(
        holds=tuple(name for name, one in tried.items() if not one.broken and not one.unknown),
        broken={name: one.broken for name, one in tried.items() if one.broken},
        unknown={name: one.unknown for name, one in tried.items() if one.unknown},
    )
    return result, tried


def revalidation_step(on: Position, tried: Mapping[str, Tried], author: Author) -> Step | None:
    """What is written of it; None when nothing is known that was not known before."""
    drafts = tuple(
        EventDraft(
            kind="revalidated",
            author=author,
            reason=one.broken or "its worked calls hold",
            tool_name=name,
            library_version=on.library.version,
            facts={"holds": not one.broken},
        )
        for name, one in tried.items()
        if name in on.ledger.marked and not one.unknown and on.ledger.marked[name] != one.broken
    )
    return Step(drafts=drafts) if drafts else None


# --- Bringing a proposal on to its next stage, up to serving everybody ---------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Promotion:
    """What proposals are brought on with.

    Attributes:
        policy: The rules of the life cycle.
        screen: What candidates are looked at with.
        trying: Which tools may run when composites above are tried, and how much.
        limits: Caps on each of these runs.
        author: Who writes what comes of it.
    """

    policy: LifecyclePolicy
    screen: Screen
    trying: InsertPolicy
    limits: CompositeLimits
    author: Author

    async def step(
        self,
        record: ProposalRecord,
        on: Position,
        reports: Sequence[GateReport],
        *,
        sources: tuple[str, ...] = (),
    ) -> Step | Wait:
        """What is written to bring an open proposal on; or what it waits for.

        Args:
            record: The proposal.
            on: The newest position.
            reports: What the gates say at the stage where it is.
            sources: Texts that the candidate must not copy from.
        """
        scribe = Scribe.of(record, self.author, version=on.library.version)
        if _has_lost_its_base(record, on):
            return await self._rebased(scribe, record, on, sources)
        move = next_move(record, on.ledger, self.policy, reports)
        if isinstance(move, Wait):
            return move
        recorded = recorded_reports(record)
        new = (report for report in reports if report not in recorded)
        said = tuple(scribe.assessed(record.state, report) for report in new)
        if not isinstance(move, Enter):
            return Step(drafts=(*said, *self._stopped(scribe, record, on, move)))
        candidate = record.candidate
        if candidate is None:  # an answer that could not be read is never validated
            return Wait(why="it has no candidate")
        screened = await self._screened(record, candidate, on, sources)
        missing = outstanding(screened.needs, record.agreed)
        if screened.failed:
            entered: Step | Wait = Step(drafts=self._lost(scribe, record, on, screened))
        elif screened.waits_for:
            entered = Wait(why=screened.waits_for)
        elif missing:
            entered = Wait(why=f"by now a {' and a '.join(missing)} must agree")
        elif move.stage == "active":
            entered = await self._activated(scribe, record, on, screened, move.why)
        else:
            facts = screening_facts(screened, record.base) | self._share(move)
            entered = Step(drafts=(scribe.draft(move.stage, move.why, **facts),))
        if isinstance(entered, Wait):
            return entered
        return replace(entered, drafts=(*said, *entered.drafts))

    def _share(self, move: Enter) -> dict[str, Any]:
        """What the event says that begins a canary, for ``experiment_of``."""
        share = self.policy.canary_share
        return {} if move.stage != "canary" or share is None else {"share": share}

    async def _rebased(
        self, scribe: Scribe, record: ProposalRecord, on: Position, sources: tuple[str, ...]
    ) -> Step:
        """An experiment whose tool changed goes on with the candidate moved onto the change.

        Runs use a candidate only with the revision that it was made for, so without this step the
        experiment would stand still. The numbers so far are kept: they compare the same edit.
        """
        if record.candidate is None:
            raise AssertionError("what can not be read is never tried")
        screened = await self._screened(record, record.candidate, on, sources)
        if screened.failed or screened.base is None:
            return Step(drafts=self._lost(scribe, record, on, screened))
        facts = screening_facts(screened, record.base)
        facts.pop("needs", None)
        why = f"{record.tool_name!r} has revision {screened.base.digest[:12]} by now"
        return Step(drafts=(scribe.draft("rebased", why, **facts),))

    async def _screened(
        self,
        record: ProposalRecord,
        candidate: ToolDefinition,
        on: Position,
        sources: tuple[str, ...],
    ) -> Screened:
        return await self.screen.look(
            candidate,
            record.base,
            on,
            sources=sources,
            overruled=record.overruled,
            proposal=record.proposal,
        )

    def _stopped(
        self, scribe: Scribe, record: ProposalRecord, on: Position, move: Move
    ) -> tuple[EventDraft, ...]:
        if record.state == "canary":
            return (scribe.draft("rolled_back", move.why),)
        return rejection(
            scribe,
            on.ledger,
            self.policy,
            proposer=record.proposer,
            is_person=record.author.kind == "person",
            by="gate",
            reason=move.why,
        )

    def _lost(
        self, scribe: Scribe, record: ProposalRecord, on: Position, screened: Screened
    ) -> tuple[EventDraft, ...]:
        """It was good when it was made: what it was made on has moved, which is nobody's fault."""
        by: RejectedBy = "library"
        return rejection(
            scribe,
            on.ledger,
            self.policy,
            proposer=record.proposer,
            is_person=record.author.kind == "person",
            by=by,
            failed=screened.failed,
        )

    async def _activated(
        self,
        scribe: Scribe,
        record: ProposalRecord,
        on: Position,
        screened: Screened,
        why: str,
    ) -> Step:
        candidate = screened.candidate
        try:
            above = await look_above(candidate, on.library, policy=self.trying, limits=self.limits)
            broken = above.broken
        except LibraryError as error:
            above, broken = Above(), {candidate.name: str(error)}
        if broken:
            failed = [_breaks(candidate, name, how) for name, how in broken.items()]
            no = rejection(
                scribe,
                on.ledger,
                self.policy,
                proposer=record.proposer,
                is_person=record.author.kind == "person",
                by="parents",
                failed=failed,
            )
            return Step(drafts=no)
        after = replace(scribe, version=on.library.version + 1)
        return Step(
            drafts=(
                *_superseded(after, on, record),
                _active(after, record, screened, above, why),
                *marks(after.author, candidate, above, version=after.version),
            ),
            upserts=(candidate, *above.repinned),
            change_id=record.proposal_id,
            reason=record.reason or why,
            evidence=record.events[0].evidence,
        )


def _has_lost_its_base(record: ProposalRecord, on: Position) -> bool:
    """Whether a proposal is being tried against a revision that its tool no longer has."""
    tool = on.library.get(record.tool_name)
    is_current = (tool is None and not record.base) or (
        tool is not None and tool.definition.digest == record.base
    )
    return record.state in EXPERIMENTS and not is_current


def _superseded(scribe: Scribe, on: Position, record: ProposalRecord) -> tuple[EventDraft, ...]:
    earlier = on.ledger.active(record.tool_name)
    if earlier is None:
        return ()
    about = replace(scribe, proposal_id=earlier.proposal_id)
    return (about.draft("superseded", f"{record.proposal_id} took its place"),)


def _active(
    scribe: Scribe, record: ProposalRecord, screened: Screened, above: Above, why: str
) -> EventDraft:
    facts: dict[str, Any] = screening_facts(screened, record.base)
    facts.pop("needs", None)
    if above.repinned:
        facts["repinned"] = {one.name: one.digest for one in above.repinned}
    draft = scribe.draft("active", why, **facts)
    return replace(
        draft,
        evidence=record.events[0].evidence,
        digest_before="" if screened.base is None else screened.base.digest,
        digest_after=screened.candidate.digest,
    )


def _breaks(candidate: ToolDefinition, name: str, how: str) -> FailedCheck:
    return FailedCheck(
        code="breaks_parent",
        layer="semantic",
        message=f"{name!r} is made of {candidate.name!r}, and would break: {how}",
        advice=f"keep what {name!r} relies on, or revise it first",
    )


# --- ``Lifecycle``: what the Tool Manager does with proposals ------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Advance:
    """What came of bringing a proposal on.

    Attributes:
        proposal_id: Which.
        tool_name: The tool that it changes.
        before: Where it stood.
        after: Where it stands.
        why: Whose word brought it on or ended it; or what it waits for.
    """

    proposal_id: str
    tool_name: str
    before: ProposalState
    after: ProposalState
    why: str

    @property
    def has_moved(self) -> bool:
        """Whether it stands elsewhere than before."""
        return self.before != self.after

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        return {
            "proposal_id": self.proposal_id,
            "tool": self.tool_name,
            "before": self.before,
            "after": self.after,
            "why": self.why,
        }

    def __str__(self) -> str:
        moved = f"{self.before} -> {self.after}" if self.has_moved else f"still {self.after}"
        return f"{self.proposal_id} ({self.tool_name}): {moved}: {self.why}"


class Lifecycle:
    """Takes proposals in, and brings them from one state to the next.

    Each step is decided on the newest library and ledger and written in one change; when another
    writer was faster it is decided again on what that one made.

    Args:
        journal: The store's newest state, and the way to write to it.
        policy: The rules.
        validate: All checks.
        judge: Reads changes of tools that need one; without it they wait.
        assess: What the gates say; without it only what ``assess`` recorded counts.
        trying: Which tools may run when composites above a change are tried.
        limits: Caps on these runs.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        policy: LifecyclePolicy,
        validate: Validate,
        judge: ChangeJudge | None,
        assess: Assess | None,
        trying: InsertPolicy,
        limits: CompositeLimits,
    ) -> None:
        self._journal = journal
        self._policy = policy
        self._judge = judge
        self._assess = assess
        self._screen = Screen(
            validate=validate,
            revision=journal.revision,
            inserting=Procedure(policy=trying, limits=limits),
        )
        self._promotion = Promotion(
            policy=policy,
            screen=self._screen,
            trying=trying,
            limits=limits,
            author=journal.author,
        )

    def identified(self, suggestion: Suggestion) -> tuple[str, Suggestion]:
        """A suggestion in a form that an event can keep, and the id that the ledger gives it."""
        return identified(readable(suggestion, most_bytes=self._policy.most_bytes))

    async def take_in(
        self, proposal_id: str, suggestion: Suggestion, episodes: Sequence[Episode] = ()
    ) -> ProposalRecord:
        """Record a suggestion with what the checks say, and ask the judge where one is needed.

        Raises:
            ModelError: The judge could not answer; the proposal goes on waiting.
        """
        evidence = source_episodes(self._journal.store, getattr(suggestion, "evidence", ()))
        known = {one.episode_id: one for one in (*evidence, *episodes)}
        sources = source_texts(self._journal.store, getattr(suggestion, "evidence", ()))

        async def decide(on: Position) -> Step | None:
            return await taken_in(
                proposal_id,
                suggestion,
                on,
                screen=self._screen,
                policy=self._policy,
                author=self._journal.author,
                sources=sources,
                episodes=tuple(known.values()),
            )

        await self._journal.write_async(decide, attempts=self._policy.attempts)
        return await self.ask_judge(proposal_id)

    async def ask_judge(self, proposal_id: str) -> ProposalRecord:
        """Let the judge read a proposal that waits for one; the record afterwards.

        Raises:
            ModelError: The judge could not answer; the proposal goes on waiting.
        """
        on = self._journal.position
        record = record_of(on.ledger, proposal_id)
        change = self._change(record, on)
        if self._judge is None or change is None:
            return record
        require_loop()
        said = await self._judge(change)
        return self.record_judgement(record.proposal_id, said)

    def record_judgement(self, proposal_id: str, said: Judgement) -> ProposalRecord:
        """What a judge says of a proposal; one that says no rejects it."""
        on = self._write(
            lambda on: judgement(
                on,
                proposal_id,
                said.author,
                said.reason,
                agrees=said.agrees,
                policy=self._policy,
                author=self._journal.author,
            )
        )
        return record_of(on.ledger, proposal_id)

    def approve(self, proposal_id: str, person: Author, reason: str) -> ProposalRecord:
        """A person agrees."""
        author = self._journal.author
        on = self._write(lambda on: approval(on, proposal_id, person, reason, author=author))
        return record_of(on.ledger, proposal_id)

    def reject(self, proposal_id: str, person: Author, reason: str) -> ProposalRecord:
        """A person says no."""
        policy = self._policy
        on = self._write(lambda on: refusal(on, proposal_id, person, reason, policy=policy))
        return record_of(on.ledger, proposal_id)

    async def overrule(
        self, proposal_id: str, codes: Collection[str], person: Author, reason: str
    ) -> ProposalRecord:
        """A person says that checks were wrong about its words."""

        async def decide(on: Position) -> Step | None:
            return await overruling_step(
                on,
                proposal_id,
                codes,
                person,
                reason,
                screen=self._screen,
                author=self._journal.author,
                sources=self._sources(record_of(on.ledger, proposal_id)),
            )

        on = await self._journal.write_async(decide, attempts=self._policy.attempts)
        return record_of(on.ledger, proposal_id)

    def record_reports(self, proposal_id: str, reports: Sequence[GateReport]) -> ProposalRecord:
        """Keep what gates said of a validated proposal, for ``advance`` to act on."""

        def decide(on: Position) -> Step | None:
            record = record_of(on.ledger, proposal_id)
            new = [report for report in reports if report not in recorded_reports(record)]
            if record.state == "proposed":
                raise UsageError(
                    f"{record.proposal_id!r} {consent_awaited(record).why}; compare it once it "
                    "is validated"
                )
            if not new or not record.is_open:
                return None
            scribe = Scribe.of(record, self._journal.author, version=on.library.version)
            return Step(drafts=tuple(scribe.assessed(record.state, report) for report in new))

        return record_of(self._write(decide).ledger, proposal_id)

    def standing(self, proposal_id: str) -> Standing:
        """What a proposal waits for, and what may be done about it."""
        ledger = self._journal.position.ledger
        return standing(record_of(ledger, proposal_id), ledger, self._policy)

    async def advance(self, proposal_id: str) -> Advance:
        """Bring an open proposal on by at most one stage."""
        record = record_of(self._journal.position.ledger, proposal_id)
        if "judge" in record.awaits and record.is_open and self._judge is not None:
            return await self._judged(record)
        waits: list[str] = []
        sent: list[Step] = []

        async def decide(on: Position) -> Step | None:
            waits.clear()
            found = record_of(on.ledger, record.proposal_id)
            if found.state != record.state or not found.is_open:
                return None
            step = await self._promotion.step(
                found, on, self._reports(found, on), sources=self._sources(found)
            )
            if isinstance(step, Wait):
                waits.append(step.why)
                return None
            sent.append(step)
            return step

        on = await self._journal.write_async(decide, attempts=self._policy.attempts)
        after = record_of(on.ledger, record.proposal_id)
        if sent and sent[-1].makes_version and not waits and after.state == record.state:
            raise _taken(sent[-1].change_id)
        return _advance(record, after, waits[0] if waits else after.events[-1].reason)

    async def _judged(self, record: ProposalRecord) -> Advance:
        """Ask the judge again; one that can not answer holds up nobody else's proposal."""
        try:
            after = await self.ask_judge(record.proposal_id)
        except ModelError as error:
            return _advance(record, record, f"the judge could not answer: {error}")
        waits = after.state == "proposed"
        return _advance(record, after, consent_awaited(after).why if waits else after.last_word)

    def roll_back(self, which: str, author: Author, reason: str) -> tuple[str, ...]:
        """Take a proposal back, or the last one of a tool; the ids of all that were."""
        history, sent = self._journal.store.history, list[Step]()

        def decide(on: Position) -> Step | None:
            step = roll_back_step(on, which, author, reason, history=history)
            sent[:] = [] if step is None else [step]
            return step

        on = self._write(decide)
        drafts = sent[0].drafts if sent else ()
        taken = tuple(draft.proposal_id for draft in drafts if draft.proposal_id)
        if any(on.ledger.proposals[one].state != "rolled_back" for one in taken):
            raise _taken(sent[0].change_id)
        return taken

    def pin(self, version: int, tool_name: str, author: Author, reason: str) -> Position:
        """Let runs use one version, whatever happens."""
        store = self._journal.store
        return self._write(lambda on: pin_step(on, version, tool_name, author, reason, store=store))

    def unpin(self, tool_name: str, author: Author, reason: str) -> Position:
        """Let runs use the newest version again."""
        return self._write(lambda on: unpin_step(on, tool_name, author, reason))

    async def release(self, proposer: str, person: Author, reason: str) -> ProposerRecord:
        """Take from a quarantined proposer again."""
        author, screen = self._journal.author, self._screen

        async def decide(on: Position) -> Step | None:
            return await release_step(
                on,
                proposer,
                person,
                reason,
                screen=screen,
                author=author,
                sources=self._sources,
            )

        on = await self._journal.write_async(decide, attempts=self._policy.attempts)
        return on.ledger.proposer(proposer)

    async def revalidate(self) -> Revalidation:
        """Look again at the composites that are marked."""
        seen: list[Revalidation] = []

        async def decide(on: Position) -> Step | None:
            result, tried = await look_again(
                on,
                tuple(on.ledger.marked),
                policy=self._promotion.trying,
                limits=self._promotion.limits,
            )
            seen.append(result)
            return revalidation_step(on, tried, self._journal.author)

        await self._journal.write_async(decide, attempts=self._policy.attempts)
        return seen[-1]

    def _write(self, decide: Callable[[Position], Step | None]) -> Position:
        return self._journal.write(decide, attempts=self._policy.attempts)

    def _reports(self, record: ProposalRecord, on: Position) -> Sequence[GateReport]:
        """What the gates say now, and what they said before where they are not asked again."""
        recorded = {report.gate: report for report in recorded_reports(record)}
        if self._assess is not None:
            recorded |= {report.gate: report for report in self._assess(record, on.ledger)}
        return tuple(recorded.values())

    def _sources(self, record: ProposalRecord) -> tuple[str, ...]:
        return source_texts(self._journal.store, record.events[0].evidence)

    def _change(self, record: ProposalRecord, on: Position) -> ProposedChange | None:
        """What a judge is to read of an open proposal; None when nobody needs one.

        The change is that of the proposer: what others changed meanwhile is no part of it.
        """
        candidate = record.candidate
        if "judge" not in record.awaits or not record.is_open or candidate is None:
            return None
        sources = self._sources(record)
        if not record.base:
            return change_of_new(candidate, on.library, sources)
        base = self._journal.revision(record.tool_name, record.base)
        if base is None:
            return None
        return ProposedChange(base=base, candidate=candidate, library=on.library, sources=sources)


def _advance(before: ProposalRecord, after: ProposalRecord, why: str) -> Advance:
    return Advance(
        proposal_id=after.proposal_id,
        tool_name=after.tool_name,
        before=before.state,
        after=after.state,
        why=why,
    )


def _taken(change_id: str) -> StoreError:
    return StoreError(
        f"the store knows a change {change_id!r} that was another one, and wrote nothing; give "
        "each proposal, and each change, an id of its own"
    )
