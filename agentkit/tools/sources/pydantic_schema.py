"""What needs pydantic: models as arguments, and annotations such as enums, dates and constraints.

Pydantic is imported when the first such annotation is met.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from agentkit.errors import DefinitionError, ModelRetry
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import EffectName, Effects, Origin, ToolDefinition
from agentkit.tools.schema import inline_root
from agentkit.tools.sources.annotations import Parameter, plain_schema
from agentkit.tools.sources.docstrings import read_docstring

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

_ADVICE = (
    "use str, int, float, bool, list, dict, Literal, Enum, date, datetime, a dataclass, a "
    "TypedDict or a pydantic model; or bind the value with functools.partial, which hides it from "
    "the model"
)
_NOT_IN_KEYS = re.compile(r"[^a-zA-Z0-9.\-_]")


def definition_from_model(
    model: type[BaseModel],
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | Iterable[EffectName] = (),
    tags: Iterable[str] = (),
) -> ToolDefinition:
    """A definition whose arguments are the fields of a pydantic model.

    The model's docstring is the summary, its ``Attributes`` section and field descriptions are
    the words on the parameters. Unless the model itself says what happens to ``extra`` fields,
    arguments beyond its fields are refused.

    Args:
        model: The class.
        name: The tool's name; the class's name when None.
        description: The summary; the docstring's when None.
        effects: What running the tool does.
        tags: Free labels.

    Raises:
        DefinitionError: It is not a pydantic model, or it has no JSON Schema.

    Example:
        >>> from pydantic import BaseModel
        >>> class FindCars(BaseModel):
        ...     '''Find cars in stock.'''
        ...     make: str
        >>> definition_from_model(FindCars, name="find_cars").signature.required
        ('make',)
    """
    own_name = name or str(getattr(model, "__name__", model))
    schema = inline_root(_model_schema(model, own_name))
    schema.pop("description", None)
    schema.setdefault("properties", {})
    if "extra" not in model.model_config:
        schema["additionalProperties"] = False
    words = read_docstring(model.__dict__.get("__doc__"))
    for parameter, text in words.parameters.items():
        if parameter in schema["properties"] and text:
            schema["properties"][parameter].setdefault("description", text)
    return ToolDefinition.from_schema(
        own_name,
        words.summary if description is None else description,
        schema,
        effects=effects if isinstance(effects, Effects) else Effects.of(effects),
        tags=tags,
        origin=Origin(kind="pydantic", reference=f"{model.__module__}.{model.__qualname__}"),
    )


def _model_schema(model: type[BaseModel], tool_name: str) -> dict[str, Any]:
    from pydantic import BaseModel

    given: Any = model
    if not (isinstance(given, type) and issubclass(given, BaseModel)):
        raise DefinitionError(
            f"tool {tool_name}: {model!r} is not a subclass of pydantic.BaseModel",
            tool_name=tool_name,
        )
    try:
        return _untitled(model.model_json_schema(schema_generator=_generator()))
    except _pydantic_errors() as error:
        raise _unusable(model, error, tool_name=tool_name, place="it") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class PydanticParameters:
    """What pydantic says of some parameters.

    Attributes:
        properties: Schema of each by name.
        definitions: The ``$defs`` that those schemas refer to.
        convert: Turns their JSON values into Python values; None when JSON values will do.
    """

    properties: Mapping[str, dict[str, Any]]
    definitions: Mapping[str, Any]
    convert: Callable[[JsonObject], JsonObject] | None


def pydantic_parameters(parameters: Sequence[Parameter], *, tool_name: str) -> PydanticParameters:
    """Ask pydantic for the schema and the conversion of parameters.

    Args:
        parameters: Those that ``plain_schema`` does not know.
        tool_name: For messages.

    Raises:
        DefinitionError: Pydantic has no schema for a parameter; the message names it.
    """
    from pydantic import ConfigDict, Field, TypeAdapter

    # Inside a list, since a dataclass or TypedDict by itself takes no configuration from outside.
    closed = ConfigDict(extra="forbid")
    adapters: dict[str, TypeAdapter[Any]] = {}
    for parameter in parameters:
        annotation = parameter.annotation
        if not parameter.is_required:
            annotation = Annotated[annotation, Field(default=parameter.default)]
        try:
            inside: Any = types.GenericAlias(list, (annotation,))
            adapters[parameter.name] = TypeAdapter(inside, config=closed)
            adapters[parameter.name].json_schema(schema_generator=_generator())
        except _pydantic_errors() as error:
            place = f"parameter {parameter.name!r}"
            raise _unusable(
                parameter.annotation, error, tool_name=tool_name, place=place
            ) from error
    found, shared = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()],
        schema_generator=_generator(),
    )
    in_order = _generator()().sort
    properties = {name: in_order(found[name, "validation"]["items"]) for name in adapters}
    for parameter in parameters:
        if "default" not in properties[parameter.name]:
            continue
        if parameter.is_required:
            raise DefinitionError(
                f"tool {tool_name}: the default of {parameter.name!r} stands inside Annotated, "
                f"where Python does not see it; write `{parameter.name}: Annotated[...] = "
                "<default>`",
                tool_name=tool_name,
            )
        if not is_json(properties[parameter.name]["default"]):  # such as infinity
            del properties[parameter.name]["default"]
    converted = {p.name: adapters[p.name] for p in parameters if _needs_conversion(p.annotation)}
    return PydanticParameters(
        properties=properties,
        definitions=_untitled(in_order(shared)).get("$defs", {}),
        convert=_converter(converted) if converted else None,
    )


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
        """Makes up no titles, and leaves out a default that JSON can not hold without a warning."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as in its base

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Generator


def _untitled(schema: JsonObject) -> dict[str, Any]:
    """The schema without the titles that are names of classes; chosen titles stay."""
    bare = {key: part for key, part in schema.items() if key != "title"}
    if "$defs" in bare:
        bare["$defs"] = {name: _named(part, name) for name, part in bare["$defs"].items()}
    return bare


def _named(part: JsonObject, name: str) -> JsonObject:
    title = part.get("title")
    if not isinstance(title, str) or not name.endswith(_NOT_IN_KEYS.sub("_", title)):
        return part
    return {key: rule for key, rule in part.items() if key != "title"}


def _unusable(annotation: Any, error: Exception, *, tool_name: str, place: str) -> DefinitionError:
    is_plain = isinstance(annotation, type) and not typing.get_args(annotation)
    shown = annotation.__name__ if is_plain else str(annotation)
    reason = str(error).strip().splitlines()[0]
    return DefinitionError(
        f"tool {tool_name}: {place} is annotated {shown}, which has no JSON Schema ({reason}); "
        f"{_ADVICE}",
        tool_name=tool_name,
    )


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


def _converter(adapters: Mapping[str, TypeAdapter[Any]]) -> Callable[[JsonObject], JsonObject]:
    from pydantic import ValidationError

    def convert(arguments: JsonObject) -> JsonObject:
        values: dict[str, Any] = {}
        broken: list[str] = []  # rules that a schema can not state; the values are left out
        for name, adapter in adapters.items():
            if name not in arguments:
                continue
            try:
                (values[name],) = adapter.validate_python([arguments[name]])
            except ValidationError as error:
                found = error.errors(include_url=False, include_context=False, include_input=False)
                places = [".".join(map(str, (name, *one["loc"][1:]))) for one in found]
                broken += [f"`{at}`: {one['msg']}" for at, one in zip(places, found, strict=True)]
        if broken:
            raise ModelRetry("; ".join(broken))
        return {**arguments, **values} if values else arguments

    return convert
