"""Where the boxes and lines of a picture lie: layers by depth, few crossings, straight lines.

The usual four steps for layered graphs (Sugiyama, Tagawa and Toda 1981): layers; places of their
own for lines that pass a layer; an order in each layer that avoids crossings; and coordinates
near the mean of the neighbours, by isotonic regression. Units are pixels.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agentkit.cli.graph_model import Edge, Node, Picture
from agentkit.cli.graph_text import wrapped

NAME_SIZE, NOTE_SIZE = 13, 11
"""Height of the letters of a name, and of the note below it."""

LINE_HEIGHT = 1.35
MARGIN = 28
WIDEST_ROW = 1_800
"""A layer that is wider is laid out in several rows."""

_LETTER = 0.6  # width of a letter in a sans-serif face, in heights, with some to spare
_PADDING_X, _PADDING_Y = 15, 9
_GAP_X, _GAP_Y = 26, 64
_LINE_SPACE = 14
_SWEEPS = 8

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A tool: its middle, its size, and its lines of text."""

    node: Node
    x: float
    y: float
    width: float
    height: float
    name_lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A call: the points that it passes, each but the first reached by a curve or straight on."""

    edge: Edge
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A picture with coordinates."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


@dataclass(slots=True)
class _Place:
    """A box, or the gap in a row through which a line passes."""

    width: float
    height: float = 0.0
    row: int = 0
    x: float = 0.0
    above: list[_Place] = field(default_factory=list)
    below: list[_Place] = field(default_factory=list)


def lay_out(shown: Picture) -> Layout:
    """Coordinates for a picture."""
    places = {name: _place(node) for name, node in shown.nodes.items()}
    rows = _rows(shown, places)
    routes = [(edge, _route(places[edge.parent], places[edge.child], rows)) for edge in shown.edges]
    for _ in range(_SWEEPS):
        _order(rows)
    for row in rows:
        _pack(row)
    for _ in range(_SWEEPS):
        _straighten(rows)
    tops = _tops(rows)
    left = min((p.x - p.width / 2 for row in rows for p in row), default=0) - MARGIN
    right = max((p.x + p.width / 2 for row in rows for p in row), default=0) + MARGIN
    for row in rows:
        for place in row:
            place.x -= left
    return Layout(
        width=right - left,
        height=tops[-1] - _GAP_Y + MARGIN,
        boxes=tuple(_box(node, places[name], tops) for name, node in shown.nodes.items()),
        lines=tuple(Line(edge=edge, points=_points(route, tops)) for edge, route in routes),
    )


def text_width(text: str, size: float) -> float:
    """About how wide a text is; wide letters of East Asia count twice."""
    cells = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return cells * size * _LETTER


def _place(node: Node) -> _Place:
    lines = wrapped(node.name)
    widths = [text_width(line, NAME_SIZE) for line in lines]
    widths.append(text_width(node.note, NOTE_SIZE))
    height = LINE_HEIGHT * (NAME_SIZE * len(lines) + (NOTE_SIZE if node.note else 0))
    return _Place(width=max(widths) + 2 * _PADDING_X, height=height + 2 * _PADDING_Y)


def _box(node: Node, place: _Place, tops: Sequence[float]) -> Box:
    return Box(
        node=node,
        x=place.x,
        y=(tops[place.row] + tops[place.row + 1] - _GAP_Y) / 2,
        width=place.width,
        height=place.height,
        name_lines=tuple(wrapped(node.name)),
    )


# --- rows -----------------------------------------------------------------------------------------


def _rows(shown: Picture, places: Mapping[str, _Place]) -> list[list[_Place]]:
    """The highest layer first; one that is too wide takes several rows."""
    layers: dict[int, list[_Place]] = {}
    heights = _heights(shown)
    for name in _as_met(shown):
        layers.setdefault(heights[name], []).append(places[name])
    rows: list[list[_Place]] = []
    for height in sorted(layers, reverse=True):
        layer = layers[height]
        count = max(1, round(sum(place.width + _GAP_X for place in layer) / WIDEST_ROW))
        rows += [layer[start::count] for start in range(count)]
    for number, row in enumerate(rows):
        for place in row:
            place.row = number
    return rows


def _heights(shown: Picture) -> dict[str, int]:
    """The depth of each tool; where it is unknown, one above what it calls, circles cut open."""
    heights = {name: node.depth for name, node in shown.nodes.items() if node.depth is not None}
    children = shown.children
    for start in shown.nodes:
        walk = [] if start in heights else [(start, iter(children[start]))]
        on_path = {start}
        while walk:
            name, rest = walk[-1]
            child = next((c for c in rest if c not in heights and c not in on_path), None)
            if child is None:
                walk.pop()
                known = [heights[c] for c in children[name] if c in heights]
                heights[name] = 1 + max(known) if known else 0
            else:
                on_path.add(child)
                walk.append((child, iter(children[child])))
    return heights


def _as_met(shown: Picture) -> Iterable[str]:
    """Names in the order of a walk along the calls: tools of one composite lie side by side."""
    children = shown.children
    met: dict[str, None] = {}
    tops = sorted(shown.nodes, key=lambda name: -(shown.nodes[name].depth or 0))
    for start in tops:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in met:
                met[name] = None
                waiting += reversed(children[name])
    return met


def _route(start: _Place, end: _Place, rows: list[list[_Place]]) -> list[_Place]:
    """The places that a line passes, with a new one in each row between its ends."""
    if end.row <= start.row:
        return [start, end]  # part of a circle: drawn straight
    route = [start]
    for number in range(start.row + 1, end.row):
        gap = _Place(width=_LINE_SPACE, row=number)
        rows[number].append(gap)
        route.append(gap)
    route.append(end)
    for upper, lower in pairwise(route):
        upper.below.append(lower)
        lower.above.append(upper)
    return route


# --- order and coordinates ------------------------------------------------------------------------


def _order(rows: list[list[_Place]]) -> None:
    """Sort each row by the mean place of its neighbours, down and up again."""
    for row, side in [
        *((row, "above") for row in rows[1:]),
        *((row, "below") for row in rows[-2::-1]),
    ]:
        ranks = {id(place): rank for other in rows for rank, place in enumerate(other)}

        def mean(place: _Place, side: str = side, ranks: Mapping[int, int] = ranks) -> float:
            near = place.above if side == "above" else place.below
            if not near:
                return ranks[id(place)]
            return sum(ranks[id(one)] for one in near) / len(near)

        row.sort(key=mean)


def _pack(row: Sequence[_Place]) -> None:
    """Side by side, around zero."""
    x = -sum(place.width + _GAP_X for place in row) / 2
    for place in row:
        place.x = x + place.width / 2
        x += place.width + _GAP_X


def _straighten(rows: Sequence[Sequence[_Place]]) -> None:
    """Move each row as near to the means of its neighbours as order and gaps allow."""
    for row in rows[1:]:
        _move(row, [_mean_x(place.above, place.x) for place in row])
    for row in reversed(rows[:-1]):
        _move(row, [_mean_x(place.below, place.x) for place in row])


def _mean_x(near: Sequence[_Place], otherwise: float) -> float:
    return sum(place.x for place in near) / len(near) if near else otherwise


def _move(row: Sequence[_Place], wished: Sequence[float]) -> None:
    """Least squares under a fixed order: neighbours that would overlap move as one block."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + _GAP_X)
    blocks: list[tuple[float, int]] = []
    for wish, offset in zip(wished, offsets, strict=True):
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean = (before * size + mean * count) / (size + count)
            count += size
        blocks.append((mean, count))
    settled = [mean for mean, count in blocks for _ in range(count)]
    for place, mean, offset in zip(row, settled, offsets, strict=True):
        place.x = mean + offset


def _tops(rows: Sequence[Sequence[_Place]]) -> list[float]:
    """Where each row begins, and where a next one would."""
    tops = [float(MARGIN)]
    for row in rows:
        tops.append(tops[-1] + max((place.height for place in row), default=0) + _GAP_Y)
    return tops


def _points(route: Sequence[_Place], tops: Sequence[float]) -> tuple[Point, ...]:
    """From the foot of the caller to the head of the called, up and down through each gap."""
    points: list[Point] = []
    for at, place in enumerate(route):
        top, bottom = tops[place.row], tops[place.row + 1] - _GAP_Y
        middle = (top + bottom) / 2
        if at:
            points.append((place.x, middle - place.height / 2 if place.height else top))
        if at < len(route) - 1:
            points.append((place.x, middle + place.height / 2 if place.height else bottom))
    return tuple(points)
