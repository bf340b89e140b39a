"""Request bodies: which media type is sent, and which arguments it is made of.

The properties of an object body become arguments of their own, as a model fills flat arguments
best, when nothing is lost by that (``flat_objects``); else they stay together under ``body``. A
body is optional unless ``required: true`` says otherwise, but descriptions forget that: of nine
public ones, 226 operations have such a body whose schema requires properties. We take the schema's
word for it, unless ``required: false`` is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentkit.interop.openapi.parameters import Arguments
from agentkit.interop.openapi.plan import Body, BodyField, BodyKind, Style
from agentkit.interop.openapi.remote import Located, Operation, Unmappable, below
from agentkit.interop.openapi.schemas import Converted, SchemaPool
from agentkit.tools.schema import references

_FILE: Mapping[str, Any] = {
    "type": "object",
    "description": "A file: its name, and its content as `text` or as `base64`.",
    "properties": {
        "filename": {"type": "string"},
        "text": {"type": "string"},
        "base64": {"type": "string", "contentEncoding": "base64"},
        "content_type": {"type": "string"},
    },
    "required": ["filename"],
    "additionalProperties": False,
}
"""A path would let a model read any file of this machine, so the content itself is given."""

_BINARY: Mapping[str, Any] = {
    "type": "string",
    "contentEncoding": "base64",
    "description": "The content, as base64.",
}
_ORDER: tuple[BodyKind, ...] = ("json", "form", "multipart", "text", "binary")
_FORM_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


def read_body(operation: Operation, arguments: Arguments, pool: SchemaPool) -> Body | None:
    """The body of an operation; what it is made of becomes arguments.

    Raises:
        Unmappable: It has a body that can not be written.
    """
    given = operation.body.get("requestBody")
    if given is None:
        return None
    at = below(operation.source.pointer, "requestBody")
    raw = pool.space.followed(given, document=operation.source.document, pointer=at)
    content = raw.value.get("content")
    if not isinstance(content, Mapping) or not content:
        raise Unmappable("its requestBody has no content", pointer=raw.pointer)
    kind, media_type = min(((kind_of(name), name) for name in content), key=_preference)
    part = content[media_type]
    media = Located(
        value=part if isinstance(part, Mapping) else {},
        document=raw.document,
        pointer=below(raw.pointer, "content", media_type),
    )
    if len(content) > 1:
        others = ", ".join(name for name in content if name != media_type)
        message = f"the body is sent as {media_type}, not as {others}"
        arguments.note("media_type_chosen", message, raw.pointer)
    reader = _Reader(arguments=arguments, pool=pool, media=media, kind=kind)
    words, required = raw.value.get("description"), raw.value.get("required")
    return reader.read(
        media_type,
        required=required if isinstance(required, bool) else None,
        words=words.strip() if isinstance(words, str) else "",
    )


def kind_of(media_type: str) -> BodyKind:
    """How a media type is written.

    Example:
        >>> kind_of("application/vnd.api+json; charset=utf-8"), kind_of("image/png")
        ('json', 'binary')
    """
    bare = media_type.partition(";")[0].strip().lower()
    if bare in {"application/json", "*/*", "application/*", "text/json"} or bare.endswith("+json"):
        return "json"
    if bare == "application/x-www-form-urlencoded":
        return "form"
    if bare.startswith("multipart/"):
        return "multipart"
    is_text = bare.startswith("text/") or bare.endswith(("xml", "yaml", "graphql", "ndjson"))
    return "text" if is_text else "binary"


def _preference(choice: tuple[BodyKind, str]) -> tuple[int, bool]:
    kind, media_type = choice
    return _ORDER.index(kind), media_type != "application/json"


class _Reader:
    """Reads one media type object."""

    def __init__(
        self, *, arguments: Arguments, pool: SchemaPool, media: Located, kind: BodyKind
    ) -> None:
        self.arguments = arguments
        self.pool = pool
        self.media = media
        self.kind = kind
        self.at = below(media.pointer, "schema")
        encoding = media.value.get("encoding")
        self.encoding: Mapping[str, Any] = encoding if isinstance(encoding, Mapping) else {}

    def read(self, media_type: str, *, required: bool | None, words: str) -> Body:
        sent_as = "application/json" if "*" in media_type else media_type
        if self.kind in {"text", "binary"}:
            schema: dict[str, Any] = {"type": "string"} if self.kind == "text" else dict(_BINARY)
            argument = self._whole(Converted(schema=schema), required=required, words=words)
            return self._body(sent_as, argument, (), required=required)
        found = self.pool.convert(
            self.media.value.get("schema", {}), document=self.media.document, pointer=self.at
        )
        flat = flat_object(found, self.pool)
        fault = flat.fault
        if flat.required and not fault:
            if required is False:
                fault = "it is optional, but not all of its properties are"
            required = required is not False  # left out, it is an oversight: see the module's text
        if not fault:
            return self._body(
                sent_as, None, self._spread(flat, required=required), required=required
            )
        if fault != "-":
            self.arguments.note("body_kept_whole", f"the body is one argument: {fault}", self.at)
        if self.kind == "multipart":
            found = self._with_files(root_object(found, self.pool))
        argument = self._whole(found, required=required, words=words)
        fields = tuple(self._field(name, name, flat.properties[name]) for name in flat.properties)
        return self._body(sent_as, argument, fields, required=required)

    def _body(
        self,
        media_type: str,
        argument: str | None,
        fields: tuple[BodyField, ...],
        *,
        required: bool | None,
    ) -> Body:
        return Body(
            kind=self.kind,
            media_type=media_type,
            argument=argument,
            fields=fields,
            required=required is True,
        )

    def _whole(self, found: Converted, *, required: bool | None, words: str) -> str:
        return self.arguments.add(
            "body",
            found,
            place="request",
            required=required is True,
            pointer=self.media.pointer,
            description=words,
        )

    def _spread(self, flat: FlatObject, *, required: bool | None) -> tuple[BodyField, ...]:
        fields = []
        for name, schema in flat.properties.items():
            argument = self.arguments.add(
                name,
                Converted(schema=self._with_file(name, schema)),
                place="body",
                required=required is True and name in flat.required,
                pointer=below(self.at, "properties", name),
            )
            fields.append(self._field(argument, name, schema))
        self.arguments.names.extend(flat.names)
        return tuple(fields)

    def _with_files(self, found: Converted) -> Converted:
        """A whole body with its files described; behind ``allOf`` they are left alone."""
        properties = found.schema.get("properties")
        if not isinstance(properties, Mapping):
            return found
        described = {name: self._with_file(name, part) for name, part in properties.items()}
        return Converted(schema={**found.schema, "properties": described}, names=found.names)

    def _with_file(self, name: str, schema: Any) -> dict[str, Any]:
        given: dict[str, Any] = schema if isinstance(schema, dict) else {}
        if self.kind != "multipart" or not self._is_file(name, given):
            return given
        told = given.get("description")
        words = f"{told} {_FILE['description']}" if isinstance(told, str) else _FILE["description"]
        one = {**_FILE, "description": words}
        return {"type": "array", "items": one} if _may_be(given, "array") else one

    def _is_file(self, name: str, schema: Mapping[str, Any]) -> bool:
        items = schema.get("items")
        one = items if _may_be(schema, "array") and isinstance(items, Mapping) else schema
        if one.get("format") == "binary" or one.get("contentMediaType") == _OCTETS:
            return True
        given = self.encoding.get(name)
        kind = given.get("contentType") if isinstance(given, Mapping) else None
        is_text = not isinstance(kind, str) or kind_of(kind.partition(",")[0]) in {"json", "text"}
        return not is_text and (not one.get("type") or _may_be(one, "string"))

    def _field(self, argument: str, name: str, schema: Any) -> BodyField:
        given = self.encoding.get(name)
        rules: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        style, explode = rules.get("style"), rules.get("explode")
        known = style in _FORM_STYLES
        content_type = rules.get("contentType")
        return BodyField(
            argument=argument,
            name=name,
            is_file=self.kind == "multipart"
            and self._is_file(name, schema if isinstance(schema, Mapping) else {}),
            content_type=content_type.partition(",")[0].strip()
            if isinstance(content_type, str)
            else "",
            style=cast("Style", style) if known else "form",
            explode=explode if isinstance(explode, bool) else True,
            allow_reserved=rules.get("allowReserved") is True,
        )


_OCTETS = "application/octet-stream"


def _may_be(schema: Mapping[str, Any], kind: str) -> bool:
    given = schema.get("type")
    return given == kind or (isinstance(given, list) and kind in given)


_WORDS = frozenset({"default", "deprecated", "description", "examples", "title"})
_PLAIN = _WORDS | {"$ref", "additionalProperties", "allOf", "properties", "required", "type"}
"""Keywords that an object may have whose properties become arguments."""

_HOPS = 8
_DEFINITIONS = "#/$defs/"


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatObject:
    """The properties of an object, as far as they are known.

    Attributes:
        properties: The schema of each.
        required: Names that the object must have.
        names: Definitions that the schemas refer to.
        fault: Why the object is more than its properties; empty when it is not. An object without
            properties, and what is no object, is told as ``"-"``, since that is no loss.
    """

    properties: Mapping[str, Any]
    required: frozenset[str]
    names: tuple[str, ...]
    fault: str = ""


def flat_object(found: Converted, pool: SchemaPool) -> FlatObject:
    """The properties of a converted schema; its references and ``allOf`` are followed.

    Raises:
        Unmappable: A definition that it refers to can not be converted.
    """
    properties: dict[str, Any] = {}
    required: set[str] = set()
    fault = ""
    for part in _parts(found.schema, pool, set(), 0):
        fault = fault or _fault(part)
        own = part.get("properties")
        for name, schema in own.items() if isinstance(own, Mapping) else ():
            merged = _merged(properties[name], schema) if name in properties else schema
            if merged is None:
                fault = fault or f"its parts describe {name!r} differently"
            else:
                properties[name] = merged
        needed = part.get("required")
        required.update(needed if isinstance(needed, list) else ())
    if not fault and required - properties.keys():
        fault = f"it requires {min(required - properties.keys())!r}, which it does not describe"
    return FlatObject(
        properties=properties,
        required=frozenset(required),
        names=tuple(dict.fromkeys(_names(properties))),
        fault=fault if properties else "-",
    )


def root_object(found: Converted, pool: SchemaPool) -> Converted:
    """What a bare reference leads to."""
    for _ in range(_HOPS):
        reference = found.schema.get("$ref")
        if not isinstance(reference, str) or found.schema.keys() - {"$ref", "description"}:
            break
        found = pool.definition(reference.removeprefix(_DEFINITIONS))
    return found


def _parts(
    schema: Mapping[str, Any], pool: SchemaPool, seen: set[str], depth: int
) -> Iterator[Mapping[str, Any]]:
    """The schemas that an object has to fit all together, the outermost last."""
    if depth > _HOPS:
        yield {"not": {}}  # a rule, so that the object stays in one piece
        return
    reference, branches = schema.get("$ref"), schema.get("allOf")
    if isinstance(reference, str) and reference not in seen:  # twice says no more than once
        seen.add(reference)
        target = pool.definition(reference.removeprefix(_DEFINITIONS))
        yield from _parts(target.schema, pool, seen, depth + 1)
    for branch in branches if isinstance(branches, list) else ():
        if isinstance(branch, Mapping):
            yield from _parts(branch, pool, seen, depth + 1)
    yield schema


def _fault(part: Mapping[str, Any]) -> str:
    kind = part.get("type", "object")
    if kind != "object" and (not isinstance(kind, list) or "object" not in kind):
        return "-"
    if rules := sorted(part.keys() - _PLAIN):
        return f"rules hold between its properties ({', '.join(rules)})"
    return "it takes names that are not declared" if part.get("additionalProperties") else ""


def _merged(one: Any, other: Any) -> Any:
    """A schema that both say; None when they say different things."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return one if one == other else None
    rules = [{key: each[key] for key in each.keys() - _WORDS} for each in (one, other)]
    return {**one, **other} if rules[0] == rules[1] or not all(rules) else None


def _names(properties: Mapping[str, Any]) -> Iterator[str]:
    for reference in references({"properties": properties}):
        yield reference.removeprefix(_DEFINITIONS)
