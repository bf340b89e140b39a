"""From the text of a composite to its definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentkit.tools.composite import ir
from agentkit.tools.composite.annotations import read_annotation
from agentkit.tools.composite.codec import program_to_json
from agentkit.tools.composite.effects import join_effects
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.composite.parser import Function, parse
from agentkit.tools.definition import ChildReference, Origin, ToolDefinition
from agentkit.tools.sources.function import DefinitionOptions, read_shape
from agentkit.tools.sources.parameters import CallableShape, Parameter
from agentkit.tools.tool import Tool


def compose(
    source: str,
    tools: Mapping[str, Tool],
    *,
    limits: CompositeLimits | None = None,
    reference: str = "",
) -> ToolDefinition:
    """The definition of a composite from its text."""
    parsed = parse(source, tools, limits=limits)
    shape = _shape(parsed.function, parsed.program, parsed.docstring, reference)
    definition = read_shape(shape, DefinitionOptions()).definition
    children = {tool.name: tool for tool in tools.values()}
    called = [
        children[name] for name in dict.fromkeys(call.child for call in ir.calls(parsed.program))
    ]
    return replace(
        definition,
        signature=replace(
            definition.signature,
            effects=join_effects(child.definition.signature.effects for child in called),
            children=tuple(
                ChildReference(name=child.name, digest=child.definition.digest) for child in called
            ),
        ),
        body=program_to_json(parsed.program),
        origin=Origin(kind="composite", reference=reference),
    )


def _shape(
    function: Function, program: ir.Program, docstring: str, reference: str
) -> CallableShape:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    parameters = []
    for argument, parameter in zip(arguments, program.parameters, strict=True):
        annotation: Any = Any
        if argument.annotation is not None:
            annotation = read_annotation(argument.annotation, place=f"parameter {argument.arg!r}")
        default = parameter.default
        parameters.append(
            Parameter(
                name=argument.arg,
                annotation=annotation,
                default=None if default is None else default.value,
                is_required=default is None,
            )
        )
    returns: Any = None
    if function.returns is not None:
        returns = read_annotation(function.returns, place="the result")
    return CallableShape(
        name=function.name,
        docstring=docstring,
        reference=reference,
        parameters=tuple(parameters),
        returns=returns,
        is_annotated=function.returns is not None,
        is_async=False,
    )
