"""The compositional DAG of a library: what calls what, and the questions about it.

Terms and recurrences are those of CoCoDA, section 3.1: a *primitive* is code of its own, a
*composite* is a program over other tools; an edge runs from a composite to each tool that its
program calls. What the answers rest on is computed once per library.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
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


class Dag:
    """The call graph of one library, computed once: edges and depths are dict look-ups.

    Nothing changes it; ``with_tools`` and ``without`` give the DAG of a changed library by looking
    at the changed tools and those above them, not at the rest. Any library has one, also a broken
    library: a composite in or above a cycle, or above a tool that is missing, has no entry in
    ``depths``.

    Flat sizes need the programs themselves, which cost about half a millisecond each to read, so
    they are worked out when one is first asked for.

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

    __slots__ = ("_bodies", "_children", "_depths", "_parents", "_ways")

    def __init__(self) -> None:
        self._bodies: dict[str, JsonObject] = {}
        self._children: dict[str, tuple[str, ...]] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._depths: dict[str, int] = {}
        self._ways: dict[str, tuple[int, tuple[str, ...]]] = {}  # filled when asked for

    @classmethod
    def of(cls, tools: Iterable[Tool | ToolDefinition]) -> Dag:
        """The DAG of a library, or of any tools with distinct names.

        Cost: for a primitive a few entries in dicts, for a composite one look over its body.
        """
        return cls().with_tools(tools)

    @property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The names that each tool's program calls, each once.

        In the order of the pins, which is that of the text; calls that are not pinned come last.
        Empty for a primitive.
        """
        return MappingProxyType(self._children)

    @property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """The composites that call each tool, missing tools included."""
        return MappingProxyType(self._parents)

    @property
    def depths(self) -> Mapping[str, int]:
        """0 for a primitive, 1 + the deepest child for a composite."""
        return MappingProxyType(self._depths)

    @property
    def composites(self) -> Collection[str]:
        """The tools that are composites."""
        return self._bodies.keys()

    def __repr__(self) -> str:
        return f"Dag({len(self._children)} tools, {len(self._bodies)} composites)"

    # --- changing ---------------------------------------------------------------------------------

    def with_tools(self, tools: Iterable[Tool | ToolDefinition]) -> Dag:
        """The DAG of a library that also holds ``tools``; one of the same name is replaced.

        Cost: five copies of a dict, the reading of the programs that are new, and the ancestors of
        what was replaced.
        """
        given = (entry.definition if isinstance(entry, Tool) else entry for entry in tools)
        changed = {
            definition.name: definition
            for definition in {one.name: one for one in given}.values()
            if definition.name not in self._children
            or definition.body != self._bodies.get(definition.name)
        }
        return self._changed(changed, ()) if changed else self

    def without(self, names: Iterable[str]) -> Dag:
        """The DAG of a library that lacks ``names``; unknown names are ignored."""
        gone = [name for name in dict.fromkeys(names) if name in self._children]
        return self._changed({}, gone) if gone else self

    def _changed(self, new: Mapping[str, ToolDefinition], gone: Collection[str]) -> Dag:
        dag = Dag()
        for part in ("_bodies", "_children", "_depths", "_parents", "_ways"):
            setattr(dag, part, getattr(self, part).copy())
        dag._apply(new, gone)  # it is ours alone until it is returned
        return dag

    def _apply(self, new: Mapping[str, ToolDefinition], gone: Collection[str]) -> None:
        lost, won = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for name in (*new, *gone):
            for child in self._children.get(name, ()):
                lost[child].add(name)
            self._bodies.pop(name, None)
        for name in gone:
            del self._children[name]
        for name, definition in new.items():
            self._children[name] = _children_of(definition)
            if definition.body is not None:
                self._bodies[name] = definition.body
            for child in self._children[name]:
                won[child].add(name)
        for child in dict.fromkeys((*new, *gone, *lost, *won)):
            parents = tuple(sorted({*self._parents.get(child, ())} - lost[child] | won[child]))
            if parents or child in self._children:
                self._parents[child] = parents
            else:
                self._parents.pop(child, None)
        self._settle(reachable((*new, *gone), self._parents))

    def _settle(self, names: Collection[str]) -> None:
        """Work out the depths of ``names`` again, children before parents."""
        for name in names:
            self._depths.pop(name, None)
            self._ways.pop(name, None)
        primitives = [one for one in names if one in self._children and one not in self._bodies]
        self._depths |= dict.fromkeys(primitives, 0)
        for name in in_order([one for one in names if one in self._bodies], self._children):
            below = [self._depths.get(child) for child in self._children[name]]
            known = [depth for depth in below if depth is not None]
            if len(known) == len(below):
                self._depths[name] = 1 + max(known, default=0)

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
        if name not in self._depths:
            raise LibraryError(self.why_unknown(name))
        below = [one for one in reachable([name], self._children) if one not in self._ways]
        for one in sorted(below, key=self._depths.__getitem__):
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
        while here in self._children:
            # a tool has no depth because one of its children has none
            here = next(child for child in self._children[here] if child not in self._depths)
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
        return Dag.of(library.tools.values())

    def update(
        self, value: Dag, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> Dag:
        """The DAG after a change."""
        return value.without(removed).with_tools(added)


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

    Kahn's algorithm on the part of the graph that ``names`` span; ties keep the order given.
    """
    inside = dict.fromkeys(names)
    waiting = {name: sum(child in inside for child in children.get(name, ())) for name in inside}
    above: dict[str, list[str]] = {}
    for name in inside:
        for child in children.get(name, ()):
            if child in inside:
                above.setdefault(child, []).append(name)
    ready = deque(name for name, count in waiting.items() if not count)
    while ready:
        name = ready.popleft()
        yield name
        for parent in above.get(name, ()):
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)


def cycle_among(
    names: Iterable[str], children: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The first circle met in a walk over ``names`` and their children; its last is its first."""
    done: set[str] = set()
    for start in names:
        on_path = {start: None}
        walk = [(start, iter(children.get(start, ())))] if start not in done else []
        while walk:
            child = next((name for name in walk[-1][1] if name not in done), None)
            if child is None:
                on_path.pop(walk[-1][0])
                done.add(walk.pop()[0])
            elif child in on_path:
                path = list(on_path)
                return (*path[path.index(child) :], child)
            else:
                on_path[child] = None
                walk.append((child, iter(children.get(child, ()))))
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


def saved_calls(library: HasDag, name: str) -> int:
    """The number of calls a planner saves by calling a tool instead of its parts.

    CoCoDA's Phi, flat size - 1: 0 for a primitive, at least 1 for a composite that cannot avoid
    two primitive calls.

    Args:
        library: The library.
        name: A tool.

    Raises:
        ToolNotFoundError: The library has no such tool.
        LibraryError: As for ``depth``.
        CompositeError: The body of a composite below is not a program.

    Cost: a look-up, after one reading of each program below.
    """
    return flat_size(library, name) - 1


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

    Cost: the number of ancestors and their edges.
    """
    dag = library.dag
    parents = dag.parents.get(name)  # also of a tool that is missing and called
    above = reachable(
        dag.parents.get(_known(library, name), ()) if parents is None else parents, dag.parents
    )
    above.pop(name, None)
    return _ordered(above, dag)


def descendants(library: HasDag, name: str) -> tuple[str, ...]:
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
    below = reachable(dag.children.get(_known(library, name), ()), dag.children)
    below.pop(name, None)
    return _ordered(below, dag)


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
    unknown = sorted(dag.children.keys() - dag.depths.keys())
    return cycle_among(unknown, dag.children) if unknown else None


def _known(library: HasDag, name: str) -> str:
    return library[name].name  # raises with the nearest names


def _ordered(names: Iterable[str], dag: Dag) -> tuple[str, ...]:
    span = sorted(names)
    order = tuple(in_order(span, dag.children))
    return order + tuple(sorted(set(span).difference(order)))


def rounded(count: int) -> str:
    """A count for people; flat sizes grow as powers of two, past what is worth printing."""
    return f"{count:,}" if count < 10**12 else f"more than 2**{count.bit_length() - 1}"
