"""Guidelines: a sentence for each kind of failure that the policy has often.

C_cap of SEAL (Eq. 9, appendix D.4). A guideline is chosen by the type of failure and is the same
for every task: it speaks of a capability and holds no name, value or answer of any. The sentences
are our own; the paper prints none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from types import MappingProxyType

from agentkit.diagnosis import FailureProfile
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import FailureLabel

GUIDELINES: Mapping[FailureLabel, str] = MappingProxyType(
    {
        "invalid_tool_call": (
            "Write each call in the format that was asked for, whole and without a word around it, "
            "and call only tools that are listed."
        ),
        "argument_mismatch": (
            "Before a call, go through the tool's parameters: give each one that is required, in "
            "its type and from its allowed values, with what the user or an earlier result said."
        ),
        "state_mismatch": (
            "Before a call that changes something, look at the newest results: the call must fit "
            "the state that they show, and every change that was asked for needs its call."
        ),
        "recovery_failure": (
            "After an error, read which rule was broken, change the call accordingly or look up "
            "what is missing, and go on; neither repeat the same call nor give up."
        ),
        "spurious_tool_call": (
            "When no listed tool does what is asked, or something that it needs was not said, "
            "answer in words instead of calling one."
        ),
        "missing_tool_call": (
            "When a listed tool does a part of what is asked, call it before answering; go on "
            "until no part is open."
        ),
        "response_mismatch": (
            "Take the final answer from the results, answer everything that was asked, and keep to "
            "the form and units of the request."
        ),
    }
)
"""The sentence for each failure label."""

MOST_GUIDELINES = 3
"""Sentences that are shown at a time, as in the released code."""

_HEADER = "Keep in mind:"


def prevalent_labels(
    profile: FailureProfile, *, share: float = 0.1, turns: float = 8.0
) -> tuple[FailureLabel, ...]:
    """The failures that a policy has often, the most frequent first (SEAL, Eq. 14 and 15).

    The thresholds on share and count are those of the released code. It relates the share to failed
    turns, and leaves out labels whose rollouts have a mean reward of .6 or more. Here the share is
    one of all turns, passed ones included, so that a failure drops out as it becomes rare.

    Args:
        profile: The diagnoses of recent rollouts.
        share: Least share of a label among all turns.
        turns: Least weight of its turns; a fresh one weighs 1.
    """
    observed = fsum(one.observed for one in profile.by_position())
    return tuple(
        label
        for label, part in profile.label_distribution().items()
        if label not in NOT_FAILURES and part >= share and part * observed >= turns - 1e-9
    )


def guideline_text(labels: Iterable[FailureLabel], *, most: int = MOST_GUIDELINES) -> str:
    """The guidelines for failures, the first ones only; empty when there are none.

    Example:
        >>> print(guideline_text(["missing_tool_call"]))
        Keep in mind:
        - When a listed tool does a part of what is asked, call it before answering; go on until \
no part is open.
    """
    chosen = [GUIDELINES[label] for label in labels if label in GUIDELINES][:most]
    return "\n".join([_HEADER, *(f"- {sentence}" for sentence in chosen)]) if chosen else ""
