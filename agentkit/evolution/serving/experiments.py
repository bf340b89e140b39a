"""``Experiment``: a proposal that is being tried on real requests, as the runtime needs it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from agentkit.errors import DefinitionError
from agentkit.evolution.lifecycle.ledger import EXPERIMENTS, WHOLE_LIBRARY, Ledger
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition

logger = logging.getLogger(__name__)

Stage = Literal["shadow", "canary"]
"""How it is tried: unseen beside the answers, or by serving a share of the sessions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """One proposal under trial.

    Attributes:
        proposal_id: Which.
        stage: How it is tried.
        base: Digest of the revision that it changes; empty for a tool that is new.
        candidate: The definition as it would be.
        share: Share of the sessions that the candidate serves, when whoever began the stage named
            one (the fact ``share`` of its event); None for the router's own.
    """

    proposal_id: str
    stage: Stage
    base: str
    candidate: ToolDefinition
    share: float | None = None

    @property
    def tool_name(self) -> str:
        """The tool that it changes."""
        return self.candidate.name

    def fits(self, library: Library) -> bool:
        """Whether the library holds the very revision that the candidate was made for.

        The contract must be the same, whatever validation let pass: code, approvals and composites
        rely on it. That of a composite follows from its program.
        """
        tool = library.get(self.tool_name)
        if tool is None:
            return not self.base and self.candidate.is_composite
        before = tool.definition
        same_contract = self.candidate.is_composite or before.signature == self.candidate.signature
        return before.digest == self.base and same_contract


def running(ledger: Ledger, stage: Stage) -> tuple[Experiment, ...]:
    """The experiments of one stage, but for those on pinned tools, in the order of their tools.

    One whose candidate can not be read is left out and logged: a newer agentkit wrote it.
    """
    if WHOLE_LIBRARY in ledger.pins:
        return ()
    found = []
    for tool_name in sorted(ledger.experiments):
        record = ledger.experiment(tool_name)
        if record is None or record.state != stage or tool_name in ledger.pins:
            continue
        experiment = experiment_of(record)
        if experiment is not None:
            found.append(experiment)
    return tuple(found)


def experiment_of(record: ProposalRecord) -> Experiment | None:
    """What the runtime needs of a proposal; None for one whose candidate can not be read."""
    try:
        candidate = record.candidate
    except DefinitionError:
        logger.exception("the candidate of %r can not be read; not tried", record.proposal_id)
        return None
    if candidate is None:
        return None
    return Experiment(
        proposal_id=record.proposal_id,
        stage=cast("Stage", record.state) if record.state in EXPERIMENTS else "canary",
        base=record.base,
        candidate=candidate,
        share=_share(record),
    )


def _share(record: ProposalRecord) -> float | None:
    """The share that the last event of this stage names, if it names one that can be."""
    for event in reversed(record.events):
        if event.kind == record.state:
            facts: Mapping[str, object] = event.facts
            share = facts.get("share")
            if isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1:
                return float(share)
            return None
    return None
