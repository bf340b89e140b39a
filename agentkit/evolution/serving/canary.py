"""``CanaryRouter``: serves candidates to a share of the sessions, and keeps to what is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from agentkit.agent.session import Route, RouteRequest
from agentkit.episodes.labels import ARM, CANDIDATE, EXPERIMENT, LEFT_BECAUSE, LEFT_EXPERIMENT
from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.proposals.proposal import ProposalState
from agentkit.evolution.serving.assignment import Arm, arm, experiment_for
from agentkit.evolution.serving.experiments import Experiment, experiment_of, running
from agentkit.evolution.serving.overlay import Overlays
from agentkit.evolution.serving.pinned import PinRouter
from agentkit.evolution.serving.watch import LedgerWatch
from agentkit.library.library import Library
from agentkit.library.store import EventStore

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
    * the ledger can not be read for ``max_age_seconds``, so nobody knows.

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
        self._pins = PinRouter(self.watch)
        self._running: tuple[Ledger, tuple[Experiment, ...]] = (Ledger(), ())

    async def route(self, asked: RouteRequest) -> Route:
        """The library and the labels of a run.

        Raises:
            StoreError: The ledger could not be read and never was, or a pinned version is gone.
        """
        ledger = await self.watch.current()
        library = await self._pins.library_of(asked, ledger)
        if asked.is_new:
            return self._begun(asked.key, library, ledger)
        return self._gone_on(asked.labels, library, ledger)

    def _begun(self, key: str, library: Library, ledger: Ledger) -> Route:
        """Where a conversation that begins goes."""
        open_to_it = [one for one in self._canaries(ledger) if one.fits(library)]
        experiment = experiment_for(key, open_to_it) if self.watch.is_trusted else None
        if experiment is None:
            return Route(library=library)
        share = self.share if experiment.share is None else experiment.share
        return self._on(arm(key, experiment.proposal_id, share), experiment, library)

    def _canaries(self, ledger: Ledger) -> tuple[Experiment, ...]:
        """The experiments of a ledger, worked out once for each."""
        known, experiments = self._running
        if known is not ledger:
            experiments = running(ledger, "canary")
            self._running = (ledger, experiments)
        return experiments

    def _gone_on(self, labels: Mapping[str, str], library: Library, ledger: Ledger) -> Route:
        """Where a conversation that began earlier goes."""
        left = {name: labels[name] for name in (LEFT_EXPERIMENT, LEFT_BECAUSE) if name in labels}
        proposal_id, side = labels.get(EXPERIMENT, ""), labels.get(ARM, "")
        if left or not proposal_id or side not in get_args(Arm):
            return Route(library=library, labels=left)
        record = ledger.proposals.get(proposal_id)
        experiment = None if record is None else experiment_of(record)
        if record is None or experiment is None:
            return _out(library, proposal_id, "unknown")
        if ledger.pinned_version(record.tool_name) is not None:
            return _out(library, proposal_id, "pinned")
        if side == "candidate":
            reason = self._why_not(record.state, experiment, labels, library)
            if reason:
                return _out(library, proposal_id, reason)
        return self._on("candidate" if side == "candidate" else "control", experiment, library)

    def _why_not(
        self, state: ProposalState, experiment: Experiment, labels: Mapping[str, str], of: Library
    ) -> str:
        """Why a conversation can not go on with its candidate; empty when it can."""
        if not self.watch.is_trusted:
            return "ledger_unreadable"
        if state not in SERVED:
            return state
        if labels.get(CANDIDATE, experiment.candidate.digest) != experiment.candidate.digest:
            return "candidate_moved"
        return "" if experiment.tool_name in of or not experiment.base else "tool_removed"

    def _on(self, side: Arm, experiment: Experiment, library: Library) -> Route:
        if side == "candidate":
            library = self._overlays.of(library, experiment.candidate)
        labels = {
            EXPERIMENT: experiment.proposal_id,
            ARM: side,
            CANDIDATE: experiment.candidate.digest,
        }
        return Route(library=library, labels=labels)


def _out(library: Library, proposal_id: str, reason: str) -> Route:
    return Route(library=library, labels={LEFT_EXPERIMENT: proposal_id, LEFT_BECAUSE: reason})
