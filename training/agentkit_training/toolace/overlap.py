"""How much of a reference answer a model reproduces, and how difficult a question is for it.

ToolACE-R (Zeng et al., 2025), section 3.2: the alignment score S of two calls (Eq. 2), the best
matching of two answers (Eq. 3), their overlap O (Eq. 4), and the difficulty D of a question as the
mean shortfall over several attempts (Eq. 5).

Where the paper is silent:

* Arguments match when they are canonically equal (``agentkit.tools.validation``): ``"3"`` is 3
  where an integer is declared.
* An argument that equals its declared default counts as not given. Otherwise a tool with many
  optional parameters would make any two calls alike, and writing a default out would change S.
* Two calls of one tool without arguments are the same call: S is 1, where Eq. 2 has 0/0.
* Two answers without calls are the same answer: O is 1, where Eq. 4 has 0/0. Thus a question whose
  right answer is no call has D = 0 for a model that never calls.
* A call whose arguments can not be read has S = 0 with every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from agentkit.errors import UsageError
from agentkit_bench.comparable import (
    CallLike,
    ComparableCall,
    Definitions,
    by_name,
    comparable_calls,
)


def optimal_assignment(weights: Sequence[Sequence[float]]) -> tuple[tuple[int, int], ...]:
    """Pairs of row and column, each used at most once, whose weights add up to the most possible.

    As many pairs are made as there are rows or columns, whichever are fewer, those of weight 0
    or less included. The same weights always give the same pairs, also where several assignments
    are equally good.

    Args:
        weights: One sequence of finite numbers for each row, all of the same length.

    Returns:
        The pairs in the order of the rows.

    Example:
        >>> optimal_assignment([[7, 5], [6, 1], [0, 4]])
        ((0, 1), (1, 0))
    """
    import networkx as nx

    rows = len(weights)
    graph = nx.Graph()
    for row, values in enumerate(weights):
        for column, weight in enumerate(values, start=rows):
            graph.add_edge(row, column, weight=weight)
    pairs = nx.max_weight_matching(graph, maxcardinality=True)
    return tuple(sorted((min(pair), max(pair) - rows) for pair in pairs))


def call_similarity(one: CallLike, other: CallLike, definitions: Definitions) -> float:
    """The alignment score S of two calls (ToolACE-R, Eq. 2).

    The arguments, as pairs of name and value, that both calls have, as a share of those that either
    has; a parameter with different values counts twice below the line. 0 for different tools.

    Example:
        >>> from agentkit import ToolDefinition
        >>> from agentkit.messages import ToolCall
        >>> trip = ToolDefinition.from_schema("trip", "A trip.", {"type": "object"})
        >>> long = ToolCall(call_id="1", name="trip", arguments={"to": "Bonn", "days": 3})
        >>> short = ToolCall(call_id="2", name="trip", arguments={"to": "Bonn", "days": 2})
        >>> round(call_similarity(long, short, [trip]), 3)
        0.333
    """
    return _similarity(*comparable_calls((one, other), definitions))


def call_overlap(
    predicted: Sequence[CallLike], reference: Sequence[CallLike], definitions: Definitions
) -> float:
    """The overlap O of two answers (ToolACE-R, Eq. 3 and 4), from 0 to 1.

    Calls are matched one to one so that their scores S add up to the most; the sum is divided by
    the number of calls of the longer answer: 1 exactly when both make the same calls equally often.
    Symmetric, and the order of calls does not matter.

    Args:
        predicted: The calls of a model.
        reference: The gold calls.
        definitions: The tools that may be called.
    """
    known = by_name(definitions)
    return _overlap(comparable_calls(predicted, known), comparable_calls(reference, known))


def difficulty(
    attempts: Iterable[Sequence[CallLike]],
    reference: Sequence[CallLike],
    definitions: Definitions,
) -> float:
    """The model-aware difficulty D of a question (ToolACE-R, Eq. 5).

    One minus the mean overlap of a model's attempts with the reference: 0 when each attempt is
    right, 1 when none has anything of it. The paper samples 8 attempts at temperature 1 and trains
    on questions with 0 < D < 0.9.

    Args:
        attempts: The calls of each attempt.
        reference: The gold calls.
        definitions: The tools that may be called.

    Raises:
        UsageError: There are no attempts.
    """
    known = by_name(definitions)
    gold = comparable_calls(reference, known)
    scores = [_overlap(comparable_calls(attempt, known), gold) for attempt in attempts]
    if not scores:
        raise UsageError(
            "difficulty is a mean over attempts, and there are none; sample at least 1"
        )
    return 1 - fmean(scores)


def _overlap(predicted: Sequence[ComparableCall], reference: Sequence[ComparableCall]) -> float:
    longer = max(len(predicted), len(reference))
    if not longer:
        return 1.0
    similarities = [[_similarity(gold, call) for call in predicted] for gold in reference]
    pairs = optimal_assignment(similarities)
    return sum(similarities[row][column] for row, column in pairs) / longer


def _similarity(one: ComparableCall, other: ComparableCall) -> float:
    if one.name != other.name or not (one.is_readable and other.is_readable):
        return 0.0
    shared = len(one.facts & other.facts)
    either = len(one.marks) + len(other.marks) - shared
    return shared / either if either else 1.0
