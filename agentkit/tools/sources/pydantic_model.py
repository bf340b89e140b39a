"""A definition from a pydantic model: the model is the arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentkit.tools.definition import EffectName, Effects, Origin, ToolDefinition
from agentkit.tools.schema import inline_root
from agentkit.tools.sources.docstrings import read_docstring
from agentkit.tools.sources.pydantic_schema import model_schema

if TYPE_CHECKING:
    from pydantic import BaseModel


def definition_from_model(
    model: type[BaseModel],
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | Iterable[EffectName] = (),
    tags: Iterable[str] = (),
) -> ToolDefinition:
    """A definition whose arguments are the fields of a model.

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
    schema = inline_root(model_schema(model, tool_name=own_name))
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
