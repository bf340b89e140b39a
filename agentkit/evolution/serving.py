"""Serve proposals to real users: who takes part in what, and the router that keeps to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args
from weakref import WeakKeyDictionary

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.agent.session import Route, RouteRequest
from agentkit.episodes.labels import ARM, CANDIDATE, EXPERIMENT, LEFT_BECAUSE, LEFT_EXPERIMENT
from agentkit.errors import DefinitionError, StoreError, UsageError
from agentkit.evolution.gates import Arm
from agentkit.evolution.ledger import WHOLE_LIBRARY, Ledger
from agentkit.evolution.proposal import ProposalRecord, ProposalState
from agentkit.evolution.repository import with_overrides
from agentkit.library.library import Library
from agentkit.library.replicas import replica_of
from agentkit.library.store import EventStore
from agentkit.tools.definition import ToolDefinition

# --- Experiments: proposals that are tried on real requests ---------------------------------------


logger = logging.getLogger(__name__)

Stage = Literal["shadow", "canary"]
"""How it is tried: unseen beside the answers, or by serving a share of the sessions."""


def running(ledger: Ledger, stage: Stage) -> tuple[ProposalRecord, ...]:
    """The experiments of one stage, but for those on pinned tools, in the order of their tools."""
    if WHOLE_LIBRARY in ledger.pins:
        return ()
    records = (ledger.proposals[ledger.experiments[name]] for name in sorted(ledger.experiments))
    tried = (one for one in records if one.state == stage and one.tool_name not in ledger.pins)
    return tuple(filter(_is_readable, tried))


def _is_readable(record: ProposalRecord) -> bool:
    """Whether the candidate can be read; one that cannot is logged: a newer agentkit wrote it."""
    try:
        return record.candidate is not None
    except DefinitionError as error:
        message = "the candidate of %r cannot be read; not tried"
        episodes.log_failure(logger, error, message, record.proposal_id)
        return False


def fits(experiment: ProposalRecord, library: Library) -> bool:
    """Whether the library holds the very revision that a candidate was made for.

    The contract must be the same, whatever validation let pass: code, approvals and composites rely
    on it. That of a composite follows from its program.
    """
    candidate, tool = experiment.current.candidate, library.get(experiment.tool_name)
    if tool is None:
        return not experiment.base and candidate.is_composite
    before = tool.definition
    same_contract = candidate.is_composite or before.signature == candidate.signature
    return before.digest == experiment.base and same_contract


def share_of(record: ProposalRecord) -> float | None:
    """The share of the sessions that a candidate serves, where the event of its stage names one."""
    begun = next((one for one in reversed(record.events) if one.kind == record.state), None)
    share: object = None if begun is None else begun.facts.get("share")
    is_share = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
    return float(share) if is_share else None  # type: ignore[arg-type]


# --- Who takes part in what: pure functions of ids, so that nobody has to remember ---------------
# A place between 0 and 1 is made of the SHA-256 of the ids, and compared with the share. So a
# session always gets the same arm, in every process; and raising the share only adds sessions.


def bucket(purpose: str, key: str, proposal_id: str) -> float:
    """A number from 0 up to, but not including, 1 that looks random and is always the same.

    The first 53 bits of the SHA-256 over ``[purpose, key, proposal_id]`` as JSON in ASCII, so that
    no two lists of ids read alike.

    Args:
        purpose: Keeps decisions apart that are made about the same session.
        key: The session.
        proposal_id: The experiment.

    Example:
        >>> round(bucket("arm", "session-1", "feedback-1"), 6)
        0.219665
    """
    text = json.dumps([purpose, key, proposal_id])
    bits = int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:7], "big") >> 3
    return bits / (1 << 53)


def experiment_for(key: str, experiments: Sequence[ProposalRecord]) -> ProposalRecord | None:
    """The one experiment that a session takes part in, if there are any.

    Each draws a place for the session, and the highest wins (rendezvous hashing). So sessions are
    divided evenly and independently of arms, and an experiment that begins or ends moves only
    sessions to it or from it. With one experiment at most, what is seen of a session is the work
    of one candidate, and its episodes carry one label.
    """
    return max(
        experiments,
        key=lambda one: (bucket("experiment", key, one.proposal_id), one.proposal_id),
        default=None,
    )


# --- A library with a tool defined otherwise, and everything made of that tool moved along -------


class Overlays:
    """Keeps the libraries that were made, so that one change of one library is always one object.

    Whatever is worked out for a library (what was serialised, search indexes, validators) holds on
    then from run to run. A library is forgotten with the one that it was made from.
    """

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Library, dict[tuple[str, ...], Library]]
        self._made = WeakKeyDictionary()

    def of(self, library: Library, *definitions: ToolDefinition) -> Library:
        """As ``with_overrides``; the same object for the same library and definitions."""
        made = self._made.setdefault(library, {})
        key = tuple(sorted(f"{one.digest} {one.name}" for one in definitions))
        known = made.get(key)
        if known is None:
            known = with_overrides(library, {one.name: one for one in definitions})
            if known is not library:  # which would keep itself alive
                made[key] = known
        return known


# --- ``LedgerWatch``: what the ledger of a store says, looked at from time to time ---------------


class LedgerWatch:
    """Follows the events of a store. Any number of runs, loops and threads may share one.

    A ``Replica`` knows by itself whether there are later events, so that a kill switch works as
    soon as it has noticed, and runs ask nobody while there is nothing new.

    Args:
        store: Where the events are kept.
        refresh_seconds: How old an answer may be; a kill switch works after this time at the
            latest. 0 looks each time.
        max_age_seconds: For how long the last answer counts while the store cannot be read.
        clock: Seconds of a clock that never goes backwards.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        refresh_seconds: float = 5.0,
        max_age_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._replica = replica_of(store)
        self._refresh_seconds = refresh_seconds
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None
        self._read_at = 0.0
        self._tried_at = 0.0

    @property
    def last(self) -> Ledger | None:
        """What was read last, however old it is; None before the first time."""
        return self._ledger

    @property
    def is_fresh(self) -> bool:
        """Whether ``current`` answers without asking the store."""
        if self._ledger is None:
            return False
        if self._is_behind(self._ledger) and self._tried_at == self._read_at:
            return False
        return min(self._age(self._ledger), self._clock() - self._tried_at) < self._refresh_seconds

    @property
    def is_trusted(self) -> bool:
        """Whether what was read last may be acted on."""
        longest = max(self._max_age_seconds, self._refresh_seconds)
        return self._ledger is not None and self._age(self._ledger) <= longest

    def _age(self, ledger: Ledger) -> float:
        """Time since these were known to be all events."""
        age = self._clock() - self._read_at
        if self._replica is None or self._replica.last_event is None or self._is_behind(ledger):
            return age
        return min(age, self._replica.status.staleness_seconds)

    def _is_behind(self, ledger: Ledger) -> bool:
        """Whether the replica knows of later events."""
        last = None if self._replica is None else self._replica.last_event
        return last is not None and last > ledger.sequence

    async def current(self) -> Ledger:
        """The ledger, at most ``refresh_seconds`` old unless the store cannot be read.

        Raises:
            StoreError: The store could not be read, and never was.
        """
        known = self._ledger
        is_away = self._replica is not None and self._replica.status.state == "away"
        if known is not None and (self.is_fresh or is_away):  # the replica looks for it, no run
            return known
        return await asyncio.to_thread(self.read)

    def read(self) -> Ledger:
        """As ``current``, for callers in a thread.

        Raises:
            StoreError: The store could not be read, and never was.
        """
        with self._lock:
            known = self._ledger
            if known is not None and self.is_fresh:  # another thread was faster
                return known
            self._tried_at = self._clock()
            try:
                events = self._store.events(after=0 if known is None else known.sequence)
                self._ledger = (known or Ledger()).after(events)
            except StoreError as error:
                if known is None:
                    raise
                message = "the events cannot be read; what was read last counts on"
                episodes.log_failure(logger, error, message)
                return known
            self._read_at = self._tried_at
            return self._ledger


# --- What a person pinned, in its place ----------------------------------------------------------


async def pinned_library(asked: RouteRequest, ledger: Ledger, overlays: Overlays) -> Library:
    """The library of a run with what a ledger pins in its place.

    Raises:
        StoreError: A pinned version is gone.
    """
    whole = ledger.pinned_version() if ledger.pins else None
    if whole is not None:
        return await _at(asked, whole)
    held = [
        (await _at(asked, version)).get(name)
        for name, version in ledger.pins.items()
        if name in asked.library
    ]
    return overlays.of(asked.library, *(tool.definition for tool in held if tool is not None))


async def _at(asked: RouteRequest, version: int) -> Library:
    if asked.library.version == version:
        return asked.library
    library = await asyncio.to_thread(asked.at, version)
    if library.version != version:
        logger.error(
            "library version %d is pinned, but the agent has no store to load it from and goes on "
            "with version %d; make it with Agent(store=...)",
            version,
            library.version,
        )
    return library


# --- ``CanaryRouter``: serves candidates to a share of the sessions, and keeps to what is pin ----


SERVED: frozenset[ProposalState] = frozenset({"canary", "active", "superseded"})
"""States in which a conversation that began with a candidate goes on with it: it is being tried, or
was found good. One that was taken back, or put back to be looked at, is served to nobody."""


class CanaryRouter:
    """Routes sessions by the state of the proposals in a store; a ``Router`` for ``Agent``.

    A conversation that begins while an experiment is in canary takes part in it, in one experiment
    at most: a stable hash chooses which, and another whether the candidate or the definition as it
    is serves (see ``assignment``). A conversation keeps what it began with, with these exceptions,
    which put safety first:

    * its candidate was rolled back, rejected or quarantined, or moved to another revision;
    * a person pinned its tool or the whole library (the kill switch);
    * the ledger cannot be read for ``max_age_seconds``, so nobody knows.

    Then it goes on with the definition as it is, for good; its episodes carry the labels
    ``left_experiment`` and ``left_because`` in place of ``experiment`` and ``arm``, and count for
    neither side.

    Pins hold for every run, experiment or not. They need an agent with a store, where the pinned
    version is.

    Args:
        watch: Follows the ledger, or the store to follow.
        share: Share of the sessions of an experiment that the candidate serves, from 0 to 1, unless
            the event that began its canary names another one (fact ``share``).

    Raises:
        UsageError: The share is not between 0 and 1.

    Example:
        >>> from agentkit import Agent, open_store
        >>> from agentkit.testing import ScriptedModel
        >>> store = open_store("memory:")
        >>> agent = Agent(ScriptedModel(["Hello."]), store=store, router=CanaryRouter(store))
        >>> dict(agent.run_sync("Hi").episode.metadata)  # nothing is being tried
        {}
    """

    def __init__(self, watch: LedgerWatch | EventStore, *, share: float = 0.1) -> None:
        if not 0 <= share <= 1:
            raise UsageError(f"a share is a number from 0 to 1, got {share}")
        self.watch = watch if isinstance(watch, LedgerWatch) else LedgerWatch(watch)
        self.share = share
        self._overlays = Overlays()

    async def route(self, asked: RouteRequest) -> Route:
        """The library and the labels of a run.

        Raises:
            StoreError: The ledger could not be read and never was, or a pinned version is gone.
        """
        ledger = await self.watch.current()
        library = await pinned_library(asked, ledger, self._overlays)
        if asked.is_new:
            return self._begun(asked.key, library, ledger)
        return self._gone_on(asked.labels, library, ledger)

    def _begun(self, key: str, library: Library, ledger: Ledger) -> Route:
        """Where a conversation that begins goes."""
        open_to_it = [one for one in running(ledger, "canary") if fits(one, library)]
        experiment = experiment_for(key, open_to_it) if self.watch.is_trusted else None
        if experiment is None:
            return Route(library=library)
        named = share_of(experiment)
        share = self.share if named is None else named
        is_candidate = bucket("arm", key, experiment.proposal_id) < share
        return self._on("candidate" if is_candidate else "control", experiment, library)

    def _gone_on(self, labels: Mapping[str, str], library: Library, ledger: Ledger) -> Route:
        """Where a conversation that began earlier goes."""
        left = {name: labels[name] for name in (LEFT_EXPERIMENT, LEFT_BECAUSE) if name in labels}
        proposal_id, side = labels.get(EXPERIMENT, ""), labels.get(ARM, "")
        if left or not proposal_id or side not in get_args(Arm):
            return Route(library=library, labels=left)
        record = ledger.proposals.get(proposal_id)
        if record is None or not _is_readable(record):
            return _out(library, proposal_id, "unknown")
        if ledger.pinned_version(record.tool_name) is not None:
            return _out(library, proposal_id, "pinned")
        if side == "candidate":
            reason = self._why_not(record, labels, library)
            if reason:
                return _out(library, proposal_id, reason)
        return self._on("candidate" if side == "candidate" else "control", record, library)

    def _why_not(self, record: ProposalRecord, labels: Mapping[str, str], of: Library) -> str:
        """Why a conversation cannot go on with its candidate; empty when it can."""
        if not self.watch.is_trusted:
            return "ledger_unreadable"
        if record.state not in SERVED:
            return record.state
        digest = record.current.candidate.digest
        if labels.get(CANDIDATE, digest) != digest:
            return "candidate_moved"
        return "" if record.tool_name in of or not record.base else "tool_removed"

    def _on(self, side: Arm, experiment: ProposalRecord, library: Library) -> Route:
        candidate = experiment.current.candidate
        if side == "candidate":
            library = self._overlays.of(library, candidate)
        labels = {
            EXPERIMENT: experiment.proposal_id,
            ARM: side,
            CANDIDATE: candidate.digest,
        }
        return Route(library=library, labels=labels)


def _out(library: Library, proposal_id: str, reason: str) -> Route:
    return Route(library=library, labels={LEFT_EXPERIMENT: proposal_id, LEFT_BECAUSE: reason})
