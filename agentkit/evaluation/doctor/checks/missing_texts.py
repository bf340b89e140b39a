"""Texts that are not there."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed
from agentkit.evaluation.doctor.parts import parts
from agentkit.tools.definition import ToolDefinition

NO_SUMMARY = Kind(
    code="no_description",
    severity="error",
    title="no description",
    why="Neither the retriever nor the model can tell what it is for, except from its name.",
    advice="Say in a sentence what it does, and in another when to use it.",
)
NO_PARAMETER_TEXT = Kind(
    code="no_parameter_text",
    severity="warning",
    title="parameters without a description",
    why="The model has to guess units, formats and meaning from the name.",
    advice="Describe each: what it means, its unit or format, an example value.",
)


def missing_texts(catalogue: Catalogue) -> Iterator[Finding]:
    """Tools without a description, and parameters without one."""
    for definition in catalogue.definitions:
        if not definition.text.strip():
            what = "there is no description"
            yield Finding(kind=NO_SUMMARY, tools=(definition.name,), what=what, where=("summary",))
        silent = tuple(_silent(definition))
        if silent:
            yield Finding(
                kind=NO_PARAMETER_TEXT,
                tools=(definition.name,),
                what=f"nothing is said of {listed(silent)}",
                where=tuple(f"parameters.{path}" for path in silent),
            )


def _silent(definition: ToolDefinition) -> Iterator[str]:
    """Paths of the properties that have no text, and whose values do not speak for themselves."""
    for part in parts(definition.parameters_schema):
        if part.role != "property" or part.path.startswith(("$defs.", "definitions.")):
            continue
        text = part.schema.get("description")
        is_told = isinstance(text, str) and text.strip()
        if not is_told and not part.schema.keys() & {"enum", "const", "$ref", "anyOf", "oneOf"}:
            yield part.path
