"""What each failure label is worth to learn from, and a rollout's weight from its labels.

SEAL's table of utilities (appendix C.2, table 6) names the labels of its BFCL checker, and two of
them do not occur here, while four of ours do not occur there:

===========================  =====  ================================================================
our label                    u(l)   why
===========================  =====  ================================================================
``spurious_tool_call``       2.0    its row ("invalid or unnecessary tool use")
``invalid_tool_call``        2.0    the same row; section 3.4 names it among the larger ones
``argument_mismatch``        2.0    no row, but named beside ``invalid_tool_call`` in section 3.4
``correct_abstention``       1.8    its row
``missing_tool_call``        1.5    the row of ``empty_turn_model_response`` ("missed tool use")
``state_mismatch``           1.0    its row
``recovery_failure``         1.0    no row; the released code takes 1 for what is not listed
``response_mismatch``        0.9    its row
``pass``                     1.0    its row
``unjudged``                 1.0    ours; nothing is known, so the update keeps its scale
===========================  =====  ================================================================

``instance_mismatch`` (0.6) has no counterpart: which objects a call touched is part of the state
here. ``checker_error`` and ``gold_error`` say nothing about the policy and are left out, as they
are in the released code.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agentkit.diagnosis.labels import OUTSIDE
from agentkit.episodes import FailureLabel
from agentkit.errors import UsageError
from agentkit_training.weighting.protocol import Judged

PAPER_UTILITIES: Mapping[FailureLabel, float] = MappingProxyType(
    {
        "spurious_tool_call": 2.0,
        "invalid_tool_call": 2.0,
        "argument_mismatch": 2.0,
        "correct_abstention": 1.8,
        "missing_tool_call": 1.5,
        "state_mismatch": 1.0,
        "recovery_failure": 1.0,
        "response_mismatch": 0.9,
        "pass": 1.0,
        "unjudged": 1.0,
    }
)
"""The utilities u(l) of the paper under our labels; see the module's text."""

CLIP = (0.5, 2.0)
"""Least and largest weight: those of the released configuration; the paper's text has lost them."""


def label_profile(labels: Iterable[FailureLabel]) -> dict[FailureLabel, float]:
    """p(l): the share of each label among the turns of one rollout (SEAL, Eq. 10).

    Labels that say nothing about the policy are left out of the count. Empty without any other.

    Example:
        >>> label_profile(["pass", "argument_mismatch", "pass", "gold_error", "pass"])
        {'pass': 0.75, 'argument_mismatch': 0.25}
    """
    counts = Counter(label for label in labels if label not in OUTSIDE)
    total = counts.total()
    return {label: count / total for label, count in counts.most_common()}


def diagnostic_weight(
    labels: Iterable[FailureLabel],
    utilities: Mapping[FailureLabel, float] = PAPER_UTILITIES,
    clip: tuple[float, float] = CLIP,
) -> float:
    """W = clip(sum over l of p(l) u(l), w_min, w_max): the expected utility (SEAL, Eq. 11).

    Args:
        labels: The labels of a rollout's turns.
        utilities: u(l); 1 for a label that it lacks.
        clip: w_min and w_max.

    Returns:
        The weight; 1 where no label says anything, so that the advantage stays as it is.

    Example:
        >>> diagnostic_weight(["spurious_tool_call", "pass"])
        1.5
    """
    profile = label_profile(labels)
    if not profile:
        return 1.0
    expected = math.fsum(share * utilities.get(label, 1.0) for label, share in profile.items())
    return min(max(expected, clip[0]), clip[1])


def rollout_weights(
    rollouts: Iterable[Judged],
    utilities: Mapping[FailureLabel, float],
    clip: tuple[float, float],
) -> tuple[float, ...]:
    """The diagnostic weight of each rollout; 1 for one with a fault, which is not trained on."""
    return tuple(
        1.0 if one.fault else diagnostic_weight(one.labels, utilities, clip) for one in rollouts
    )


def check_clip(clip: tuple[float, float]) -> None:
    """Refuse bounds that could turn an advantage around.

    Raises:
        UsageError: They are not two positive numbers, the smaller one first.
    """
    low, high = clip
    if not 0 < low <= high < math.inf:
        raise UsageError(
            f"weights are clipped to {low:g} and {high:g}; give two positive numbers, the smaller "
            f"one first, such as {CLIP[0]:g} and {CLIP[1]:g}: a weight of 0 or less would not keep "
            "the sign of an advantage"
        )
