"""``agentkit tools graph``: what the tools of the library are made of, as a tree or a diagram."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import click

from agentkit.cli.options import at_option, command, common_options, flag, option
from agentkit.cli.output import one_line, print_json, say, stdout
from agentkit.cli.stores import opened_to_read
from agentkit.cli.tools import flat_size_or_none
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import visible
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults

NodeKind = Literal["primitive", "composite", "missing"]

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
        flat_size: Primitive calls that a call stands for; None where that is unknown.
    """

    name: str
    kind: NodeKind
    depth: int | None
    flat_size: int | None

    @property
    def note(self) -> str:
        """What is said beside the name; nothing for a primitive, about which all is said."""
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
    """A composite calls a tool; ``fault`` says why the pin does not hold, if it does not."""

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


@command()
@click.argument("name", required=False)
@option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    help="What to write. [default: text on a terminal, else mermaid]",
)
@flag("--up", help="Show what is made of NAME, not what NAME is made of.")
@at_option
@common_options
def graph(
    name: str | None, form: str | None, *, up: bool, at: int | None, store_url: str, as_json: bool
) -> None:
    """Draw what the tool NAME, or every composite, is made of.

    An arrow runs from a composite to each tool that its program calls. Composites are boxes with
    their depth and the calls that they save, primitives are pills. Red dashes mark a call whose
    pin does not hold (see 'agentkit check') and a tool that is missing. Markdown pages draw
    Mermaid; Graphviz makes pictures of DOT.

    Examples:
      agentkit tools graph
      agentkit tools graph net_total --format mermaid > net_total.mmd
      agentkit tools graph add --up
      agentkit tools graph --format dot | dot -Tpdf > tools.pdf
    """
    if up and name is None:
        raise UsageError("--up shows what is made of one tool; give its NAME")
    with opened_to_read(store_url) as store:
        library = store.load(at)
    shown = _picture(library, name, upward=up)
    if as_json:
        nodes = [
            asdict(one) | {"saved_calls": None if one.flat_size is None else one.flat_size - 1}
            for one in shown.nodes.values()
        ]
        edges = [asdict(edge) | {"fault": edge.fault or None} for edge in shown.edges]
        print_json({"library_version": library.version, "nodes": nodes, "edges": edges})
    elif not shown.nodes:
        say(f"library version {library.version} has no composite yet")
        say("'agentkit tools add --composite FILE' makes one")
    else:
        writers = {"text": _tree, "mermaid": _mermaid, "dot": _dot}
        usual = "text" if stdout().is_terminal else "mermaid"
        click.echo("\n".join(writers[form or usual](shown)))


def _picture(library: Library, name: str | None, *, upward: bool) -> Picture:
    """A tool and what it is made of, or what is made of it; without a name every composite.

    Raises:
        ToolNotFoundError: The library has no tool of that name.
    """
    dag = library.dag
    starts = dag.composites if name is None else [library[name].name]
    shown = _reached(starts, dag.parents if upward else dag.children)
    order = [one for one in dag.children if one in shown]
    order += sorted(shown - dag.children.keys())
    composites = [one for one in dag.composites if one in shown]
    faults = {(one.tool, one.child): one.message for one in pin_faults(library, composites)}
    calls = {
        parent: tuple(
            Edge(parent=parent, child=child, fault=faults.get((parent, child), ""))
            for child in dag.children.get(parent, ())
            if child in shown
        )
        for parent in order
    }
    return Picture(nodes={one: _node(library, one) for one in order}, calls=calls)


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
        return Node(name=name, kind="missing", depth=None, flat_size=None)
    return Node(
        name=name,
        kind="composite" if tool.definition.is_composite else "primitive",
        depth=library.dag.depths.get(name),
        flat_size=flat_size_or_none(library, name),
    )


def _tree(shown: Picture) -> Iterator[str]:
    """One line a call: what each tool is made of, spelled out where it is first met."""
    called = {edge.child for edge in shown.edges}
    children = {name: tuple(one.child for one in out) for name, out in shown.calls.items()}
    spelled: set[str] = set()
    roots = [name for name in shown.nodes if name not in called]
    for root in [*roots, *shown.nodes]:  # those of circles come last
        if root in spelled or (root in called and root in _reached(roots, children)):
            continue
        yield visible(_label(shown.nodes[root]))
        spelled.add(root)
        waiting = _branches(shown, root, "")
        while waiting:
            edge, start, following = waiting.pop()
            node = shown.nodes[edge.child]
            again = bool(shown.calls[node.name]) and node.name in spelled
            fault = f"  ! {edge.fault}" if edge.fault else ""
            yield visible(f"{start}{_label(node, again=again)}{fault}")
            if not again:
                spelled.add(node.name)
                waiting += _branches(shown, node.name, following)


def _label(node: Node, *, again: bool = False) -> str:
    note = "see above" if again else node.note
    return f"{node.name}  ({note})" if note else node.name


def _branches(shown: Picture, name: str, indent: str) -> list[tuple[Edge, str, str]]:
    """The calls of a node, last first, each with what stands before it and before its own."""
    calls = shown.calls[name]
    branches = [(edge, f"{indent}├── ", f"{indent}│   ") for edge in calls[:-1]]
    branches += [(edge, f"{indent}└── ", f"{indent}    ") for edge in calls[-1:]]
    return branches[::-1]


def _mermaid(shown: Picture) -> Iterator[str]:
    """A flowchart for Markdown pages; composites are rounded boxes, primitives pills."""
    yield "flowchart TD"
    ids = {name: f"n{number}" for number, name in enumerate(shown.nodes)}
    for name, node in shown.nodes.items():
        label = "<br/>".join(_mermaid_text(line) for line in (name, node.note) if line)
        yield f"    {_MERMAID[node.kind][0].format(ids[name], label)}"
    for edge in shown.edges:
        arrow = "-.->" if edge.fault else "-->"
        yield f"    {ids[edge.parent]} {arrow} {ids[edge.child]}"
    for kind, (_, style) in _MERMAID.items():
        if members := [ids[name] for name, node in shown.nodes.items() if node.kind == kind]:
            yield f"    classDef {kind} {style}"
            yield f"    class {','.join(members)} {kind}"
    if faulty := [str(at) for at, edge in enumerate(shown.edges) if edge.fault]:
        yield f"    linkStyle {','.join(faulty)} stroke:#dc2626,stroke-dasharray:5 4"


def _mermaid_text(text: str) -> str:
    """Characters that mean something to Mermaid or HTML become numbered entities."""
    kept = r"[^\w .,:;()/+=*@!?$%'-]"
    return re.sub(kept, lambda found: f"#{ord(found[0])};", one_line(text))


def _dot(shown: Picture) -> Iterator[str]:
    """A graph for Graphviz."""
    yield "digraph library {"
    yield '    node [fontname="Helvetica", fontsize=11];'
    ids = {name: f"n{number}" for number, name in enumerate(shown.nodes)}
    for name, node in shown.nodes.items():
        label = "\\n".join(_dot_text(line) for line in (name, node.note) if line)
        yield f'    {ids[name]} [label="{label}", {_DOT[node.kind]}];'
    for edge in shown.edges:
        tip = f' [color=red, style=dashed, tooltip="{_dot_text(edge.fault)}"]'
        yield f"    {ids[edge.parent]} -> {ids[edge.child]}{tip if edge.fault else ''};"
    yield "}"


def _dot_text(text: str) -> str:
    """Text inside a quoted string of DOT, where a backslash begins an escape."""
    return visible(one_line(text)).replace("\\", "\\\\").replace('"', '\\"')
