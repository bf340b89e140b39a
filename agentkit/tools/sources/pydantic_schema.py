"""JSON Schema and conversion of annotations that need pydantic: models, enums, dates, constraints.

Pydantic is imported when the first such annotation is met.
"""

from __future__ import annotations

import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from agentkit.errors import DefinitionError, ModelRetry
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.schema import inline_root
from agentkit.tools.sources.annotations import plain_schema
from agentkit.tools.sources.parameters import Parameter

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema


_ADVICE = (
    "use str, int, float, bool, list, dict, Literal, Enum, date, datetime, a dataclass, a "
    "TypedDict or a pydantic model; or bind the value with functools.partial, which hides it from "
    "the model"
)
_NOT_IN_KEYS = re.compile(r"[^a-zA-Z0-9.\-_]")


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
    model, titled = _arguments_model(parameters, tool_name)
    schema = without_titles(titled)
    properties = schema.get("properties", {})
    _refuse_hidden_defaults(parameters, schema, tool_name)
    fields = {f"p{at}": parameter for at, parameter in enumerate(parameters)}
    converted = {key: p.name for key, p in fields.items() if _needs_conversion(p.annotation)}
    return PydanticParameters(
        properties={p.name: _finite_default(properties[p.name]) for p in parameters},
        definitions=schema.get("$defs", {}),
        convert=_converter(model, fields, converted) if converted else None,
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
        adapter: TypeAdapter[Any] = TypeAdapter(portable(annotation))
        schema = adapter.json_schema(mode="serialization", schema_generator=_generator())
    except _pydantic_errors() as error:
        raise _unusable(annotation, error, tool_name=tool_name, place=place) from error
    return inline_root(without_titles(schema))


def model_schema(model: type[BaseModel], *, tool_name: str) -> dict[str, Any]:
    """The schema of a model's fields.

    Raises:
        DefinitionError: It is not a pydantic model, or a field has no schema.
    """
    from pydantic import BaseModel

    given: Any = model
    if not (isinstance(given, type) and issubclass(given, BaseModel)):
        raise DefinitionError(
            f"tool {tool_name}: {model!r} is not a subclass of pydantic.BaseModel",
            tool_name=tool_name,
        )
    try:
        return without_titles(model.model_json_schema(schema_generator=_generator()))
    except _pydantic_errors() as error:
        raise _unusable(model, error, tool_name=tool_name, place="it") from error


def without_titles(schema: JsonObject) -> dict[str, Any]:
    """The schema without the titles that pydantic makes up from names; chosen titles stay."""
    bare = _untitled(schema, "")
    bare.pop("title", None)
    return bare


def _pydantic_errors() -> tuple[type[Exception], ...]:
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
    from pydantic_core import SchemaError

    return (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, NameError)


def _generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Leaves a default that JSON can not hold out of the schema without a warning."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as in its base

    return Generator


def _arguments_model(
    parameters: Sequence[Parameter], tool_name: str
) -> tuple[type[BaseModel], dict[str, Any]]:
    try:
        return _model(parameters, tool_name)
    except _pydantic_errors() as error:
        for parameter in parameters:  # one at a time, to find the one to blame
            try:
                _model([parameter], tool_name)
            except _pydantic_errors() as cause:
                place = f"parameter {parameter.name!r}"
                raise _unusable(
                    parameter.annotation, cause, tool_name=tool_name, place=place
                ) from cause
        raise _unusable("its parameters", error, tool_name=tool_name, place="it") from error


def _model(
    parameters: Sequence[Parameter], tool_name: str
) -> tuple[type[BaseModel], dict[str, Any]]:
    """A model whose fields have neutral names, so that a parameter may be called ``schema``."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for at, parameter in enumerate(parameters):
        default = ... if parameter.is_required else parameter.default
        annotation = portable(parameter.annotation)
        fields[f"p{at}"] = (annotation, Field(default, alias=parameter.name))
    config = ConfigDict(extra="forbid", validate_default=False)
    model: type[BaseModel] = create_model(f"{tool_name}_arguments", __config__=config, **fields)
    return model, model.model_json_schema(schema_generator=_generator())


def _unusable(annotation: Any, error: Exception, *, tool_name: str, place: str) -> DefinitionError:
    shown = annotation if isinstance(annotation, str) else _shown(annotation)
    reason = str(error).strip().splitlines()[0]
    return DefinitionError(
        f"tool {tool_name}: {place} is annotated {shown}, which has no JSON Schema ({reason}); "
        f"{_ADVICE}",
        tool_name=tool_name,
    )


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _refuse_hidden_defaults(
    parameters: Sequence[Parameter], schema: JsonObject, tool_name: str
) -> None:
    for parameter in parameters:
        if parameter.is_required and parameter.name not in schema.get("required", ()):
            raise DefinitionError(
                f"tool {tool_name}: the default of {parameter.name!r} stands inside Annotated, "
                f"where Python does not see it; write `{parameter.name}: Annotated[...] = "
                "<default>`",
                tool_name=tool_name,
            )


def _finite_default(schema: dict[str, Any]) -> dict[str, Any]:
    """Without a default that JSON can not write, such as infinity."""
    if "default" in schema and not is_json(schema["default"]):
        return {key: item for key, item in schema.items() if key != "default"}
    return schema


def _untitled(schema: JsonObject, name: str) -> dict[str, Any]:
    bare = {key: _untitled_rule(key, rule) for key, rule in schema.items()}
    title = bare.get("title")
    if isinstance(title, str) and name and _is_made_up(title, name):
        del bare["title"]
    return bare


def _untitled_rule(keyword: str, rule: Any) -> Any:
    if keyword in {"default", "const", "enum", "examples"}:
        return rule
    if keyword in {"properties", "$defs", "patternProperties"} and isinstance(rule, Mapping):
        return {name: _untitled(part, name) for name, part in rule.items()}
    if isinstance(rule, Mapping):
        return _untitled(rule, "")
    if isinstance(rule, list):
        return [_untitled(item, "") if isinstance(item, Mapping) else item for item in rule]
    return rule


def _is_made_up(title: str, name: str) -> bool:
    from_field = name.title().replace("_", " ").strip()
    return title == from_field or name.endswith(_NOT_IN_KEYS.sub("_", title))


def _needs_conversion(annotation: Any) -> bool:
    """Whether values that fit the schema are not yet what the function expects."""
    if plain_schema(annotation) is not None:
        return False
    if typing.get_origin(annotation) is not typing.Annotated:
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
    model: type[BaseModel], fields: Mapping[str, Parameter], converted: Mapping[str, str]
) -> Callable[[JsonObject], JsonObject]:
    from pydantic import ValidationError

    names = [parameter.name for parameter in fields.values()]

    def convert(arguments: JsonObject) -> JsonObject:
        given = {name: arguments[name] for name in names if name in arguments}
        if not given:
            return arguments
        try:
            values = model.model_validate(given)
        except ValidationError as error:  # rules that a schema can not state
            raise ModelRetry(_broken_rules(error)) from error
        return {
            **arguments,
            **{name: getattr(values, key) for key, name in converted.items() if name in given},
        }

    return convert


def _broken_rules(error: Any) -> str:
    """Every broken rule in one line each; the values themselves are left out."""
    return "; ".join(
        f"`{'.'.join(map(str, problem['loc'])) or 'arguments'}`: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    )


def portable(annotation: Any) -> Any:
    """The annotation with ``typing.TypedDict`` as pydantic accepts it on this Python.

    Before Python 3.12 pydantic insists on ``typing_extensions.TypedDict``, because the one in
    ``typing`` forgot which keys are required when classes are inherited.
    """
    if sys.version_info >= (3, 12):
        return annotation
    return _portable(annotation, frozenset())


def _portable(annotation: Any, within: frozenset[Any]) -> Any:
    if typing.is_typeddict(annotation):
        return annotation if annotation in within else _typed_dict(annotation, within)
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if not arguments or origin in {typing.Literal, typing.Callable}:
        return annotation
    if origin is typing.Annotated:
        inner = _portable(arguments[0], within)
        return annotation if inner is arguments[0] else typing.Annotated[inner, *arguments[1:]]
    replaced = tuple(_portable(item, within) for item in arguments)
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return annotation
    if not hasattr(annotation, "copy_with"):  # list[X] and X | Y
        return reduce(or_, replaced) if origin is types.UnionType else origin[replaced]
    return annotation.copy_with(replaced)


def _typed_dict(kind: Any, within: frozenset[Any]) -> Any:
    import typing_extensions

    if type(kind).__module__ == "typing_extensions":
        return kind
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: dict[str, Any] = {}
    for key, hint in hints.items():
        required = key in kind.__required_keys__
        inner = hint
        if typing.get_origin(hint) in {typing.Required, typing.NotRequired}:
            # Python 3.11 overlooks the marker when annotations are strings, so it goes first.
            required = typing.get_origin(hint) is typing.Required
            (inner,) = typing.get_args(hint)
        inner = _portable(inner, within | {kind})
        marker = typing_extensions.Required if required else typing_extensions.NotRequired
        fields[key] = marker[inner]
    make: Any = typing_extensions.TypedDict  # the functional form, with computed fields
    made = make(kind.__name__, fields)
    made.__doc__ = kind.__doc__
    return made
