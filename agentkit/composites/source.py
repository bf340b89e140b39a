"""Turn the text of a composite into its definition.

The body becomes the program; annotations give L1, the docstring L2, ``@composite(pre=...,
post=...)`` L3, ``examples=`` L4. Nothing of the text is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import Parameter
from typing import Any

from agentkit.composites.composite import join_effects, program_to_json
from agentkit.composites.parser import ParsedSource, parse, parse_expression
from agentkit.composites.problems import CompositeLimits, Fault, placed, refusal
from agentkit.composites.type_check import read_annotation, shown, type_check
from agentkit.errors import CompositeError, DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools.definition import (
    ChildReference,
    Example,
    Origin,
    Signature,
    ToolDefinition,
)
from agentkit.tools.error_messages import problems_of
from agentkit.tools.schema_validator import schema_errors
from agentkit.tools.sources.annotations import CallableShape
from agentkit.tools.sources.function import DefinitionOptions, read_shape, worked_examples
from agentkit.tools.tool import Tool, tools_by_name

DECORATOR = "composite"

_BINDING = {"contracts", "limits", "max_retries", "requires_approval", "timeout_seconds", "tools"}
"""Keywords that say how the tool runs; a definition does not hold them."""

_RESULT = "result"
"""The name of the returned value in a postcondition."""


def compose(
    source: str,
    tools: Mapping[str, Tool] | Iterable[Tool],
    *,
    limits: CompositeLimits | None = None,
    reference: str = "",
) -> ToolDefinition:
    """Make the definition of a composite from its text.

    Args:
        source: One ``def`` or ``async def`` in the composite language; imports may stand above
            it, which are not carried out.
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
    parsed = parse(source, tools_by_name(tools), limits=limits)
    faults: list[Fault] = []
    options = _read_decorators(parsed, faults)
    return Composer(parsed, options, faults).definition(limits, reference)


class Composer:
    """One text on its way to a definition; faults are collected, and raised together.

    Args:
        parsed: The text.
        options: What its decorator says.
        faults: What is wrong with the decorator.
    """

    def __init__(
        self, parsed: ParsedSource, options: DefinitionOptions, faults: Iterable[Fault] = ()
    ) -> None:
        self._parsed = parsed
        self._options = options
        self._faults = list(faults)
        self._annotations = self._read_annotations()

    def definition(self, limits: CompositeLimits | None, reference: str) -> ToolDefinition:
        """The definition, when nothing is wrong with the text.

        Args:
            limits: Caps on each condition.
            reference: Where the text came from.

        Raises:
            CompositeError: The text does not fit its children, or says what a definition cannot
                hold.
        """
        self._faults += self._condition_faults(limits)
        self._raise_faults()
        read = self._read(reference)
        signature = self._signature(read.signature)
        examples = self._examples(signature)
        self._raise_faults()
        made = replace(
            read,
            signature=signature,
            examples=examples,
            body=program_to_json(self._parsed.program, self._parsed.name),
            origin=Origin(kind="composite", reference=reference),
        )
        try:
            _ = made.digest  # needed later in any case
        except ValueError as error:
            advice = "Remove half characters such as '\\ud800' from its words and examples."
            message = f"the definition cannot be written as JSON ({error})"
            self._faults.append(Fault(self._parsed.function, "literal", message, advice))
            self._raise_faults()
        return made

    def _read_annotations(self) -> Mapping[str, Any]:
        """Types of the annotated parameters by name, and of ``return``."""
        function = self._parsed.function
        arguments = [*function.args.args, *function.args.kwonlyargs]
        places = [(a.arg, a.annotation, f"the parameter {a.arg!r}") for a in arguments]
        places.append(("return", function.returns, "the result"))
        read = {
            name: read_annotation(annotation, place=place)
            for name, annotation, place in places
            if annotation is not None
        }
        self._faults += [found for found in read.values() if isinstance(found, Fault)]
        for first in arguments[:1]:
            if first.arg in {"self", "cls"} and first.annotation is None:
                message = f"{first.arg!r} would be asked of the model; a composite has no instance"
                advice = "Remove it, and use @staticmethod."
                self._faults.append(Fault(first, "parameter", message, advice))
        return read

    def _condition_faults(self, limits: CompositeLimits | None) -> Iterator[Fault]:
        """The problems of a composite's conditions (L3)."""
        function = self._parsed.function
        names = tuple(parameter.name for parameter in self._parsed.program.parameters)
        conditions = [("pre", text, names) for text in self._options.pre]
        conditions += [("post", text, (*names, _RESULT)) for text in self._options.post]
        if _RESULT in names and any(kind == "post" for kind, _, _ in conditions):
            message = (
                f"the parameter {_RESULT!r} has the name by which postconditions mean the result"
            )
            yield Fault(function, "parameter", message, "Rename the parameter.")
        for kind, text, known in conditions:
            try:
                parse_expression(text, known, limits=limits)
            except CompositeError as error:
                for problem in error.problems:
                    message = f"in the {kind}condition {text!r}: {problem.message}"
                    yield Fault(function, problem.code, message, problem.advice)

    def _read(self, reference: str) -> ToolDefinition:
        """The definition of a function with this head and docstring."""
        annotations = self._annotations
        shape = CallableShape(
            name=self._parsed.name,
            docstring=self._parsed.docstring,
            reference=reference,
            parameters=tuple(
                Parameter(
                    parameter.name,
                    Parameter.KEYWORD_ONLY,
                    annotation=annotations.get(parameter.name, Any),
                    default=parameter.default.value if parameter.default else Parameter.empty,
                )
                for parameter in self._parsed.program.parameters
            ),
            returns=annotations.get("return", Parameter.empty),
        )
        try:
            return read_shape(shape, replace(self._options, examples=())).definition
        except DefinitionError as error:
            advice = "Use a type that JSON has."
            self._faults.append(Fault(self._parsed.function, "annotation", str(error), advice))
            self._raise_faults()
            raise

    def _signature(self, read: Signature) -> Signature:
        """The declared contract; an undeclared result is what the children tell of it."""
        program, children = self._parsed.program, self._parsed.children
        faults, result = type_check(program, read.parameters, children, result=read.result)
        self._faults += faults
        return Signature(
            parameters=read.parameters,
            result=read.result if "return" in self._annotations else result,
            effects=join_effects(c.definition.signature.effects for c in children.values()),
            children=tuple(
                ChildReference(name=name, digest=child.definition.digest)
                for name, child in children.items()
            ),
        )

    def _examples(self, signature: Signature) -> tuple[Example, ...]:
        """The worked calls of the decorator, each once."""
        kept: list[Example] = []
        try:
            made = worked_examples(
                self._options.examples,
                signature.parameters,
                self._parsed.name,
                result=signature.result,
            )
            kept += (one for at, one in enumerate(made) if one not in made[:at])
        except DefinitionError as error:
            self._faults.append(Fault(self._parsed.function, "example", str(error)))
        return tuple(kept)

    def _raise_faults(self) -> None:
        if self._faults:
            raise refusal(self._parsed.name, placed(self._faults, self._parsed.place))


# --- the decorator in a text ----------------------------------------------------------------------


def _read_decorators(parsed: ParsedSource, faults: list[Fault]) -> DefinitionOptions:
    """Read the one decorator allowed; any other is a fault."""
    found: dict[str, Any] = {}
    places: dict[str, ast.expr] = {}
    for at, decorator in enumerate(parsed.function.decorator_list):
        call = decorator if isinstance(decorator, ast.Call) else None
        if at or name_of(decorator) != DECORATOR or (call and call.args):
            message = f"`@{shown(decorator)}` is not applied to a text"
            advice = "Remove it; only one @composite(...), with keywords alone, may stand there."
            faults.append(Fault(decorator, "decorator", message, advice))
            continue
        for keyword in call.keywords if call else ():
            name = keyword.arg or "**"
            if name in _BINDING:
                continue
            places[name] = keyword.value
            try:
                value = ast.literal_eval(keyword.value)
                found[name] = list(value) if isinstance(value, tuple) else value
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                message = f"`{name}` of @composite holds `{shown(keyword.value)}`, no constant"
                faults.append(Fault(keyword.value, "decorator", message))
    owner = "an option of @composite"
    for problem in problems_of(schema_errors(found, _OPTIONS), owner=owner, noun="option"):
        name = re.split(r"[.\[]", problem.path)[0]
        faults.append(Fault(places[name], "decorator", f"{problem.rule}, in @composite"))
        found.pop(name, None)
    return DefinitionOptions(**found)


def name_of(decorator: ast.expr) -> str:
    """The last name of a decorator: ``composite`` for ``@agentkit.composite(...)``."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(named, ast.Attribute):
        return named.attr
    return named.id if isinstance(named, ast.Name) else ""


_TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
_EXAMPLE: JsonObject = {
    "type": "object",
    "properties": {"arguments": {"type": "object"}, "result": {}, "query": {"type": "string"}},
    "required": ["arguments"],
    "additionalProperties": False,
}
_OPTIONS: JsonObject = {
    "properties": {
        **dict.fromkeys(("pre", "post", "text", "tags", "usage_rules"), _TEXTS),
        "description": {"type": "string"},
        "complexity": {"type": "string"},
        "examples": {"type": "array", "items": _EXAMPLE},
    },
    "additionalProperties": False,
}
"""What the decorator in a text may say."""
