"""The compositional DAG of a library: what calls what, and the questions about it.

Terms and recurrences are those of CoCoDA, section 3.1: a *primitive* is code of its own, a
*composite* is a program over other tools; an edge runs from a composite to each tool that its
program calls. What the answers rest on is computed once per library.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Protocol

from agentkit import composites
from agentkit.errors import LibraryError
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.library.derived import Snapshot
    from agentkit.messages import JsonObject

_SHOWN = 4
"""Names at each end of a long path in an error message."""


class HasDag(Protocol):
    """The part of a library that the queries need."""

    @property
    def dag(self) -> Dag:
        """The call graph."""
        ...

    def __getitem__(self, name: str) -> Tool: ...


class _Edges(dict[str, tuple[str, ...]]):
    """Names by name; none for one that has none."""

    def __missing__(self, _: str) -> tuple[str, ...]:
        return ()


class Dag:
    """The call graph of one library, computed once: edges and depths are dict look-ups.

    Nothing changes it. Any library has one, also a broken library: a composite in or above a cycle,
    or above a tool that is missing, has no entry in ``depths``.

    Flat sizes need the programs themselves, which cost about half a millisecond each to read, so
    they are worked out when one is first asked for.

    Attributes:
        children: The names that each composite's program calls, each once: in the order of the
            pins, which is that of the text; calls that are not pinned come last.
        parents: The composites that call each tool, missing tools included.
        depths: 0 for a primitive, 1 + the deepest child for a composite.

    Example:
        >>> from agentkit import Library, tool
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> dag = Library([add]).dag
        >>> dag.children["add"], dag.parents["add"], dag.depths["add"], dag.flat_size("add")
        ((), (), 0, 1)
    """

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self.children, self.parents = _Edges(), _Edges()
        self.depths: dict[str, int] = {}
        self._bodies: dict[str, JsonObject] = {}
        parents: dict[str, list[str]] = {}
        self._ways: dict[str, tuple[int, tuple[str, ...]]] = {}  # filled when asked for
        for definition in definitions:
            name = definition.name
            if definition.body is None:
                self.depths[name] = 0
                continue
            self._bodies[name] = definition.body
            self.children[name] = _children_of(definition)
            for child in self.children[name]:
                parents.setdefault(child, []).append(name)
        self.parents.update((child, tuple(sorted(names))) for child, names in parents.items())
        for name in in_order(self._bodies, self.children):
            below = [self.depths.get(child) for child in self.children[name]]
            known = [depth for depth in below if depth is not None]
            if len(known) == len(below):
                self.depths[name] = 1 + max(known, default=0)

    @property
    def composites(self) -> Collection[str]:
        """The tools that are composites."""
        return self._bodies.keys()

    def __repr__(self) -> str:
        return f"Dag({len(self._bodies)} composites)"

    # --- flat sizes -------------------------------------------------------------------------------

    def flat_size(self, name: str) -> int:
        """Primitive calls on the lightest way through a tool, at least 1.

        Raises:
            LibraryError: It is unknown; the message says why.
        """
        return self._way(name)[0]

    def shortest_path(self, name: str) -> tuple[str, ...]:
        """The children on the lightest way through a tool, in order of evaluation.

        Raises:
            LibraryError: It is unknown; the message says why.
        """
        return self._way(name)[1]

    def _way(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Flat size and shortest path; those of the tools below are worked out first, in a loop."""
        known = self._ways.get(name)
        if known is not None:
            return known
        if name not in self.depths:
            raise LibraryError(self.why_unknown(name))
        below = [one for one in reachable([name], self.children) if one not in self._ways]
        for one in sorted(below, key=self.depths.__getitem__):
            self._ways[one] = self._measured(one) if one in self._bodies else (1, ())
        return self._ways[name]

    def _measured(self, name: str) -> tuple[int, tuple[str, ...]]:
        program = composites.program_from_json(
            self._bodies[name], name=name, limits=composites.READING_LIMITS
        )
        children = composites.shortest_path(program, lambda child: self._ways[child][0])
        return max(1, sum(self._ways[child][0] for child in children)), children

    def why_unknown(self, name: str) -> str:
        """Why a tool has no depth, with the path from it to the fault."""
        path = {name: None}
        here = name
        while here in self._bodies:
            # a tool has no depth because one of its children has none
            here = next(child for child in self.children[here] if child not in self.depths)
            if here in path:
                loop = [*path][[*path].index(here) :]
                return (
                    f"{name!r} has no depth: its calls run in the cycle {shown([*loop, here])}; "
                    "rewrite one of these composites so that it does not call the next"
                )
            path[here] = None
        return (
            f"{name!r} has no depth: in {shown([*path])} the tool {here!r} is not in the library; "
            "put it back, or take out what calls it"
        )


@dataclass(frozen=True, slots=True)
class DagOfLibrary:
    """The DAG as a derived value, see ``Library.derived``; ``Library.dag`` asks for it."""

    def build(self, library: Snapshot) -> Dag:
        """The DAG of all tools."""
        return Dag(tool.definition for tool in library.tools.values())

    def update(
        self, value: Dag, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> Dag:
        """The DAG after a change, which costs a look at each tool."""
        return self.build(library)


DAG = DagOfLibrary()
"""The kind to ask for: ``library.derived(DAG)``."""


def _children_of(definition: ToolDefinition) -> tuple[str, ...]:
    """The names that a composite calls, each once: the pinned ones first, as they are pinned."""
    if definition.body is None:
        return ()
    called = composites.called_in(definition.body) or frozenset()
    pinned = (pin.name for pin in definition.signature.children)
    return tuple(dict.fromkeys((*(pin for pin in pinned if pin in called), *sorted(called))))


def shown(path: Sequence[str]) -> str:
    """``a -> b -> c``, with the middle of a long path left out."""
    if len(path) > 2 * _SHOWN + 1:
        left_out = f"... {len(path) - 2 * _SHOWN} more ..."
        path = [*path[:_SHOWN], left_out, *path[-_SHOWN:]]
    return " -> ".join(path)


def reachable(start: Iterable[str], following: Mapping[str, Sequence[str]]) -> dict[str, None]:
    """``start`` and every name that ``following`` leads to from there."""
    found = dict.fromkeys(start)
    waiting = list(found)
    while waiting:
        fresh = [name for name in following.get(waiting.pop(), ()) if name not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return found


def in_order(names: Collection[str], children: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """``names`` so that children come before parents; those in or above a cycle are left out.

    Ties keep the order given.
    """
    sorter = TopologicalSorter[str]()
    for name in names:
        sorter.add(name)
    inside = set(names)
    for name in names:
        sorter.add(name, *inside.intersection(children.get(name, ())))
    with suppress(CycleError):  # what is outside the circles comes all the same
        sorter.prepare()
    while ready := sorter.get_ready():
        yield from ready
        sorter.done(*ready)


def cycle_among(
    names: Iterable[str], children: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    """A circle of calls among ``names`` and their children; its last is its first."""
    below = reachable(names, children)
    try:
        TopologicalSorter({name: children.get(name, ()) for name in below}).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))  # which leads from children to parents
    return None


def depth(library: HasDag, name: str) -> int:
    r"""The number of layers of composites in a tool.

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


def flat_size(library: HasDag, name: str) -> int:
    """The minimum number of primitive calls behind one call of a tool.

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
        CompositeError: The body of a composite below is not a program.

    Cost: a look-up, after one reading of each program below.
    """
    return library.dag.flat_size(_known(library, name))


def ancestors(library: HasDag, name: str) -> tuple[str, ...]:
    """Everything that is made of a tool: what has to be validated again when it changes.

    Args:
        library: The library.
        name: A tool; also one that is missing from the library but is called.

    Returns:
        Names in the order in which to validate: children before parents. Composites in or above
        a cycle have no such order and come last, by name.

    Raises:
        ToolNotFoundError: The library has no such tool, and nothing in it calls one.
    """
    dag = library.dag
    parents = dag.parents[name] or dag.parents[_known(library, name)]
    return _ordered(reachable(parents, dag.parents), name, dag)


def descendants(library: HasDag, name: str) -> tuple[str, ...]:
    """Everything that a tool is made of, missing tools included, in the order of ``ancestors``.

    Raises:
        ToolNotFoundError: The library has no such tool.
    """
    dag = library.dag
    return _ordered(reachable(dag.children[_known(library, name)], dag.children), name, dag)


def find_cycle(library: HasDag) -> tuple[str, ...] | None:
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
    unknown = sorted(dag.composites - dag.depths.keys())
    return cycle_among(unknown, dag.children) if unknown else None


def _known(library: HasDag, name: str) -> str:
    return library[name].name  # raises with the nearest names


def _ordered(names: Iterable[str], but: str, dag: Dag) -> tuple[str, ...]:
    span = sorted(one for one in names if one != but)
    order = tuple(in_order(span, dag.children))
    return order + tuple(sorted(set(span).difference(order)))


def rounded(count: int) -> str:
    """A count for people; flat sizes grow as powers of two, past what is worth printing."""
    return f"{count:,}" if count < 10**12 else f"more than 2**{count.bit_length() - 1}"
