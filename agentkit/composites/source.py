"""From the text of a composite to its definition.

The body becomes the program; annotations give L1, the docstring L2, ``@composite(pre=...,
post=...)`` L3, ``examples=`` and the docstring's worked calls L4. Nothing of the text is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.composites import language as ir
from agentkit.composites.annotations import read_annotation, shown
from agentkit.composites.codec import program_to_json
from agentkit.composites.parser import (
    Function,
    ParsedSource,
    parse,
    parse_expression,
    syntax_tree,
)
from agentkit.composites.problems import CompositeLimits, Fault, Place, placed, refusal
from agentkit.composites.reading import place_of
from agentkit.composites.type_check import parameter_schemas, type_check
from agentkit.errors import CompositeError, DefinitionError, SourceProblem
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import (
    ChildReference,
    Effects,
    Example,
    Origin,
    Signature,
    ToolDefinition,
)
from agentkit.tools.schema_validator import fits
from agentkit.tools.sources.annotations import CallableShape, Parameter
from agentkit.tools.sources.docstrings import read_worked_call, worked_calls
from agentkit.tools.sources.function import DefinitionOptions, read_shape
from agentkit.tools.tool import Tool, tools_by_name

DECORATOR = "composite"

_FRIENDLY_MODULES = ("__future__", "agentkit", "collections.abc", "typing", "typing_extensions")
"""Imports from these may stand above the function of a file; they are not carried out."""

_BINDING = (
    "contracts",
    "limits",
    "max_retries",
    "requires_approval",
    "timeout_seconds",
    "tools",
)
"""Keywords that say how the tool runs; a definition does not hold them."""

_RESULT = "result"
"""The name by which a postcondition speaks of the returned value."""


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
    keywords: Mapping[str, Any] | None = None,
    limits: CompositeLimits | None = None,
    reference: str = "",
) -> ToolDefinition:
    """``compose`` for a decorator that Python has evaluated.

    Args:
        source: As for ``compose``.
        tools: As for ``compose``.
        keywords: The values of the decorator's keywords, which then is not in the text.
        limits: As for ``compose``.
        reference: As for ``compose``.

    Raises:
        CompositeError: As for ``compose``.
    """
    limits = limits or CompositeLimits()
    text = _without_imports(source, limits)
    parsed = parse(text, tools, limits=limits)
    surface = _Surface.of(parsed.function, keywords, limits)
    return _Composer(parsed, surface, tools, text).definition(reference)


def join_effects(effects: Iterable[Effects]) -> Effects:
    """The effects of running tools together.

    An effect holds when it holds for one of them, and is absent when it is absent from all;
    otherwise it stays undeclared. ``idempotent`` is the other way round: it holds when it holds
    for all. Nothing at all changes nothing.

    Example:
        >>> reads, deletes = Effects.of(["reads"]), Effects.of(["destructive"])
        >>> join_effects([reads, deletes]).to_json()
        {'reads': True, 'writes': True, 'destructive': True}
    """
    each = tuple(effects)

    def joined(values: Iterable[bool | None], decides: bool) -> bool | None:  # noqa: FBT001 - the value that one of them is enough for
        declared = set(values)
        if decides in declared:
            return decides
        return None if None in declared else not decides

    return Effects(
        reads=joined((one.reads for one in each), True),
        writes=joined((one.writes for one in each), True),
        destructive=joined((one.destructive for one in each), True),
        idempotent=joined((one.idempotent for one in each), False),
        open_world=joined((one.open_world for one in each), True),
    )


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
        examples = self._examples(signature)
        self._raise_faults()
        texts = (*self._surface.authored.text, *read.specification.text)
        made = replace(
            read,
            signature=signature,
            specification=replace(read.specification, text=texts),
            examples=examples,
            body=program_to_json(self._parsed.program),
            origin=Origin(kind="composite", reference=reference),
        )
        try:
            _ = made.digest  # needed later in any case
        except ValueError as error:
            advice = "Remove half characters such as '\\ud800' from its words and examples."
            message = f"the definition can not be written as JSON ({error})"
            self._faults.append(Fault(self._parsed.function, "literal", message, advice))
            self._raise_faults()
        return made

    def _read(self, reference: str) -> ToolDefinition:
        """What a function with this head and this docstring would say."""
        authored, annotations = self._surface.authored, self._surface.annotations
        options = DefinitionOptions(
            description=authored.description,
            tags=authored.tags,
            usage_rules=authored.usage_rules,
            pre=authored.pre,
            post=authored.post,
            complexity=authored.complexity,
        )
        shape = CallableShape(
            name=self._parsed.name,
            docstring=self._parsed.docstring,
            reference=reference,
            parameters=tuple(
                Parameter(
                    name=parameter.name,
                    annotation=annotations.get(parameter.name, Any),
                    default=None if parameter.default is None else parameter.default.value,
                    is_required=parameter.default is None,
                )
                for parameter in self._parsed.program.parameters
            ),
            returns=annotations.get("return"),
            is_annotated="return" in annotations,
            is_async=False,
        )
        try:
            return read_shape(shape, options).definition
        except DefinitionError as error:
            advice = "Use a type that JSON has."
            self._faults.append(Fault(self._parsed.function, "annotation", str(error), advice))
            self._raise_faults()
            raise

    def _signature(self, read: Signature) -> Signature:
        """The declared contract, with what the children tell about the undeclared parts."""
        program, children = self._parsed.program, self._children
        annotated = self._surface.annotations
        undeclared = read.properties.keys() - annotated.keys()
        inferred = parameter_schemas(program, undeclared, children)
        properties = {
            name: {**inferred.get(name, {}), **schema} for name, schema in read.properties.items()
        }
        parameters = {**read.parameters, "properties": properties}
        faults, result = type_check(program, parameters, children, result=read.result)
        self._faults += faults
        return Signature(
            parameters=parameters,
            result=read.result if "return" in annotated else result,
            effects=join_effects(c.definition.signature.effects for c in children.values()),
            children=tuple(
                ChildReference(name=name, digest=child.definition.digest)
                for name, child in children.items()
            ),
        )

    def _examples(self, signature: Signature) -> tuple[Example, ...]:
        """The worked calls of the decorator, then those of the docstring; each once."""
        authored = self._surface.authored
        read: list[tuple[Example, object]] = [
            (Example(**record), self._parsed.function) for record in authored.examples
        ]
        kept: list[Example] = []
        for example, node in [*read, *self._docstring_examples(signature.properties)]:
            why = _misfit(example, signature.parameters, signature.result)
            if why:
                advice = "Give every required argument, in JSON values of the declared types."
                self._faults.append(Fault(node, "example", why, advice))
            elif example not in kept:
                kept.append(example)
        return tuple(kept)

    def _docstring_examples(self, parameters: Iterable[str]) -> Iterator[tuple[Example, Place]]:
        name, first = self._parsed.name, self._parsed.function.body[0]
        for offset, block in worked_calls(self._parsed.docstring):
            column = len(block[0]) - len(block[0].lstrip()) + 1
            if offset == 0:
                column += first.col_offset + 3  # behind the three quotes
            place = (first.lineno + offset, column)
            try:
                example = read_worked_call(block, function_name=name, parameters=tuple(parameters))
            except ValueError as error:
                message = f"a worked call of the docstring can not be read: {error}"
                advice = (
                    f"Behind the prompt write a call such as `{name}(1, x=2)`, with constants "
                    "alone, and on the next line the value that it returns."
                )
                self._faults.append(Fault(place, "example", message, advice))
            else:
                yield example, place

    def _raise_faults(self) -> None:
        if self._faults:
            positions = self._parsed.positions
            problems = placed(self._faults, lambda node: _place(node, self._text, positions))
            raise refusal(self._parsed.name, problems)


def _children(program: ir.Program, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools that a program calls, by library name, in the order of first call."""
    found: dict[str, Tool] = {}
    for name in dict.fromkeys(call.child for call in ir.calls(program)):
        tool = tools.get(name)
        if tool is None or tool.name != name:  # the text calls it by another name
            tool = next(tool for tool in tools.values() if tool.name == name)
        found[name] = tool
    return found


def _misfit(example: Example, parameters: JsonObject, result: JsonObject | None) -> str:
    arguments: dict[str, Any] = dict(example.arguments)
    if not is_json(arguments) or not is_json(example.result):
        return f"the worked call with {arguments!r} holds a number that JSON can not write"
    if fits(arguments, parameters) is False:
        return f"the arguments {arguments!r} of a worked call break the declared types"
    has_result = example.result is not None and result is not None
    if has_result and fits(example.result, result, root=result) is False:
        return f"the result {example.result!r} of a worked call breaks the declared type"
    return ""


# --- around the body ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Authored:
    """What stands in the decorator.

    Attributes:
        description: The summary; the docstring's when None.
        complexity: Cost in words.
        pre: Expressions over the parameters.
        post: Expressions over the parameters and ``result``.
        text: Conditions in words.
        tags: Free labels.
        usage_rules: One rule a sentence.
        examples: Worked calls in their JSON form.
    """

    description: str | None = None
    complexity: str = ""
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    usage_rules: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Surface:
    """What a text says around its body.

    Attributes:
        annotations: Types of the annotated parameters by name, and of ``return``.
        authored: The decorator.
        faults: What is wrong with either, and with the conditions.
    """

    annotations: Mapping[str, Any]
    authored: _Authored
    faults: tuple[Fault, ...]

    @classmethod
    def of(
        cls, function: Function, keywords: Mapping[str, Any] | None, limits: CompositeLimits
    ) -> _Surface:
        """Read what stands around a body."""
        arguments = [*function.args.args, *function.args.kwonlyargs]
        places = [(a.arg, a.annotation, f"the parameter {a.arg!r}") for a in arguments]
        places.append(("return", function.returns, "the result"))
        read = {
            name: read_annotation(annotation, place=place)
            for name, annotation, place in places
            if annotation is not None
        }
        faults = [found for found in read.values() if isinstance(found, Fault)]
        read_keywords = _read_decorators(function, faults) if keywords is None else keywords
        authored = _Authored(**read_keywords)
        for argument in arguments[:1]:
            if argument.arg in {"self", "cls"} and argument.annotation is None:
                message = (
                    f"{argument.arg!r} would be asked of the model; a composite has no instance"
                )
                advice = "Remove it, and use @staticmethod."
                faults.append(Fault(argument, "parameter", message, advice))
        names = [argument.arg for argument in arguments]
        faults += _condition_faults(function, authored, names, limits)
        return cls(annotations=read, authored=authored, faults=tuple(faults))


def _condition_faults(
    function: Function, authored: _Authored, parameters: Sequence[str], limits: CompositeLimits
) -> Iterator[Fault]:
    """What is wrong with the conditions of a composite (L3)."""
    if _RESULT in parameters and authored.post:
        message = f"the parameter {_RESULT!r} has the name by which postconditions mean the result"
        yield Fault(function, "parameter", message, "Rename the parameter.")
    conditions = [("pre", text, tuple(parameters)) for text in authored.pre]
    conditions += [("post", text, (*parameters, _RESULT)) for text in authored.post]
    for kind, text, known in conditions:
        try:
            parse_expression(text, known, limits=limits)
        except CompositeError as error:
            for problem in error.problems:
                yield Fault(
                    function,
                    problem.code,  # type: ignore[arg-type]  # the parser's codes are SourceCode
                    f"in the {kind}condition {text!r}: {problem.message}",
                    problem.advice,
                )


def _place(node: object, text: str, positions: Mapping[int, Place]) -> Place:
    """Line and column, in characters from 1, of what a fault points at."""
    match node:
        case (int() as line, int() as column):
            return line, column
        case ast.expr() | ast.stmt() | ast.arg() | ast.keyword():
            return place_of(node, text)
    return positions.get(id(node), (1, 1))


def _without_imports(source: str, limits: CompositeLimits) -> str:
    """The text with friendly imports blanked out, so that lines keep their numbers."""
    if not any(line.startswith(("from ", "import ")) for line in source.splitlines()):
        return source
    tree = syntax_tree(source, limits)
    if isinstance(tree, SourceProblem):
        return source  # the parser says what is wrong with it
    lines = source.split("\n")
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        if all(m in _FRIENDLY_MODULES or m.startswith("agentkit.") for m in modules):
            for at in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[at] = ""
    return "\n".join(lines)


# --- the decorator in a text ----------------------------------------------------------------------


def _read_decorators(function: Function, faults: list[Fault]) -> dict[str, Any]:
    """The keywords of the one decorator; any other decorator is a fault."""
    found: dict[str, Any] = {}
    for at, decorator in enumerate(function.decorator_list):
        call = decorator if isinstance(decorator, ast.Call) else None
        if at or name_of(decorator) != DECORATOR or (call and call.args):
            message = f"`@{shown(decorator)}` is not applied to a text"
            advice = "Remove it; only one @composite(...), with keywords alone, may stand there."
            faults.append(Fault(decorator, "decorator", message, advice))
            continue
        for keyword in call.keywords if call else ():
            name = keyword.arg or "**"
            if name not in _BINDING:
                _read_keyword(name, keyword.value, found, faults)
    return found


def name_of(decorator: ast.expr) -> str:
    """The last name of a decorator: ``composite`` for ``@agentkit.composite(...)``."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(named, ast.Attribute):
        return named.attr
    return named.id if isinstance(named, ast.Name) else ""


def _read_keyword(name: str, node: ast.expr, found: dict[str, Any], faults: list[Fault]) -> None:
    if name not in _KEYWORDS:
        advice = f"Use some of {', '.join(_KEYWORDS)}."
        faults.append(Fault(node, "decorator", f"@composite knows no `{name}`", advice))
        return
    schema, advice = _KEYWORDS[name]
    try:
        value = ast.literal_eval(node)
        value = list(value) if isinstance(value, tuple) else value
        is_constant = is_json(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        is_constant = False
    if not is_constant:
        message = f"`{name}` of @composite holds `{shown(node)}`, which is no constant of JSON"
        faults.append(Fault(node, "decorator", message, "Write the value out."))
        return
    if fits(value, schema) is not True:
        message = f"`{name}` of @composite has another type"
        faults.append(Fault(node, "decorator", message, advice))
        return
    found[name] = tuple(value) if isinstance(value, list) else value


_TEXT: JsonObject = {"type": "string"}
_EXAMPLE: JsonObject = {
    "type": "object",
    "properties": {"arguments": {"type": "object"}, "result": {}, "query": _TEXT},
    "required": ["arguments"],
    "additionalProperties": False,
}
_KEYWORDS: Mapping[str, tuple[JsonObject, str]] = {
    **{
        name: ({"type": "array", "items": _TEXT}, f'Write {name}=["..."].')
        for name in ("pre", "post", "text", "tags", "usage_rules")
    },
    **{name: (_TEXT, f'Write {name}="...".') for name in ("description", "complexity")},
    "examples": (
        {"type": "array", "items": _EXAMPLE},
        'Write examples=[{"arguments": {"x": 1}, "result": 2, "query": ""}], in JSON values.',
    ),
}
"""What the decorator may say in a text, and how."""
