"""``agentkit tools graph``: what the tools of the library are made of, as Mermaid or DOT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import click

from agentkit.cli.options import AsJson, AtVersion, StoreUrl, command, option
from agentkit.cli.output import one_line, print_json, say
from agentkit.cli.stores import opened_to_read
from agentkit.cli.tools import flat_size_or_none
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import visible
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults

_MERMAID = {
    "composite": ('{}("{}")', "fill:#dbeafe,stroke:#2563eb,color:#172554"),
    "primitive": ('{}(["{}"])', "fill:#f8fafc,stroke:#64748b,color:#1e293b"),
    "missing": ('{}["{}"]', "fill:#fef2f2,stroke:#dc2626,color:#991b1b,stroke-dasharray:5 4"),
}
_DOT = {
    "composite": 'shape=box, style="rounded,filled", fillcolor="#dbeafe"',
    "primitive": "shape=ellipse",
    "missing": "shape=box, style=dashed, color=red",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One tool in the picture.

    Attributes:
        name: The tool.
        kind: ``missing`` for one that is called but is not in the library.
        depth: None where a circle or a missing tool leaves it unknown.
        saved_calls: Calls that one call of it saves; None where that is unknown.
    """

    name: str
    kind: Literal["primitive", "composite", "missing"]
    depth: int | None = None
    saved_calls: int | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Its label: the name, and of a composite what it saves."""
        if self.kind == "primitive":
            return (self.name,)
        if self.kind == "missing":
            return self.name, "not in the library"
        if self.depth is None:
            return self.name, "depth unknown"
        if self.saved_calls is None:
            return self.name, f"depth {self.depth}, no program"
        calls = "call" if self.saved_calls == 1 else "calls"
        return self.name, f"depth {self.depth}, saves {rounded(self.saved_calls)} {calls}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A composite calls a tool; ``fault`` says why the pin does not hold, if it does not."""

    parent: str
    child: str
    fault: str | None = None


@command()
def graph(
    name: str | None = None,
    *,
    form: Annotated[Literal["mermaid", "dot"], option("--format")] = "mermaid",
    up: bool = False,
    at: AtVersion,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Draw what the tool NAME, or every composite, is made of.

    An arrow runs from a composite to each tool that its program calls. Composites are boxes with
    their depth and the calls that they save, primitives are pills. Red dashes mark a call whose
    pin does not hold (see 'agentkit check') and a tool that is missing. Markdown pages draw
    Mermaid; Graphviz makes pictures of DOT.

    Args:
        form: What to write.
        up: Show what is made of NAME, not what NAME is made of.

    Examples:
      agentkit tools graph
      agentkit tools graph net_total > net_total.mmd
      agentkit tools graph add --up
      agentkit tools graph --format dot | dot -Tpdf > tools.pdf
    """
    if up and name is None:
        raise UsageError("--up shows what is made of one tool; give its NAME")
    with opened_to_read(store_url) as store:
        library = store.load(at)
    nodes, edges = _drawn(library, name, upward=up)
    if as_json:
        print_json(
            {
                "library_version": library.version,
                "nodes": [asdict(one) for one in nodes],
                "edges": [asdict(one) for one in edges],
            }
        )
    elif not nodes:
        say(f"library version {library.version} has no composite yet")
        say("'agentkit tools add --composite FILE' makes one")
    else:
        write = _dot if form == "dot" else _mermaid
        click.echo("\n".join(write(nodes, edges)))


def _drawn(library: Library, name: str | None, *, upward: bool) -> tuple[list[Node], list[Edge]]:
    """A tool and what it is made of, or what is made of it; without a name every composite.

    Nodes come in the order of the library, missing tools last.
    """
    dag = library.dag
    starts = dag.composites if name is None else [library[name].name]
    shown = _reached(starts, dag.parents if upward else dag.children)
    order = [one for one in dag.children if one in shown]
    composites = [one for one in dag.composites if one in shown]
    faults = {(one.tool, one.child): one.message for one in pin_faults(library, composites)}
    edges = [
        Edge(parent=parent, child=child, fault=faults.get((parent, child)))
        for parent in order
        for child in dag.children[parent]
        if child in shown
    ]
    return [_node(library, one) for one in (*order, *sorted(shown - dag.children.keys()))], edges


def _reached(starts: Iterable[str], following: Mapping[str, tuple[str, ...]]) -> set[str]:
    """All that one comes to from some names, these included."""
    waiting = list(starts)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += following.get(name, ())
    return found


def _node(library: Library, name: str) -> Node:
    tool = library.get(name)
    if tool is None:
        return Node(name=name, kind="missing")
    flat = flat_size_or_none(library, name)
    return Node(
        name=name,
        kind="composite" if tool.definition.is_composite else "primitive",
        depth=library.dag.depths.get(name),
        saved_calls=None if flat is None else flat - 1,
    )


def _mermaid(nodes: list[Node], edges: list[Edge]) -> Iterator[str]:
    """A flowchart for Markdown pages; composites are rounded boxes, primitives pills."""
    yield "flowchart TD"
    ids = {node.name: f"n{number}" for number, node in enumerate(nodes)}
    for node in nodes:
        label = "<br/>".join(map(_mermaid_text, node.lines))
        yield f"    {_MERMAID[node.kind][0].format(ids[node.name], label)}"
    for edge in edges:
        arrow = "-.->" if edge.fault else "-->"
        yield f"    {ids[edge.parent]} {arrow} {ids[edge.child]}"
    for kind, (_, style) in _MERMAID.items():
        if members := [ids[node.name] for node in nodes if node.kind == kind]:
            yield f"    classDef {kind} {style}"
            yield f"    class {','.join(members)} {kind}"
    if faulty := [str(at) for at, edge in enumerate(edges) if edge.fault]:
        yield f"    linkStyle {','.join(faulty)} stroke:#dc2626,stroke-dasharray:5 4"


def _mermaid_text(text: str) -> str:
    """Characters that mean something to Mermaid or HTML become numbered entities."""
    kept = r"[^\w .,:;()/+=*@!?$%'-]"
    return re.sub(kept, lambda found: f"#{ord(found[0])};", one_line(text))


def _dot(nodes: list[Node], edges: list[Edge]) -> Iterator[str]:
    """A graph for Graphviz."""
    yield "digraph library {"
    yield '    node [fontname="Helvetica", fontsize=11];'
    ids = {node.name: f"n{number}" for number, node in enumerate(nodes)}
    for node in nodes:
        label = "\\n".join(map(_dot_text, node.lines))
        yield f'    {ids[node.name]} [label="{label}", {_DOT[node.kind]}];'
    for edge in edges:
        tip = f' [color=red, style=dashed, tooltip="{_dot_text(edge.fault)}"]' if edge.fault else ""
        yield f"    {ids[edge.parent]} -> {ids[edge.child]}{tip};"
    yield "}"


def _dot_text(text: str) -> str:
    """Text inside a quoted string of DOT, where a backslash begins an escape."""
    return visible(one_line(text)).replace("\\", "\\\\").replace('"', '\\"')
