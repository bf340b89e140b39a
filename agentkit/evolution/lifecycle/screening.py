"""Looking at a candidate on the newest library: moved onto it, then checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from agentkit.episodes import Episode
from agentkit.evolution.decided import Revision, brings_back
from agentkit.evolution.insertion.decision import Merger
from agentkit.evolution.insertion.insert import Procedure, decide
from agentkit.evolution.insertion.outcome import Rejected
from agentkit.evolution.lifecycle.ancestors import try_composite
from agentkit.evolution.lifecycle.arriving import (
    broken_calls,
    place_faults,
    settled,
    text_faults,
)
from agentkit.evolution.lifecycle.record import Consent
from agentkit.evolution.lifecycle.step import Position
from agentkit.evolution.proposals.evidence.observed import ObservedCall
from agentkit.evolution.proposals.evidence.vetoes import accepted_calls, refused_by_rules
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.evolution.validation.origins import TRUSTED
from agentkit.evolution.validation.overruling import is_overruled
from agentkit.evolution.validation.report import (
    FailedCheck,
    ProposedChange,
    ValidationReport,
)
from agentkit.evolution.validation.rule_support import new_rules
from agentkit.evolution.validation.texts import rules_of
from agentkit.library.library import Library
from agentkit.library.rebase import Conflict, rebase
from agentkit.tools.definition import Description, Specification, ToolDefinition
from agentkit.tools.rules import Rule, rule_sentence

_LONGEST_EXCERPT = 200
_MOST_NAMED = 5

Validate: TypeAlias = Callable[[ProposedChange], ValidationReport]
"""All checks on one change, such as ``agentkit.evolution.validation.validate.validate``."""

RejectedBy = Literal["checks", "unreadable", "judge", "person", "gate", "library", "parents"]
"""Who said no. ``library``: the library has moved on, and the change with it has lost its place;
``parents``: a composite above would break."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Screened:
    """What a candidate comes to on the newest library.

    Attributes:
        base: The revision that it would replace; None when the library has no such tool.
        candidate: The definition as it would be, moved onto that revision.
        failed: Every reason against it.
        by: Who has these reasons.
        needs: Who must agree to it.
        waits_for: What has to be decided first; empty for nothing.
    """

    candidate: ToolDefinition
    base: ToolDefinition | None = None
    failed: tuple[FailedCheck, ...] = ()
    by: RejectedBy = "checks"
    needs: tuple[Consent, ...] = ()
    waits_for: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """What candidates are looked at with.

    Attributes:
        validate: All checks.
        revision: Finds earlier definitions, to rebase on.
        inserting: How InsertTool decides on tools that are new.
    """

    validate: Validate
    revision: Revision
    inserting: Procedure

    async def look(
        self,
        candidate: ToolDefinition,
        base: str,
        on: Position,
        *,
        sources: tuple[str, ...] = (),
        overruled: tuple[FailedCheck, ...] = (),
        proposal: Proposal | None = None,
        episodes: Sequence[Episode] = (),
    ) -> Screened:
        """Move a candidate onto the newest revision of its tool, and check it there.

        Args:
            candidate: The definition as somebody wants it.
            base: Digest of the revision that it was made from; empty for a tool that is new.
            on: The newest library.
            sources: Texts that it must not copy from.
            overruled: What a person has overruled of what the checks say.
            proposal: Who suggests it, and where its texts came from; nobody knows without it.
            episodes: Calls that the tool took in these, and its worked examples, may not be
                refused by a new rule.
        """
        if proposal is not None and proposal.is_arrival:
            return await self._arrived(candidate, on, overruled)
        if not base and candidate.is_composite:
            return await self._new(candidate, on, sources, overruled, proposal)
        library = on.library
        tool = library.get(candidate.name)
        if tool is None:
            return self._unknown(candidate, base, library)
        newest = tool.definition
        moved = self._moved(candidate, base, newest)
        if isinstance(moved, FailedCheck):
            return Screened(candidate=candidate, base=newest, failed=(moved,), by="library")
        if moved.digest == newest.digest:
            by: RejectedBy = "checks" if base == newest.digest else "library"
            return Screened(candidate=moved, base=newest, failed=(_no_change(moved),), by=by)
        change = ProposedChange(base=newest, candidate=moved, library=library, sources=sources)
        taken = accepted_calls(newest, library, episodes) if episodes else ()
        change = replace(change, accepted=tuple(call.arguments for call in taken))
        change = with_origins(change, proposal)
        report = self.validate(change)
        locked_out = () if report.failed else refuses_accepted(change, episodes)
        failed = _standing((*report.failed, *locked_out), overruled)
        needs = set(report.needs)
        if proposal is not None and brings_back(on.ledger, self.revision, proposal):
            needs.add("person")
        return Screened(
            candidate=moved,
            base=newest,
            failed=failed,
            needs=tuple(who for who in get_args(Consent) if who in needs),
        )

    async def _new(
        self,
        candidate: ToolDefinition,
        on: Position,
        sources: tuple[str, ...],
        overruled: tuple[FailedCheck, ...],
        proposal: Proposal | None,
    ) -> Screened:
        """A composite that is new: InsertTool says whether it works, the checks what its words are.

        Of these only the lexical ones apply, because the others compare with words that were there
        before; and its words may name the tools that it calls.
        """
        decision = await decide(candidate, on.snapshot, self.inserting)
        if isinstance(decision, Rejected):
            return Screened(candidate=candidate, failed=(_not_inserted(decision),))
        if isinstance(decision, Merger):
            return Screened(candidate=candidate, failed=(_duplicate(decision),), by="library")
        change = with_origins(change_of_new(candidate, on.library, sources), proposal)
        report = self.validate(change)
        failed = (one for one in _standing(report.failed, overruled) if one.layer == "lexical")
        told = tuple(one for one in failed if one.code != "other_tool")
        return Screened(candidate=decision.tool.definition, failed=told, needs=report.needs)

    async def _arrived(
        self, candidate: ToolDefinition, on: Position, overruled: tuple[FailedCheck, ...]
    ) -> Screened:
        """A tool of another library: what it says, whether it fits, what its worked calls show.

        A person must always agree: the import took what needs nobody's word.
        """
        here = settled(candidate, on.library)
        tool = on.library.get(candidate.name)
        if tool is not None:
            is_same = tool.definition.digest in {candidate.digest, here.digest}
            failed = _no_change(candidate) if is_same else _name_taken(tool.definition)
            return Screened(candidate=candidate, failed=(failed,), by="library")
        found = _standing(text_faults(candidate, self.inserting.policy), overruled)
        if found:
            return Screened(candidate=candidate, failed=found, needs=("person",))
        waits_for = _undecided_child(candidate, on)
        if not waits_for and candidate.is_composite:
            found = await self._misfits(here, on)
        return Screened(
            candidate=here, failed=found, by="library", needs=("person",), waits_for=waits_for
        )

    async def _misfits(self, composite: ToolDefinition, on: Position) -> tuple[FailedCheck, ...]:
        """Why a composite of another library can not serve in this one."""
        found = place_faults(composite, on.library)
        if found:
            return found
        tried = await try_composite(
            composite,
            on.library.with_tools([composite]),
            policy=self.inserting.policy,
            limits=self.inserting.limits,
        )
        return broken_calls(composite.name, tried)

    def _unknown(self, candidate: ToolDefinition, base: str, library: Library) -> Screened:
        was_there = self.revision(candidate.name, base) is not None
        near = library.nearest(candidate.name)
        hint = f"; it has {', '.join(map(repr, near))}" if near else ""
        failed = FailedCheck(
            code="removed_tool" if was_there else "unknown_tool",
            layer="structural",
            field="name",
            message=f"the library has no tool {candidate.name!r} (any more){hint}"
            if was_there
            else f"the library has no tool {candidate.name!r}{hint}",
            advice="a proposal changes a tool of the library; only a composite may be new, with an "
            "empty base",
            excerpt=candidate.name[:120],
        )
        by: RejectedBy = "library" if was_there else "checks"
        return Screened(candidate=candidate, failed=(failed,), by=by)

    def _moved(
        self, candidate: ToolDefinition, base: str, newest: ToolDefinition
    ) -> ToolDefinition | FailedCheck:
        """The candidate on the newest revision, or why it can not be brought there."""
        if base == newest.digest:
            return candidate
        before = self.revision(candidate.name, base)
        if before is None:
            return FailedCheck(
                code="unknown_base",
                layer="structural",
                message=f"the revision {base[:12] or '(none)'} of {candidate.name!r} that it is "
                "made from is not in the tool's history",
                advice="make the proposal from the tool as the library has it",
            )
        rebased = rebase(before, candidate, newest)
        if rebased.conflicts:
            return _conflict(rebased.conflicts, before, newest)
        return rebased.definition


def refuses_accepted(
    change: ProposedChange, episodes: Iterable[Episode]
) -> tuple[FailedCheck, ...]:
    """Why new rules can not be right: they refuse calls that the tool took, or worked examples.

    A person or the tool's own code may say that what was taken is taken no more.
    """
    rules = new_rules(change)
    if not rules or change.written_by in TRUSTED:
        return ()
    taken = accepted_calls(change.base, change.library, episodes)
    against: dict[Rule, list[ObservedCall]] = {}
    for rule, call in refused_by_rules(rules, change.base, taken):
        against.setdefault(rule, []).append(call)
    return tuple(
        FailedCheck(
            code="refuses_accepted_call",
            layer="structural",
            field=f"rules[{rules_of(change.candidate).index(rule)}]",
            message=f"it would refuse {len(calls):,} of {len(taken):,} calls that the tool took, "
            f"in {_named(calls)}",
            advice="propose a rule that lets them pass, or have a person propose this one",
            excerpt=rule_sentence(rule)[:_LONGEST_EXCERPT],
        )
        for rule, calls in against.items()
    )


def _named(calls: Iterable[ObservedCall]) -> str:
    """The episodes of the calls; arguments are what users said, and events may be exported."""
    places = [*dict.fromkeys(call.episode_id or "a worked example" for call in calls)]
    return ", ".join(places[:_MOST_NAMED]) + (" and others" if len(places) > _MOST_NAMED else "")


def change_of_new(
    candidate: ToolDefinition, library: Library, sources: tuple[str, ...]
) -> ProposedChange:
    """A tool that is new, as a change of itself without any words."""
    blank = replace(candidate, description=Description(), specification=Specification())
    return ProposedChange(
        base=blank,
        candidate=candidate,
        library=library.with_tools([blank]),
        sources=sources,
        is_new=True,
    )


def with_origins(change: ProposedChange, proposal: Proposal | None) -> ProposedChange:
    """The change with where its texts came from, as far as its proposal says."""
    if proposal is None:
        return replace(change, written_by="unknown")
    return replace(
        change,
        origins=proposal.origins,
        written_by=proposal.written_by,
        from_evidence=proposal.stream == "evidence" and proposal.author.kind == "program",
    )


def _undecided_child(candidate: ToolDefinition, on: Position) -> str:
    """Which proposal would bring a tool that an arriving composite calls; empty for none."""
    pins = {pin.name: pin.digest for pin in candidate.signature.children}
    for record in on.ledger.proposals.values():
        wanted = pins.get(record.tool_name)
        if wanted is None or record.tool_name in on.library:
            continue
        is_undecided = record.is_open or record.overrulable
        if is_undecided and record.candidate is not None and record.candidate.digest == wanted:
            return f"waits for {record.tool_name!r}, which it calls: {record.proposal_id}"
    return ""


def _name_taken(known: ToolDefinition) -> FailedCheck:
    return FailedCheck(
        code="name_taken",
        layer="structural",
        field="name",
        message=f"the library has another tool {known.name!r} by now (revision "
        f"{known.digest[:12]})",
        advice="import it again, and choose which definition the name keeps",
    )


def _standing(
    failed: tuple[FailedCheck, ...], overruled: tuple[FailedCheck, ...]
) -> tuple[FailedCheck, ...]:
    """What is held against a candidate once a person has overruled some of it."""
    return tuple(one for one in failed if not is_overruled(one, overruled))


def _conflict(
    conflicts: tuple[Conflict, ...], before: ToolDefinition, newest: ToolDefinition
) -> FailedCheck:
    names = ", ".join(conflict.field for conflict in conflicts)
    return FailedCheck(
        code="conflict",
        layer="structural",
        field=conflicts[0].field,
        message=f"somebody else changed {names} of {newest.name!r} since revision "
        f"{before.digest[:12]}, in another way",
        advice=f"look at revision {newest.digest[:12]}, and propose what is still missing there",
    )


def _not_inserted(rejected: Rejected) -> FailedCheck:
    return FailedCheck(
        code=rejected.code,
        layer="structural",
        message=rejected.explanation,
        advice=rejected.advice,
    )


def _duplicate(decision: Merger) -> FailedCheck:
    return FailedCheck(
        code="duplicate",
        layer="semantic",
        message=f"the library has a tool that does the same, {decision.into.name!r}: "
        f"{decision.reason}",
        advice="ToolManager.insert moves its worked calls to that tool",
    )


def _no_change(candidate: ToolDefinition) -> FailedCheck:
    return FailedCheck(
        code="no_change",
        layer="structural",
        message=f"{candidate.name!r} is like that already (revision {candidate.digest[:12]})",
        advice="propose something that differs from the tool as the library has it",
    )
