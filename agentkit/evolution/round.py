"""What a round of evolution looked at, what came of it, and why nothing came of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agentkit.agent.selection import SEARCH_TOOL
from agentkit.diagnosis.labelling import diagnose
from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names, with_late_verdicts
from agentkit.errors import ModelError, UsageError
from agentkit.evolution.compare import Compare, compare_held_out
from agentkit.evolution.feedback import is_by_user
from agentkit.evolution.gates import (
    GateConfig,
    GateReport,
)
from agentkit.evolution.learning import LearningConfig, LearnReport
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mined import submit_mined
from agentkit.evolution.mining import MiningConfig
from agentkit.evolution.proposal import Proposal, ProposalRecord, ProposalState, UnreadableProposal
from agentkit.evolution.proposer import (
    Observations,
    PassedOver,
    Proposer,
    ProposerInterruptedError,
    Suggestion,
)
from agentkit.evolution.usage import has_passed
from agentkit.library.library import Library


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """One proposal, and how far this round brought it.

    Attributes:
        record: Where it stands.
        report: What the comparison on held-out tasks says; None where none was made.
        why: Why it stands there, in words.
        before: Where it stood before the round; ``proposed`` for one that this round made.
        commands: What may be typed next.
    """

    record: ProposalRecord
    report: GateReport | None = None
    why: str = ""
    before: ProposalState = "proposed"
    commands: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "proposal_id": self.record.proposal_id,
            "tool": self.record.tool_name,
            "stream": self.record.stream,
            "before": self.before,
            "state": self.record.state,
            "why": self.why,
            "commands": list(self.commands),
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
class Failing:
    """How often a tool failed, and how.

    Attributes:
        tool: The tool.
        failures: How many of its calls.
        calls: How many calls it had, those that were missing among them.
        labels: How many failures by label, the most frequent first.
    """

    tool: str
    failures: int
    calls: int
    labels: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class LookedAt:
    """What a round looked at.

    Attributes:
        episodes: How many episodes, without shadow runs and views.
        runs: How many of them by the name of their evaluation run; the empty name is traffic.
        calls: How many calls they made.
        judged: How many have a verdict.
        went_wrong: How many failed their verdict or had a call that failed.
        failing: Tools that failed, the worst first.
    """

    episodes: int = 0
    runs: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    judged: int = 0
    went_wrong: int = 0
    failing: tuple[Failing, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class EvolutionReport:
    """What came of one round.

    Attributes:
        before: Library version that it began with.
        after: Library version that it ended with.
        looked_at: What it looked at.
        considered: The proposals that it made or that waited, in the order of their making.
        passed_over: What went wrong and brought no proposal, with the reason.
        learned: What tools learned from episodes that went well; None where that was not asked for.
        silent: Proposers and judges whose model could not be reached.
    """

    before: int
    after: int
    looked_at: LookedAt = field(default_factory=LookedAt)
    considered: tuple[ProposalOutcome, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    learned: LearnReport | None = None
    silent: tuple[Silent, ...] = ()

    @property
    def episodes(self) -> int:
        """How many episodes were looked at, without shadow runs and views."""
        return self.looked_at.episodes

    @property
    def promoted(self) -> tuple[ProposalOutcome, ...]:
        """Those that became active."""
        return tuple(one for one in self.considered if one.record.state == "active")

    @property
    def waiting(self) -> tuple[ProposalOutcome, ...]:
        """Those that are not decided yet."""
        return tuple(one for one in self.considered if one.record.is_open)

    @property
    def has_learned(self) -> bool:
        """Whether anything came of it: a proposal, or an example."""
        return bool(self.considered or (self.learned is not None and self.learned.added))

    def to_json(self) -> dict[str, Any]:
        """The round as a JSON object."""
        return {
            "before": self.before,
            "after": self.after,
            "looked_at": asdict(self.looked_at),
            "proposals": [one.to_json() for one in self.considered],
            "passed_over": [one.to_json() for one in self.passed_over],
            "learned": None if self.learned is None else self.learned.to_json(),
            "silent": [asdict(one) for one in self.silent],
        }


# --- One round of evolution: look at what happened, take suggestions, let numbers decide ---------
# This is the offline round, for which no traffic is needed: each suggestion that every check let
# pass
# is compared with the active definition on tasks that nobody learned from, and only a gain brings
# it
# on. Shadow and canary, where a policy asks for them, go on from there; each round also brings on
# what waited since earlier ones.


_MOST_FAILING = 20
_MOST_NAMED = 5


async def evolve(
    manager: ToolManager,
    proposers: Iterable[Proposer],
    *,
    episodes: Iterable[Episode],
    compare: Compare | None = None,
    rules: GateConfig = GateConfig(),  # noqa: B008 - frozen
    tools: Sequence[str] = (),
    mining: MiningConfig | None = None,
    learning: LearningConfig | None = None,
) -> EvolutionReport:
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
        mining: How calls that recur are made into composites, which wait as proposals; None mines
            nothing.
        learning: What tools keep of the requests that they answered well; None learns nothing.
            What users praised is not among it: a stranger's word adds no words to the library.

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
    before = manager.refresh()
    seen = tuple(_diagnosed(one, before) for one in with_late_verdicts(episodes))
    profile = FailureProfile(half_life_days=None)
    profile.observe_all(seen)
    found: list[PassedOver] = [*_unknown_tools(seen, before)]
    observations = Observations(
        library=before, episodes=seen, profile=profile, tools=tuple(tools), pass_over=found.append
    )
    known = dict(manager.ledger.proposals)
    silent = await _suggested(manager, proposers, observations)
    learned = None
    if learning is not None:
        learned = manager.learn(seen, rules=learning, passed=_has_passed_by_verifier)
    if mining is not None:
        await submit_mined(manager, seen, mining)
    now = manager.ledger.proposals
    decided = {name for name, one in known.items() if not one.is_open}
    moved = [one for name, one in now.items() if name not in decided]
    considered = [await _considered(manager, one, known, compare, rules) for one in moved]
    return EvolutionReport(
        before=before.version,
        after=manager.refresh().version,
        looked_at=_looked_at(seen, profile),
        considered=tuple(considered),
        passed_over=_told(found, silent.again, tools),
        learned=learned,
        silent=tuple(silent.silent),
    )


def _diagnosed(episode: Episode, library: Library) -> Episode:
    """The episode with the reason why it failed, which nobody works out while it is served."""
    if episode.diagnosis is not None:
        return episode
    return replace(episode, diagnosis=diagnose(episode, library, episode.verdict))


def _has_passed_by_verifier(episode: Episode) -> bool:
    return has_passed(episode) and not is_by_user(episode.verdict)


def _unknown_tools(episodes: Iterable[Episode], library: Library) -> Iterator[PassedOver]:
    """Tools that were called and that the library does not hold."""
    called: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for episode in map(in_library_names, episodes):
        invented = {
            result.name
            for result in episode.results
            if result.failure is not None and result.failure.kind == "unknown_tool"
        }
        for result in episode.results:
            if result.name not in library and result.name not in invented | {SEARCH_TOOL}:
                called[result.name] += 1
                failed[result.name] += result.status == "failed"
    for name, calls in called.most_common():
        yield PassedOver(
            tool=name,
            reason="not_in_library",
            why=f"{calls:,} calls, {failed[name]:,} failed, and the library has no such tool",
            failures=failed[name],
            command="agentkit evolve --tools FILE.py",
        )


def _looked_at(episodes: Sequence[Episode], profile: FailureProfile) -> LookedAt:
    wrong = sum(
        (one.verdict is not None and not one.verdict.passed)
        or any(result.status == "failed" for result in one.results)
        for one in episodes
    )
    failing = (
        Failing(
            tool=rate.tool,
            failures=round(rate.failures),
            calls=round(rate.observed),
            labels={label: round(weight) for label, weight in rate.labels.items()},
        )
        for rate in profile.worst_tools(_MOST_FAILING)
    )
    return LookedAt(
        episodes=len(episodes),
        runs=dict(Counter(one.metadata.get("run", "") for one in episodes).most_common()),
        calls=sum(len(one.calls) for one in episodes),
        judged=sum(one.verdict is not None for one in episodes),
        went_wrong=wrong,
        failing=tuple(failing),
    )


def _told(
    found: Iterable[PassedOver], again: Iterable[ProposalRecord], tools: Sequence[str]
) -> tuple[PassedOver, ...]:
    """What was passed over, with what was suggested again and is decided."""
    repeated = [
        PassedOver(
            tool=record.tool_name,
            reason="quarantine" if record.state == "quarantined" else "already_proposed",
            why=f"{record.proposal_id} is {record.state.replace('_', ' ')}: {record.last_word}",
            command=f"agentkit review show {record.proposal_id}",
        )
        for record in again
    ]
    return tuple(one for one in (*found, *repeated) if not tools or one.tool in tools)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Heard:
    """What came of asking all proposers: suggestions decided before, and who was silent."""

    again: tuple[ProposalRecord, ...]
    silent: tuple[Silent, ...]


async def _suggested(
    manager: ToolManager, proposers: Iterable[Proposer], observations: Observations
) -> _Heard:
    """Take in what all proposers suggest; the same suggested twice is one."""
    records = manager.ledger.proposals.values()
    decided = {one.proposal_id for one in records if not one.is_open}
    again: dict[str, ProposalRecord] = {}
    silent: list[Silent] = []
    for proposer in proposers:
        suggestions, broken = await _heard(proposer, observations)
        if broken is not None:
            silent.append(Silent(proposer=proposer.name, error=str(broken)))
        for suggestion in suggestions:
            if said := manager.decided_before(suggestion):
                again[said.proposal_id] = said
                continue
            try:
                record = await manager.submit_async(suggestion, episodes=observations.episodes)
            except ModelError as error:  # the proposal is kept, and waits for its judge
                silent.append(Silent(proposer=f"the judge of {proposer.name}", error=str(error)))
                continue
            if record.proposal_id in decided:
                again[record.proposal_id] = record
    return _Heard(again=tuple(again.values()), silent=tuple(silent))


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
    manager: ToolManager,
    record: ProposalRecord,
    known: Mapping[str, ProposalRecord],
    compare: Compare | None,
    rules: GateConfig,
) -> ProposalOutcome:
    """Bring a proposal on by a stage, a new one or one that waited."""
    before = known.get(record.proposal_id)
    report, why = None, record.last_word
    if record.state == "validated" and compare is not None and record.base:
        report = await compare_held_out(record, manager.library, manager.ledger, compare, rules)
        manager.assess(record.proposal_id, [report])
    if record.is_open:
        advanced = await manager.advance_async(record.proposal_id)
        why = advanced[0].why
    return ProposalOutcome(
        record=manager.ledger.proposals[record.proposal_id],
        report=report,
        why=why,
        before="proposed" if before is None else before.state,
        commands=manager.standing(record.proposal_id).commands,
    )
