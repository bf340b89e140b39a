"""``Dag``: which composite of a library calls which tool, and what follows from that.

Edges are the call sites in the programs, not what a definition claims (that is a *pin*, see
``agentkit.library.pins``). The questions that people ask stand in ``agentkit.library.dag``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentkit.errors import CompositeError, LibraryError
from agentkit.tools import composite
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.messages import JsonObject

_SHOWN = 4
"""Names at each end of a long path in an error message."""


class Dag:
    """What calls what in one library, worked out once: every question is a dict look-up.

    It is immutable; ``with_tools`` and ``without`` give the DAG of a changed library by looking at
    the changed tools and those above them, not at the rest. Any library loads, also a broken one:
    a composite that is in or above a cycle, calls a tool that is missing, or whose body is no
    program, has no entry in ``depths`` and ``flat_sizes``.

    Attributes:
        children: For each tool the names that its program calls, each once, in the order of the
            text; empty for a primitive.
        parents: For each tool, and for each missing one that is called, the composites that call
            it, by name.
        depths: 0 for a primitive, 1 + the deepest child for a composite.
        flat_sizes: Primitive calls on the shortest way through a tool, at least 1.
        malformed: Why the body of a composite is no program.

    Example:
        >>> from agentkit import Library, tool
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> dag = Library([add]).dag
        >>> dag.depths["add"], dag.flat_sizes["add"], dag.children["add"], dag.parents["add"]
        (0, 1, (), ())
    """

    __slots__ = ("_bodies", "_children", "_depths", "_flat_sizes", "_malformed", "_parents")

    def __init__(self) -> None:
        self._bodies: dict[str, JsonObject] = {}
        self._children: dict[str, tuple[str, ...]] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._depths: dict[str, int] = {}
        self._flat_sizes: dict[str, int] = {}
        self._malformed: dict[str, CompositeError] = {}

    @classmethod
    def of(cls, tools: Iterable[Tool | ToolDefinition]) -> Dag:
        """The DAG of a library, or of any tools with distinct names."""
        return cls().with_tools(tools)

    @property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """For each tool the names that it calls."""
        return MappingProxyType(self._children)

    @property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """For each tool the names of those that call it."""
        return MappingProxyType(self._parents)

    @property
    def depths(self) -> Mapping[str, int]:
        """How many layers of composites a tool is made of."""
        return MappingProxyType(self._depths)

    @property
    def flat_sizes(self) -> Mapping[str, int]:
        """How many primitive calls one call of a tool stands for."""
        return MappingProxyType(self._flat_sizes)

    @property
    def malformed(self) -> Mapping[str, CompositeError]:
        """Why the body of a composite is no program."""
        return MappingProxyType(self._malformed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dag):
            return NotImplemented
        return (
            self._children == other._children
            and self._parents == other._parents
            and self._depths == other._depths
            and self._flat_sizes == other._flat_sizes
            and self._malformed.keys() == other._malformed.keys()
        )

    __hash__ = None  # type: ignore[assignment]  # compared by content, too large to hash

    def __repr__(self) -> str:
        return f"Dag({len(self._children)} tools, {len(self._bodies)} composites)"

    def with_tools(self, tools: Iterable[Tool | ToolDefinition]) -> Dag:
        """The DAG of a library that also holds ``tools``; one of the same name is replaced.

        Cost: four copies of a dict, plus the programs of the new composites and of those above
        a replaced one. Nothing is read again for a tool whose body stayed the same.
        """
        bodies = dict(_named_body(entry) for entry in tools)
        changed = {
            name: body
            for name, body in bodies.items()
            if name not in self._children or body != self._bodies.get(name)
        }
        return self._changed(changed, ()) if changed else self

    def without(self, names: Iterable[str]) -> Dag:
        """The DAG of a library that lacks ``names``; unknown names are ignored."""
        gone = [name for name in dict.fromkeys(names) if name in self._children]
        return self._changed({}, gone) if gone else self

    def _changed(self, bodies: Mapping[str, JsonObject | None], gone: Collection[str]) -> Dag:
        dag = Dag()
        for slot in Dag.__slots__:
            setattr(dag, slot, getattr(self, slot).copy())
        touched = dict.fromkeys([*bodies, *gone])
        cut = [(child, name) for name in touched for child in self._children.get(name, ())]
        for name in gone:
            dag._forget(name)
        for name, body in bodies.items():
            dag._read(name, body)
        tied = [(child, name) for name in bodies for child in dag._children[name]]
        dag._tie(cut, tied)
        dag._settle(dag._upward(touched))
        return dag

    def _forget(self, name: str) -> None:
        for facts in (
            self._bodies,
            self._children,
            self._depths,
            self._flat_sizes,
            self._malformed,
        ):
            facts.pop(name, None)
        if not self._parents[name]:
            del self._parents[name]

    def _read(self, name: str, body: JsonObject | None) -> None:
        """Take up the call sites of one tool."""
        self._parents.setdefault(name, ())
        self._children[name] = ()
        self._bodies.pop(name, None)
        self._malformed.pop(name, None)
        if body is None:
            return
        self._bodies[name] = body
        try:
            called = composite.calls(composite.program_from_json(body))
        except CompositeError as error:
            self._malformed[name] = error
        else:
            self._children[name] = tuple(dict.fromkeys(call.child for call in called))

    def _tie(self, cut: Iterable[tuple[str, str]], tied: Iterable[tuple[str, str]]) -> None:
        """Bring ``parents`` in line with edges, given as (child, parent), that went and came."""
        wanted: dict[str, set[str]] = {}
        for child, parent in cut:
            wanted.setdefault(child, set(self._parents.get(child, ()))).discard(parent)
        for child, parent in tied:
            wanted.setdefault(child, set(self._parents.get(child, ()))).add(parent)
        for child, parents in wanted.items():
            if parents or child in self._children:
                self._parents[child] = tuple(sorted(parents))
            else:
                self._parents.pop(child, None)

    def _upward(self, names: Iterable[str]) -> dict[str, None]:
        """``names`` and everything above them."""
        found = dict.fromkeys(names)
        waiting = list(found)
        while waiting:
            fresh = [p for p in self._parents.get(waiting.pop(), ()) if p not in found]
            found.update(dict.fromkeys(fresh))
            waiting += fresh
        return found

    def _settle(self, names: Mapping[str, None]) -> None:
        """Work out depth and flat size of ``names``, children before parents."""
        for name in names:
            self._depths.pop(name, None)
            self._flat_sizes.pop(name, None)
        present = [name for name in names if name in self._children]
        for name in in_order(present, self._children):
            children = self._children[name]
            if name in self._malformed or any(child not in self._depths for child in children):
                continue
            self._depths[name] = 1 + self._deepest(children) if name in self._bodies else 0
            self._flat_sizes[name] = self._flat_size(name)

    def _deepest(self, children: Iterable[str]) -> int:
        return max((self._depths[child] for child in children), default=0)

    def _flat_size(self, name: str) -> int:
        path = self._shortest_path(name)
        return max(1, sum(self._flat_sizes[child] for child in path))

    def _shortest_path(self, name: str) -> tuple[str, ...]:
        if not self._children[name]:
            return ()
        program = composite.program_from_json(self._bodies[name])
        path = composite.shortest_path(program, self._flat_sizes.__getitem__)
        return tuple(call.child for call in path)

    def shortest_path(self, name: str) -> tuple[str, ...]:
        """The children on the shortest way through a tool, in order of evaluation.

        Raises:
            LibraryError: The tool has no flat size; the message says why.
        """
        if name not in self._flat_sizes:
            raise LibraryError(self.why_unknown(name))
        return self._shortest_path(name)

    def why_unknown(self, name: str) -> str:
        """Why a tool has no depth and no flat size, with the path from it to the fault."""
        path = {name: None}
        here = name
        while here in self._children and here not in self._malformed:
            unknown = (child for child in self._children[here] if child not in self._depths)
            here = next(unknown)  # a tool has no depth because one of its children has none
            if here in path:
                loop = [*path][[*path].index(here) :]
                return (
                    f"{name!r} has no depth: its calls run in the cycle {shown([*loop, here])}; "
                    "rewrite one of these composites so that it does not call the next"
                )
            path[here] = None
        if here in self._malformed:
            return (
                f"{name!r} has no depth: in {shown([*path])} the body of {here!r} is no program "
                f"({self._malformed[here]})"
            )
        return (
            f"{name!r} has no depth: in {shown([*path])} the tool {here!r} is not in the library; "
            "put it back, or take out what calls it"
        )


def shown(path: Sequence[str]) -> str:
    """``a -> b -> c``, with the middle of a long path left out."""
    if len(path) > 2 * _SHOWN + 1:
        left_out = f"... {len(path) - 2 * _SHOWN} more ..."
        path = [*path[:_SHOWN], left_out, *path[-_SHOWN:]]
    return " -> ".join(path)


def _named_body(entry: Tool | ToolDefinition) -> tuple[str, JsonObject | None]:
    definition = entry.definition if isinstance(entry, Tool) else entry
    return definition.name, definition.body


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
