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

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
        weights: One sequence for each row, all of the same length.

    Returns:
        The pairs in the order of the rows.

    Raises:
        UsageError: The rows differ in length, or a weight is not finite.

    Example:
        >>> optimal_assignment([[7, 5], [6, 1], [0, 4]])
        ((0, 1), (1, 0))
    """
    _check(weights)
    if not weights or not weights[0]:
        return ()
    if len(weights) > len(weights[0]):
        turned = _assign([list(column) for column in zip(*weights, strict=True)])
        return tuple(sorted((row, column) for column, row in enumerate(turned)))
    return tuple(enumerate(_assign(weights)))


def _check(weights: Sequence[Sequence[float]]) -> None:
    widths = {len(row) for row in weights}
    if len(widths) > 1:
        raise UsageError(
            f"the rows of a weight matrix differ in length: {sorted(widths)}; give each row one "
            "weight for every column"
        )
    for at, row in enumerate(weights):
        if not all(map(math.isfinite, row)):
            raise UsageError(
                f"row {at} of a weight matrix holds {list(row)!r:.200}; weights must be finite"
            )


def _assign(weights: Sequence[Sequence[float]]) -> Sequence[int]:
    """The column of each row; there are at least as many columns as rows."""
    if (best := _all_best(weights)) is not None:
        return best
    search = _Search(costs=[[-weight for weight in row] for row in weights])
    for row in range(len(weights)):
        search.place(row)
    return search.column_of


def _all_best(weights: Sequence[Sequence[float]]) -> Sequence[int] | None:
    """A column for each row that is as good as any to it; None where rows get in each other's way.

    Two answers that agree, or that have nothing in common, need no search.
    """
    chosen: dict[int, None] = {}
    for row in weights:
        most = max(row)
        free = [at for at, weight in enumerate(row) if weight == most and at not in chosen]
        if not free:
            return None
        chosen[free[0]] = None
    return list(chosen)


@dataclass(kw_only=True, slots=True)
class _Search:
    """Rows are placed one after the other; prices keep the cost of each step from falling below 0.

    Attributes:
        costs: What each pair costs.
        row_prices: The dual variables of the rows.
        column_prices: The dual variables of the columns.
        column_of: The column of each row, -1 before it has one.
        row_of: The row of each column, -1 before it has one.
    """

    costs: Sequence[Sequence[float]]
    row_prices: list[float] = field(init=False)
    column_prices: list[float] = field(init=False)
    column_of: list[int] = field(init=False)
    row_of: list[int] = field(init=False)

    def __post_init__(self) -> None:
        rows, columns = len(self.costs), len(self.costs[0])
        self.row_prices, self.column_prices = [0] * rows, [0] * columns
        self.column_of, self.row_of = [-1] * rows, [-1] * columns

    def place(self, row: int) -> None:
        """Give ``row`` a column; rows on the cheapest path to a free one move on."""
        shortest, before, passed, sink = self._cheapest_path(row)
        length = shortest[sink]
        self.row_prices[row] += length
        for column in passed:
            self.row_prices[self.row_of[column]] += length - shortest[column]
            self.column_prices[column] -= length - shortest[column]
        column = sink
        while column >= 0:
            taker = before[column]
            self.row_of[column] = taker
            self.column_of[taker], column = column, self.column_of[taker]

    def _cheapest_path(self, row: int) -> tuple[list[float], list[int], list[int], int]:
        """Dijkstra from ``row`` to the nearest free column.

        Returns:
            The length of the path to each column, the row before it, the columns passed through,
            and the free column at the end.
        """
        columns = len(self.column_prices)
        shortest: list[float] = [math.inf] * columns
        before = [-1] * columns
        open_columns = list(range(columns))
        passed: list[int] = []
        length: float = 0
        while True:
            costs, price = self.costs[row], self.row_prices[row]
            for column in open_columns:
                reached = length + costs[column] - price - self.column_prices[column]
                if reached < shortest[column]:
                    shortest[column], before[column] = reached, row
            # Among equals a free column ends the search soonest; after that the first one.
            nearest = min(open_columns, key=lambda at: (shortest[at], self.row_of[at] >= 0))
            length = shortest[nearest]
            if self.row_of[nearest] < 0:
                return shortest, before, passed, nearest
            open_columns.remove(nearest)
            passed.append(nearest)
            row = self.row_of[nearest]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPair:
    """A call matched with a call of the reference.

    Attributes:
        reference: Index among the reference's calls.
        predicted: Index among the predicted calls.
        similarity: Their alignment score S.
    """

    reference: int
    predicted: int
    similarity: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """How two answers agree.

    Attributes:
        score: O, from 0 to 1; 1 exactly when both make the same calls equally often.
        pairs: The best matching, by index in the reference; pairs without similarity left out.
    """

    score: float
    pairs: tuple[CallPair, ...] = ()


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
) -> Overlap:
    """The overlap O of two answers (ToolACE-R, Eq. 3 and 4).

    Calls are matched one to one so that their scores S add up to the most; the sum is divided by
    the number of calls of the longer answer. Symmetric, and the order of calls does not matter.

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
    scores = [_overlap(comparable_calls(attempt, known), gold).score for attempt in attempts]
    if not scores:
        raise UsageError(
            "difficulty is a mean over attempts, and there are none; sample at least 1"
        )
    return 1 - fmean(scores)


def _overlap(predicted: Sequence[ComparableCall], reference: Sequence[ComparableCall]) -> Overlap:
    longer = max(len(predicted), len(reference))
    if not longer:
        return Overlap(score=1.0)
    similarities = [[_similarity(gold, call) for call in predicted] for gold in reference]
    pairs = tuple(
        CallPair(reference=row, predicted=column, similarity=similarities[row][column])
        for row, column in optimal_assignment(similarities)
        if similarities[row][column]
    )
    return Overlap(score=sum(pair.similarity for pair in pairs) / longer, pairs=pairs)


def _similarity(one: ComparableCall, other: ComparableCall) -> float:
    if one.name != other.name or not (one.is_readable and other.is_readable):
        return 0.0
    shared = len(one.facts & other.facts)
    either = len(one.marks) + len(other.marks) - shared
    return shared / either if either else 1.0
