"""The arguments of an operation's tool: its parameters and its body, and how each is sent.

The properties of an object body become arguments of their own, as a model fills flat arguments
best, when nothing is lost by that (``_flattened``); else they stay together under ``body``. A body
is optional unless ``required: true`` says otherwise, but descriptions forget that: of nine public
ones, 226 operations have such a body whose schema requires properties. We take the schema's word
for it, unless ``required: false`` is written.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkit.interop.openapi.documents import Located, Operation, Unmappable
from agentkit.interop.openapi.report import Notes
from agentkit.interop.openapi.requests import (
    PLACEHOLDER,
    Body,
    BodyKind,
    Field,
    Location,
    Style,
    kind_of,
)
from agentkit.interop.openapi.schemas import Converted, SchemaPool, examples_of
from agentkit.tools.schema import references

MAX_TOOL_NAME = 64
"""Longest name that every provider takes."""

_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_WORD = re.compile(r"_+|[A-Z]*[^A-Z_]+_*|[A-Z]+_*")

_STYLES: Mapping[str, tuple[Style, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles of each place; the first is the default."""

_IGNORED_HEADERS = frozenset({"accept", "authorization", "content-type"})
"""OpenAPI says that parameters of these names mean nothing: other parts of it govern them."""

_FRAMING_HEADERS = frozenset(
    {"connection", "content-length", "cookie", "host", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "proxy-authorization"}
)
"""Headers that frame the request: left to a model, they could make two of one."""

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

_WHOLE: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "binary": {
        "type": "string",
        "contentEncoding": "base64",
        "description": "The content, as base64.",
    },
}
"""Bodies that are one text."""

_ORDER: tuple[BodyKind, ...] = ("json", "form", "multipart", "text", "binary")
_WORDS = frozenset({"default", "deprecated", "description", "examples", "title"})
_PLAIN = _WORDS | {"$ref", "additionalProperties", "allOf", "properties", "required", "type"}
"""Keywords that an object may have whose properties become arguments."""

_HOPS = 8


def identifier(text: str, *, fallback: str = "value") -> str:
    """A text as an identifier: what a composite can write before ``=`` or call.

    Example:
        >>> identifier("X-Request-ID"), identifier("filter[status]"), identifier("from")
        ('X_Request_ID', 'filter_status', 'from_')
    """
    made = _OTHER.sub("_", text).strip("_") or fallback
    if made[0].isdigit():
        made = f"_{made}"
    return f"{made}_" if keyword.iskeyword(made) else made


def tool_name(operation_id: str | None, method: str, path: str, *, prefix: str = "") -> str:
    """The name of an operation's tool: its id, or its method and path.

    A long one loses words of its middle: its start tells what is done to what, its end what tells
    it from its siblings.

    Example:
        >>> tool_name("issues/list-for-repo", "get", "/repos/{owner}/issues")
        'issues_list_for_repo'
        >>> tool_name(None, "get", "/pets/{petId}", prefix="shop_")
        'shop_get_pets_petId'
    """
    given = operation_id or ""
    if not _OTHER.sub("", given).strip("_"):
        given = f"{method.lower()}/{path}"
    words = _WORD.findall(identifier(f"{prefix}{given}", fallback=method.lower()))
    while sum(map(len, words)) > MAX_TOOL_NAME and len(words) > 2:
        del words[len(words) // 2]
    return "".join(words)[:MAX_TOOL_NAME]


def free_name(wanted: str, taken: Container[str]) -> str:
    """``wanted`` if it is free, else the first free one of ``wanted__2``, ``wanted__3``, ...

    Example:
        >>> free_name("list", {"list"}), free_name("a" * 64, {"a" * 64})[-4:]
        ('list__2', 'a__2')
    """
    name, number = wanted, 2
    while name in taken:
        suffix = f"__{number}"
        name, number = f"{wanted[: MAX_TOOL_NAME - len(suffix)]}{suffix}", number + 1
    return name


@dataclass(kw_only=True, slots=True)
class Arguments:
    """Collects the properties of a tool's parameters schema.

    Attributes:
        pool: Converts schemas.
        properties: The schema of each argument, in order.
        required: Arguments that a call must give.
        names: Definitions that the schemas refer to.
        notes: What a reader would want to know.
    """

    pool: SchemaPool
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

    def add(
        self,
        name: str,
        schema: Mapping[str, Any],
        *,
        place: str,
        required: bool,
        pointer: str,
        words: object = None,
    ) -> str:
        """Take an argument in; gives the name that it got.

        A name that is taken is told apart by ``place``: ``query_id``, ``body_id``.
        """
        wanted = argument = identifier(name)
        if wanted in self.properties:
            argument = free_name(f"{place}_{wanted}", self.properties)
            message = f"the name {name!r} is used twice; the one of the {place} is {argument!r}"
            self.notes.add("renamed", message, pointer)
        elif argument != name:
            message = f"the {place} parameter {name!r} is the argument {argument!r}"
            self.notes.add("renamed", message, pointer)
        told = words.strip() if isinstance(words, str) else ""
        self.properties[argument] = {**schema, "description": told} if told else dict(schema)
        if required:
            self.required.append(argument)
        return argument

    def schema(self, definitions: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters schema of the tool."""
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = self.required
        schema["additionalProperties"] = False
        return {**schema, "$defs": definitions} if definitions else schema


def read_parameters(
    operation: Operation, arguments: Arguments, secret: frozenset[tuple[str, str]]
) -> tuple[Field, ...]:
    """The parameters of an operation, its path's included; each becomes an argument.

    Args:
        operation: The operation.
        arguments: Where the arguments are collected.
        secret: Place and name, in lower case, of what carries a key; a model never fills it.

    Raises:
        Unmappable: A parameter can not be sent, so calls of the operation can not be made.
    """
    found: list[Field] = []
    for raw in _merged_parameters(operation, arguments.pool):
        name, location = raw.value.get("name"), raw.value.get("in")
        if not isinstance(name, str) or not name:
            raise Unmappable("a parameter has no name", pointer=raw.pointer)
        if location not in tuple(_STYLES):
            raise Unmappable(
                f"the parameter {name!r} is in {location!r}; known are {', '.join(_STYLES)}",
                pointer=raw.pointer,
            )
        if barred := _barred(name, location, operation.path, secret):
            arguments.notes.add("parameter_left_out", barred, raw.pointer)
        else:
            found.append(_read_parameter(raw, name, location, arguments))
    known = {parameter.name for parameter in found if parameter.location == "path"}
    for name in PLACEHOLDER.findall(operation.path):
        if name not in known:
            raise Unmappable(
                f"the path has the placeholder {{{name}}}, but no path parameter is named so",
                pointer=operation.pointer,
            )
    return tuple(found)


def _merged_parameters(operation: Operation, pool: SchemaPool) -> Iterable[Located]:
    """The path's parameters, then the operation's; one of the same name and place replaces."""
    by_key: dict[tuple[str, str], Located] = {}
    own = operation.source.at("parameters")
    if own.value and not isinstance(own.value, list):
        kind = type(own.value).__name__
        raise Unmappable(f"its parameters are a {kind}, not a list", pointer=own.pointer)
    for listed in (operation.shared, own):
        for index in range(len(listed.value) if isinstance(listed.value, list) else 0):
            found = pool.space.followed(listed.at(index))
            by_key[str(found.value.get("name")), str(found.value.get("in"))] = found
    return by_key.values()


def _barred(name: str, location: str, path: str, secret: frozenset[tuple[str, str]]) -> str:
    """Why a parameter is no argument; empty when it is one."""
    if location == "path" and f"{{{name}}}" not in path:
        return f"the path has no placeholder {{{name}}}"
    if (location, name.lower()) in secret:
        return f"the {location} parameter {name} carries a key, which comes from the environment"
    if location == "header" and name.lower() in _IGNORED_HEADERS:
        return f"OpenAPI gives a header parameter named {name} no meaning"
    if location == "header" and name.lower() in _FRAMING_HEADERS:
        return f"the header {name} frames the request and is not left to a model"
    return ""


def _read_parameter(raw: Located, name: str, location: str, arguments: Arguments) -> Field:
    content = raw.value.get("content")
    as_json = isinstance(content, Mapping) and bool(content)
    given = raw.at("schema")
    if as_json:
        media_type = next(iter(content))
        if "json" not in media_type:
            raise Unmappable(
                f"the parameter {name!r} is written as {media_type}; only JSON is",
                pointer=raw.at("content").pointer,
            )
        given = raw.at("content", media_type, "schema")
    converted = arguments.pool.convert(given)
    arguments.names += converted.names
    schema = dict(converted.schema)  # the conversion is shared, so it is not changed
    samples = examples_of({k: raw.value[k] for k in ("example", "examples") if k in raw.value})
    if samples and "examples" not in schema:
        schema["examples"] = samples
    if raw.value.get("deprecated") is True:
        schema["deprecated"] = True
    argument = arguments.add(
        name,
        schema,
        place=location,
        required=raw.value.get("required") is True or location == "path",
        pointer=raw.pointer,
        words=raw.value.get("description"),
    )
    style, explode = raw.value.get("style", _STYLES[location][0]), raw.value.get("explode")
    if style not in _STYLES[location]:
        raise Unmappable(
            f"the {location} parameter {name!r} has the style {style!r}; "
            f"there {', '.join(_STYLES[location])} can be used",
            pointer=raw.pointer,
        )
    return Field(
        argument=argument,
        name=name,
        location=cast("Location", location),
        style=cast("Style", style),
        explode=explode if isinstance(explode, bool) else style in {"form", "deepObject"},
        allow_reserved=location == "query" and raw.value.get("allowReserved") is True,
        as_json=as_json,
    )


def read_body(operation: Operation, arguments: Arguments) -> Body | None:
    """The body of an operation; what it is made of becomes arguments.

    Raises:
        Unmappable: It has a body that can not be written.
    """
    if operation.body.get("requestBody") is None:
        return None
    raw = arguments.pool.space.followed(operation.source.at("requestBody"))
    content = raw.value.get("content")
    if not isinstance(content, Mapping) or not content:
        raise Unmappable("its requestBody has no content", pointer=raw.pointer)
    kind, media_type = min(((kind_of(name), name) for name in content), key=_preference)
    if len(content) > 1:
        others = ", ".join(name for name in content if name != media_type)
        message = f"the body is sent as {media_type}, not as {others}"
        arguments.notes.add("media_type_chosen", message, raw.pointer)
    given = raw.value.get("required")
    reader = _BodyReader(
        arguments=arguments,
        media=raw.at("content", media_type),
        kind=kind,
        required=given if isinstance(given, bool) else None,
        words=raw.value.get("description"),
    )
    return reader.read("application/json" if "*" in media_type else media_type)


def _preference(choice: tuple[BodyKind, str]) -> tuple[int, bool]:
    kind, media_type = choice
    return _ORDER.index(kind), media_type != "application/json"


@dataclass(kw_only=True, slots=True)
class _BodyReader:
    """Reads one media type object.

    Attributes:
        arguments: Where the arguments are collected.
        media: The media type object.
        kind: How the body is written.
        required: Whether it is needed; None when that is not said.
        words: Its description, if it is one.
    """

    arguments: Arguments
    media: Located
    kind: BodyKind
    required: bool | None
    words: object

    def read(self, media_type: str) -> Body:
        """The body; what it is made of becomes arguments."""
        if self.kind in _WHOLE:
            return self._body(media_type, self._whole(_WHOLE[self.kind]))
        pool, given = self.arguments.pool, self.media.at("schema")
        found = pool.convert(given)
        properties, needed, fault = _flattened(found, pool)
        if needed and not fault:
            if self.required is False:
                fault = "it is optional, but not all of its properties are"
            else:
                self.required = True  # left out, it is an oversight: see the module's text
        if not fault:
            fields = [
                self._field(self._spread(name, schema, needed), name, schema)
                for name, schema in properties.items()
            ]
            self.arguments.names += (
                one.removeprefix("#/$defs/") for one in references({"properties": properties})
            )
            return self._body(media_type, None, fields)
        if fault != "-":
            message = f"the body is one argument: {fault}"
            self.arguments.notes.add("body_kept_whole", message, given.pointer)
        schema, names = found.schema, found.names
        if self.kind == "multipart":  # with its files described; behind `allOf` they are left alone
            target = _target(found, pool)
            parts = target.schema.get("properties")
            if isinstance(parts, Mapping):
                described = {name: self._with_file(name, part) for name, part in parts.items()}
                schema, names = {**target.schema, "properties": described}, target.names
        self.arguments.names += names
        fields = [self._field(name, name, part) for name, part in properties.items()]
        return self._body(media_type, self._whole(schema), fields)

    def _body(self, media_type: str, argument: str | None, fields: Iterable[Field] = ()) -> Body:
        return Body(
            kind=self.kind,
            media_type=media_type,
            argument=argument,
            fields=tuple(fields),
            required=self.required is True,
        )

    def _whole(self, schema: Mapping[str, Any]) -> str:
        return self.arguments.add(
            "body",
            schema,
            place="request",
            required=self.required is True,
            pointer=self.media.pointer,
            words=self.words,
        )

    def _spread(self, name: str, schema: Any, needed: Container[str]) -> str:
        return self.arguments.add(
            name,
            self._with_file(name, schema),
            place="body",
            required=self.required is True and name in needed,
            pointer=self.media.at("schema", "properties", name).pointer,
        )

    def _with_file(self, name: str, schema: Any) -> dict[str, Any]:
        given: dict[str, Any] = schema if isinstance(schema, dict) else {}
        if not self._is_file(name, given):
            return given
        told = given.get("description")
        words = f"{told} {_FILE['description']}" if isinstance(told, str) else _FILE["description"]
        one = {**_FILE, "description": words}
        return {"type": "array", "items": one} if _may_be(given, "array") else one

    def _is_file(self, name: str, schema: Mapping[str, Any]) -> bool:
        if self.kind != "multipart":
            return False
        items = schema.get("items")
        one = items if _may_be(schema, "array") and isinstance(items, Mapping) else schema
        octets = "application/octet-stream"
        if one.get("format") == "binary" or one.get("contentMediaType") == octets:
            return True
        kind = self.media.at("encoding", name, "contentType").value
        is_text = not isinstance(kind, str) or kind_of(kind.partition(",")[0]) in {"json", "text"}
        return not is_text and (not one.get("type") or _may_be(one, "string"))

    def _field(self, argument: str, name: str, schema: Any) -> Field:
        given = self.media.at("encoding", name).value
        rules: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        style, explode, kind = (rules.get(key) for key in ("style", "explode", "contentType"))
        return Field(
            argument=argument,
            name=name,
            is_file=self._is_file(name, schema if isinstance(schema, Mapping) else {}),
            content_type=kind.partition(",")[0].strip() if isinstance(kind, str) else "",
            style=cast("Style", style) if style in _STYLES["query"] else "form",
            explode=explode if isinstance(explode, bool) else True,
            allow_reserved=rules.get("allowReserved") is True,
        )


def _may_be(schema: Mapping[str, Any], kind: str) -> bool:
    given = schema.get("type")
    return given == kind or (isinstance(given, list) and kind in given)


def _flattened(found: Converted, pool: SchemaPool) -> tuple[dict[str, Any], frozenset[str], str]:
    """The properties of an object, its references and ``allOf`` followed; what it requires.

    Returns:
        The schema of each property, the names that the object must have, and why the object is
        more than its properties; empty when it is not. For an object without properties, and for
        what is no object, that is ``"-"``, since it is no loss.

    Raises:
        Unmappable: A definition that it refers to can not be converted.
    """
    properties: dict[str, Any] = {}
    required: set[str] = set()
    fault = ""
    for part in _parts(found.schema, pool, set(), 0):
        fault = fault or _fault(part)
        own, needed = part.get("properties"), part.get("required")
        for name, schema in own.items() if isinstance(own, Mapping) else ():
            merged = _merged(properties[name], schema) if name in properties else schema
            if merged is None:
                fault = fault or f"its parts describe {name!r} differently"
            else:
                properties[name] = merged
        required.update(needed if isinstance(needed, list) else ())
    unknown = required - properties.keys()
    if not fault and unknown:
        fault = f"it requires {min(unknown)!r}, which it does not describe"
    return properties, frozenset(required), fault if properties else "-"


def _target(found: Converted, pool: SchemaPool) -> Converted:
    """What a bare reference leads to."""
    for _ in range(_HOPS):
        reference = found.schema.get("$ref")
        if not isinstance(reference, str) or found.schema.keys() - {"$ref", "description"}:
            break
        found = pool.definition(reference)
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
        yield from _parts(pool.definition(reference).schema, pool, seen, depth + 1)
    for branch in branches if isinstance(branches, list) else ():
        if isinstance(branch, Mapping):
            yield from _parts(branch, pool, seen, depth + 1)
    yield schema


def _fault(part: Mapping[str, Any]) -> str:
    if "type" in part and not _may_be(part, "object"):
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
