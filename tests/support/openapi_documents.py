"""Large API descriptions in the style of public ones, made from a seed.

They have what makes real ones hard: schemas that refer to each other in circles and ten levels
deep, ``oneOf`` with and without a discriminator, ``nullable`` or type lists, shared parameters and
answers behind references, form bodies with ``deepObject``, deprecated operations and callbacks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

_NOUNS = (
    *("account", "invoice", "customer", "repository", "issue", "comment", "pipeline", "release"),
    *("charge", "refund", "ticket", "label", "team", "member", "webhook", "project", "branch"),
    *("deployment", "artifact", "subscription", "coupon", "payout", "dispute"),
)
_KINDS = ("draft", "active", "archived", "pending")
_REF = "#/components/schemas/"


def large_openapi_document(
    operations: int = 1000, *, seed: int = 0, version: str = "3.0.3"
) -> dict[str, Any]:
    """An OpenAPI document with that many operations.

    Args:
        operations: How many; five of them share a resource.
        seed: Chooses among documents; equal seeds give equal documents.
        version: ``3.0.x`` writes ``nullable``, later ones type lists.

    Example:
        >>> document = large_openapi_document(12)
        >>> sum(len(item) for item in document["paths"].values()) - len(document["paths"])
        12
    """
    maker = _Maker(random.Random(seed), version=version, names=_names(-(-operations // 5)))
    paths: dict[str, Any] = {}
    for (path, method, operation), _ in zip(maker.operations(), range(operations), strict=False):
        shared = [{"$ref": "#/components/parameters/version"}]
        paths.setdefault(path, {"parameters": shared})[method] = operation
    return {
        "openapi": version,
        "info": {"title": "Everything", "version": "2026-01-01", "description": "A large API."},
        "servers": [
            {
                "url": "https://{region}.example.com/v1",
                "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}},
            }
        ],
        "security": [{"token": []}, {"basic": []}],
        "paths": paths,
        "components": maker.components(),
    }


def _names(count: int) -> list[str]:
    return [f"{_NOUNS[at % len(_NOUNS)]}{at // len(_NOUNS) or ''}" for at in range(count)]


class _Maker:
    """Makes the parts of one document."""

    def __init__(self, chance: random.Random, *, version: str, names: list[str]) -> None:
        self.chance = chance
        self.names = names
        self.is_old = version.startswith("3.0")

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Five operations for each resource."""
        for name in self.names:
            one, many = f"/{name}s/{{{name}_id}}", f"/{name}s"
            yield many, "get", self._list(name)
            yield many, "post", self._create(name)
            yield one, "get", self._get(name)
            yield one, "patch", self._update(name)
            yield one, "delete", self._delete(name)

    def components(self) -> dict[str, Any]:
        """Schemas, parameters, answers and security schemes."""
        schemas: dict[str, Any] = {"error": self._error(), "money": self._money()}
        for name in self.names:
            schemas |= {name: self._record(name), f"{name}_event": self._event(name)}
        return {
            "schemas": schemas,
            "parameters": {
                "version": {"name": "X-Api-Version", "in": "header", "schema": {"type": "string"}},
                "per_page": self._query("per_page", {"type": "integer", "maximum": 100}),
                "cursor": self._query("cursor", {"type": "string"}),
            },
            "responses": {
                "error": {
                    "description": "What was wrong.",
                    "content": {"application/json": {"schema": {"$ref": f"{_REF}error"}}},
                }
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        }

    def _query(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "query", "schema": schema, "description": f"The {name}."}

    def _or_null(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self.is_old:
            return {**schema, "nullable": True}
        kind = schema.get("type")
        return (
            {"anyOf": [schema, {"type": "null"}]}
            if kind is None
            else {**schema, "type": [kind, "null"]}
        )

    def _ref(self) -> dict[str, Any]:
        return {"$ref": f"{_REF}{self.chance.choice(self.names)}"}

    def _error(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {"type": "object", "properties": {"message": text, "documentation_url": text}}

    def _money(self) -> dict[str, Any]:
        exclusive: dict[str, Any] = (
            {"minimum": 0, "exclusiveMinimum": True} if self.is_old else {"exclusiveMinimum": 0}
        )
        return {
            "type": "object",
            "required": ["amount", "currency"],
            "properties": {
                "amount": {"type": "integer", "format": "int64", **exclusive},
                "currency": {"type": "string", "pattern": "^[a-z]{3}$", "example": "eur"},
            },
        }

    def _record(self, name: str) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "id": {"type": "string", "readOnly": True, "description": f"The id of the {name}."},
            "secret": {"type": "string", "writeOnly": True},
            "name": {"type": "string", "maxLength": 200, "description": f"What the {name} is."},
            "status": {"type": "string", "enum": list(_KINDS)},
            "parent": {"$ref": f"{_REF}{name}"},
            "price": {"$ref": f"{_REF}money"},
            "note": self._or_null({"type": "string"}),
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
            "history": {"type": "array", "items": {"$ref": f"{_REF}{name}_event"}},
        }
        for at in range(self.chance.randrange(2, 7)):
            fields[f"related_{at}"] = self._related(at)
        return {"type": "object", "required": ["id", "name"], "properties": fields}

    def _related(self, at: int) -> dict[str, Any]:
        kinds: list[dict[str, Any]] = [
            self._ref(),
            {"type": "array", "items": self._ref()},
            {"oneOf": [{"type": "string"}, self._ref()], "description": "An id, or all of it."},
            self._or_null({"allOf": [self._ref()]}),
            {"type": "object", "properties": {"first": {"anyOf": [self._ref(), self._ref()]}}},
        ]
        return kinds[at % len(kinds)]

    def _event(self, name: str) -> dict[str, Any]:
        other = self.chance.choice(self.names)
        return {
            "oneOf": [{"$ref": f"{_REF}{name}"}, {"$ref": f"{_REF}{other}"}],
            "discriminator": {
                "propertyName": "object",
                "mapping": {name: f"{_REF}{name}", f"{other}_other": f"{_REF}{other}"},
            },
        }

    def _base(self, name: str, verb: str) -> dict[str, Any]:
        words = f"{verb.capitalize()} a {name}. " * self.chance.randrange(1, 12)
        return {
            "operationId": f"{name}s/{verb}",
            "summary": f"{verb.capitalize()} a {name}",
            "description": words.strip(),
            "tags": [name],
            "deprecated": self.chance.random() < 0.03,
        }

    def _answers(self, schema: dict[str, Any], code: str = "200") -> dict[str, Any]:
        return {
            code: {
                "description": "Done.",
                "headers": {"Link": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": schema}},
            },
            "422": {"$ref": "#/components/responses/error"},
        }

    def _id(self, name: str) -> dict[str, Any]:
        return {
            "name": f"{name}_id",
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
            "description": f"The id of the {name}.",
        }

    def _list(self, name: str) -> dict[str, Any]:
        created = {"type": "object", "properties": {"gte": {"type": "string"}}}
        answer = {
            "type": "object",
            "properties": {
                "data": {"type": "array", "items": {"$ref": f"{_REF}{name}"}},
                "next_cursor": {"type": "string"},
            },
        }
        return {
            **self._base(name, "list"),
            "parameters": [
                {"$ref": "#/components/parameters/cursor"},
                {"$ref": "#/components/parameters/per_page"},
                self._query("status", {"type": "array", "items": {"enum": list(_KINDS)}}),
                {**self._query("created", created), "style": "deepObject", "explode": True},
            ],
            "responses": self._answers(answer),
        }

    def _create(self, name: str) -> dict[str, Any]:
        media_type = self.chance.choice(("application/json", "application/x-www-form-urlencoded"))
        media: dict[str, Any] = {"schema": {"$ref": f"{_REF}{name}"}}
        if "form" in media_type:
            media["encoding"] = {"metadata": {"style": "deepObject", "explode": True}}
        hook = {"{$request.body#/url}": {"post": {"responses": {"200": {"description": "Seen."}}}}}
        return {
            **self._base(name, "create"),
            "requestBody": {"required": True, "content": {media_type: media}},
            "responses": self._answers({"$ref": f"{_REF}{name}"}, "201"),
            "callbacks": {"done": hook},
        }

    def _get(self, name: str) -> dict[str, Any]:
        return {
            **self._base(name, "get"),
            "parameters": [self._id(name)],
            "responses": self._answers({"$ref": f"{_REF}{name}"}),
        }

    def _update(self, name: str) -> dict[str, Any]:
        part = {"type": "object", "properties": {"name": {"type": "string"}, "owner": self._ref()}}
        return {
            **self._base(name, "update"),
            "parameters": [self._id(name)],
            "requestBody": {"content": {"application/json": {"schema": part}}},
            "responses": self._answers({"$ref": f"{_REF}{name}"}),
        }

    def _delete(self, name: str) -> dict[str, Any]:
        return {
            **self._base(name, "delete"),
            "parameters": [self._id(name)],
            "responses": {"204": {"description": "Gone."}},
        }
