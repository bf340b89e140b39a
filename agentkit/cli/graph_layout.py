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
Curve = tuple[Point, Point, Point, Point]
"""A cubic Bézier curve: where it starts, two points that pull it, and where it ends."""


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
    """A call: curves, each of which starts where the one before ends."""

    edge: Edge
    curves: tuple[Curve, ...]


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
    for row in rows:
        for place in row:
            place.x -= left
    boxes = tuple(_box(node, places[name], tops) for name, node in shown.nodes.items())
    lines = tuple(Line(edge=edge, curves=_curves(route, rows, tops)) for edge, route in routes)
    edges = [box.x + box.width / 2 for box in boxes]
    edges += [x for line in lines for curve in line.curves for x, _ in curve]
    height = tops[-1] - _GAP_Y + MARGIN
    return Layout(width=max(edges, default=0) + MARGIN, height=height, boxes=boxes, lines=lines)


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
        return [start, end]  # part of a circle: led around
    route = [start]
    for number in range(start.row + 1, end.row):
        gap = _Place(width=0, row=number)
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
    for left, right in pairwise(row):
        right.x = left.x + _distance(left, right)
    shift = (row[0].x + row[-1].x) / 2
    for place in row:
        place.x -= shift


def _distance(left: _Place, right: _Place) -> float:
    """From middle to middle of neighbours; lines need less room than boxes."""
    gap = _GAP_X if left.height and right.height else _LINE_SPACE
    return (left.width + right.width) / 2 + gap


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
        offsets.append(offsets[-1] + _distance(left, right))
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


def _curves(
    route: Sequence[_Place], rows: Sequence[Sequence[_Place]], tops: Sequence[float]
) -> tuple[Curve, ...]:
    """From the foot of the caller to the head of the called, upright through each gap between."""
    if route[-1].row <= route[0].row:
        return (_around(route[0], route[-1], rows, tops),)
    points: list[Point] = []
    for at, place in enumerate(route):
        top, bottom = tops[place.row], tops[place.row + 1] - _GAP_Y
        middle = (top + bottom) / 2
        if at:
            points.append((place.x, middle - place.height / 2 if place.height else top))
        if at < len(route) - 1:
            points.append((place.x, middle + place.height / 2 if place.height else bottom))
    return tuple(_upright(start, end) for start, end in pairwise(points))


def _upright(start: Point, end: Point) -> Curve:
    """Leaves and arrives straight down."""
    middle = (start[1] + end[1]) / 2
    return (start, (start[0], middle), (end[0], middle), end)


def _around(
    start: _Place, end: _Place, rows: Sequence[Sequence[_Place]], tops: Sequence[float]
) -> Curve:
    """Back up, as only a circle does: out at the right, past all that lies between, and in."""
    passed = [place for row in rows[end.row : start.row + 1] for place in row]
    beyond = max(place.x + place.width / 2 for place in passed) + _GAP_X
    out = beyond if start.row - end.row > 1 else min(beyond, start.x + start.width / 2 + _GAP_X)
    turn = out + (out - start.x) / 3
    shift = 7 if start is end else 0
    ends = [
        (place.x + place.width / 2, (tops[place.row] + tops[place.row + 1] - _GAP_Y) / 2 + by)
        for place, by in ((start, shift), (end, -shift))
    ]
    return (ends[0], (turn, ends[0][1] + shift), (turn, ends[1][1] - shift), ends[1])
