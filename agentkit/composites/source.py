"""From the text of a composite to its definition.

The body becomes the program; annotations give L1, the docstring L2, ``@composite(pre=...,
post=...)`` L3, ``examples=`` and the docstring's worked calls L4. Nothing of the text is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.composites import ir
from agentkit.composites.annotations import read_annotation
from agentkit.composites.authored import Authored, Given, read_authored
from agentkit.composites.codec import program_to_json
from agentkit.composites.conditions import Inside, condition_faults
from agentkit.composites.effects import join_effects
from agentkit.composites.faults import Fault, Place, placed, refusal
from agentkit.composites.inference.flow import parameter_schemas
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.parser import Function, ParsedSource, parse
from agentkit.composites.reading.context import place_of
from agentkit.composites.reading.header import only_function
from agentkit.composites.reading.text import syntax_tree
from agentkit.composites.type_check import type_faults
from agentkit.composites.worked_examples import read_examples
from agentkit.errors import CompositeError, DefinitionError, SourceProblem
from agentkit.tools.definition import ChildReference, Origin, Signature, ToolDefinition
from agentkit.tools.sources.annotations import CallableShape, Parameter
from agentkit.tools.sources.function import DefinitionOptions, read_shape
from agentkit.tools.tool import Tool, tools_by_name

_FRIENDLY_MODULES = ("__future__", "agentkit", "collections.abc", "typing", "typing_extensions")
"""Imports from these may stand above the function of a file; they are not carried out."""


def compose(
    source: str,
    tools: Mapping[str, Tool] | Iterable[Tool],
    *,
    limits: CompositeLimits | None = None,
    reference: str = "",
) -> ToolDefinition:
    """Make the definition of a composite from its text.

    Args:
        source: One ``def`` or ``async def`` in the composite language; imports from ``typing``
            and ``agentkit`` may stand above it.
        tools: The tools that it may call: a list, a ``Library``, or a mapping by the name that
            the text gives them.
        limits: Caps on the text and on the program.
        reference: Where the text came from, such as a file; kept as the definition's origin.

    Returns:
        A definition whose ``body`` is the program and whose ``signature.children`` pins every
        tool that it calls to the digest that this tool has now.

    Raises:
        CompositeError: The text is outside the language, or does not fit its children;
            ``problems`` lists everything that was found, with line and column.

    Example:
        >>> from agentkit import tool
        >>> @tool
        ... def add(a: float, b: float) -> float:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> total = compose(
        ...     '''
        ... def add_three(a: float, b: float, c: float = 0.0) -> float:
        ...     "Add three numbers."
        ...     return add(add(a, b), c)
        ... ''',
        ...     [add],
        ... )
        >>> total.name, total.signature.required, [child.name for child in total.signature.children]
        ('add_three', ('a', 'b'), ['add'])
    """
    return compose_authored(source, tools_by_name(tools), limits=limits, reference=reference)


def compose_authored(
    source: str,
    tools: Mapping[str, Tool],
    *,
    given: Given | None = None,
    limits: CompositeLimits | None = None,
    reference: str = "",
) -> ToolDefinition:
    """``compose`` for a decorator that Python has evaluated.

    Args:
        source: As for ``compose``.
        tools: As for ``compose``.
        given: The decorator, which then is not read from the text.
        limits: As for ``compose``.
        reference: As for ``compose``.

    Raises:
        CompositeError: As for ``compose``.
    """
    limits = limits or CompositeLimits()
    text = _without_imports(source, limits)
    try:
        parsed = parse(text, tools, limits=limits)
    except CompositeError as error:
        raise _with_surface(error, text, given, limits) from None
    return _Composer(parsed, _surface(parsed.function, given, limits), tools, text).definition(
        reference
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Surface:
    """What a text says around its body.

    Attributes:
        annotations: Types of the annotated parameters by name, and of ``return``.
        authored: The decorator.
        faults: What is wrong with either, and with the conditions.
    """

    annotations: Mapping[str, Any]
    authored: Authored
    faults: tuple[Fault, ...]


class _Composer:
    """One text on its way to a definition; faults are collected, and raised together."""

    def __init__(
        self, parsed: ParsedSource, surface: _Surface, tools: Mapping[str, Tool], text: str
    ) -> None:
        self._parsed = parsed
        self._surface = surface
        self._children = _children(parsed.program, tools)
        self._text = text
        self._faults = [*surface.faults]

    def definition(self, reference: str) -> ToolDefinition:
        """The definition, when nothing is wrong with the text."""
        self._raise_faults()
        read = self._read(reference)
        signature = self._signature(read.signature)
        examples = read_examples(
            self._surface.authored,
            self._parsed.docstring,
            name=self._parsed.name,
            parameters=signature.parameters,
            result=signature.result,
            place=_docstring_place(self._parsed.function),
        )
        self._faults += examples.faults
        self._raise_faults()
        made = replace(
            read,
            signature=signature,
            specification=replace(
                read.specification,
                text=(*self._surface.authored.text, *read.specification.text),
            ),
            examples=examples.examples,
            body=program_to_json(self._parsed.program),
            origin=Origin(kind="composite", reference=reference),
        )
        self._check_digest(made)
        return made

    def _check_digest(self, made: ToolDefinition) -> None:
        """Refuse words that JSON can not write; the digest is needed later in any case."""
        try:
            _ = made.digest
        except ValueError as error:
            advice = "Remove half characters such as '\\ud800' from its words and examples."
            message = f"the definition can not be written as JSON ({error})"
            self._faults.append(Fault(self._parsed.function, "literal", message, advice))
            self._raise_faults()

    def _read(self, reference: str) -> ToolDefinition:
        """What a function with this head and this docstring would say."""
        authored = self._surface.authored
        options = DefinitionOptions(
            description=authored.description,
            tags=authored.tags,
            usage_rules=authored.usage_rules,
            pre=authored.pre,
            post=authored.post,
            complexity=authored.complexity,
        )
        shape = _shape(self._parsed, self._surface.annotations, reference)
        try:
            return read_shape(shape, options).definition
        except DefinitionError as error:
            advice = "Use a type that JSON has."
            self._faults.append(Fault(self._parsed.function, "annotation", str(error), advice))
            self._raise_faults()
            raise

    def _signature(self, read: Signature) -> Signature:
        """The declared contract, with what the children tell about the undeclared parts."""
        program = self._parsed.program
        children = self._children
        annotated = self._surface.annotations
        undeclared = read.properties.keys() - annotated.keys()
        inferred = parameter_schemas(program, undeclared, children)
        properties = {
            name: {**inferred.get(name, {}), **schema} for name, schema in read.properties.items()
        }
        parameters = {**read.parameters, "properties": properties}
        checked = type_faults(program, parameters, children, result=read.result)
        self._faults += checked.faults
        return Signature(
            parameters=parameters,
            result=read.result if "return" in annotated else checked.result,
            effects=join_effects(c.definition.signature.effects for c in children.values()),
            children=tuple(
                ChildReference(name=name, digest=child.definition.digest)
                for name, child in children.items()
            ),
        )

    def _raise_faults(self) -> None:
        if self._faults:
            positions = self._parsed.positions
            problems = placed(self._faults, lambda node: _place(node, self._text, positions))
            raise refusal(self._parsed.name, problems)


def _children(program: ir.Program, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools that a program calls, by library name, in the order of first call."""
    called = dict.fromkeys(call.child for call in ir.calls(program))
    found: dict[str, Tool] = {}
    for name in called:
        tool = tools.get(name)
        if tool is None or tool.name != name:  # the text calls it by another name
            tool = next(tool for tool in tools.values() if tool.name == name)
        found[name] = tool
    return found


def _surface(function: Function, given: Given | None, limits: CompositeLimits) -> _Surface:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    places = [(a.arg, a.annotation, f"the parameter {a.arg!r}") for a in arguments]
    places.append(("return", function.returns, "the result"))
    read = {
        name: read_annotation(annotation, place=place)
        for name, annotation, place in places
        if annotation is not None
    }
    authored = read_authored(function, given)
    names = [argument.arg for argument in arguments]
    return _Surface(
        annotations=read,
        authored=authored,
        faults=(
            *(found for found in read.values() if isinstance(found, Fault)),
            *authored.faults,
            *_instance_faults(arguments),
            *condition_faults(authored, names, limits),
        ),
    )


def _instance_faults(arguments: Sequence[ast.arg]) -> Iterator[Fault]:
    for argument in arguments[:1]:
        if argument.arg in {"self", "cls"} and argument.annotation is None:
            message = f"{argument.arg!r} would be asked of the model; a composite has no instance"
            yield Fault(argument, "parameter", message, "Remove it, and use @staticmethod.")


def _with_surface(
    error: CompositeError, text: str, given: Given | None, limits: CompositeLimits
) -> CompositeError:
    """The same error with what is wrong around the body, so that one round of repair does."""
    tree = syntax_tree(text, limits)
    found = tree if isinstance(tree, SourceProblem) else only_function(tree)
    if isinstance(found, SourceProblem):
        return error
    function, _ = found
    further = placed(_surface(function, given, limits).faults, lambda node: _place(node, text, {}))
    both = sorted({*error.problems, *further}, key=lambda problem: (problem.line, problem.column))
    return refusal(function.name, tuple(both)) if further else error


def _shape(parsed: ParsedSource, annotations: Mapping[str, Any], reference: str) -> CallableShape:
    return CallableShape(
        name=parsed.name,
        docstring=parsed.docstring,
        reference=reference,
        parameters=tuple(
            Parameter(
                name=parameter.name,
                annotation=annotations.get(parameter.name, Any),
                default=None if parameter.default is None else parameter.default.value,
                is_required=parameter.default is None,
            )
            for parameter in parsed.program.parameters
        ),
        returns=annotations.get("return"),
        is_annotated="return" in annotations,
        is_async=False,
    )


def _place(node: object, text: str, positions: Mapping[int, Place]) -> Place:
    """Line and column, in characters from 1, of what a fault points at."""
    match node:
        case (int() as line, int() as column):
            return line, column
        case Inside():
            return _place_inside(node, text)
        case ast.expr() | ast.stmt() | ast.arg() | ast.keyword():
            return place_of(node, text)
    return positions.get(id(node), (1, 1))


def _place_inside(inside: Inside, text: str) -> Place:
    """Where a fault of a condition is: to the column when the text holds it as it is."""
    line, column = _place(inside.node, text, {})
    constant = inside.node
    if not (isinstance(constant, ast.Constant) and inside.line == 1):
        return line, column
    written = ast.get_source_segment(text, constant) or ""
    plain = written[1:-1] == constant.value
    return line, column + inside.column if plain else column


def _docstring_place(function: Function) -> Place:
    first = function.body[0]
    return first.lineno, first.col_offset + 4  # behind the three quotes


def _without_imports(source: str, limits: CompositeLimits) -> str:
    """The text with friendly imports blanked out, so that lines keep their numbers."""
    if not any(line.startswith(("from ", "import ")) for line in source.splitlines()):
        return source
    tree = syntax_tree(source, limits)
    if isinstance(tree, SourceProblem):
        return source  # the parser says what is wrong with it
    lines = source.split("\n")
    for node in _friendly_imports(tree):
        for at in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[at] = ""
    return "\n".join(lines)


def _friendly_imports(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        if all(m in _FRIENDLY_MODULES or m.startswith("agentkit.") for m in modules):
            yield node
