"""One round of evolution: look at what happened, take suggestions, let numbers decide.

This is the offline round, for which no traffic is needed: each suggestion that every check let pass
is compared with the active definition on tasks that nobody learned from, and only a gain brings it
on. Shadow and canary, where a policy asks for them, go on from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.late_verdicts import with_late_verdicts
from agentkit.errors import ModelError, UsageError
from agentkit.evolution.gates.decision import GateReport, GateRules, PairedScore
from agentkit.evolution.gates.elond import Elond
from agentkit.evolution.gates.offline import NAME as OFFLINE
from agentkit.evolution.gates.offline import offline_gate
from agentkit.evolution.gates.reuse import with_uses
from agentkit.evolution.lifecycle.cycle import Advance
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposals.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposals.proposer import (
    Observations,
    Proposer,
    ProposerInterruptedError,
    Suggestion,
)
from agentkit.evolution.serving.overlay import overlaid
from agentkit.library.library import Library

Compare: TypeAlias = Callable[[str, Library, Library], Awaitable[Sequence[PairedScore]]]
"""Does held-out tasks with two libraries that differ in one tool, whose name comes first.

``agentkit.evaluation.held_out.HeldOut`` asks an agent the tasks of a benchmark.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Considered:
    """One proposal, and how far this round brought it.

    Attributes:
        record: Where it stands.
        report: What the comparison on held-out tasks says; None where none was made.
        why: Why it stands there, in words.
    """

    record: ProposalRecord
    report: GateReport | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "proposal_id": self.record.proposal_id,
            "tool": self.record.tool_name,
            "stream": self.record.stream,
            "state": self.record.state,
            "why": self.why,
        }
        if self.report is not None:
            record["held_out"] = self.report.to_json()
        return record


@dataclass(frozen=True, kw_only=True, slots=True)
class Silent:
    """A proposer, or a judge of what it suggests, that could not say anything, or not all.

    Attributes:
        proposer: Its name.
        error: Why.
    """

    proposer: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """What came of one round.

    Attributes:
        before: Library version that it began with.
        after: Library version that it ended with.
        episodes: How many episodes were looked at, without shadow runs and views.
        considered: The proposals, in the order in which they were made.
        silent: Proposers and judges whose model could not be reached.
    """

    before: int
    after: int
    episodes: int
    considered: tuple[Considered, ...] = ()
    silent: tuple[Silent, ...] = field(default=())

    @property
    def promoted(self) -> tuple[Considered, ...]:
        """Those that became active."""
        return tuple(one for one in self.considered if one.record.state == "active")

    @property
    def most_earlier_uses(self) -> int:
        """How often held-out tasks of this round have decided before, at most."""
        reports = [one.report for one in self.considered if one.report is not None]
        return max((int(one.statistics.get("earlier_uses", 0)) for one in reports), default=0)

    def to_json(self) -> dict[str, Any]:
        """The round as a JSON object."""
        return {
            "before": self.before,
            "after": self.after,
            "episodes": self.episodes,
            "proposals": [one.to_json() for one in self.considered],
            "silent": [{"proposer": one.proposer, "error": one.error} for one in self.silent],
        }


async def evolve(
    manager: ToolManager,
    proposers: Iterable[Proposer],
    *,
    episodes: Iterable[Episode],
    compare: Compare | None = None,
    rules: GateRules = GateRules(),  # noqa: B008 - frozen
    tools: Sequence[str] = (),
) -> Round:
    """Make one round.

    Proposals are looked at one after another, each against the library as it is by then: when one
    was promoted, the next is compared with that. The level of each comparison comes from e-LOND's
    sequence, so that many useless proposals do not add up to useless promotions. Here the levels
    are held against p-values, which is LOND (Javanmard and Montanari 2018, *Annals of Statistics*
    46(2), 526-554). It asks that the p-values be independent or positively dependent (Zrnic, Ramdas
    and Jordan 2021, *JMLR* 22(33)), which e-values need not be. Tasks that decide again and again
    break that, so each report says how often they have (``with_uses``).

    Args:
        manager: Takes the suggestions in, and writes.
        proposers: Suggest, in this order.
        episodes: What happened, with verdicts and diagnoses. A verdict that was kept later, beside
            its episode, takes the place of the episode's own (``with_late_verdicts``). Records of
            shadow runs and views, which tell of nothing that a user saw, are left out.
        compare: Does held-out tasks with both definitions; without it, proposals that passed every
            check wait for a person, for shadow or for canary, as the manager's policy says.
        rules: The knobs of the comparison.
        tools: Names of the tools to look at, the worst first; empty for all.

    Raises:
        UsageError: A proposer answers with something that is no suggestion.
        StoreError: The store failed. What was promoted before stays.
        RunError: The model failed for good while held-out tasks were asked.

    Example:
        >>> import asyncio
        >>> from agentkit import open_store
        >>> manager = ToolManager(open_store("memory:"))
        >>> asyncio.run(evolve(manager, [], episodes=[])).to_json()["proposals"]
        []
    """
    seen = with_late_verdicts(episodes)
    profile = FailureProfile(half_life_days=None)
    profile.observe_all(seen)
    before = manager.refresh()
    observations = Observations(library=before, episodes=seen, profile=profile, tools=tuple(tools))
    records, silent = await _suggested(manager, proposers, observations)
    considered = [await _considered(manager, record, compare, rules) for record in records]
    return Round(
        before=before.version,
        after=manager.refresh().version,
        episodes=len(seen),
        considered=tuple(considered),
        silent=tuple(silent),
    )


async def _suggested(
    manager: ToolManager, proposers: Iterable[Proposer], observations: Observations
) -> tuple[list[ProposalRecord], list[Silent]]:
    """What all proposers suggest, taken in; the same suggested twice is one."""
    records: dict[str, ProposalRecord] = {}
    silent: list[Silent] = []
    for proposer in proposers:
        suggestions, broken = await _heard(proposer, observations)
        if broken is not None:
            silent.append(Silent(proposer=proposer.name, error=str(broken)))
        for suggestion in suggestions:
            try:
                record = await manager.submit_async(suggestion)
            except ModelError as error:  # the proposal is kept, and waits for its judge
                silent.append(Silent(proposer=f"the judge of {proposer.name}", error=str(error)))
                continue
            records[record.proposal_id] = record
    return list(records.values()), silent


async def _heard(
    proposer: Proposer, observations: Observations
) -> tuple[Sequence[Suggestion], ModelError | None]:
    """What a proposer suggests, and the error that kept it from suggesting more."""
    try:
        return _checked(proposer, await proposer.propose(observations)), None
    except ProposerInterruptedError as error:
        return _checked(proposer, error.found), error
    except ModelError as error:
        return (), error


def _checked(proposer: Proposer, answer: object) -> Sequence[Suggestion]:
    """What a proposer answers; it may be anybody's code."""
    found = list(answer) if isinstance(answer, Sequence) else [answer]
    good = [one for one in found if isinstance(one, Proposal | UnreadableProposal)]
    if len(good) < len(found):
        odd = next(one for one in found if not isinstance(one, Proposal | UnreadableProposal))
        raise UsageError(
            f"the proposer {proposer.name!r} suggests {type(odd).__name__}; propose() returns a "
            "list of Proposal and UnreadableProposal, empty when nothing should change"
        )
    return good


async def _considered(
    manager: ToolManager, record: ProposalRecord, compare: Compare | None, rules: GateRules
) -> Considered:
    report = None
    if record.state == "validated" and compare is not None:
        report = await _compared(manager, record, compare, rules)
        manager.assess(record.proposal_id, [report])
    if not record.is_open:
        return Considered(record=record, why=record.last_word)
    advanced: Sequence[Advance] = await manager.advance_async(record.proposal_id)
    now = manager.ledger.proposals[record.proposal_id]
    return Considered(record=now, report=report, why=advanced[0].why)


async def _compared(
    manager: ToolManager, record: ProposalRecord, compare: Compare, rules: GateRules
) -> GateReport:
    control = manager.library
    candidate = record.candidate
    if candidate is None or record.tool_name not in control:
        reason = f"{record.tool_name!r} is not in the library any more"
        return GateReport(gate=OFFLINE, decision="wait", reason=reason)
    changed = overlaid(control, {record.tool_name: candidate})
    pairs = await compare(record.tool_name, control, changed)
    place = manager.ledger.place_of(record.proposal_id)
    elond = Elond(opened=place.number - 1, promoted=place.discoveries)
    report = offline_gate(pairs, rules=replace(rules, alpha=elond.level(rules.alpha)))
    if not pairs:
        return report
    records = manager.ledger.proposals.values()
    others = (_asked(one) for one in records if one.proposal_id != record.proposal_id)
    earlier = [marks for marks in others if marks]
    tasks = [pair.task for pair in pairs]
    return with_uses(report, tasks=tasks, earlier=earlier, rules=rules)


def _asked(record: ProposalRecord) -> str:
    """What stands for the held-out tasks that decided about a proposal; empty for none."""
    facts = [one.facts for one in record.assessments if one.facts.get("gate") == OFFLINE]
    decided = [one for one in facts if one.get("decision") != "wait"]
    return str(decided[-1].get("tasks", "")) if decided else ""
