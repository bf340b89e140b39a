"""What was decided stays decided: a change that was taken back is not made again by itself.

A proposal is known by the revision that it changes. Once the tool has learned something else, the
same change is another proposal, and a round would put into use what somebody has just taken out.
"""

from __future__ import annotations

from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.model_view import ModelView, view_changes
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.tools.definition import ToolDefinition


def decided_before(manager: ToolManager, proposal: Proposal) -> ProposalRecord | None:
    """The last proposal that brought all of a change and was taken back, or rejected by a person.

    Args:
        manager: Of the library.
        proposal: A suggestion of a proposer.

    Returns:
        None where something in the change is new, or nobody said no to it.
    """
    records = manager.ledger.proposals.values()
    refused = [one for one in records if one.tool_name == proposal.tool_name and _is_refused(one)]
    if not refused:
        return None
    try:
        change = _change(manager, proposal)
    except (AttributeError, TypeError, ValueError):  # no definition; the checks say what is wrong
        return None
    for record in reversed(refused):
        if record.proposal is not None and change and change <= _change(manager, record.proposal):
            return record
    return None


def _is_refused(record: ProposalRecord) -> bool:
    if record.state == "rolled_back":
        return True
    return record.state == "rejected" and record.rejection.author.kind == "person"


def _change(manager: ToolManager, proposal: Proposal) -> frozenset[tuple[str, str, str]]:
    """What comes for models, line by line: its place, its kind, and what it says."""
    base = manager.revision(proposal.tool_name, proposal.base) if proposal.base else None
    return frozenset(
        (one.place, one.keyword, line)
        for one in view_changes(_view(base), _view(proposal.candidate))
        for line in set(one.after.splitlines()) - set(one.before.splitlines())
    )


def _view(definition: ToolDefinition | None) -> ModelView | None:
    return None if definition is None else ModelView.of(definition)
