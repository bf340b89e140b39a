"""``Lifecycle``: what the Tool Manager does with proposals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.composites.problems import CompositeLimits
from agentkit.episodes import Episode
from agentkit.errors import ModelError, StoreError, UsageError
from agentkit.evolution.gates.decision import GateReport
from agentkit.evolution.insertion.insert import Procedure
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.lifecycle.assessing import Assess
from agentkit.evolution.lifecycle.consenting import approval, judgement, record_of, refusal
from agentkit.evolution.lifecycle.drafts import Scribe
from agentkit.evolution.lifecycle.journal import Journal
from agentkit.evolution.lifecycle.judging import ChangeJudge, Judgement
from agentkit.evolution.lifecycle.moves import Wait, consent_awaited, recorded_reports
from agentkit.evolution.lifecycle.overruling import overruling_step
from agentkit.evolution.lifecycle.pinning import pin_step, unpin_step
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.promoting import Promotion
from agentkit.evolution.lifecycle.record import ProposalRecord, ProposerRecord
from agentkit.evolution.lifecycle.releasing import release_step
from agentkit.evolution.lifecycle.revalidating import (
    Revalidation,
    look_again,
    revalidation_step,
)
from agentkit.evolution.lifecycle.rolling_back import roll_back_step
from agentkit.evolution.lifecycle.screening import Screen, Validate, change_of_new
from agentkit.evolution.lifecycle.sources import source_episodes, source_texts
from agentkit.evolution.lifecycle.standing import Standing, standing
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.evolution.lifecycle.submitting import identified, readable, taken_in
from agentkit.evolution.loops import require_loop
from agentkit.evolution.proposals.proposal import ProposalState
from agentkit.evolution.proposals.proposer import Suggestion
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.events import Author


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
