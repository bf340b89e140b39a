"""From the text of a composite to its definition.

The body becomes the program; annotations give L1, the docstring L2, ``@composite(pre=...,
post=...)`` L3, ``examples=`` and the docstring's worked calls L4. Nothing of the text is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.composites import language as ir
from agentkit.composites.annotations import read_annotation, shown
from agentkit.composites.codec import program_to_json
from agentkit.composites.parser import (
    Function,
    ParsedSource,
    only_function,
    parse,
    parse_expression,
    syntax_tree,
)
from agentkit.composites.problems import CompositeLimits, Fault, Place, placed, refusal
from agentkit.composites.reading import place_of
from agentkit.composites.type_check import parameter_schemas, type_faults
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

_LISTS = ("pre", "post", "text", "tags", "usage_rules")
"""Keywords of the decorator that take a list of texts."""

_WORDS = ("description", "complexity")
"""Keywords that take one text."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A decorator that Python has evaluated already.

    Attributes:
        keywords: The values of its keywords; the syntax only tells where they stand.
        name: The name by which the file calls it.
    """

    keywords: Mapping[str, Any]
    name: str = DECORATOR


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
    surface = _Surface.of(parsed.function, given, limits)
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
        faults, result = type_faults(program, parameters, children, result=read.result)
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
            (Example(**record), authored.node("examples", at))
            for at, record in enumerate(authored.examples)
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
        nodes: The syntax of each item, by keyword and index.
    """

    description: str | None = None
    complexity: str = ""
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    usage_rules: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    nodes: Mapping[tuple[str, int], ast.AST] = field(default_factory=dict)

    def node(self, keyword: str, index: int) -> ast.AST:
        """The syntax of an item; the function's when it is written elsewhere."""
        return self.nodes.get((keyword, index), self.nodes["", 0])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Inside:
    """A place inside a condition.

    Attributes:
        node: The syntax of the condition, a text.
        line: Line inside that text, from 1.
        column: Column in that line, from 1.
    """

    node: ast.AST
    line: int
    column: int


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
    def of(cls, function: Function, given: Given | None, limits: CompositeLimits) -> _Surface:
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
        authored = _read_decorators(function, given, faults)
        for argument in arguments[:1]:
            if argument.arg in {"self", "cls"} and argument.annotation is None:
                message = (
                    f"{argument.arg!r} would be asked of the model; a composite has no instance"
                )
                advice = "Remove it, and use @staticmethod."
                faults.append(Fault(argument, "parameter", message, advice))
        faults += _condition_faults(authored, [argument.arg for argument in arguments], limits)
        return cls(annotations=read, authored=authored, faults=tuple(faults))


def _condition_faults(
    authored: _Authored, parameters: Sequence[str], limits: CompositeLimits
) -> Iterator[Fault]:
    """What is wrong with the conditions of a composite (L3)."""
    if _RESULT in parameters and authored.post:
        message = f"the parameter {_RESULT!r} has the name by which postconditions mean the result"
        yield Fault(authored.node("post", 0), "parameter", message, "Rename the parameter.")
    conditions = [("pre", at, text, tuple(parameters)) for at, text in enumerate(authored.pre)]
    names = (*parameters, _RESULT)
    conditions += [("post", at, text, names) for at, text in enumerate(authored.post)]
    for keyword, at, text, known in conditions:
        try:
            parse_expression(text, known, limits=limits)
        except CompositeError as error:
            for problem in error.problems:
                yield Fault(
                    _Inside(
                        node=authored.node(keyword, at), line=problem.line, column=problem.column
                    ),
                    problem.code,  # type: ignore[arg-type]  # the parser's codes are SourceCode
                    f"in the {keyword}condition {text!r}: {problem.message}",
                    problem.advice,
                )


def _with_surface(
    error: CompositeError, text: str, given: Given | None, limits: CompositeLimits
) -> CompositeError:
    """The same error with what is wrong around the body, so that one round of repair does."""
    tree = syntax_tree(text, limits)
    found = tree if isinstance(tree, SourceProblem) else only_function(tree)
    if isinstance(found, SourceProblem):
        return error
    function, _ = found
    surface = _Surface.of(function, given, limits)
    further = placed(surface.faults, lambda node: _place(node, text, {}))
    both = sorted({*error.problems, *further}, key=lambda problem: (problem.line, problem.column))
    return refusal(function.name, tuple(both)) if further else error


def _place(node: object, text: str, positions: Mapping[int, Place]) -> Place:
    """Line and column, in characters from 1, of what a fault points at."""
    match node:
        case (int() as line, int() as column):
            return line, column
        case _Inside(node=constant):
            line, column = _place(constant, text, {})
            if isinstance(constant, ast.Constant) and node.line == 1:
                written = ast.get_source_segment(text, constant) or ""
                if written[1:-1] == constant.value:  # the text holds the condition as it is
                    column += node.column
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


def _read_decorators(function: Function, given: Given | None, faults: list[Fault]) -> _Authored:
    """The words of the one decorator; any other decorator is a fault."""
    nodes: dict[tuple[str, int], ast.AST] = {("", 0): function}
    found: dict[str, Any] = {} if given is None else dict(given.keywords)
    ours, seen = DECORATOR if given is None else given.name, False
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if seen or name_of(decorator) != ours or (call and call.args):
            message = f"`@{shown(decorator)}` is not applied to a text"
            advice = "Remove it; only one @composite(...), with keywords alone, may stand there."
            faults.append(Fault(decorator, "decorator", message, advice))
            continue
        seen = True
        for keyword in call.keywords if call else ():
            name, value = keyword.arg or "**", keyword.value
            items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            nodes.update({(name, at): item for at, item in enumerate(items)})
            if given is None and name not in _BINDING:
                _read_keyword(name, value, found, faults)
    return _Authored(**found, nodes=nodes)


def name_of(decorator: ast.expr) -> str:
    """The last name of a decorator: ``composite`` for ``@agentkit.composite(...)``."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(named, ast.Attribute):
        return named.attr
    return named.id if isinstance(named, ast.Name) else ""


def _read_keyword(name: str, node: ast.expr, found: dict[str, Any], faults: list[Fault]) -> None:
    known = (*_LISTS, *_WORDS, "examples")
    if name not in known:
        advice = f"Use some of {', '.join(known)}."
        faults.append(Fault(node, "decorator", f"@composite knows no `{name}`", advice))
        return
    try:
        value = _constant(node)
    except _NotWrittenOutError as error:
        message = f"`{name}` of @composite holds `{error}`, which is no constant"
        faults.append(Fault(error.node, "decorator", message, "Write the value out."))
        return
    why = _unfit(name, value)
    if why is not None:
        faults.append(Fault(node, "decorator", *why))
        return
    found[name] = tuple(value) if isinstance(value, list) else value


def _unfit(name: str, value: object) -> tuple[str, str] | None:
    """Why a keyword can not have that value, and what to write; None when it can."""
    if name in _WORDS:
        is_fit, kind, advice = isinstance(value, str), "text", f'Write {name}="...".'
    elif name in _LISTS:
        is_fit = isinstance(value, list) and all(isinstance(item, str) for item in value)
        kind, advice = "list of texts", f'Write {name}=["..."].'
    else:
        is_fit, kind = (
            isinstance(value, list) and all(map(_is_example, value)),
            "list of worked calls",
        )
        advice = (
            'Write examples=[{"arguments": {"x": 1}, "result": 2, "query": ""}], in JSON values.'
        )
    return None if is_fit else (f"`{name}` of @composite is no {kind}", advice)


def _is_example(item: object) -> bool:
    return (
        isinstance(item, Mapping)
        and isinstance(item.get("arguments"), Mapping)
        and set(item) <= {"arguments", "result", "query"}
        and isinstance(item.get("query", ""), str)
        and is_json(dict(item))
    )


class _NotWrittenOutError(Exception):
    """A value that is not a constant of JSON."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node
        super().__init__(shown(node))


def _constant(node: ast.expr) -> Any:
    """The JSON value that is written out in syntax; tuples become lists.

    Raises:
        _NotWrittenOutError: A part of it is no constant.
    """
    match node:
        case ast.Constant(value=value) if value is None or type(value) in {bool, int, float, str}:
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_constant(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            found = {}
            for key, entry in zip(keys, values, strict=True):
                if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                    raise _NotWrittenOutError(key or node)
                found[key.value] = _constant(entry)
            return found
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if (
            type(value) is not bool
        ):
            return -value
    raise _NotWrittenOutError(node)
