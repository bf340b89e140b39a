"""What the gates say of a proposal that is being tried, from the episodes that are there by now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.labels import EXPERIMENT, SHADOW_OF
from agentkit.evolution.gates.bystanders import bystander_gate
from agentkit.evolution.gates.canary import canary_gate
from agentkit.evolution.gates.cost import cost_gate
from agentkit.evolution.gates.decision import GateReport, GateRules
from agentkit.evolution.gates.elond import Elond
from agentkit.evolution.gates.from_episodes import (
    canary_scores,
    shadow_pairs,
    shadow_selections,
    shadow_tokens,
)
from agentkit.evolution.gates.shadow import shadow_gate
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.library.store import EpisodeFilter, EpisodeStore

Assess: TypeAlias = Callable[[ProposalRecord, Ledger], Sequence[GateReport]]
"""What the gates say of an open proposal; nothing for a stage that has no gate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeGates:
    """The gates of the shadow and the canary stage, over the episodes of a store.

    Shadow runs and sessions of a canary are ordinary episodes with labels, so what is decided can
    be worked out again from them at any time. In shadow the gain has to be shown, at the level that
    e-LOND gives the proposal; cost and other tools' requests have a veto, and hold nothing up while
    they say nothing: where a tool has no neighbours they never would.

    Attributes:
        episodes: Where they are kept.
        rules: The knobs of the gates.
    """

    episodes: EpisodeStore
    rules: GateRules = field(default_factory=GateRules)

    def __call__(self, record: ProposalRecord, ledger: Ledger) -> Sequence[GateReport]:
        """What the gates say at the stage where a proposal is.

        Raises:
            StoreError: The store failed.
        """
        if record.state == "shadow":
            return self._shadow(record, ledger)
        if record.state == "canary":
            return (self._canary(record),)
        return ()

    def _shadow(self, record: ProposalRecord, ledger: Ledger) -> Sequence[GateReport]:
        place = ledger.place_of(record.proposal_id)
        elond = Elond(opened=place.number - 1, promoted=place.discoveries)
        level = elond.level(self.rules.alpha)
        name, both = record.proposal_id, self._both_arms(record)
        gain = shadow_gate(shadow_pairs(both, name).scores, rules=self.rules, level=level)
        selections = shadow_selections(both, name)
        vetoes = (
            cost_gate(shadow_tokens(both, name), measure="tokens", rules=self.rules),
            bystander_gate(selections, tool=record.tool_name, rules=self.rules),
        )
        return (gain, *(veto for veto in vetoes if veto.decision != "wait"))

    def _both_arms(self, record: ProposalRecord) -> list[Episode]:
        """The shadow runs, and the episodes that they repeat."""
        runs = list(self._labelled(record))
        repeated = {run.metadata[SHADOW_OF] for run in runs if SHADOW_OF in run.metadata}
        controls = (self.episodes.get(episode_id) for episode_id in sorted(repeated))
        return [*runs, *(control for control in controls if control is not None)]

    def _canary(self, record: ProposalRecord) -> GateReport:
        found = canary_scores(self._labelled(record), record.proposal_id)
        return canary_gate(found.scores, rules=self.rules)

    def _labelled(self, record: ProposalRecord) -> Iterator[Episode]:
        wanted = EpisodeFilter(labels={EXPERIMENT: record.proposal_id}, oldest_first=True)
        return self.episodes.select(wanted)
