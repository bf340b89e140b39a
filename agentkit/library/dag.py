"""Questions about the compositional DAG of a library, as plain functions in the manner of networkx.

Terms and recurrences are those of CoCoDA, section 3.1: a *primitive* is code of its own, a
*composite* is a program over other tools; an edge runs from a composite to each tool that its
program calls. What the answers rest on is worked out once per library, see ``library.dag``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.errors import LibraryError
from agentkit.library.graph import Dag, cycle_among, in_order, reachable, shown
from agentkit.library.library import Library

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Dag",
    "PrimitiveCall",
    "ancestors",
    "children_of",
    "depth",
    "descendants",
    "expand",
    "find_cycle",
    "flat_size",
    "parents_of",
    "saved_calls",
    "to_networkx",
    "topological_order",
]

EXPANSION_LIMIT = 10_000
"""Longest trace that ``expand`` writes down unless it is told otherwise."""


def children_of(library: Library, name: str) -> tuple[str, ...]:
    """The tools that a tool calls: the edges that leave it.

    Args:
        library: The library.
        name: A tool.

    Returns:
        Each child once, in the order in which the text names them; nothing for a primitive.

    Raises:
        ToolNotFoundError: The library has no such tool.

    Cost: a look-up.
    """
    return library.dag.children[_known(library, name)]


def parents_of(library: Library, name: str) -> tuple[str, ...]:
    """The composites that call a tool: the edges that enter it.

    Args:
        library: The library.
        name: A tool; also one that is missing from the library but is called.

    Returns:
        Names in alphabetical order.

    Raises:
        ToolNotFoundError: The library has no such tool, and nothing in it calls one.

    Cost: a look-up.
    """
    found = library.dag.parents.get(name)
    return library.dag.parents[_known(library, name)] if found is None else found


def depth(library: Library, name: str) -> int:
    r"""How many layers of composites a tool is made of.

    0 for a primitive, 1 + the deepest child for a composite; a composite that calls nothing has
    depth 1.

    Args:
        library: The library.
        name: A tool.

    Raises:
        ToolNotFoundError: The library has no such tool.
        LibraryError: The tool is in or above a cycle, or above a tool that is missing; the message
            names the path.

    Example:
        >>> from agentkit.testing import primitive_library
        >>> from agentkit.composites.source import compose
        >>> library = primitive_library()
        >>> half = compose("def half(x: float) -> float:\n    return div(x, 2)", library.tools)
        >>> depth(library, "div"), depth(library.with_tools([half]), "half")
        (0, 1)

    Cost: a look-up.
    """
    found = library.dag.depths.get(name)
    if found is None:
        raise LibraryError(library.dag.why_unknown(_known(library, name)))
    return found


def flat_size(library: Library, name: str) -> int:
    """How many primitive calls one call of a tool stands for, at the least.

    1 for a primitive. For a composite the sum over the calls on the lightest way through its
    program, each with its own flat size: a branch counts by its lighter side, the body of a loop
    once (see ``agentkit.composites.shortest_path`` for every rule); never below 1. CoCoDA
    defines it for straight-line bodies, as a sum with multiplicity; there both are the same.

    Args:
        library: The library.
        name: A tool.

    Raises:
        ToolNotFoundError: The library has no such tool.
        LibraryError: As for ``depth``.
        CompositeError: The body of a composite below is no program.

    Cost: a look-up, after one reading of each program below.
    """
    return library.dag.flat_size(_known(library, name))


def saved_calls(library: Library, name: str) -> int:
    """How many calls a planner saves by calling a tool instead of what it is made of.

    CoCoDA's Phi, flat size - 1: 0 for a primitive, at least 1 for a composite that can not avoid
    two primitive calls.

    Args:
        library: The library.
        name: A tool.

    Raises:
        ToolNotFoundError: The library has no such tool.
        LibraryError: As for ``depth``.
        CompositeError: The body of a composite below is no program.

    Cost: a look-up, after one reading of each program below.
    """
    return flat_size(library, name) - 1


def ancestors(library: Library, name: str) -> tuple[str, ...]:
    """Everything that is made of a tool: what has to be validated again when it changes.

    Args:
        library: The library.
        name: A tool; also one that is missing from the library but is called.

    Returns:
        Names in the order in which to validate: children before parents. Composites in or above
        a cycle have no such order and come last, by name.

    Raises:
        ToolNotFoundError: The library has no such tool, and nothing in it calls one.

    Cost: the number of ancestors and their edges.
    """
    dag = library.dag
    above = reachable(parents_of(library, name), dag.parents)
    above.pop(name, None)
    return _ordered(above, dag)


def descendants(library: Library, name: str) -> tuple[str, ...]:
    """Everything that a tool is made of, through all layers, missing tools included.

    Args:
        library: The library.
        name: A tool.

    Returns:
        Names, children before parents; those in or above a cycle last, by name.

    Raises:
        ToolNotFoundError: The library has no such tool.

    Cost: the number of descendants and their edges.
    """
    dag = library.dag
    below = reachable(children_of(library, name), dag.children)
    below.pop(name, None)
    return _ordered(below, dag)


def topological_order(library: Library) -> tuple[str, ...]:
    """All tools of a library, children before parents.

    Args:
        library: The library.

    Raises:
        LibraryError: There is a cycle, so there is no such order; the message names it.

    Cost: one pass over tools and edges.
    """
    dag = library.dag
    order = tuple(in_order(dag.children, dag.children))
    if len(order) < len(dag.children):
        cycle = shown(find_cycle(library) or ())
        raise LibraryError(
            f"tools that call each other have no order: {cycle}; rewrite one of these composites "
            "so that it does not call the next"
        )
    return order


def find_cycle(library: Library) -> tuple[str, ...] | None:
    """Composites that call each other in a circle, or None.

    A library that grows through the Tool Manager has none, because children are there before
    their parents and are pinned by digest. Definitions written by hand or by another program
    may have one; such a library still loads.

    Args:
        library: The library.

    Returns:
        A path of names whose last is its first: ``("a", "b", "a")``.

    Cost: nothing when every tool has a depth, else one pass over those that have none.
    """
    dag = library.dag
    unknown = sorted(dag.children.keys() - dag.depths.keys())
    return cycle_among(unknown, dag.children) if unknown else None


@dataclass(frozen=True, kw_only=True, slots=True)
class PrimitiveCall:
    """One call in the expansion of a tool.

    Attributes:
        name: The primitive. A composite that can get by without any call stands for one call of
            its own and is a leaf too.
        path: The composites through which the call is reached, from the expanded tool down.
    """

    name: str
    path: tuple[str, ...] = ()


def expand(
    library: Library, name: str, *, limit: int = EXPANSION_LIMIT
) -> tuple[PrimitiveCall, ...]:
    r"""The primitive calls that one call of a tool stands for, in program order.

    Args:
        library: The library.
        name: A tool.
        limit: Longest trace to write down; a chain of composites that each call the one before
            twice grows as a power of two.

    Returns:
        The calls along the lightest way through each program; as many as ``flat_size`` says.

    Raises:
        ToolNotFoundError: The library has no such tool.
        LibraryError: The trace is longer than ``limit``; or as for ``depth``.

    Example:
        >>> from agentkit.testing import primitive_library
        >>> from agentkit.composites.source import compose
        >>> library = primitive_library()
        >>> for text in (
        ...     "def gross(net: float, rate: float) -> float:\n    return add(net, mul(net, rate))",
        ...     "def pair(a: float, b: float) -> float:\n    return add(gross(a, 0.1), b)",
        ... ):
        ...     library = library.with_tools([compose(text, library.tools)])
        >>> for call in expand(library, "pair"):
        ...     print(call.name, "in", " > ".join(call.path))
        mul in pair > gross
        add in pair > gross
        add in pair

    Cost: the length of the trace, plus one reading of each composite below.
    """
    length = flat_size(library, name)
    if length > limit:
        raise LibraryError(
            f"one call of {name!r} stands for {rounded(length)} primitive calls, more than the "
            f"limit of {limit:,}; give expand() a higher limit if you want them all"
        )
    return tuple(_leaves(library.dag, name))


def _leaves(dag: Dag, name: str) -> Iterator[PrimitiveCall]:
    waiting: list[tuple[str, tuple[str, ...]]] = [(name, ())]
    while waiting:
        here, path = waiting.pop()
        children = dag.shortest_path(here)
        if children:
            inside = (*path, here)
            waiting.extend((child, inside) for child in reversed(children))
        else:
            yield PrimitiveCall(name=here, path=path)


def to_networkx(library: Library) -> nx.DiGraph[str]:
    """The DAG as a networkx graph, for its algorithms.

    Args:
        library: The library.

    Returns:
        A ``DiGraph`` with an edge from each composite to each tool that it calls. Nodes carry
        ``kind`` (``primitive``, ``composite``, or ``missing`` for a tool that is called but is not
        in the library) and ``depth`` where it is known.

    Example:
        >>> import networkx as nx
        >>> from agentkit.testing import primitive_library
        >>> nx.is_directed_acyclic_graph(to_networkx(primitive_library()))
        True

    Cost: one node a tool, one edge a pair of composite and child.
    """
    import networkx as nx

    dag = library.dag
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name in (*dag.children, *(dag.parents.keys() - dag.children.keys())):
        known = {"depth": dag.depths[name]} if name in dag.depths else {}
        graph.add_node(name, kind=_kind(library, name), **known)
    graph.add_edges_from((name, child) for name in dag.children for child in dag.children[name])
    return graph


def _kind(library: Library, name: str) -> str:
    tool = library.get(name)
    if tool is None:
        return "missing"
    return "composite" if tool.definition.is_composite else "primitive"


def _known(library: Library, name: str) -> str:
    return library[name].name  # raises with the nearest names


def _ordered(names: Iterable[str], dag: Dag) -> tuple[str, ...]:
    span = sorted(names)
    order = tuple(in_order(span, dag.children))
    return order + tuple(sorted(set(span).difference(order)))


def rounded(count: int) -> str:
    """A count for people; flat sizes grow as powers of two, past what is worth printing."""
    return f"{count:,}" if count < 10**12 else f"more than 2**{count.bit_length() - 1}"
