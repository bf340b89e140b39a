"""Definitions, and the conversion of arguments, from Python functions and pydantic models.

Annotations give the contract (L1) and the docstring the words (L2); what a call may raise is worded
in L3. Pydantic is imported when the first annotation is met
that needs it, such as an enum, a date or a constraint.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from agentkit.errors import DefinitionError, ModelRetry, UsageError
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
from agentkit.tools.invocation import current_context
from agentkit.tools.schema import detach_descriptions, inline_root
from agentkit.tools.schema_validator import fits
from agentkit.tools.sources.annotations import (
    CallableShape,
    annotation_text,
    is_required,
    plain_schema,
    read_callable,
)
from agentkit.tools.sources.docstrings import DocstringText, read_docstring
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionOptions:
    """An author's statements about a tool; they take precedence over the code.

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


def read_function(function: Callable[..., Any], options: DefinitionOptions | None = None) -> Tool:
    """Read a function's annotations and docstring, as a tool that is not yet bound to it.

    Args:
        function: A function, bound method, ``functools.partial`` or object with ``__call__``.
        options: What its author says beside the code.

    Raises:
        DefinitionError: A model cannot call it, or an example breaks its schema.

    Example:
        >>> def area(width: float, height: float = 1.0) -> float:
        ...     '''Area of a rectangle.
        ...
        ...     Args:
        ...         width: In metres.
        ...     '''
        ...     return width * height
        >>> definition = read_function(area).definition
        >>> definition.text, definition.signature.required, definition.description.parameters
        ('Area of a rectangle.', ('width',), {'width': 'In metres.'})
    """
    options = options or DefinitionOptions()
    return read_shape(read_callable(function, name=options.name), options)


def read_shape(shape: CallableShape, options: DefinitionOptions) -> Tool:
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
    words = read_docstring(shape.docstring)
    schema, converted = _parameters_schema(shape.parameters, name)
    bare, texts = detach_descriptions(schema)
    documented = {key: text for key, text in words.parameters.items() if key in names and text}
    result, effects = _result_schema(shape, words, name), options.effects
    effects = effects if isinstance(effects, Effects) else Effects.of(effects)
    definition = ToolDefinition(
        name=name,
        signature=Signature(parameters=bare, result=result, effects=effects),
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
        examples=worked_examples(options.examples, schema, name),
        origin=Origin(kind="function", reference=shape.reference),
    )
    convert: dict[str, Any] = {}
    if converted or shape.context:
        taken = shape.context.name if shape.context else ""
        convert["convert"] = _converter(converted, context=taken, tool_name=name)
    return Tool(
        definition=definition,
        is_async=shape.is_async,
        context=shape.context.annotation if shape.context else None,
        **convert,
    )


def _parameters_schema(
    parameters: Sequence[inspect.Parameter], tool_name: str
) -> tuple[dict[str, Any], Mapping[str, TypeAdapter[Any]]]:
    """The schema of the arguments, and by name what converts those that JSON cannot hold."""
    plain = {p.name: plain_schema(p.annotation) for p in parameters}
    others = [p for p in parameters if plain[p.name] is None]
    adapters = _adapters(others, tool_name) if others else {}
    found, definitions = _pydantic_properties(others, adapters, tool_name) if others else ({}, {})
    properties: dict[str, Any] = {}
    for one in parameters:
        schema = plain[one.name]
        if schema is None:
            schema = found[one.name]
        elif not is_required(one) and is_json(one.default):
            schema["default"] = one.default
        text = annotation_text(one.annotation)  # a Field's text takes precedence
        properties[one.name] = {"description": text, **schema} if text else schema
    required = [p.name for p in parameters if is_required(p)]
    schema = {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }
    return schema, {p.name: adapters[p.name] for p in others if _needs_conversion(p.annotation)}


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
    if shape.returns is inspect.Parameter.empty:
        return None
    schema = plain_schema(shape.returns)
    if schema is None:
        place = "the return value"
        schema = pydantic_schema(shape.returns, tool_name=tool_name, place=place)
    if not schema:
        return None
    return {**schema, "description": words.returns} if words.returns else schema


def worked_examples(
    examples: Iterable[Example | JsonObject],
    schema: JsonObject,
    tool_name: str,
    *,
    result: JsonObject | None = None,
) -> tuple[Example, ...]:
    """Worked calls as records.

    Args:
        examples: The calls, as ``Example`` or as its JSON form.
        schema: The schema of the arguments.
        tool_name: For messages.
        result: The schema that known results fit; None where they are not checked.

    Raises:
        DefinitionError: One is no call, is not JSON, or does not fit.
    """
    own: list[Example] = []
    for one in examples:
        try:
            example = one if isinstance(one, Example) else Example(**one)
            arguments = dict(example.arguments)
        except (TypeError, ValueError) as error:
            why = f"an example has arguments, and may have result and query; got {one!r}"
            raise _refused(tool_name, why) from error
        if fits(arguments, schema) is False or not is_json([arguments, example.result]):
            why = (
                f"the example {arguments!r} breaks the tool's own schema {schema!r}; write the "
                "arguments as JSON that fits"
            )
            raise _refused(tool_name, why)
        is_known = example.result is not None and result is not None
        if is_known and fits(example.result, result, root=result) is False:
            raise _refused(tool_name, f"the result {example.result!r} of an example does not fit")
        own.append(example)
    return tuple(own)


def _refused(tool_name: str, why: str) -> DefinitionError:
    return DefinitionError(f"tool {tool_name}: {why}", tool_name=tool_name)


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
        raise UsageError(f"{place} cannot be imported ({type(error).__name__}: {error})") from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    name = f"agentkit_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: Python cannot load this file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations and dataclasses look their module up here
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # files beside it, as 'python file.py' finds them
    spec.loader.exec_module(module)
    return module


# --- what needs pydantic --------------------------------------------------------------------------

_ADVICE = (
    "use str, int, float, bool, list, dict, Literal, Enum, date, datetime, a dataclass, a "
    "TypedDict or a pydantic model"
)
_NOT_FOR_MODELS = (
    "; a value that the model is not to write, such as a database handle, comes with the run: take "
    "`ctx: RunContext[...]` as first parameter and read ctx.deps, or bind it with functools.partial"
)


def _adapters(
    parameters: Sequence[inspect.Parameter], tool_name: str
) -> dict[str, TypeAdapter[Any]]:
    """Pydantic's adapter of each parameter, inside a list.

    A dataclass or TypedDict alone takes no configuration from outside.

    Raises:
        DefinitionError: Pydantic has no schema for a parameter; the message names it.
    """
    from pydantic import ConfigDict, Field, TypeAdapter

    adapters: dict[str, TypeAdapter[Any]] = {}
    for one in parameters:
        annotation = one.annotation
        if not is_required(one):
            annotation = Annotated[annotation, Field(default=one.default)]
        try:
            inside: Any = types.GenericAlias(list, (annotation,))
            adapters[one.name] = TypeAdapter(inside, config=ConfigDict(extra="forbid"))
            adapters[one.name].json_schema(schema_generator=_generator())
        except _pydantic_errors() as error:
            place = f"parameter {one.name!r}"
            raise _unusable(one.annotation, error, tool_name=tool_name, place=place) from error
    return adapters


def _pydantic_properties(
    parameters: Sequence[inspect.Parameter],
    adapters: Mapping[str, TypeAdapter[Any]],
    tool_name: str,
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each parameter, and the ``$defs`` that these refer to."""
    from pydantic import TypeAdapter

    found, shared = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()],
        schema_generator=_generator(),
    )
    in_order = _generator()().sort
    properties = {name: in_order(found[name, "validation"]["items"]) for name in adapters}
    for one in parameters:
        schema = properties[one.name]
        if "default" in schema and is_required(one):
            why = (
                f"the default of {one.name!r} stands inside Annotated, where Python does not see "
                f"it; write `{one.name}: Annotated[...] = <default>`"
            )
            raise _refused(tool_name, why)
        if not is_json(schema.get("default")):  # such as infinity
            del schema["default"]
    return properties, _untitled(in_order(shared)).get("$defs", {})


def pydantic_schema(annotation: Any, *, tool_name: str, place: str) -> dict[str, Any]:
    """The schema of one annotation as JSON writes its values.

    Args:
        annotation: A resolved annotation.
        tool_name: For messages.
        place: What it annotates, for messages.

    Raises:
        DefinitionError: Pydantic has no schema for it.
    """
    from pydantic import TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        schema = adapter.json_schema(mode="serialization", schema_generator=_generator())
    except _pydantic_errors() as error:
        raise _unusable(annotation, error, tool_name=tool_name, place=place) from error
    return inline_root(_untitled(schema))


def _pydantic_errors() -> tuple[type[Exception], ...]:
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
    from pydantic_core import SchemaError

    return (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, NameError)


def _generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Makes up no titles, and leaves out a default that JSON cannot hold without a warning."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as in its base

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Generator


def _untitled(schema: JsonObject) -> dict[str, Any]:
    """The schema without the titles of its classes, which are their names."""
    bare = {key: part for key, part in schema.items() if key != "title"}
    if "$defs" in bare:
        bare["$defs"] = {name: _untitled(part) for name, part in bare["$defs"].items()}
    return bare


def _unusable(annotation: Any, error: Exception, *, tool_name: str, place: str) -> DefinitionError:
    is_plain = isinstance(annotation, type) and not typing.get_args(annotation)
    shown = annotation.__name__ if is_plain else str(annotation)
    reason = str(error).strip().splitlines()[0]
    advice = f"{_ADVICE}{_NOT_FOR_MODELS * place.startswith('parameter')}"
    why = f"{place} is annotated {shown}, which has no JSON Schema ({reason}); {advice}"
    return _refused(tool_name, why)


def _needs_conversion(annotation: Any) -> bool:
    """Whether values that fit the schema are not yet what the function expects."""
    if plain_schema(annotation) is not None:
        return False
    if typing.get_origin(annotation) is not Annotated:
        return True
    inner, *extras = typing.get_args(annotation)
    return plain_schema(inner) is None or not all(map(_only_constrains, extras))


def _only_constrains(extra: Any) -> bool:
    """Whether this part of an annotation only describes or restricts values."""
    if isinstance(extra, str) or type(extra).__module__.startswith("annotated_types"):
        return True
    if type(extra).__name__ != "FieldInfo":
        return False
    return all(type(item).__module__.startswith("annotated_types") for item in extra.metadata)


def _converter(
    adapters: Mapping[str, TypeAdapter[Any]], *, context: str, tool_name: str
) -> Callable[[JsonObject], JsonObject]:
    """What makes Python values of validated arguments, and adds the context of the call."""

    def convert(arguments: JsonObject) -> JsonObject:
        values: dict[str, Any] = {context: current_context(tool_name)} if context else {}
        broken: list[str] = []  # rules that a schema cannot state; the values are left out
        for name in (one for one in adapters if one in arguments):
            try:
                (values[name],) = adapters[name].validate_python([arguments[name]])
            except ValueError as error:
                broken += _broken_rules(name, error)
        if broken:
            raise ModelRetry("; ".join(broken))
        return {**arguments, **values} if values else arguments

    return convert


def _broken_rules(name: str, error: ValueError) -> Iterator[str]:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        raise error
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        yield f"`{'.'.join(map(str, (name, *one['loc'][1:])))}`: {one['msg']}"
