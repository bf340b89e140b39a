"""What a picture of the library's DAG shows: which tools, and what is said about each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from agentkit.errors import CompositeError, LibraryError
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults

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


def picture(
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


def roots(shown: Picture) -> tuple[str, ...]:
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
