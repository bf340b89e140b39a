"""Composites as suggestions: what the composite proposer finds, behind the protocol of proposers.

A composite is a new tool, so there is no revision that it changes: ``base`` is empty. Such a
proposal is decided by InsertTool (``ToolManager.insert``), which parses it, tries its worked calls
in a dry run, and adds, merges or rejects it. It goes through no canary, as nobody calls it yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agentkit.evolution.mining.sources import is_success
from agentkit.evolution.proposals.composites.proposer import CompositeCandidate, propose_composites
from agentkit.evolution.proposals.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposals.proposer import Observations, Suggestion
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author
from agentkit.models.base import ChatModel
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

_LONGEST_KEPT = 4_000


class CompositeStream:
    """Suggests composites that a model writes from episodes that went well.

    Args:
        model: The teacher.
        max_repairs: Most repairs of one function, see ``propose_composites``.
    """

    def __init__(self, model: ChatModel, *, max_repairs: int = 3) -> None:
        self._model = model
        self._max_repairs = max_repairs

    @property
    def name(self) -> str:
        """``composite``, with the model that is asked."""
        return f"composite:{self._model.name}"

    async def propose(self, observations: Observations) -> Sequence[Suggestion]:
        """Each function that the model writes, in the language or not."""
        candidates = await propose_composites(
            [episode for episode in observations.episodes if is_success(episode)],
            observations.library,
            self._model,
            max_repairs=self._max_repairs,
        )
        author = Author(kind="model", name=self._model.name)
        return [_suggestion(one, author) for one in candidates]


def _suggestion(candidate: CompositeCandidate, author: Author) -> Suggestion:
    if candidate.definition is not None:
        return _proposal(candidate.definition, candidate, author)
    failed = tuple(
        FailedCheck(
            code=problem.code,
            layer="structural",
            message=problem.message,
            advice=problem.advice,
            field=f"line {problem.line}",
        )
        for problem in candidate.problems
    )
    return UnreadableProposal(
        author=author,
        stream="composite",
        tool_name="",
        text=candidate.source[:_LONGEST_KEPT],
        failed=failed,
    )


def _proposal(definition: ToolDefinition, found: CompositeCandidate, author: Author) -> Proposal:
    content = ["composite", author.name, "", definition.name, definition.digest]
    return Proposal(
        proposal_id=f"composite-{digest(content)[:20]}",
        stream="composite",
        author=author,
        base="",
        candidate=definition,
        reason=f"written after {found.attempts} attempts, from an episode that went well",
        evidence=found.evidence,
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
