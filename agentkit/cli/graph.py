"""``agentkit tools graph``: what the tools of the library are made of, as a tree or a diagram."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, say, stdout
from agentkit.cli.stores import opened_to_read
from agentkit.errors import CompositeError, LibraryError, UsageError
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults

_SUFFIXES = {
    ".txt": "text",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".json": "json",
}
_WRAP = 24
"""Characters of a name on one line of a box."""

_COLOURS = {
    "composite": ("#dbeafe", "#2563eb", "#172554"),
    "primitive": ("#f8fafc", "#64748b", "#1e293b"),
    "missing": ("#fef2f2", "#dc2626", "#991b1b"),
}
"""Fill, border and text of each kind of box."""

_FAULT_COLOUR = "#dc2626"

NodeKind = Literal["primitive", "composite", "missing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One tool in the picture.

    Attributes:
        name: The tool.
        kind: ``missing`` for one that is called but is not in the library.
        depth: None where a circle or a missing tool leaves it unknown.
        flat_size: Primitive calls that a call stands for; None where that is unknown.
        hidden: Tools that it calls and that the picture leaves out.
    """

    name: str
    kind: NodeKind
    depth: int | None
    flat_size: int | None
    hidden: int = 0

    @property
    def note(self) -> str:
        """What is said below the name; nothing for a primitive, about which all is said."""
        if self.kind == "missing":
            return "not in the library"
        if self.kind == "primitive":
            return ""
        if self.depth is None:
            return "depth unknown"
        if self.flat_size is None:
            return f"depth {self.depth}, no program"
        calls = "call" if self.flat_size == 2 else "calls"
        return f"depth {self.depth}, saves {rounded(self.flat_size - 1)} {calls}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A composite calls a tool.

    Attributes:
        parent: The composite.
        child: The tool.
        fault: Why the pin does not hold; empty when it does.
    """

    parent: str
    child: str
    fault: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """The part of a DAG that is to be shown.

    Attributes:
        nodes: By name, in the order of the library; missing tools last.
        calls: The edges that leave each node, in the order of its calls.
    """

    nodes: Mapping[str, Node]
    calls: Mapping[str, tuple[Edge, ...]]

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges."""
        return tuple(edge for leaving in self.calls.values() for edge in leaving)

    @property
    def children(self) -> dict[str, tuple[str, ...]]:
        """The names that each node calls."""
        return {name: tuple(edge.child for edge in out) for name, out in self.calls.items()}


@click.command(
    epilog="""\b
Examples:
  agentkit tools graph
  agentkit tools graph net_total --output net_total.mmd
  agentkit tools graph add --up --format text
  agentkit tools graph --format dot | dot -Tpdf > tools.pdf"""
)
@click.argument("name", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "json"]),
    help="What to write.  [default: by the suffix of --output, else text on a terminal, else "
    "mermaid]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write, '-' for stdout.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Steps to go from NAME, or from the composites that no other one calls.  [default: all]",
)
@click.option("--up", is_flag=True, help="Show what is made of NAME, not what NAME is made of.")
@click.option("--at", type=click.IntRange(min=0), metavar="VERSION", help="An earlier version.")
@store_option
@json_option
def graph(
    name: str | None,
    form: str | None,
    output: Path | None,
    depth: int | None,
    *,
    up: bool,
    at: int | None,
    store_url: str,
    as_json: bool,
) -> None:
    """Draw what the tool NAME, or every composite, is made of.

    An arrow runs from a composite to each tool that its program calls. Composites are boxes with
    their depth and the calls that they save, primitives are pills. Red dashes mark a call whose
    pin does not hold (see 'agentkit check') and a tool that is missing. Markdown pages draw
    Mermaid; Graphviz makes pictures of DOT.
    """
    if up and name is None:
        raise UsageError("--up shows what is made of one tool; give its NAME")
    if as_json and form not in {None, "json"}:
        raise UsageError(f"choose one of --json and --format {form}")
    form = "json" if as_json else form
    with opened_to_read(store_url) as store:
        library = store.load(at)
    shown = _picture(library, name, levels=depth, upward=up)
    if not shown.nodes and form != "json":
        say(f"library version {library.version} has no composite yet")
        say("'agentkit tools add --composite FILE' makes one")
        return
    to_stdout = output is None or str(output) == "-"
    chosen = form or _usual(None if to_stdout else output)
    content = _written(shown, chosen, library.version)
    if to_stdout:
        click.echo(content)
        return
    try:
        Path(str(output)).write_text(f"{content}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output}: can not be written ({error.strerror})") from error
    edges = plural(len(shown.edges), "call")
    say(f"{plural(len(shown.nodes), 'tool')} and {edges} drawn in {output}")


def _usual(output: Path | None) -> str:
    if output is None:
        return "text" if stdout().is_terminal else "mermaid"
    known = _SUFFIXES.get(output.suffix.lower())
    if known is None:
        raise UsageError(
            f"{output}: the suffix says nothing about the format; use one of "
            f"{', '.join(_SUFFIXES)}, or give --format"
        )
    return known


def _written(shown: Picture, form: str, version: int) -> str:
    if form == "json":
        return json.dumps(_record(shown, version), indent=2, ensure_ascii=False)
    writers: dict[str, Callable[[Picture], Iterator[str]]] = {
        "text": _tree,
        "mermaid": _mermaid,
        "dot": _dot,
    }
    return "\n".join(writers[form](shown))


def _picture(
    library: Library, name: str | None = None, *, levels: int | None = None, upward: bool = False
) -> Picture:
    """Choose what to show.

    Args:
        library: The library.
        name: Show this tool and what it is made of; None for every composite and what those are
            made of.
        levels: How many steps from ``name``, or from the composites that no other one calls, to
            go; None for all.
        upward: Show what is made of ``name`` instead.

    Raises:
        ToolNotFoundError: The library has no tool of that name.
    """
    dag = library.dag
    following = dag.parents if upward else dag.children
    starts = [library[name].name] if name else _tops(library)
    shown = _within(starts, following, levels)
    if name is None and levels is None:
        shown |= dict.fromkeys(_closed(dag.composites, dag.children))
    order = [one for one in dag.children if one in shown]
    order += sorted(shown.keys() - dag.children.keys())
    faults = _faults(library, shown)
    return Picture(
        nodes={one: _node(library, one, shown) for one in order},
        calls={one: _leaving(library, one, shown, faults) for one in order},
    )


def _tops(library: Library) -> list[str]:
    return [name for name in library.dag.composites if not library.dag.parents[name]]


def _closed(names: Iterable[str], children: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [one for name in names for one in (name, *children[name])]


def _within(
    starts: Iterable[str], following: Mapping[str, tuple[str, ...]], levels: int | None
) -> dict[str, None]:
    found = dict.fromkeys(starts)
    edge = list(found)
    while edge and levels != 0:
        fresh = dict.fromkeys(
            child for name in edge for child in following.get(name, ()) if child not in found
        )
        found |= fresh
        edge = list(fresh)
        levels = None if levels is None else levels - 1
    return found


def _node(library: Library, name: str, shown: Mapping[str, None]) -> Node:
    tool = library.get(name)
    if tool is None:
        return Node(name=name, kind="missing", depth=None, flat_size=None)
    return Node(
        name=name,
        kind="composite" if tool.definition.is_composite else "primitive",
        depth=library.dag.depths.get(name),
        flat_size=flat_size_or_none(library, name),
        hidden=sum(child not in shown for child in library.dag.children[name]),
    )


def flat_size_or_none(library: Library, name: str) -> int | None:
    """The flat size; None where a circle, a missing tool or a broken program leaves it unknown."""
    try:
        return library.dag.flat_size(name)
    except (LibraryError, CompositeError):
        return None


def _faults(library: Library, shown: Mapping[str, None]) -> dict[tuple[str, str], str]:
    parents = [name for name in library.dag.composites if name in shown]
    return {(one.composite, one.child): one.message for one in pin_faults(library, parents)}


def _leaving(
    library: Library,
    name: str,
    shown: Mapping[str, None],
    faults: Mapping[tuple[str, str], str],
) -> tuple[Edge, ...]:
    children = [child for child in library.dag.children.get(name, ()) if child in shown]
    return tuple(
        Edge(parent=name, child=child, fault=faults.get((name, child), "")) for child in children
    )


def _roots(shown: Picture) -> tuple[str, ...]:
    """Where to start reading: tools that nothing in the picture calls, then one of each circle."""
    called = {edge.child for edge in shown.edges}
    children = shown.children
    found = {name: None for name in shown.nodes if name not in called}
    reached = _within(found, children, None)
    for name in shown.nodes:
        if name not in reached:
            found[name] = None
            reached |= _within([name], children, None)
    return tuple(found)


def _wrapped(name: str, width: int = _WRAP) -> list[str]:
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


def _tree(shown: Picture) -> Iterator[str]:
    """One line a call: what each tool is made of, spelled out where it is first met."""
    spelled: set[str] = set()
    for root in _roots(shown):
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


def _mermaid(shown: Picture) -> Iterator[str]:
    """A flowchart for Markdown pages; composites are rounded boxes, primitives pills."""
    yield "flowchart TD"
    ids = {name: f"n{number}" for number, name in enumerate(shown.nodes)}
    shapes = {"composite": '{}("{}")', "primitive": '{}(["{}"])', "missing": '{}["{}"]'}
    for name, node in shown.nodes.items():
        label = "<br/>".join(_mermaid_text(line) for line in (*_wrapped(name), node.note) if line)
        yield f"    {shapes[node.kind].format(ids[name], label)}"
    for edge in shown.edges:
        arrow = "-.->" if edge.fault else "-->"
        yield f"    {ids[edge.parent]} {arrow} {ids[edge.child]}"
    for kind, (fill, border, text) in _COLOURS.items():
        members = [ids[name] for name, node in shown.nodes.items() if node.kind == kind]
        if members:
            dashes = ",stroke-dasharray:5 4" if kind == "missing" else ""
            yield f"    classDef {kind} fill:{fill},stroke:{border},color:{text}{dashes}"
            yield f"    class {','.join(members)} {kind}"
    faulty = [str(at) for at, edge in enumerate(shown.edges) if edge.fault]
    if faulty:
        yield f"    linkStyle {','.join(faulty)} stroke:{_FAULT_COLOUR},stroke-dasharray:5 4"


def _mermaid_text(text: str) -> str:
    """Characters that mean something to Mermaid or HTML become numbered entities."""
    return re.sub(r"[^\w .,:;()/+=*@!?$%'-]", lambda found: f"#{ord(found[0])};", text)


def _dot(shown: Picture) -> Iterator[str]:
    """A graph for Graphviz."""
    yield "digraph library {"
    yield '    node [fontname="Helvetica", fontsize=11];'
    ids = {name: f"n{number}" for number, name in enumerate(shown.nodes)}
    for name, node in shown.nodes.items():
        label = "\\n".join(_dot_text(line) for line in (*_wrapped(name), node.note) if line)
        yield f'    {ids[name]} [label="{label}", {_DOT_SHAPES[node.kind]}];'
    for edge in shown.edges:
        fault = ""
        if edge.fault:
            tip = _dot_text(edge.fault)
            fault = f' [color=red, style=dashed, tooltip="{tip}"]'
        yield f"    {ids[edge.parent]} -> {ids[edge.child]}{fault};"
    yield "}"


_DOT_SHAPES = {
    "composite": 'shape=box, style="rounded,filled", fillcolor="#dbeafe"',
    "primitive": "shape=ellipse",
    "missing": "shape=box, style=dashed, color=red",
}


def _dot_text(text: str) -> str:
    """Text inside a quoted string of DOT, where a backslash begins an escape."""
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')


def _record(shown: Picture, library_version: int) -> dict[str, Any]:
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
