"""``Library``: an immutable snapshot of tools with a version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from agentkit import composites, tools as tools_door
from agentkit.errors import (
    CompositeError,
    DuplicateToolError,
    SourceProblem,
    ToolNotFoundError,
    UsageError,
)
from agentkit.library.dag import DAG, Dag, in_order, reachable
from agentkit.library.derived import Change, Derived, DerivedValues
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.tool import Tool

T = TypeVar("T")


class Library:
    """The tools that a run may use, fixed from its start to its end.

    Nothing on a library changes it; ``with_tools`` and ``without`` return new ones. Iterating
    gives the tools in insertion order, which is also the order in which they are offered, so
    that prompt caches hold. Instructions of agents, which are definitions too, are found by their
    names and are no tools: see ``instructions`` and ``all_definitions``.

    Args:
        tools: Tools, or definitions of tools that do not run in this process.
        version: The epoch that the store gave this snapshot; 0 when it is in no store.

    Raises:
        DuplicateToolError: Two different tools have the same name.

    Example:
        >>> from agentkit import Library, tool
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> library = Library([add])
        >>> library["add"](a=1, b=2), "sub" in library, len(library)
        (3, False, 1)
    """

    def __init__(self, tools: Iterable[Tool | ToolDefinition] = (), *, version: int = 0) -> None:
        by_name: dict[str, Tool] = {}
        for entry in tools:
            tool = entry if isinstance(entry, Tool) else Tool(definition=entry)
            known = by_name.setdefault(tool.name, tool)
            if known is not tool and known != tool:
                raise DuplicateToolError(tool.name, (known.place, tool.place))
        self._fill(by_name, frozenset(filter(is_instructions, by_name)))
        self._version = version
        self._values = DerivedValues()

    def _fill(self, entries: dict[str, Tool], instructions: frozenset[str]) -> None:
        self._entries, self._instructions, tools = entries, instructions, entries
        if instructions:
            tools = {name: tool for name, tool in entries.items() if name not in instructions}
        self._tools = MappingProxyType(tools)

    @property
    def version(self) -> int:
        """The epoch that the store gave this snapshot; 0 when it is in no store."""
        return self._version

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, read-only."""
        return self._tools

    @cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions in order. Always the same object, so that it can key a cache."""
        return tuple(tool.definition for tool in self._tools.values())

    @property
    def instructions(self) -> Mapping[str, ToolDefinition]:
        """The instructions of agents by name, such as ``instructions/support``."""
        return {name: self._entries[name].definition for name in sorted(self._instructions)}

    @property
    def all_definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions in order, with those of instructions: what is stored and exported."""
        if not self._instructions:
            return self.definitions
        return tuple(entry.definition for entry in self._entries.values())

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the names and digests of all definitions, in name order.

        Cost: sorting and hashing some 80 bytes a tool, once for a snapshot.
        """
        return digest({one.name: one.digest for one in self.all_definitions})

    @property
    def dag(self) -> Dag:
        """Which composite calls which tool; see ``agentkit.library.dag`` for the questions.

        Worked out when it is first asked for, and carried on from there to later snapshots.
        """
        return self.derived(DAG)

    def derived(self, kind: Derived[T]) -> T:
        """A value worked out from the definitions, such as a search index.

        It is worked out when it is first asked for and kept. Libraries that are made from this one
        bring it up to date by what changed, when they are asked for it.

        Example:
            >>> from agentkit.library.dag import DAG
            >>> library = Library()
            >>> library.derived(DAG) is library.dag
            True
        """
        return self._values.get(kind, self)

    def has_derived(self, kind: Derived[Any]) -> bool:
        """Whether ``derived`` knows the value already, so that asking for it costs nothing."""
        return kind in self._values

    def get(self, name: str) -> Tool | None:
        """The tool, or the instructions, of that name; None for neither."""
        return self._entries.get(name)

    def nearest(self, name: str) -> tuple[str, ...]:
        """Names in this snapshot that look like ``name``, best first."""
        return tools_door.close_to(name, self._tools)

    def with_tools(self, tools: Iterable[Tool | ToolDefinition]) -> Library:
        """A library that also holds ``tools``; one of the same name is replaced.

        Cost: a copy of one dict and the new tools, whatever the size of the library.
        """
        new = Library(tools)
        return self._with(
            self._entries | new._entries,
            Change(added={n: t for n, t in new.tools.items() if not self._defines(t.definition)}),
            instructions=self._instructions | new._instructions,
        )

    def without(self, names: Iterable[str]) -> Library:
        """A library that lacks ``names``; unknown names are ignored.

        Raises:
            UsageError: One text was given, whose letters would be taken as names.
        """
        if isinstance(names, str):  # would remove tools with names of one letter
            raise UsageError(f"without takes a list of names; write without([{names!r}])")
        dropped = frozenset(name for name in names if name in self._entries)
        kept = self._entries | {}  # several times as fast as a dict without them
        for name in dropped:
            del kept[name]
        change = Change(removed=dropped - self._instructions)
        return self._with(kept, change, instructions=self._instructions - dropped)

    def at_version(self, version: int) -> Library:
        """The same tools under the version that a store gave them."""
        return self._with(self._entries, Change(), version=version)

    def continuing(self, earlier: Library) -> Library:
        """The same library, which brings up to date what ``earlier`` worked out, as far as it can.

        ``with_tools``, ``without`` and stores do this themselves. It is for a library that was
        made in another way from one that was in use, such as the next version of a store with the
        tools of a program put into it.

        Cost: a look at each tool of both.
        """
        added = {
            name: tool
            for name, tool in self._tools.items()
            if not earlier._defines(tool.definition)
        }
        removed = frozenset(name for name in earlier._tools if name not in self._tools)
        change = Change(added=added, removed=removed)
        carried = earlier._values.after(change, size=len(self))
        return self._with(self._entries, Change(), values=self._values.or_else(carried))

    def caught_up(self) -> Library:
        """This library, with everything brought up to date now that earlier ones worked out.

        Otherwise that happens on first use. It is for a thread that makes the next snapshot
        ready beside one that is in use.
        """
        self._values.catch_up(self)
        return self

    def _defines(self, definition: ToolDefinition) -> bool:
        """Whether this very definition is in the library."""
        known = self._entries.get(definition.name)
        return known is not None and known.definition is definition

    def _with(
        self,
        entries: dict[str, Tool],
        change: Change,
        *,
        version: int | None = None,
        values: DerivedValues | None = None,
        instructions: frozenset[str] | None = None,
    ) -> Library:
        """A library of ``entries``, which are known to be well-formed, at the same version."""
        kept = self._version if version is None else version
        library = Library(version=kept)
        library._fill(entries, self._instructions if instructions is None else instructions)
        library._values = values or self._values.after(change, size=len(library))
        return library

    def bind(self, functions: Mapping[str, Tool | Callable[..., Any]] | Iterable[Tool]) -> Library:
        """Attach code to definitions that came from a store.

        Only primitives need code: composites run on that of the tools that they call, and are
        linked to them here (see ``link``).

        Args:
            functions: By tool name: a ``Tool`` whose binding is taken, or a callable. Or a list
                or a ``Library`` of tools, whose bindings go to the definitions of their names, or
                to those that came from the same place and got another name here. Of effects that
                a tool's code leaves open, a definition's hold where they are stricter.

        Raises:
            ToolNotFoundError: A name is not in this snapshot.
        """
        code: Mapping[str, Tool | Callable[..., Any]]
        if isinstance(functions, Mapping):
            code = functions
        else:
            names = RecordedNames(self._tools)
            code = {names.of(tool.definition): tool for tool in functions}
        bound = {name: _bound(self[name].definition, tool) for name, tool in code.items()}
        return link(self._with(self._entries | bound, Change()))  # the definitions stay

    def __getitem__(self, name: str) -> Tool:
        try:
            return self._entries[name]
        except KeyError:
            nearest = self.nearest(name)
            raise ToolNotFoundError(name, nearest=nearest, version=self._version) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Library({len(self)} tools, version={self._version})"


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkReport:
    """The result of linking.

    Attributes:
        library: The library with its composites linked.
        refused: The composites that do not run in this process, each with the reasons.
    """

    library: Library
    refused: Mapping[str, tuple[SourceProblem, ...]]


def link(library: Library) -> Library:
    """A library whose composites run on the code of their children.

    ``Library.bind`` ends with this, so that binding the primitives of a library from a store makes
    its composites run. A composite that has code keeps its limits and when its contracts are
    checked (see ``composite_tool``).

    A composite gets code when all its children are in the library with the digests that it pins,
    and have code themselves; the others have none, also when they had before. ``link_report`` says
    why. A composite that was bound to a plain function is left as it is.

    Example:
        >>> from agentkit import Library, tool
        >>> from agentkit.composites.source import compose
        >>> @tool
        ... def add(a: float, b: float) -> float:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> text = '''
        ... def add_three(a: float, b: float, c: float) -> float:
        ...     "Add three numbers."
        ...     return add(add(a, b), c)
        ... '''
        >>> library = Library([add, compose(text, {"add": add})])
        >>> link(library)["add_three"](a=1, b=2, c=3)
        6
    """
    return link_report(library).library


def link_report(library: Library) -> LinkReport:
    """Like ``link``, with the reasons why composites got no code."""
    if not any(tool.definition.body is not None for tool in library):  # makes no DAG
        return LinkReport(library=library, refused={})
    dag, current = library.dag, dict(library.tools)
    refused: dict[str, tuple[SourceProblem, ...]] = {}
    rest = {name: None for name in dag.composites if _follows_its_children(current[name])}
    for name in in_order(rest, dag.children):
        del rest[name]
        try:
            current[name] = _with_children(current[name], current)
        except CompositeError as error:
            current[name], refused[name] = _unbound(current[name]), error.problems
        else:
            if not current[name].is_bound:
                refused[name] = tuple(_waiting_for(name, dag.children[name], current, refused))
    for name in rest:
        current[name], refused[name] = _unbound(current[name]), (_circular(name, dag),)
    linked = library.with_tools(current[name] for name in dag.composites)
    return LinkReport(library=linked, refused=refused)


def broken_links(library: Library, name: str) -> tuple[SourceProblem, ...]:
    """Why a composite cannot run, for reasons that code for its primitives would not fix.

    A child is missing or has changed, here or in a composite below; the body is not a program; or
    the calls run in a circle. Nothing when it only waits for primitives to be bound.

    Args:
        library: The library.
        name: A tool of it.

    Cost: linking the composite and what is below it.
    """
    below = reachable([name], library.dag.children)
    part = library.without(other for other in library.tools if other not in below)
    problems = link_report(part).refused.get(name, ())
    return tuple(problem for problem in problems if problem.code != "unbound_child")


def _follows_its_children(tool: Tool) -> bool:
    """Whether its code is that of its children, and not a caller's own."""
    return tool.function is None or isinstance(tool.function, composites.Composite)


def _with_children(tool: Tool, tools: Mapping[str, Tool]) -> Tool:
    earlier = tool.function if isinstance(tool.function, composites.Composite) else None
    made = composites.composite_tool(
        tool.definition,
        tools,
        limits=earlier.limits if earlier else None,
        contracts=earlier.contracts if earlier else "off",
    )
    return replace(
        tool,
        function=made.function,
        is_async=made.is_async,
        requires_approval=made.needs_approval or tool.needs_approval,
    )


def _unbound(tool: Tool) -> Tool:
    return replace(tool, function=None, is_async=False)


def _waiting_for(
    name: str,
    children: Iterable[str],
    tools: Mapping[str, Tool],
    refused: Mapping[str, tuple[SourceProblem, ...]],
) -> Iterator[SourceProblem]:
    for child in children:
        if child in refused:
            reason = refused[child][0]
            message = f"{name!r} calls {child!r}, which cannot run: {reason.message}"
            yield SourceProblem(code=reason.code, message=message, advice=reason.advice)
        elif not tools[child].is_bound:
            yield SourceProblem(
                code="unbound_child",
                message=f"{name!r} calls {child!r}, which has no function in this process",
                advice=f"Bind it: library.bind({{{child!r}: function}}).",
            )


def _circular(name: str, dag: Dag) -> SourceProblem:
    return SourceProblem(
        code="recursive_call",
        message=dag.why_unknown(name),
        advice="Rewrite one of the composites in the circle so that it does not call the next.",
    )


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three of the ``known`` names that look like ``name``, ignoring case, best first."""
    return tools_door.close_to(name, known)


def _bound(definition: ToolDefinition, function: Tool | Callable[..., Any]) -> Tool:
    import inspect

    if isinstance(function, Tool):
        return function.bound_to(definition)
    is_async = inspect.iscoroutinefunction(function)
    return Tool(definition=definition, function=function, is_async=is_async)


_Source = tuple[str, str, str]


class RecordedNames:
    """The names that a library gave to definitions from elsewhere.

    Args:
        tools: What the library holds, by name.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._renamed: dict[_Source, str] = {}
        for name, tool in tools.items():
            if tool.definition.origin.original_name and (source := _source(tool.definition)):
                self._renamed.setdefault(source, name)

    def of(self, definition: ToolDefinition) -> str:
        """The name of a definition here; its own when nothing else is recorded."""
        source = _source(definition)
        namesake = self._tools.get(definition.name)
        if source is None or (namesake and _source(namesake.definition) == source):
            return definition.name
        return self._renamed.get(source, definition.name)


def _source(definition: ToolDefinition) -> _Source | None:
    """Kind, place and name at the source; None when the place is not known."""
    origin = definition.origin
    if not origin.reference:
        return None
    return origin.kind, origin.reference, origin.original_name or definition.name


MOST_VERSIONS = 16
"""How many older versions are held. Any other is read from the store again when it is needed."""


class RecentVersions:
    """The older snapshots that were used last; the one unused for longest goes first.

    Threads may share one. There is no lock, which a fork could find held for ever: each step on
    the dict is whole, and a snapshot that two steps lose is read from the store again.

    Example:
        >>> held = RecentVersions()
        >>> for version in (1, 2, 1, *range(3, MOST_VERSIONS + 2)):
        ...     held.put(Library(version=version))
        >>> 1 in held.versions, held.get(2)
        (True, None)
    """

    def __init__(self) -> None:
        self._held: dict[int, Library] = {}  # the one used last stands last

    @property
    def versions(self) -> tuple[int, ...]:
        """Which versions are held, ascending."""
        return tuple(sorted(self._held))

    def get(self, version: int) -> Library | None:
        """The snapshot of that version if it is held; it then counts as used."""
        library = self._held.pop(version, None)
        if library is not None:
            self._held[version] = library
        return library

    def put(self, library: Library) -> None:
        """Hold a snapshot."""
        self._held.pop(library.version, None)
        self._held[library.version] = library
        held = list(self._held)
        for unused in held[: max(0, len(held) - MOST_VERSIONS)]:
            self._held.pop(unused, None)
