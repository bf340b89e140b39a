"""A laid-out picture as SVG: text that any browser shows, sharp at every size."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from agentkit.cli.graph_layout import LINE_HEIGHT, NAME_SIZE, NOTE_SIZE, Box, Curve, Layout, Line
from agentkit.cli.graph_text import COLOURS, FAULT_COLOUR, LINE_COLOUR

CORNER = 9
"""Radius of the corners of a composite's box."""

_STYLE = "font-family: Helvetica, Arial, sans-serif; text-anchor: middle"


def svg(layout: Layout) -> str:
    """The picture as one SVG document."""
    width, height = round(layout.width), round(layout.height)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" style="{_STYLE}">'
        ),
        "<defs>",
        _arrow("call", LINE_COLOUR),
        _arrow("fault", FAULT_COLOUR),
        "</defs>",
        '<rect width="100%" height="100%" fill="white"/>',
        *(_path(line) for line in layout.lines),
        *(part for box in layout.boxes for part in _box(box)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _arrow(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 1 L10 5 L0 9 z" fill="{colour}"/></marker>'
    )


def _path(line: Line) -> str:
    kind, colour = ("fault", FAULT_COLOUR) if line.edge.fault else ("call", LINE_COLOUR)
    dashes = ' stroke-dasharray="6 4"' if line.edge.fault else ""
    told = line.edge.fault or f"{line.edge.parent} calls {line.edge.child}"
    return (
        f'<path d="{_drawn(line.curves)}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes} '
        f'marker-end="url(#{kind})"><title>{escape(told)}</title></path>'
    )


def _drawn(curves: tuple[Curve, ...]) -> str:
    """The data of a path; a curve that hardly bends is a straight line."""
    (x, y), *_ = curves[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for curve in curves:
        points = curve[3:] if is_straight(curve) else curve[1:]
        letter = "L" if is_straight(curve) else "C"
        parts.append(letter + " ".join(f"{x:.1f} {y:.1f}" for x, y in points))
    return " ".join(parts)


def is_straight(curve: Curve) -> bool:
    """Whether all its points stand above each other, as near as can be seen."""
    return max(x for x, _ in curve) - min(x for x, _ in curve) < 1


def _box(box: Box) -> Iterator[str]:
    fill, border, colour = COLOURS[box.node.kind]
    radius = {"composite": CORNER, "primitive": box.height / 2, "missing": 0}[box.node.kind]
    dashes = ' stroke-dasharray="6 4"' if box.node.kind == "missing" else ""
    yield (
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.1f}" fill="{fill}" '
        f'stroke="{border}" stroke-width="1.4"{dashes}/>'
    )
    for text, y, size in text_lines(box):
        weight = ' font-weight="600"' if size == NAME_SIZE and box.node.kind != "primitive" else ""
        opacity = "" if size == NAME_SIZE else ' opacity="0.75"'
        yield (
            f'<text x="{box.x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"'
            f"{weight}{opacity}>{escape(text)}</text>"
        )


def text_lines(box: Box) -> Iterator[tuple[str, float, int]]:
    """The lines of a box, each with the foot of its letters and their size."""
    lines = [(line, NAME_SIZE) for line in box.name_lines]
    if box.node.note:
        lines.append((box.node.note, NOTE_SIZE))
    y = box.y - sum(size for _, size in lines) * LINE_HEIGHT / 2
    for text, size in lines:
        yield text, y + size * (LINE_HEIGHT + 0.75) / 2, size
        y += size * LINE_HEIGHT
