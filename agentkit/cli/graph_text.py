"""The DAG as text: a tree to read, Mermaid for pages, DOT for Graphviz, JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentkit.cli.graph_model import Edge, Node, Picture, roots

WRAP = 24
"""Characters of a name on one line of a box."""

COLOURS = {
    "composite": ("#dbeafe", "#2563eb", "#172554"),
    "primitive": ("#f8fafc", "#64748b", "#1e293b"),
    "missing": ("#fef2f2", "#dc2626", "#991b1b"),
}
"""Fill, border and text of each kind of box."""

FAULT_COLOUR = "#dc2626"
LINE_COLOUR = "#64748b"


def wrapped(name: str, width: int = WRAP) -> list[str]:
    """A name in lines of at most ``width``, broken after ``_ . - / :`` or a blank if possible."""
    lines, line = [], ""
    for piece in re.findall(r"[^_.\-/:\s]*[_.\-/:\s]?", " ".join(name.split())):
        if line and len(line) + len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while len(line.rstrip()) > width:
            lines.append(line[:width])
            line = line[width:]
    return [*lines, line.rstrip()] if line.rstrip() or not lines else lines


# --- a tree ---------------------------------------------------------------------------------------


def tree(shown: Picture) -> Iterator[str]:
    """One line a call: what each tool is made of, spelled out where it is first met."""
    spelled: set[str] = set()
    for root in roots(shown):
        yield _line(shown.nodes[root], "")
        spelled.add(root)
        waiting = _branches(shown, root, "")
        while waiting:
            edge, start, following = waiting.pop()
            node = shown.nodes[edge.child]
            again = bool(shown.calls[node.name]) and node.name in spelled
            yield start + _line(node, edge.fault, again=again)
            if not again:
                spelled.add(node.name)
                waiting += _branches(shown, node.name, following)


def _branches(shown: Picture, name: str, indent: str) -> list[tuple[Edge, str, str]]:
    """The calls of a node, last first, each with what stands before it and before its own."""
    calls = shown.calls[name]
    branches = [(edge, f"{indent}├── ", f"{indent}│   ") for edge in calls[:-1]]
    branches += [(edge, f"{indent}└── ", f"{indent}    ") for edge in calls[-1:]]
    return branches[::-1]


def _line(node: Node, fault: str, *, again: bool = False) -> str:
    notes = [node.note] if node.note else []
    if again:
        notes = ["see above"]
    if node.hidden:
        notes.append(f"{node.hidden:,} below")
    line = f"{node.name}  ({', '.join(notes)})" if notes else node.name
    return f"{line}  ! {fault}" if fault else line


# --- Mermaid --------------------------------------------------------------------------------------


def mermaid(shown: Picture) -> Iterator[str]:
    """A flowchart for Markdown pages; composites are rounded boxes, primitives pills."""
    yield "flowchart TD"
    ids = {name: f"n{number}" for number, name in enumerate(shown.nodes)}
    shapes = {"composite": '{}("{}")', "primitive": '{}(["{}"])', "missing": '{}["{}"]'}
    for name, node in shown.nodes.items():
        label = "<br/>".join(_mermaid_text(line) for line in (*wrapped(name), node.note) if line)
        yield f"    {shapes[node.kind].format(ids[name], label)}"
    for edge in shown.edges:
        arrow = "-.->" if edge.fault else "-->"
        yield f"    {ids[edge.parent]} {arrow} {ids[edge.child]}"
    for kind, (fill, border, text) in COLOURS.items():
        members = [ids[name] for name, node in shown.nodes.items() if node.kind == kind]
        if members:
            dashes = ",stroke-dasharray:5 4" if kind == "missing" else ""
            yield f"    classDef {kind} fill:{fill},stroke:{border},color:{text}{dashes}"
            yield f"    class {','.join(members)} {kind}"
    faulty = [str(at) for at, edge in enumerate(shown.edges) if edge.fault]
    if faulty:
        yield f"    linkStyle {','.join(faulty)} stroke:{FAULT_COLOUR},stroke-dasharray:5 4"


def _mermaid_text(text: str) -> str:
    """Characters that mean something to Mermaid or HTML become numbered entities."""
    return re.sub(r"[^\w .,:;()/+=*@!?$%'-]", lambda found: f"#{ord(found[0])};", text)


# --- DOT ------------------------------------------------------------------------------------------


def dot(shown: Picture) -> Iterator[str]:
    """A graph for Graphviz; tools of one depth share a rank."""
    yield "digraph library {"
    yield '    graph [rankdir=TB, nodesep=0.35, ranksep=0.7, fontname="Helvetica"];'
    yield '    node [fontname="Helvetica", fontsize=11, margin="0.16,0.08"];'
    yield f'    edge [color="{LINE_COLOUR}", arrowsize=0.7];'
    ids = {name: f"n{number}" for number, name in enumerate(shown.nodes)}
    for name, node in shown.nodes.items():
        fill, border, text = COLOURS[node.kind]
        label = "\\n".join(_dot_text(line) for line in (*wrapped(name), node.note) if line)
        yield (
            f'    {ids[name]} [label="{label}", {_DOT_SHAPES[node.kind]}, fillcolor="{fill}", '
            f'color="{border}", fontcolor="{text}"];'
        )
    for edge in shown.edges:
        fault = ""
        if edge.fault:
            tip = _dot_text(edge.fault)
            fault = f' [color="{FAULT_COLOUR}", style=dashed, tooltip="{tip}"]'
        yield f"    {ids[edge.parent]} -> {ids[edge.child]}{fault};"
    yield from _ranks(shown, ids)
    yield "}"


_DOT_SHAPES = {
    "composite": 'shape=box, style="rounded,filled"',
    "primitive": "shape=ellipse, style=filled",
    "missing": 'shape=box, style="dashed,filled"',
}


def _ranks(shown: Picture, ids: dict[str, str]) -> Iterator[str]:
    depths = {node.depth for node in shown.nodes.values() if node.depth is not None}
    for depth in sorted(depths, reverse=True):
        members = [ids[name] for name, node in shown.nodes.items() if node.depth == depth]
        yield f"    {{ rank=same; {'; '.join(members)}; }}"


def _dot_text(text: str) -> str:
    """Text inside a quoted string of DOT, where a backslash begins an escape."""
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')


# --- JSON -----------------------------------------------------------------------------------------


def as_json(shown: Picture, library_version: int) -> dict[str, Any]:
    """Nodes and edges for a program."""
    return {
        "library_version": library_version,
        "nodes": [_node_to_json(node) for node in shown.nodes.values()],
        "edges": [
            {"parent": edge.parent, "child": edge.child, "fault": edge.fault or None}
            for edge in shown.edges
        ],
    }


def _node_to_json(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.kind,
        "depth": node.depth,
        "flat_size": node.flat_size,
        "saved_calls": None if node.flat_size is None else node.flat_size - 1,
    }
