"""Who suggests changes of the library: the switches as proposers."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.evolution import (
    EvidenceConfig,
    EvidenceProposer,
    EvolutionStream,
    FeedbackStream,
    Proposer,
)
from agentkit.models.base import ChatModel
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.shuffled import Shuffled

_KNOBS = EvidenceConfig()


def proposers_of(
    settings: CoevolutionSettings,
    *,
    feedback_model: ChatModel | None = None,
    knobs: EvidenceConfig = _KNOBS,
) -> tuple[Proposer, ...]:
    """The proposers that the switches ask for, in the order in which they are heard.

    Composites are no proposals of this kind; see ``distil``.

    Args:
        settings: The switches.
        feedback_model: Answers for the feedback path.
        knobs: How much must have happened before the evidence proposer says anything.

    Raises:
        UsageError: The feedback path has no model.
    """
    found: list[Proposer] = []
    if settings.evolution:
        found.append(EvolutionStream())
    if settings.feedback:
        if feedback_model is None:
            raise UsageError("feedback is on and there is no feedback_model to ask; give one")
        found.append(FeedbackStream(feedback_model))
    if settings.evidence:
        found.append(EvidenceProposer(knobs))
    return tuple(Shuffled(one) for one in found) if settings.shuffled else tuple(found)
