"""Which label stands before which, and which failure and which finding stands for which label.

SEAL (section 3.2, appendix C.2, table 5) labels each turn with the dominant failure, and puts
what executable evidence shows before what only a verifier sees. The tables here are read by
``diagnose`` and by ``describe_failure`` alike, so that what a model reads about a failure and
what is counted about it cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agentkit.episodes.verdict import EvidenceKind, FailureLabel
from agentkit.messages import FailureKind, JsonObject, ToolFailure

PRECEDENCE: tuple[FailureLabel, ...] = (
    "invalid_tool_call",
    "argument_mismatch",
    "state_mismatch",
    "recovery_failure",
    "spurious_tool_call",
    "missing_tool_call",
    "response_mismatch",
    "correct_abstention",
    "pass",
    "unjudged",
)
"""Labels of an agent's doing, the dominant one first (SEAL, table 5).

The paper weighs ``spurious_tool_call`` and ``correct_abstention`` (table 6) but does not place
them. A spurious call stands before a missing one, since it is seen at a call that was made, and
after all that the environment itself reported.
"""

OUTSIDE: frozenset[FailureLabel] = frozenset({"checker_error", "gold_error"})
"""Labels that say nothing about the agent; they have no place in the order."""

NOT_FAILURES: frozenset[FailureLabel] = OUTSIDE | {"correct_abstention", "pass", "unjudged"}
"""Labels that name no failure of the agent."""

LABEL_OF_FAILURE: Mapping[FailureKind, FailureLabel | None] = MappingProxyType(
    {
        "malformed_arguments": "invalid_tool_call",
        "unknown_tool": "invalid_tool_call",
        "invalid_arguments": "argument_mismatch",
        "contract_violated": "argument_mismatch",  # but not a postcondition: the tool is wrong
        "retry_requested": "argument_mismatch",  # its author says: call it otherwise
        "tool_error": None,  # but see blames_the_call
        "tool_failed": None,
        "timeout": None,
        "unserialisable_result": None,
        "denied": None,
        "limit_exceeded": None,
    }
)
"""The label that a call's failure implies; None when it implies none."""

LABEL_OF_EVIDENCE: Mapping[EvidenceKind, FailureLabel] = MappingProxyType(
    {
        "malformed_arguments": "invalid_tool_call",
        "wrong_tool": "spurious_tool_call",
        "missing_call": "missing_tool_call",
        "unexpected_call": "spurious_tool_call",
        "missing_argument": "argument_mismatch",
        "unexpected_argument": "argument_mismatch",
        "wrong_type": "argument_mismatch",
        "wrong_value": "argument_mismatch",
        "state_differs": "state_mismatch",
        "response_differs": "state_mismatch",
        "wrong_answer": "response_mismatch",
        "missing_answer": "response_mismatch",
        "test_failed": "response_mismatch",
        "criterion_failed": "response_mismatch",
        "call_failed": "argument_mismatch",
        "not_recovered": "recovery_failure",
        "gold_error": "gold_error",
        "checker_error": "checker_error",
        "other": "response_mismatch",
    }
)
"""The label of a verifier's finding, where nothing else about the episode decides."""

_KINDS_OF_RULES = frozenset({"one_of", "between", "form", "requires", "condition", "call_before"})
_RANK = {label: rank for rank, label in enumerate(PRECEDENCE)}
_SHORTEST_QUOTE = 3  # shorter values turn up in a sentence by chance


def dominant(labels: Iterable[FailureLabel]) -> FailureLabel:
    """The label that stands first in the order of precedence.

    Raises:
        ValueError: There is no label, or one that has no place in the order.

    Example:
        >>> dominant(["response_mismatch", "argument_mismatch", "pass"])
        'argument_mismatch'
    """
    return ranked(labels)[0]


def ranked(labels: Iterable[FailureLabel]) -> tuple[FailureLabel, ...]:
    """The different labels, the dominant one first.

    Raises:
        ValueError: There is no label, or one that has no place in the order.
    """
    distinct = set(labels)
    if not distinct or distinct & OUTSIDE:
        raise ValueError(f"no dominant label among {sorted(distinct)}; known are {PRECEDENCE}")
    return tuple(sorted(distinct, key=_RANK.__getitem__))


def by_weight(weights: Mapping[FailureLabel, float]) -> dict[FailureLabel, float]:
    """Weights by label, the heaviest first; equal ones in the order of precedence."""
    order = sorted(
        weights, key=lambda label: (-weights[label], _RANK.get(label, len(_RANK)), label)
    )
    return {label: weights[label] for label in order}


def label_of_failure(
    failure: ToolFailure, arguments: JsonObject = MappingProxyType({})
) -> FailureLabel | None:
    """The label that a call's failure implies about the model.

    Args:
        failure: How the call failed.
        arguments: Its arguments.

    Returns:
        The label, or None when the call may well have been right: a tool that is broken, slow or
        refused by a person is not a fault of the model.

    Example:
        >>> label_of_failure(ToolFailure(kind="timeout", rule="It was stopped after 30 seconds."))
        >>> label_of_failure(
        ...     ToolFailure(kind="tool_error", rule="KeyError: 'Bergen'", cause="KeyError"),
        ...     {"city": "Bergen"},
        ... )
        'argument_mismatch'
    """
    if failure.kind == "contract_violated" and failure.cause == "postcondition":
        return None
    if failure.kind == "tool_error" and blamed_argument(failure, arguments) is not None:
        return "argument_mismatch"
    return LABEL_OF_FAILURE.get(failure.kind)


def breaks_learned_rule(failure: ToolFailure) -> bool:
    """Whether a call was refused for a learned rule of its tool (``agentkit.tools.rules``)."""
    return failure.kind == "contract_violated" and failure.cause in _KINDS_OF_RULES


def blamed_argument(failure: ToolFailure, arguments: JsonObject) -> str | None:
    """The argument that an error of a tool complains about; None when it is about none.

    A ``ValueError`` is Python's word for an argument of the right type with an inappropriate
    value. Any other error counts only when it quotes a text that the call has given: a word of
    lower-case letters in quotation marks, anything less usual also without.

    Args:
        failure: What the tool raised, or returned in place of a result.
        arguments: The arguments of the call.

    Returns:
        The argument's name; empty when the error does not say which.
    """
    for name, value in arguments.items():
        if isinstance(value, str) and _quotes(failure.rule, value):
            return name
    return "" if failure.cause == "ValueError" else None


def _quotes(sentence: str, value: str) -> bool:
    if len(value) < _SHORTEST_QUOTE or value not in sentence:
        return False
    text = re.escape(value)
    is_usual = value.isalpha() and value.islower()
    pattern = rf"(['\"`]){text}\1" if is_usual else rf"(?<!\w){text}(?!\w)"
    return re.search(pattern, sentence) is not None
