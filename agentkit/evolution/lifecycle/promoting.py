"""Bringing a proposal on to its next stage, up to serving everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.composites.problems import CompositeLimits
from agentkit.errors import LibraryError
from agentkit.evolution.gates.decision import GateReport
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.lifecycle.ancestors import Above, look_above
from agentkit.evolution.lifecycle.drafts import Scribe, screening_facts
from agentkit.evolution.lifecycle.ledger import EXPERIMENTS
from agentkit.evolution.lifecycle.moves import Enter, Move, Wait, next_move, recorded_reports
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.record import ProposalRecord, outstanding
from agentkit.evolution.lifecycle.rejecting import rejection
from agentkit.evolution.lifecycle.screening import RejectedBy, Screen, Screened
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.tools.definition import ToolDefinition


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


def marks(
    author: Author, changed: ToolDefinition, above: Above, *, version: int
) -> tuple[EventDraft, ...]:
    """That the composites above that nobody could try wait for re-validation."""
    after = {definition.name: definition for definition in above.repinned}
    return tuple(
        EventDraft(
            kind="marked",
            author=author,
            reason=f"{changed.name!r} changed, and {why}",
            tool_name=name,
            library_version=version,
            digest_after=after[name].digest,
            facts={"child": changed.name},
        )
        for name, why in above.unknown.items()
    )


def _breaks(candidate: ToolDefinition, name: str, how: str) -> FailedCheck:
    return FailedCheck(
        code="breaks_parent",
        layer="semantic",
        message=f"{name!r} is made of {candidate.name!r}, and would break: {how}",
        advice=f"keep what {name!r} relies on, or revise it first",
    )
