"""A laid-out picture as PNG, through Pillow (the extra ``graph``)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, hypot
from typing import TYPE_CHECKING

from agentkit.cli.graph_layout import NAME_SIZE, Box, Curve, Layout, Line, Point
from agentkit.cli.graph_svg import CORNER, is_straight, text_lines
from agentkit.cli.graph_text import COLOURS, FAULT_COLOUR, LINE_COLOUR
from agentkit.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

_SCALE = 2  # as many points a pixel as sharp screens have
_SMOOTH = 2  # drawn larger by this, then shrunk: Pillow's lines have jagged edges
_MOST_POINTS = 60_000_000
_FACES = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "Arial.ttf")
"""Tried before Pillow's own face, which knows Latin letters only."""

_DASH, _GAP = 6.0, 4.0
_STEPS = 24


def png(layout: Layout) -> bytes:
    """The picture as a PNG file.

    Raises:
        MissingExtraError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise MissingExtraError(
            "a PNG picture", package="pillow", install='pip install "agentkit-evolve[graph]"'
        ) from error
    area = layout.width * layout.height
    scale = min(_SCALE * _SMOOTH, (_MOST_POINTS / area) ** 0.5)
    size = ceil(layout.width * scale), ceil(layout.height * scale)
    image = Image.new("RGB", size, "white")
    pen = _Pen(ImageDraw.Draw(image), scale)
    for line in layout.lines:
        pen.line(line)
    for box in layout.boxes:
        pen.box(box)
    smaller = max(1, round(size[0] / _SMOOTH)), max(1, round(size[1] / _SMOOTH))
    file = io.BytesIO()
    image.resize(smaller, Image.Resampling.LANCZOS).save(file, "PNG", optimize=True)
    return file.getvalue()


class _Pen:
    """Draws in the picture's coordinates."""

    def __init__(self, draw: ImageDraw.ImageDraw, scale: float) -> None:
        self._draw = draw
        self._scale = scale
        self._fonts: dict[int, ImageFont.FreeTypeFont | ImageFont.ImageFont] = {}

    def _font(self, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        if size not in self._fonts:
            self._fonts[size] = _face(size * self._scale)
        return self._fonts[size]

    def _at(self, *points: Point) -> list[Point]:
        return [(x * self._scale, y * self._scale) for x, y in points]

    def line(self, line: Line) -> None:
        colour = FAULT_COLOUR if line.edge.fault else LINE_COLOUR
        points = list(_traced(line.curves))
        width = round(1.4 * self._scale)
        for part in _dashes(points) if line.edge.fault else [points]:
            self._draw.line(self._at(*part), fill=colour, width=width, joint="curve")
        self._draw.polygon(self._at(*_arrow_head(points)), fill=colour)

    def box(self, box: Box) -> None:
        fill, border, colour = COLOURS[box.node.kind]
        left, top = box.x - box.width / 2, box.y - box.height / 2
        radius = {"composite": CORNER, "primitive": box.height / 2, "missing": 0}[box.node.kind]
        corners = self._at((left, top), (left + box.width, top + box.height))
        dashed = box.node.kind == "missing"
        self._draw.rounded_rectangle(
            corners,
            radius=radius * self._scale,
            fill=fill,
            outline=None if dashed else border,
            width=round(1.4 * self._scale),
        )
        if dashed:
            self._dashed_outline(box, border)
        for text, foot, size in text_lines(box):
            strong = size == NAME_SIZE and box.node.kind != "primitive"
            self._draw.text(
                self._at((box.x, foot))[0],
                text,
                fill=colour,
                font=self._font(size),
                anchor="ms",
                stroke_width=self._scale * 0.12 if strong else 0,
                stroke_fill=colour,
            )

    def _dashed_outline(self, box: Box, colour: str) -> None:
        left, right = box.x - box.width / 2, box.x + box.width / 2
        top, bottom = box.y - box.height / 2, box.y + box.height / 2
        around = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        for part in _dashes(around):
            self._draw.line(self._at(*part), fill=colour, width=round(1.4 * self._scale))


def _face(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    for name in _FACES:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue  # not on this machine
    return ImageFont.load_default(size)


def _traced(curves: Sequence[Curve]) -> Iterator[Point]:
    """Points along the curves, near enough to each other to look round."""
    yield curves[0][0]
    for curve in curves:
        if is_straight(curve):
            yield curve[3]
            continue
        for step in range(1, _STEPS + 1):
            t = step / _STEPS
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield (
                sum(weight * x for weight, (x, _) in zip(weights, curve, strict=True)),
                sum(weight * y for weight, (_, y) in zip(weights, curve, strict=True)),
            )


def _dashes(points: Sequence[Point]) -> Iterator[list[Point]]:
    """The strokes of a dashed line along ``points``."""
    stroke, left, drawn = [points[0]], _DASH, True
    for start, end in pairwise(points):
        length = hypot(end[0] - start[0], end[1] - start[1])
        done = 0.0
        while length - done > left:
            done += left
            part = done / length
            corner = start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])
            if drawn:
                yield [*stroke, corner]
            stroke, drawn = [corner], not drawn
            left = _DASH if drawn else _GAP
        left -= length - done
        stroke.append(end)
    if drawn and len(stroke) > 1:
        yield stroke


def _arrow_head(points: Sequence[Point]) -> list[Point]:
    (x, y), (tip_x, tip_y) = points[-2], points[-1]
    length = hypot(tip_x - x, tip_y - y) or 1.0
    along, across = (tip_x - x) / length, (tip_y - y) / length
    foot_x, foot_y = tip_x - 9 * along, tip_y - 9 * across
    return [
        (tip_x, tip_y),
        (foot_x - 4 * across, foot_y + 4 * along),
        (foot_x + 4 * across, foot_y - 4 * along),
    ]
