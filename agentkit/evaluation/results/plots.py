"""Small pictures in SVG: a bar with a whisker, a stacked bar, a histogram."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.markup import Markup, element
from agentkit.evaluation.results.records import Distribution
from agentkit.evaluation.results.wording import interval, label_name, percent, points
from agentkit.metrics.intervals import Interval

_WIDTH = 200.0
_HEIGHT = 18.0
_PLOT_WIDTH = 480.0
_PLOT_HEIGHT = 110.0


def whisker_bar(share: Interval | None) -> Markup:
    """A share of 0 to 1 as a bar with the interval as a whisker; an empty track for None."""
    parts = [_rect(0, _WIDTH, "track")]
    told = "no attempts"
    if share is not None:
        low, high = share.low * _WIDTH, share.high * _WIDTH
        told = f"{percent(share.value)}, interval {interval(share)}"
        parts += [
            _rect(0, share.value * _WIDTH, "fill"),
            _line(low, _HEIGHT / 2, high, _HEIGHT / 2),
            *(_line(end, 4, end, _HEIGHT - 4) for end in (low, high)),
        ]
    return _picture(told, parts)


def difference_bar(difference: Interval, reach: float) -> Markup:
    """A difference of shares as a bar to the left or right of zero, with its interval.

    Args:
        difference: The difference.
        reach: The difference at either end of the bar.
    """
    half = _WIDTH / 2

    def at(value: float) -> float:
        return half + max(-1.0, min(1.0, value / reach)) * half

    value, low, high = at(difference.value), at(difference.low), at(difference.high)
    told = (
        f"{points(difference.value)} points, interval {points(difference.low)} to "
        f"{points(difference.high)}"
    )
    parts = [
        _rect(0, _WIDTH, "track"),
        _rect(min(half, value), abs(value - half), "fill"),
        _line(half, 0, half, _HEIGHT),
        _line(low, _HEIGHT / 2, high, _HEIGHT / 2),
        *(_line(end, 4, end, _HEIGHT - 4) for end in (low, high)),
    ]
    return _picture(told, parts)


def stacked_bar(counts: Mapping[FailureLabel, int], whole: int) -> Markup:
    """Counts by label as segments of a bar.

    Args:
        counts: How many, by label, in the order of the segments.
        whole: The count that fills the bar.
    """
    parts = [_rect(0, _WIDTH, "track")]
    at = 0.0
    for label, count in counts.items():
        width = _WIDTH * count / max(1, whole)
        title = element("title", f"{label_name(label)}: {count:,}")
        parts.append(_rect(at, width, f"segment {label}", title))
        at += width
    told = ", ".join(f"{label_name(label)} {count:,}" for label, count in counts.items())
    return _picture(told or "none", parts)


def histogram(title: str, spread: Distribution, text: Callable[[float], str]) -> Markup:
    """A histogram, with the median and the 90 % quantile in words below.

    Args:
        title: What is counted.
        spread: The numbers.
        text: How one of them is written.
    """
    step = _PLOT_WIDTH / max(1, len(spread.bins))
    most = max((one.count for one in spread.bins), default=1)
    parts: list[Markup] = []
    for at, one in enumerate(spread.bins):
        tall = _PLOT_HEIGHT * one.count / most
        reach = f"from {text(one.start)}" + ("" if one.end is None else f" to {text(one.end)}")
        parts.append(
            element(
                "rect",
                element("title", f"{reach}: {one.count:,}"),
                x=at * step + 1,
                y=_PLOT_HEIGHT - tall,
                width=max(1.0, step - 2),
                height=tall,
                class_="fill" if one.end is not None else "fill tail",
            )
        )
    parts.append(_line(0, _PLOT_HEIGHT, _PLOT_WIDTH, _PLOT_HEIGHT))
    parts += _ticks([text(one.start) for one in spread.bins], step)
    told = f"{title}: median {text(spread.median)}, nine in ten up to {text(spread.p90)}"
    svg = element(
        "svg",
        parts,
        viewBox=f"-2 0 {_PLOT_WIDTH + 4:g} {_PLOT_HEIGHT + 22:g}",
        class_="histogram",
        role="img",
        aria_label=told,
    )
    return element("figure", svg, element("figcaption", told))


def _ticks(starts: Sequence[str], step: float) -> Iterator[Markup]:
    """The start of every bar, or of every second or fourth where there are many."""
    stride = 1 + len(starts) // 6
    for at in range(0, len(starts), stride):
        yield element("text", starts[at], x=at * step, y=_PLOT_HEIGHT + 16, class_="tick")


def _picture(told: str, parts: Iterable[Markup]) -> Markup:
    return element(
        "svg",
        parts,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=told,
    )


def _rect(x: float, width: float, class_: str, *children: Markup) -> Markup:
    return element(
        "rect", *children, x=x, y=2, width=max(0.0, width), height=_HEIGHT - 4, class_=class_
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="line")
