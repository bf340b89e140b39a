"""Schemas of a document's requests as JSON Schema 2020-12, each converted once.

A reference becomes ``#/$defs/Name`` and stays one, so that recursion costs nothing; a tool's
schema then gets the definitions that it reaches, see ``SchemaPool.closed``. Keywords of OpenAPI
3.0 are translated, properties that only answers have are left out, and what is still no valid
schema is repaired by ``normalise_schema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.interop.openapi.documents import Node, ReferenceSpace, Unmappable
from agentkit.tools.schema import check_bounds, references, with_parts
from agentkit.tools.sources.dialects import normalise_schema

_MAX_DEPTH = 48
_LONGEST_EXAMPLE = 200
_SCALARS = ("string", "integer", "number", "boolean")
_MAX_SCALAR = 400
_NO_SCALAR = frozenset(
    {"$ref", "allOf", "anyOf", "else", "if", "items", "not", "oneOf", "properties", "then"}
)
_DROPPED = frozenset(
    {"$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "$vocabulary"}
    | {"$defs", "definitions"}  # every reference is rewritten, so nothing refers to these any more
    | {"discriminator", "externalDocs", "xml", "readOnly", "writeOnly"}
    | {"$ref", "example"}  # they are seen to apart
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Converted:
    """A schema in 2020-12.

    Attributes:
        schema: The schema; its references are ``#/$defs/NAME``.
        names: The definitions that it refers to itself.
        size: How many characters of JSON it takes.
    """

    schema: dict[str, Any]
    names: tuple[str, ...]
    size: int


@dataclass(kw_only=True, slots=True)
class Budget:
    """Limits per document, so that a short one does not become a great many tools.

    Attributes:
        left: Characters of schemas that may still be made.
    """

    left: int

    def spend(self, characters: int) -> None:
        """Count what is made.

        Raises:
            Unmappable: Nothing is left.
        """
        self.left -= characters
        if self.left < 0:
            raise Unmappable(
                "the description asks for more than its size allows; choose some of its "
                "operations (operations=, tags=)"
            )


class SchemaPool:
    """The schemas of one document, as requests have them.

    Args:
        space: Where references lead.
        budget: What conversions are counted against.
    """

    def __init__(self, space: ReferenceSpace, *, budget: Budget) -> None:
        self.space = space
        self.budget = budget
        self._converted: dict[str, Converted | Unmappable] = {}
        self._names: dict[str, str] = {}
        self._found: dict[str, Node] = {}
        self._scalars: dict[str, bool] = {}

    def convert(self, raw: Node) -> Converted:
        """One schema; what it refers to is converted when it is asked for.

        Raises:
            Unmappable: A reference in it cannot be followed, or it asks too much.
        """
        found = self._converted.get(raw.pointer)
        if found is None:
            found = self._converted[raw.pointer] = self._convert(raw)
        if isinstance(found, Unmappable):
            raise found
        return found

    def _convert(self, raw: Node) -> Converted | Unmappable:
        try:
            self.budget.spend(0)
            schema = self._schema({} if raw.value is None else raw.value, 0)
            schema = normalise_schema(schema)
        except Unmappable as error:
            return error
        except DefinitionError as error:
            return Unmappable(str(error))
        return self.measured(schema)

    def _schema(self, raw: object, depth: int) -> Any:
        """A schema in 2020-12; what it refers to stays a reference."""
        if not isinstance(raw, dict):
            return raw  # a boolean, or something that the repairs deal with
        if depth > _MAX_DEPTH:
            return {}
        own = {k: v for k, v in raw.items() if k not in _DROPPED and not k.startswith("x-")}
        if isinstance(properties := own.get("properties"), dict):
            shown = {name: one for name, one in properties.items() if not _is_answer(one)}
            own["properties"] = shown
            if isinstance(own.get("required"), list):
                gone = properties.keys() - shown.keys()
                own["required"] = [
                    one for one in own["required"] if isinstance(one, str) and one not in gone
                ]
        kept = self._referred(raw["$ref"], depth) if isinstance(raw.get("$ref"), str) else {}
        kept |= with_parts(own, lambda part: self._schema(part, depth + 1))
        if "example" in raw and len(json.dumps(raw["example"])) <= _LONGEST_EXAMPLE:
            kept["examples"] = [raw["example"]]
        return kept

    def _referred(self, reference: str, depth: int) -> dict[str, Any]:
        found = self.space.find(reference)
        if not self._is_small_scalar(found):
            return {"$ref": f"#/$defs/{self._name_of(found)}"}
        schema: dict[str, Any] = self._schema(found.value, depth + 1)
        return schema  # an enum or a format reads better in its place

    def measured(self, schema: dict[str, Any]) -> Converted:
        """A schema in 2020-12 with what is known of it; it counts as made."""
        size = len(json.dumps(schema, ensure_ascii=False))
        self.budget.left -= size
        names = (reference.removeprefix("#/$defs/") for reference in references(schema))
        return Converted(schema=schema, names=tuple(dict.fromkeys(names)), size=size)

    def _name_of(self, found: Node) -> str:
        """The name of a schema in ``$defs``."""
        if found.pointer not in self._names:
            last = found.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")[:100]
            base = re.sub(r"[^A-Za-z0-9_.-]+", "_", last).strip("_") or "schema"
            name = base if base not in self._found else f"{base}__{len(self._found)}"
            self._names[found.pointer] = name
            self._found[name] = found
        return self._names[found.pointer]

    def _is_small_scalar(self, found: Node) -> bool:
        """Whether a schema is that of a text, a number or a flag, and takes few characters."""
        if found.pointer not in self._scalars:
            mapping = found.mapping
            self._scalars[found.pointer] = (
                mapping.get("type") in _SCALARS
                and not mapping.keys() & _NO_SCALAR
                and len(json.dumps(mapping)) <= _MAX_SCALAR
            )
        return self._scalars[found.pointer]

    def definition(self, name: str) -> Converted:
        """The definition of a name, or of a reference to it.

        Raises:
            Unmappable: It cannot be converted.
        """
        found = self._found.get(name.removeprefix("#/$defs/"))
        if found is None:
            raise Unmappable(f"the reference {name!r:.200} is where no schema belongs")
        return self.convert(found)

    def closed(
        self, roots: Sequence[Converted], *, budget: int
    ) -> tuple[dict[str, Any], list[str]]:
        """The definitions that schemas reach: the nearest first, of equally near ones the smallest.

        Args:
            roots: The schemas.
            budget: Most characters in all; definitions beyond it allow anything.

        Returns:
            The definitions by name, and which of them were cut.

        Raises:
            Unmappable: One cannot be converted.
        """
        definitions: dict[str, Any] = {}
        cut: list[str] = []
        left, level = budget, list(roots)
        while level:
            names = [name for one in level for name in one.names if name not in definitions]
            found = [
                (name, self.definition(name) if left > 0 else None) for name in dict.fromkeys(names)
            ]
            level = []
            for name, one in sorted(found, key=lambda pair: pair[1].size if pair[1] else 0):
                if one is None or one.size > left:
                    cut.append(name)
                    definitions[name] = {}
                    continue
                left -= one.size
                definitions[name] = one.schema
                level.append(one)
        self.budget.spend(budget - left + sum(one.size for one in roots))
        return definitions, cut

    def check(self, schema: Mapping[str, Any], roots: Sequence[Converted]) -> None:
        """Refuse a schema, made of these parts, that is too expensive to walk.

        What the parts refer to themselves is then refused for other tools too, without a look.

        Raises:
            Unmappable: It does.
        """
        try:
            check_bounds(schema)
        except DefinitionError as error:
            refused = Unmappable(str(error))
            for name in (name for one in roots for name in one.names):
                self._converted[self._found[name].pointer] = refused
            raise refused from error


def _is_answer(part: object) -> bool:
    """Whether a property is in answers alone."""
    return isinstance(part, dict) and part.get("readOnly") is True
