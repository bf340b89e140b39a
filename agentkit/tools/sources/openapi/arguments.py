"""The arguments of a tool while they are collected from parameters and body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentkit.tools.sources.openapi.naming import free_name, identifier
from agentkit.tools.sources.openapi.report import OpenApiNote
from agentkit.tools.sources.openapi.schemas import Converted


@dataclass(kw_only=True, slots=True)
class Arguments:
    """Collects the properties of a tool's parameters schema.

    Attributes:
        properties: The schema of each argument, in order.
        required: Arguments that a call must give.
        names: Definitions that the schemas refer to.
        notes: What a reader would want to know.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: list[OpenApiNote] = field(default_factory=list)

    def add(
        self,
        name: str,
        found: Converted,
        *,
        place: str,
        required: bool,
        pointer: str,
        description: str = "",
    ) -> str:
        """Take an argument in; gives the name that it got.

        A name that is taken is told apart by ``place``: ``query_id``, ``body_id``.
        """
        wanted = identifier(name)
        argument = wanted
        if wanted in self.properties:
            argument = free_name(f"{place}_{wanted}", self.properties)
            message = f"the name {name!r} is used twice; the one of the {place} is {argument!r}"
            self.note("renamed", message, pointer)
        elif argument != name:
            message = f"the {place} parameter {name!r} is the argument {argument!r}"
            self.note("renamed", message, pointer)
        schema = dict(found.schema)
        if description:
            schema["description"] = description
        self.properties[argument] = schema
        self.names.extend(found.names)
        if required:
            self.required.append(argument)
        return argument

    def note(self, code: str, message: str, pointer: str) -> None:
        """Keep a note for the report."""
        self.notes.append(OpenApiNote(pointer=pointer, code=code, message=message))

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """The parameters schema of the tool."""
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = self.required
        schema["additionalProperties"] = False
        if definitions:
            schema["$defs"] = definitions
        return schema
