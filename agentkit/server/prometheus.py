"""Counters, gauges and histograms in Prometheus' text format 0.0.4.

The few lines that a server needs of it; all of it runs on one event loop, so nothing is locked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]


class Counter:
    r"""A number for each combination of labels; it only grows.

    Args:
        name: The metric's name, ending in ``_total``.
        words: What it counts.
        labels: Names of its labels.

    Example:
        >>> seen = Counter("seen_total", "What was seen.", "kind")
        >>> seen.add("bird")
        >>> print(*seen.lines(), sep="\n")
        # HELP seen_total What was seen.
        # TYPE seen_total counter
        seen_total{kind="bird"} 1
    """

    def __init__(self, name: str, words: str, *labels: str) -> None:
        self._name, self._words, self._labels = name, words, labels
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count ``by`` more."""
        self._values[labels] = self._values.get(labels, 0) + by

    def value(self, *labels: str) -> float:
        """How much was counted under these labels."""
        return self._values.get(labels, 0)

    def total(self) -> float:
        """How much was counted under all labels."""
        return sum(self._values.values())

    def lines(self) -> Iterator[str]:
        """The metric as text."""
        yield from _head(self._name, self._words, "counter")
        for labels, value in sorted(self._values.items()):
            yield _sample(self._name, zip(self._labels, labels, strict=True), value)


class Gauge:
    """A number that is looked up when somebody asks.

    Args:
        name: The metric's name.
        words: What it is.
        read: Gives it.
        kind: ``counter`` for one that somebody else counts and that only grows.
    """

    def __init__(
        self,
        name: str,
        words: str,
        read: Callable[[], float],
        *,
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        self._name, self._words, self._read, self._kind = name, words, read, kind

    def lines(self) -> Iterator[str]:
        """The metric as text."""
        yield from _head(self._name, self._words, self._kind)
        yield _sample(self._name, (), self._read())


class Histogram:
    """How values are spread, for each combination of labels.

    Args:
        name: The metric's name, with its unit.
        words: What is measured.
        bounds: Upper bounds of the buckets, ascending; one without bound is added.
        labels: Names of its labels.
    """

    def __init__(self, name: str, words: str, bounds: Sequence[float], *labels: str) -> None:
        self._name, self._words, self._bounds, self._labels = name, words, tuple(bounds), labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Take one value."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        """The metric as text: buckets that each hold those before, the sum and the count."""
        yield from _head(self._name, self._words, "histogram")
        for labels, counts in sorted(self._counts.items()):
            own = list(zip(self._labels, labels, strict=True))
            totals = list(accumulate(counts))
            for bound, total in zip((*self._bounds, float("inf")), totals, strict=True):
                yield _sample(f"{self._name}_bucket", [*own, ("le", _number(bound))], total)
            yield _sample(f"{self._name}_sum", own, self._sums[labels])
            yield _sample(f"{self._name}_count", own, totals[-1])


def _head(name: str, words: str, kind: str) -> tuple[str, str]:
    text = words.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
