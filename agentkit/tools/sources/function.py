"""A definition, and the conversion of arguments, from a Python function.

Annotations give the contract (L1), the docstring gives the words (L2) and the worked examples
(L4); what a call may raise is worded in L3.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from agentkit.errors import DefinitionError, UsageError
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import (
    Description,
    EffectName,
    Effects,
    Example,
    Origin,
    Signature,
    Specification,
    ToolDefinition,
)
from agentkit.tools.schema import detach_descriptions
from agentkit.tools.schema_validator import fits
from agentkit.tools.sources.annotations import (
    CallableShape,
    Parameter,
    annotation_text,
    plain_schema,
    read_callable,
)
from agentkit.tools.sources.docstrings import DocstringText, read_docstring
from agentkit.tools.sources.pydantic_schema import pydantic_parameters, pydantic_schema


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionOptions:
    """What an author says about a tool beside its code; it wins over what the code says.

    Attributes:
        name: The name; the function's own when None.
        description: The summary; the docstring's when None.
        effects: Names of effects that hold, or all of them.
        tags: Free labels.
        usage_rules: One rule a sentence, shown after the summary.
        pre: Expressions over the parameters that hold before a call.
        post: Expressions over the parameters and ``result`` that hold after it.
        text: Conditions in words.
        complexity: Cost in words.
        examples: Worked calls, as ``Example`` or as its JSON form.
    """

    name: str | None = None
    description: str | None = None
    effects: Effects | Iterable[EffectName] = ()
    tags: Iterable[str] = ()
    usage_rules: Iterable[str] = ()
    pre: Iterable[str] = ()
    post: Iterable[str] = ()
    text: Iterable[str] = ()
    complexity: str = ""
    examples: Iterable[Example | JsonObject] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionReading:
    """What a function says about itself.

    Attributes:
        definition: The definition.
        convert: Turns validated JSON arguments into the values that the function expects; None
            when JSON values will do.
        is_async: Whether calling it gives a coroutine.
    """

    definition: ToolDefinition
    convert: Callable[[JsonObject], JsonObject] | None
    is_async: bool


def definition_from_function(
    function: Callable[..., Any], options: DefinitionOptions | None = None
) -> ToolDefinition:
    """The definition alone; see ``read_function``.

    Example:
        >>> def area(width: float, height: float = 1.0) -> float:
        ...     '''Area of a rectangle.
        ...
        ...     Args:
        ...         width: In metres.
        ...     '''
        ...     return width * height
        >>> definition = definition_from_function(area)
        >>> definition.text, definition.signature.required, definition.description.parameters
        ('Area of a rectangle.', ('width',), {'width': 'In metres.'})
    """
    return read_function(function, options).definition


def read_function(
    function: Callable[..., Any], options: DefinitionOptions | None = None
) -> FunctionReading:
    """Read a function's annotations and docstring.

    Args:
        function: A function, bound method, ``functools.partial`` or object with ``__call__``.
        options: What its author says beside the code.

    Raises:
        DefinitionError: A model can not call it, or an example breaks its schema.
    """
    options = options or DefinitionOptions()
    return read_shape(read_callable(function, name=options.name), options)


def read_shape(shape: CallableShape, options: DefinitionOptions) -> FunctionReading:
    """The same from what is known of a function, which need not exist: a text gives a shape too.

    Args:
        shape: Name, parameters, returned value and docstring.
        options: What its author says beside the code.

    Raises:
        DefinitionError: A parameter has no schema, or an example breaks it.
    """
    name = options.name or shape.name
    if not name:
        raise DefinitionError("a lambda has no name; write tool(function, name=...)")
    names = [parameter.name for parameter in shape.parameters]
    words = read_docstring(shape.docstring, function_name=shape.name, parameters=names)
    schema, convert = _parameters_schema(shape.parameters, name)
    bare, texts = detach_descriptions(schema)
    documented = {key: text for key, text in words.parameters.items() if key in names and text}
    result = _result_schema(shape, words, name)
    definition = ToolDefinition(
        name=name,
        signature=Signature(parameters=bare, result=result, effects=_effects(options.effects)),
        description=Description(
            summary=words.summary if options.description is None else options.description,
            tags=tuple(options.tags),
            parameters=_in_order(names, {**documented, **texts}),
            usage_rules=tuple(options.usage_rules),
        ),
        specification=Specification(
            pre=tuple(options.pre),
            post=tuple(options.post),
            text=(*options.text, *words.raises),
            complexity=options.complexity,
        ),
        examples=_examples(options.examples, words.examples, schema, name),
        origin=Origin(kind="function", reference=shape.reference),
    )
    return FunctionReading(definition=definition, convert=convert, is_async=shape.is_async)


def _effects(given: Effects | Iterable[EffectName]) -> Effects:
    return given if isinstance(given, Effects) else Effects.of(given)


def _parameters_schema(
    parameters: Sequence[Parameter], tool_name: str
) -> tuple[dict[str, Any], Callable[[JsonObject], JsonObject] | None]:
    plain = {p.name: _plain_property(p) for p in parameters}
    others = [p for p in parameters if plain[p.name] is None]
    read = pydantic_parameters(others, tool_name=tool_name) if others else None
    found = {p.name: _with_text(read.properties[p.name], p) for p in others} if read else {}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {p.name: plain[p.name] or found.get(p.name, {}) for p in parameters},
        "required": [p.name for p in parameters if p.is_required],
        "additionalProperties": False,
    }
    if not schema["required"]:
        del schema["required"]
    if read and read.definitions:
        schema["$defs"] = dict(read.definitions)
    return schema, read.convert if read else None


def _plain_property(parameter: Parameter) -> dict[str, Any] | None:
    schema = plain_schema(parameter.annotation)
    if schema is None:
        return None
    if not parameter.is_required and is_json(parameter.default):
        schema["default"] = parameter.default
    return _with_text(schema, parameter)


def _with_text(schema: dict[str, Any], parameter: Parameter) -> dict[str, Any]:
    """With the words in ``Annotated[..., "words"]``; those of a Field go first."""
    text = annotation_text(parameter.annotation)
    return {"description": text, **schema} if text else schema


def _in_order(names: Sequence[str], texts: Mapping[str, str]) -> dict[str, str]:
    """Texts in the order of the parameters; nested ones behind their own parameter's."""
    place = {name: at for at, name in enumerate(names)}

    def key(path: str) -> int:
        return place.get(path.split(".", 1)[0].split("[", 1)[0], len(place))

    return dict(sorted(texts.items(), key=lambda item: key(item[0])))


def _result_schema(
    shape: CallableShape, words: DocstringText, tool_name: str
) -> dict[str, Any] | None:
    """The schema of the returned value with the words on it; None when nothing is declared."""
    if not shape.is_annotated:
        return None
    schema = plain_schema(shape.returns)
    if schema is None:
        place = "the return value"
        schema = pydantic_schema(shape.returns, tool_name=tool_name, place=place)
    if not schema:
        return None
    return {**schema, "description": words.returns} if words.returns else schema


def _examples(
    given: Iterable[Example | JsonObject],
    documented: Iterable[Example],
    schema: JsonObject,
    tool_name: str,
) -> tuple[Example, ...]:
    own = [
        example if isinstance(example, Example) else _as_example(example, tool_name)
        for example in given
    ]
    for example in own:
        if fits(dict(example.arguments), schema) is False or not is_json(dict(example.arguments)):
            raise DefinitionError(
                f"tool {tool_name}: the example {dict(example.arguments)!r} breaks the tool's own "
                f"schema {schema!r}; write the arguments as JSON that fits",
                tool_name=tool_name,
            )
    return (*own, *(e for e in documented if fits(dict(e.arguments), schema) is not False))


def _as_example(record: JsonObject, tool_name: str) -> Example:
    try:
        return Example(**record)
    except TypeError as error:
        raise DefinitionError(
            f"tool {tool_name}: an example has arguments, and may have result and query; got "
            f"{record!r}",
            tool_name=tool_name,
        ) from error


def import_place(place: str) -> ModuleType:
    """Import a module, or run a Python file as one. The code in it runs.

    Args:
        place: A dotted name, looked up in the working directory too, or a path that ends in
            ``.py``. Modules beside the file can be imported by it.

    Raises:
        UsageError: There is no such file, or importing it failed.
    """
    try:
        if place.endswith(".py"):
            return _import_file(Path(place))
        if "" not in sys.path:
            sys.path.insert(0, "")  # modules of the working directory, as 'python -m' finds them
        return importlib.import_module(place)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{place} can not be imported ({type(error).__name__}: {error})"
        ) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    name = f"agentkit_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: Python can not load this file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations and dataclasses look their module up here
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # files beside it, as 'python file.py' finds them
    spec.loader.exec_module(module)
    return module
