"""The best one-to-one assignment of rows to columns (Kuhn 1955, Jonker and Volgenant 1987).

Metrics pair predicted calls with gold calls so that the pairs score as much as possible together
(ToolACE-R, Eq. 3). The matrices are small and a core without SciPy needs no other solver, so this
is the shortest augmenting path method in plain Python, as Crouse ("On implementing 2D rectangular
assignment algorithms", 2016) lays it out. Weights that are integers are summed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentkit.errors import UsageError


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
