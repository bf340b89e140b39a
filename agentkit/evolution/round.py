"""One round of evolution: look at what happened, take suggestions, let numbers decide.

This is the offline round, for which no traffic is needed: each suggestion that every check let pass
is compared with the active definition on tasks that nobody learned from, and only a gain brings it
on. Shadow and canary, where a policy asks for them, go on from there; each round also brings on
what waited since earlier ones.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from agentkit.diagnosis.labelling import diagnose
from agentkit.diagnosis.profile import FailureProfile, FailureRate
from agentkit.episodes import Episode
from agentkit.episodes.labels import (
    PROBE_OF,
    in_library_names,
    is_extra_record,
    is_imported,
    with_late_verdicts,
)
from agentkit.episodes.replacing import plain_here, try_lock
from agentkit.errors import ModelError, StoreError, UsageError
from agentkit.evolution.compare import Compare, compare_held_out
from agentkit.evolution.gates import (
    GateConfig,
)
from agentkit.evolution.incremental import RoundEpisodes
from agentkit.evolution.learning import LearnReport, has_passed, is_by_user
from agentkit.evolution.lifecycle import ProposalOutcome
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining import MiningConfig, submit_mined
from agentkit.evolution.proposal import (
    Observations,
    PassedOver,
    Proposal,
    ProposalRecord,
    Proposer,
    ProposerInterruptedError,
)
from agentkit.library.library import Library
from agentkit.library.opening import file_of, folder_of
from agentkit.messages import Usage
from agentkit.models.base import RUNTIME_TOOLS


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposerRun:
    """One proposer, or the judge, in one round: what it cost and what came of it.

    Attributes:
        proposer: Its name.
        suggestions: How many changes it suggests; 0 for a judge.
        proposals: Ids of the proposals that were new; of a judge, those that it read.
        seconds: How long it took. The judge answers while suggestions are taken in, so that its
            time is counted as its own.
        usage: The tokens of its model; none where no model was asked.
    """

    proposer: str
    suggestions: int = 0
    proposals: tuple[str, ...] = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def to_json(self) -> dict[str, Any]:
        """The run as a JSON object."""
        return {**asdict(self), "usage": self.usage.to_json()}


@dataclass(frozen=True, kw_only=True, slots=True)
class LookedAt:
    """What a round looked at.

    Attributes:
        episodes: How many episodes, without shadow runs and views.
        earlier: How many others, which earlier rounds had read, were read again.
        imported: How many others were left aside, because they came in a file (``is_imported``).
        calls: How many calls they made.
        judged: How many have a verdict.
        went_wrong: How many failed their verdict or had a call that failed.
        failing: How often tools failed, and with which labels, the worst first.
    """

    episodes: int = 0
    earlier: int = 0
    imported: int = 0
    calls: int = 0
    judged: int = 0
    went_wrong: int = 0
    failing: tuple[FailureRate, ...] = ()


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
        silent: By name of proposers, and judges of them, whose model could not be reached: why.
        proposers: Who looked, at what cost, and what came of it; the judge last.
    """

    before: int
    after: int
    looked_at: LookedAt = field(default_factory=LookedAt)
    considered: tuple[ProposalOutcome, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    learned: LearnReport | None = None
    silent: Mapping[str, str] = field(default_factory=dict)
    proposers: tuple[ProposerRun, ...] = ()

    @property
    def promoted(self) -> tuple[ProposalOutcome, ...]:
        """Those that became active."""
        return tuple(one for one in self.considered if one.record.state == "active")

    @property
    def waiting(self) -> tuple[ProposalOutcome, ...]:
        """Those that are not decided yet."""
        return tuple(one for one in self.considered if one.record.is_open)

    @property
    def unknown_tools(self) -> tuple[str, ...]:
        """Tools that were called and that the library does not know."""
        return tuple(one.tool for one in self.passed_over if one.reason == "not_in_library")

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
            "silent": dict(self.silent),
            "proposers": [one.to_json() for one in self.proposers],
        }


# --- The round ------------------------------------------------------------------------------------

_MOST_FAILING = 20


async def evolve(
    manager: ToolManager,
    proposers: Iterable[Proposer],
    *,
    episodes: Iterable[Episode],
    reading: RoundEpisodes | None = None,
    compare: Compare | None = None,
    rules: GateConfig = GateConfig(),  # noqa: B008 - frozen
    tools: Sequence[str] = (),
    mining: MiningConfig | None = None,
    learning: bool = False,
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
            shadow runs and views, which tell of nothing that a user saw, are left out, and so is
            what was imported.
        reading: How these were read, where an incremental round read them (``read_round``).
        compare: Does held-out tasks with both definitions; without it, proposals that passed every
            check wait for a person, for shadow or for canary, as the manager's policy says.
        rules: The knobs of the comparison.
        tools: Names of the tools to look at, the worst first; empty for all.
        mining: How calls that recur are made into composites, which wait as proposals; None mines
            nothing.
        learning: Whether tools keep examples of the requests that they answered well. What users
            praised is not among it: a stranger's word adds no words to the library.

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
    given = tuple(episodes)
    seen = tuple(_diagnosed(one, before) for one in with_late_verdicts(given))
    profile = FailureProfile(half_life_days=None)
    served = [one for one in seen if PROBE_OF not in one.metadata]
    profile.observe_all(served)
    fresh = None if reading is None else reading.fresh
    learned = None
    if learning:  # first, so that proposals begin where it ends
        learned = manager.learn(served, passed=lambda one: _teaches(one, fresh))
    counted = profile
    if fresh is not None:
        counted = FailureProfile(half_life_days=None)
        counted.observe_all(_among(fresh, served))
    passed_over: list[PassedOver] = [*_unknown_tools(_among(fresh, seen), before)]
    observations = Observations(
        library=manager.library,
        episodes=seen,
        profile=profile,
        tools=tuple(tools),
        fresh=fresh,
        by_tool=None if reading is None else _by_tool(reading.by_tool, seen),
        pass_over=passed_over.append,
    )
    known = dict(manager.ledger.proposals)
    silent: dict[str, str] = {}
    judge, begun = manager.change_judge, manager.ledger.sequence
    usage, seconds = _spent(judge)
    runs = [await _asked(manager, proposer, observations, silent) for proposer in proposers]
    if mining is not None:
        recent = None if reading is None else reading.recent
        await submit_mined(manager, _among(recent, served), mining)
    decided = {name for name, one in known.items() if not one.is_open}
    moved = [one for name, one in manager.ledger.proposals.items() if name not in decided]
    considered = [await _considered(manager, one, known, compare, rules) for one in moved]
    if judge is not None:
        now, until = _spent(judge)
        read = [
            name
            for name, one in manager.ledger.proposals.items()
            if any(event.kind == "judged" and event.sequence > begun for event in one.events)
        ]
        name = getattr(judge, "name", "judge")
        runs.append(
            ProposerRun(
                proposer=name,
                proposals=tuple(read),
                seconds=until - seconds,
                usage=_less(now, usage),
            )
        )
    return EvolutionReport(
        before=before.version,
        after=manager.refresh().version,
        looked_at=replace(
            _looked_at(_among(fresh, served), counted),
            imported=_imported(_among(fresh, given)),
            earlier=0 if fresh is None else sum(one.episode_id not in fresh for one in served),
        ),
        considered=tuple(considered),
        passed_over=tuple(
            one
            for one in dict.fromkeys(passed_over)
            if not tools or one.tool in tools or one.reason == "unreadable"
        ),
        learned=learned,
        silent=silent,
        proposers=tuple(runs),
    )


def _among(ids: frozenset[str] | None, episodes: Sequence[Episode]) -> Sequence[Episode]:
    """The episodes of these ids; all where there are none to choose by."""
    return episodes if ids is None else [one for one in episodes if one.episode_id in ids]


def _by_tool(
    ids: Mapping[str, Iterable[str]], episodes: Iterable[Episode]
) -> dict[str, tuple[Episode, ...]]:
    named = {one.episode_id: in_library_names(one) for one in episodes}
    return {name: tuple(named[one] for one in own if one in named) for name, own in ids.items()}


def _diagnosed(episode: Episode, library: Library) -> Episode:
    """The episode with the reason why it failed, which nobody works out while it is served."""
    if episode.diagnosis is not None:
        return episode
    return replace(episode, diagnosis=diagnose(episode, library, episode.verdict))


def _teaches(episode: Episode, fresh: frozenset[str] | None) -> bool:
    """Whether an episode is new, and a verifier passed it."""
    is_new = fresh is None or episode.episode_id in fresh
    return is_new and has_passed(episode) and not is_by_user(episode.verdict)


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
            if result.name not in library and result.name not in invented.union(RUNTIME_TOOLS):
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


def _imported(episodes: Iterable[Episode]) -> int:
    labels = (one.metadata for one in episodes)
    return sum(is_imported(one) and not is_extra_record(one) for one in labels)


def _looked_at(episodes: Sequence[Episode], profile: FailureProfile) -> LookedAt:
    wrong = sum(
        (one.verdict is not None and not one.verdict.passed)
        or any(result.status == "failed" for result in one.results)
        for one in episodes
    )
    return LookedAt(
        episodes=len(episodes),
        calls=sum(len(one.calls) for one in episodes),
        judged=sum(one.verdict is not None for one in episodes),
        went_wrong=wrong,
        failing=tuple(profile.worst_tools(_MOST_FAILING)),
    )


def _spent(asked: object) -> tuple[Usage, float]:
    """What a proposer or judge has cost so far, as far as it keeps account."""
    return getattr(asked, "usage", Usage()), getattr(asked, "seconds", 0.0)


def _less(now: Usage, before: Usage) -> Usage:
    return Usage(
        requests=now.requests - before.requests,
        prompt_tokens=now.prompt_tokens - before.prompt_tokens,
        cached_tokens=now.cached_tokens - before.cached_tokens,
        completion_tokens=now.completion_tokens - before.completion_tokens,
        cost_usd=None if now.cost_usd is None else now.cost_usd - (before.cost_usd or 0),
    )


async def _asked(
    manager: ToolManager,
    proposer: Proposer,
    observations: Observations,
    silent: dict[str, str],
) -> ProposerRun:
    """Take in what a proposer suggests; note who could not say anything, or not all."""
    before, (usage, _), began = manager.ledger.proposals, _spent(proposer), time.perf_counter()
    try:
        suggestions = _checked(proposer, await proposer.propose(observations))
    except ModelError as error:
        found = error.found if isinstance(error, ProposerInterruptedError) else ()
        suggestions = _checked(proposer, found)
        silent[proposer.name] = str(error)
    seconds = time.perf_counter() - began
    for suggestion in suggestions:
        name, known = suggestion.tool_name, manager.ledger.proposals
        try:
            decided = manager.decided_before(suggestion)
            if decided is None:
                episodes = (observations.by_tool or {}).get(name, observations.episodes)
                record = await manager.submit_async(suggestion, episodes=episodes)
                decided = None if record.is_open or record.proposal_id not in known else record
        except ModelError as error:  # the proposal is kept, and waits for its judge
            silent[f"the judge of {proposer.name}"] = str(error)
            continue
        except UsageError as error:
            observations.pass_over(PassedOver(tool=name, reason="unreadable", why=str(error)))
            continue
        if decided is not None:
            observations.pass_over(_already_proposed(decided))
    return ProposerRun(
        proposer=proposer.name,
        suggestions=len(suggestions),
        proposals=tuple(name for name in manager.ledger.proposals if name not in before),
        seconds=seconds,
        usage=_less(_spent(proposer)[0], usage),
    )


def _already_proposed(record: ProposalRecord) -> PassedOver:
    return PassedOver(
        tool=record.tool_name,
        reason="already_proposed",
        why=f"{record.proposal_id} is {record.state.replace('_', ' ')}: {record.last_word}",
        command=f"agentkit review show {record.proposal_id}",
    )


def _checked(proposer: Proposer, answer: object) -> Sequence[Proposal]:
    """What a proposer answers; it may be anybody's code."""
    found = list(answer) if isinstance(answer, Sequence) else [answer]
    good = [one for one in found if isinstance(one, Proposal)]
    if len(good) < len(found):
        odd = next(one for one in found if not isinstance(one, Proposal))
        raise UsageError(
            f"the proposer {proposer.name!r} suggests {type(odd).__name__}; propose() returns a "
            "list of Proposal, empty when nothing should change"
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
    report, outcome = None, ProposalOutcome(record=record, why=record.last_word)
    if record.state == "proposed" and "judge" in record.awaits and manager.change_judge is not None:
        [outcome] = await manager.advance_async(record.proposal_id)
        if outcome.after == "proposed":  # it waits for somebody else, or the judge is out of reach
            return outcome
    if outcome.after == "validated" and compare is not None and record.base:
        report = await compare_held_out(
            outcome.record, manager.library, manager.ledger, compare, rules
        )
        manager.assess(record.proposal_id, [report])
    if outcome.record.is_open:
        [outcome] = await manager.advance_async(record.proposal_id)
    before = known.get(record.proposal_id)
    return replace(outcome, report=report, before="proposed" if before is None else before.state)


# --- One evolver at a time: a lock beside the store, which ends with the process that holds it ----
# What an evolver writes is safe without it: each commit is made on the newest version or made anew.
# The lock keeps two of them from asking models the same questions, and says who is at work.


@contextmanager
def evolving(store_url: str) -> Iterator[None]:
    """Hold the right to evolve a library; a process that is killed gives it back.

    A SQLite store has its lock in a file beside it. For other stores it is a file in the folder
    for temporary files, which holds for one machine. Where files cannot be locked, there is none.

    Args:
        store_url: Where the library is.

    Raises:
        StoreError: Another process evolves it; the message says which, and since when. Or there is
            no plain file of ours in the lock's place.

    Example:
        >>> with evolving("memory:"):
        ...     pass
    """
    if store_url.startswith("memory:"):  # no other process can reach it
        yield
        return
    path = _place(store_url)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _opened(path) as file:
        if not _taken(file):
            file.seek(0)
            who = file.read(200) or "another process"  # which is about to write its name
            raise StoreError(f"{who} evolves {store_url}; wait for its end, or stop it")
        since = datetime.now(UTC).isoformat(timespec="seconds")
        _write(file, f"process {os.getpid()} on {socket.gethostname()} since {since}")
        try:
            yield
        finally:
            _write(file, "")


def _place(store_url: str) -> Path:
    path = file_of(store_url)
    if path is not None:
        path = path.resolve()  # one lock, whichever link leads to the file
        return path.with_name(f"{path.name}.evolving")
    folder = folder_of(store_url)
    place = store_url if folder is None else str(folder.resolve())
    name = hashlib.sha256(place.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"agentkit-{name}.evolving"


def _opened(path: Path) -> IO[str]:
    """The file of the lock, which is written over: no link leads to another one."""
    try:
        file = open(path, "a+", encoding="utf-8", opener=plain_here)  # noqa: SIM115 - for callers
        if os.fstat(file.fileno()).st_nlink < 2:
            return file
        file.close()
        why = "it has another name, a hard link"
    except OSError as error:
        why = error.strerror or str(error)
    raise StoreError(f"{path} says who evolves the library, and cannot be used: {why}; delete it")


def _taken(file: IO[str]) -> bool:
    """Whether the lock is ours now; it is not where the file system has no locks."""
    try:
        return try_lock(file)
    except OSError:
        return False


def _write(file: IO[str], holder: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(holder)
    file.flush()
