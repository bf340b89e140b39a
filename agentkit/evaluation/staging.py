"""``Stage``: the tools that one user turn is asked with, and what is right in their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentkit.evaluation.expectations import (
    AllowedCalls,
    CustomExpectation,
    ExactCalls,
    Expectation,
)
from agentkit.evaluation.task import Benchmark, Environment
from agentkit.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import CallBefore, Rule
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What the agent works with.

    Attributes:
        library: The tools that may be offered.
        definitions: The tools that calls are judged by, under the names that they are called by.
        expects: What is right, in those names.
        library_names: The catalogue's names of the tools that are offered under another one, by
            that name (``Episode.library_names``).
    """

    library: Library
    definitions: tuple[ToolDefinition, ...]
    expects: tuple[Expectation, ...]
    library_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Staging:
    """Sets the stage for user turns of one benchmark.

    Attributes:
        library: Where the definitions come from.
        retrieves: Whether the agent finds its tools in the library, rather than being given those
            that the benchmark names.
        upstream_names: The benchmark's own names of tools that have another one in the catalogue.
    """

    library: Library
    retrieves: bool
    upstream_names: Mapping[str, str]

    @classmethod
    def of(cls, benchmark: Benchmark, library: Library, *, retrieves: bool) -> Staging:
        """The staging for ``benchmark``; tools that ``library`` lacks come from the benchmark."""
        adapted = _adapted(benchmark, library, everything=retrieves)
        own = [d for d in benchmark.definitions if d.name not in library]
        renamed = {
            definition.name: definition.origin.original_name
            for definition in benchmark.definitions
            if definition.origin.original_name
        }
        whole = adapted.with_tools(own) if own else adapted
        return cls(library=whole, retrieves=retrieves, upstream_names=renamed)

    def stage(
        self, offered: Sequence[str], expects: Sequence[Expectation], world: Environment | None
    ) -> Stage:
        """The stage for one user turn.

        Args:
            offered: Names, in the catalogue, of the tools that are offered by now.
            expects: What is right, in the catalogue's names.
            world: The environment that runs the tools, if any does.
        """
        bound = {} if world is None else {tool.name: tool for tool in world.tools()}
        if self.retrieves:
            # Without a world it stays the same object, by which an agent's caches know it.
            running = [self._tool(name, bound) for name in bound]
            library = self.library.with_tools(running) if running else self.library
            gold = _gold_names(expects)
            judged = {name: library.get(name) for name in (*offered, *gold)}
            return Stage(
                library=library,
                definitions=tuple(tool.definition for tool in judged.values() if tool is not None),
                expects=tuple(expects),
            )
        tools = {name: self._tool(name, bound) for name in dict.fromkeys(offered)}
        names = self._upstream_names(tools)
        library = Library(
            [_renamed_tool(tool, names) for tool in tools.values()],
            version=self.library.version,
        )
        return Stage(
            library=library,
            definitions=library.definitions,
            expects=tuple(_renamed(expectation, names) for expectation in expects),
            library_names={own: name for name, own in names.items() if own != name},
        )

    def _tool(self, name: str, bound: Mapping[str, Tool]) -> Tool:
        """The tool as the library describes it and the environment runs it."""
        described = self.library.get(name)
        running = bound.get(name)
        if running is None:
            return self.library[name]  # raises ToolNotFoundError with the nearest names
        return running if described is None else running.with_definition(described.definition)

    def _upstream_names(self, tools: Iterable[str]) -> dict[str, str]:
        """The benchmark's own name for each tool, as far as that leaves no two alike."""
        names = {name: self.upstream_names.get(name, name) for name in tools}
        return names if len(set(names.values())) == len(names) else {name: name for name in names}


def _adapted(benchmark: Benchmark, library: Library, *, everything: bool) -> Library:
    """The library with its tools as the benchmark offers tools; only those that it may offer."""
    adapt = benchmark.adapt
    if adapt is None:
        return library
    names = library.tools if everything else {one.name for one in benchmark.definitions}
    tools = [tool for tool in library if tool.name in names]
    return library.with_tools(tool.with_definition(adapt(tool.definition)) for tool in tools)


def _renamed_tool(tool: Tool, names: Mapping[str, str]) -> Tool:
    """The tool with its upstream name, and with those of the tools that its rules speak of."""
    definition = tool.definition
    rules = tuple(_renamed_rule(rule, names) for rule in definition.specification.rules)
    renamed = replace(
        definition,
        name=names[tool.name],
        specification=replace(definition.specification, rules=rules),
    )
    return tool if renamed == definition else tool.with_definition(renamed)


def _renamed_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    if not isinstance(rule, CallBefore):
        return rule
    return replace(rule, tool=names.get(rule.tool, rule.tool))


def _renamed(expectation: Expectation, names: Mapping[str, str]) -> Expectation:
    """The expectation with the names that the calls will have."""
    match expectation:
        case AllowedCalls():
            allowed = (replace(c, name=names.get(c.name, c.name)) for c in expectation.calls)
            return replace(expectation, calls=tuple(allowed))
        case ExactCalls():
            calls = (replace(c, name=names.get(c.name, c.name)) for c in expectation.calls)
            return replace(expectation, calls=tuple(calls))
        case CustomExpectation():
            return expectation.renamed(names)
        case _:
            return expectation


def _gold_names(expects: Iterable[Expectation]) -> Iterator[str]:
    for expectation in expects:
        if isinstance(expectation, AllowedCalls | ExactCalls):
            yield from (call.name for call in expectation.calls)
        elif isinstance(expectation, CustomExpectation):
            yield from expectation.gold_tools
