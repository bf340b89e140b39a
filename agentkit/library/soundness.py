"""Whether the composites of a library are what they claim: everything that needs no run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentkit.composites.checks import check_program
from agentkit.composites.codec import program_from_json
from agentkit.composites.source import join_effects
from agentkit.composites.language import Program
from agentkit.composites.problems import READING_LIMITS
from agentkit.composites.parser import parse_expression
from agentkit.composites.type_check import type_check
from agentkit.errors import CompositeError, SourceProblem
from agentkit.library.dag import to_networkx
from agentkit.library.graph import cycle_among, shown
from agentkit.library.library import Library
from agentkit.library.pins import pin_faults
from agentkit.tools.definition import ToolDefinition

_TOLD_BY_PINS = {"unknown_tool", "missing_child", "changed_child"}


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryFault:
    """One thing that is wrong with a tool of a library.

    Attributes:
        tool: The tool.
        code: What is wrong: a code of ``PinFault`` or of ``SourceProblem``; ``cycle``; ``effects``;
            ``parameters``; ``condition``.
        message: The same in a sentence, with the names and values concerned.
        advice: What to do.
    """

    tool: str
    code: str
    message: str
    advice: str


def library_faults(
    library: Library, names: Iterable[str] | None = None
) -> tuple[LibraryFault, ...]:
    """What is wrong with the composites of a library, without running anything.

    Circles of calls, pins, programs (the rules of the language, types against the children's L1),
    effects against those of the children, and conditions that can not be read.

    Args:
        library: The library.
        names: The tools to look at; None for all. Primitives among them have nothing to find.

    Returns:
        Circles first, then tools in the order of the library; each fault once.

    Raises:
        ToolNotFoundError: The library has no tool of a name given.

    Cost: about a millisecond a composite.
    """
    wanted = list(library.tools if names is None else dict.fromkeys(names))
    found = [fault for fault in _cycles(library) if names is None or fault.tool in wanted]
    for name in wanted:
        definition = library[name].definition
        if definition.is_composite:
            found += _faults(library, definition)
    return tuple(dict.fromkeys(found))


def _cycles(library: Library) -> Iterator[LibraryFault]:
    """One fault for each composite in a circle, so that asking for any of them shows it."""
    dag = library.dag
    if len(dag.depths) == len(dag.children):
        return
    import networkx as nx

    graph = to_networkx(library)
    for group in nx.strongly_connected_components(graph):
        inside = sorted(group)
        if len(inside) == 1 and inside[0] not in dag.children.get(inside[0], ()):
            continue
        here = {name: tuple(c for c in dag.children[name] if c in group) for name in inside}
        for name in inside:
            path = shown(cycle_among([name], here) or ())
            yield LibraryFault(
                tool=name,
                code="cycle",
                message=f"{name!r} is in a circle of calls: {path}",
                advice="rewrite one of these composites so that it does not call the next",
            )


def _faults(library: Library, definition: ToolDefinition) -> Iterator[LibraryFault]:
    name = definition.name
    pins = pin_faults(library, [name])
    for fault in pins:
        yield LibraryFault(tool=name, code=fault.code, message=fault.message, advice=fault.advice)
    try:
        program = program_from_json(definition.body or {}, name=name, limits=READING_LIMITS)
    except CompositeError as error:
        yield from _of_source(name, error.problems)
        return
    yield from _of_program(library, definition, program)
    yield from _of_conditions(definition)
    if not pins:
        yield from _of_effects(library, definition)


def _of_source(name: str, problems: Iterable[SourceProblem]) -> Iterator[LibraryFault]:
    for problem in problems:
        message = f"line {problem.line}: {problem.message}"
        yield LibraryFault(tool=name, code=problem.code, message=message, advice=problem.advice)


def _of_program(
    library: Library, definition: ToolDefinition, program: Program
) -> Iterator[LibraryFault]:
    """The rules that need the children."""
    name, signature = definition.name, definition.signature
    problems = check_program(program, library.tools, name=name, limits=READING_LIMITS)
    yield from _of_source(name, (one for one in problems if one.code not in _TOLD_BY_PINS))
    declared, taken = set(signature.properties), {p.name for p in program.parameters}
    if declared != taken:
        yield LibraryFault(
            tool=name,
            code="parameters",
            message=f"{name!r} declares the parameters {sorted(declared)}, its program takes "
            f"{sorted(taken)}",
            advice="compose it anew from its text",
        )
    report = type_check(program, signature.parameters, library.tools, result=signature.result)
    yield from _of_source(name, report.problems)


def _of_conditions(definition: ToolDefinition) -> Iterator[LibraryFault]:
    names = tuple(definition.signature.properties)
    conditions = definition.specification
    spoken = [(text, names) for text in conditions.pre]
    spoken += [(text, (*names, "result")) for text in conditions.post]
    for text, known in spoken:
        try:
            parse_expression(text, known)
        except CompositeError as error:
            first = error.problems[0]
            yield LibraryFault(
                tool=definition.name,
                code="condition",
                message=f"the condition {text!r} can not be read: {first.message}",
                advice=first.advice,
            )


def _of_effects(library: Library, definition: ToolDefinition) -> Iterator[LibraryFault]:
    signature = definition.signature
    children = [library[pin.name].definition for pin in signature.children]
    joined = join_effects(child.signature.effects for child in children)
    if signature.effects != joined:
        yield LibraryFault(
            tool=definition.name,
            code="effects",
            message=f"{definition.name!r} declares {_told(signature.effects.to_json())}, its "
            f"children together {_told(joined.to_json())}",
            advice="compose it anew, or join its effects from its children "
            "('agentkit check --repin')",
        )


def _told(effects: dict[str, bool]) -> str:
    words = [name if holds else f"not {name}" for name, holds in effects.items()]
    return ", ".join(words) or "no effects"
