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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkit.interop.openapi.documents import Node, Operation, Unmappable
from agentkit.interop.openapi.requests import (
    PLACEHOLDER,
    Body,
    BodyKind,
    Field,
    Location,
    Style,
    is_json,
    parameter_key,
)
from agentkit.interop.openapi.schemas import Converted, SchemaPool

MAX_TOOL_NAME = 64
"""Longest name that every provider takes."""

MAX_ARGUMENTS = 200
"""Most parameters of one operation, and most properties of a body that become arguments."""

MAX_MEDIA_TYPES = 50
"""Most media types of one body or answer."""

_FORM = "application/x-www-form-urlencoded"
_A_PARAMETER = 500  # characters that one is counted as, besides its schema
_LONGEST_ID = 256
_OTHER = re.compile(r"[^A-Za-z0-9_]+")

_STYLES = {"path": ("simple",), "query": ("form", "deepObject"), "header": ("simple",)}
"""The styles of each place; the first is the default."""

_HARMLESS_HEADERS = frozenset(
    {"accept-language", "idempotency-key", "if-match", "if-modified-since", "if-none-match"}
    | {"if-unmodified-since", "prefer", "x-correlation-id", "x-request-id"}
)
"""Headers that say nothing of who calls, whom and how. Any other, which a server or a proxy may
read as another method, address or user, becomes an argument where the caller names it."""

_NEVER = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type"}
    | {"cookie", "host", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that frame the request: left to a model, they could make two of one."""

_PLAIN = frozenset(
    {"additionalProperties", "default", "deprecated", "description", "examples", "properties"}
    | {"required", "title", "type"}
)
"""Keywords that an object may have whose properties become arguments."""

_BESIDE = frozenset({"$ref", "deprecated", "description", "examples", "title"})
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

    A long one loses its middle: its start tells what is done to what, its end what tells it from
    its siblings.

    Example:
        >>> tool_name("issues/list-for-repo", "get", "/repos/{owner}/issues")
        'issues_list_for_repo'
        >>> tool_name(None, "get", "/pets/{petId}", prefix="shop_")
        'shop_get_pets_petId'
    """
    base = operation_id or ""
    if not _OTHER.sub("", base).strip("_"):
        base = f"{method.lower()}/{path}"
    made = identifier(f"{prefix}{base}", fallback=method.lower())
    half = MAX_TOOL_NAME // 2
    return made if len(made) <= MAX_TOOL_NAME else f"{made[: half - 1]}_{made[-half:]}"


class Names:
    """Names that are taken, and the first free one like another.

    Example:
        >>> names = Names()
        >>> names.take("list"), names.take("list"), names.take("list")
        ('list', 'list__2', 'list__3')
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # by name, so that equal ones do not start from 2 each

    def take(self, base: str) -> str:
        """``base`` if it is free, else the first free one of ``base__2``, ``base__3``, ..."""
        name, number = base, self._next.get(base, 2)
        while name in self._next:
            suffix = f"__{number}"
            name, number = f"{base[: MAX_TOOL_NAME - len(suffix)]}{suffix}", number + 1
        self._next[base] = number
        self._next.setdefault(name, 2)
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._next


@dataclass(kw_only=True, slots=True)
class Arguments:
    """Collects the properties of a tool's parameters schema.

    Attributes:
        pool: Converts schemas.
        headers: Headers, in lower case, that a model may fill beside the harmless ones.
        properties: The schema of each argument, in order.
        required: Arguments that a call must give.
        converted: The schemas that they are made of.
        notes: What a reader would want to know.
    """

    pool: SchemaPool
    headers: frozenset[str] = frozenset()
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    converted: list[Converted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _taken: Names = field(default_factory=Names)

    def add(
        self,
        name: str,
        schema: Mapping[str, Any],
        *,
        place: str,
        required: bool,
        words: object = None,
    ) -> str:
        """Take an argument in; gives the name that it got.

        A name that is taken gets ``place`` as a prefix: ``query_id``, ``body_id``.
        """
        base = identifier(name[:_LONGEST_ID])
        argument = self._taken.take(f"{place}_{base}" if base in self._taken else base)
        if argument != name:
            self.notes.append(f"the {place} parameter {name[:100]!r} is the argument {argument!r}")
        description = words.strip() if isinstance(words, str) else ""
        self.properties[argument] = (
            {**schema, "description": description} if description else dict(schema)
        )
        if required:
            self.required.append(argument)
        return argument

    def convert(self, raw: Node) -> Converted:
        """A schema of an argument, counted."""
        found = self.pool.convert(raw)
        self.converted.append(found)
        self.pool.budget.spend(_A_PARAMETER)
        return found

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

    One that is not left to a model is left out with a note. So is one that cannot be sent, if the
    call can do without it.

    Args:
        operation: The operation.
        arguments: Where the arguments are collected.
        secret: Place and name, in lower case, of what carries a key; a model never fills it.

    Raises:
        Unmappable: A parameter that is needed cannot be sent, or there are too many.
    """
    found: list[Field] = []
    for raw in _merged_parameters(operation, arguments.pool):
        name, location = raw.value.get("name"), raw.value.get("in")
        if not isinstance(name, str) or not name:
            raise Unmappable("a parameter has no name")
        needed = raw.value.get("required") is True or location == "path"
        barred = _barred(name, location, arguments.headers, secret)
        if location == "path" and f"{{{name}}}" not in operation.path:
            barred = f"the path has no placeholder {{{name[:100]}}}"
        fault = "" if barred else _unsendable(raw.value, name, location)
        if fault and needed:
            raise Unmappable(fault)
        if barred or fault:
            arguments.notes.append(barred or fault)
        else:
            found.append(_read_parameter(raw, arguments))
    known = {parameter.name for parameter in found if parameter.location == "path"}
    if missing := set(PLACEHOLDER.findall(operation.path)) - known:
        raise Unmappable(
            f"the path has the placeholder {{{min(missing)[:100]}}}, but no path parameter is "
            "named so"
        )
    return tuple(found)


def _merged_parameters(operation: Operation, pool: SchemaPool) -> Iterable[Node]:
    """The path's parameters, then the operation's; one of the same name and place replaces."""
    by_key: dict[tuple[str, str], Node] = {}
    for listed in (operation.shared, operation.source.at("parameters")):
        if listed.value and not isinstance(listed.value, list):
            kind = type(listed.value).__name__
            raise Unmappable(f"its parameters are a {kind}, not a list")
        count = len(listed.value or ())
        if count > MAX_ARGUMENTS:
            raise Unmappable(f"it has {count:,} parameters, and {MAX_ARGUMENTS} are read")
        for index in range(count):
            found = pool.space.followed(listed.at(index))
            by_key[str(found.value.get("name")), str(found.value.get("in"))] = found
    return by_key.values()


def _barred(
    name: str, location: object, headers: frozenset[str], secret: frozenset[tuple[str, str]]
) -> str:
    """Why a parameter is not left to a model; empty when it is."""
    key = parameter_key(name, str(location))
    if (str(location), key) in secret:
        return f"the {location} parameter {name} carries a key, which comes from the environment"
    is_named = name.lower() in headers | _HARMLESS_HEADERS
    if location == "header" and (key in _NEVER or not is_named):
        way = (
            ""
            if key in _NEVER
            else f"; header_arguments=({name[:100]!r},) does, a client= can send it"
        )
        return f"the header {name[:100]} is not left to a model{way}"
    return ""


def _unsendable(raw: Mapping[str, Any], name: str, location: object) -> str:
    """Why a parameter cannot be sent; empty when it can."""
    styles = _STYLES.get(str(location), ())
    if "content" not in raw and raw.get("style", *styles[:1]) in styles:
        return ""
    written = "content" if "content" in raw else raw.get("style")
    return f"the {location!s:.40} parameter {name[:100]!r} cannot be sent as {written!r:.40}"


def _read_parameter(raw: Node, arguments: Arguments) -> Field:
    name, location = raw.value["name"], cast("Location", raw.value["in"])
    schema = dict(arguments.convert(raw.at("schema")).schema)  # shared, so it is not changed
    if raw.value.get("deprecated") is True:
        schema["deprecated"] = True
    argument = arguments.add(
        name,
        schema,
        place=location,
        required=raw.value.get("required") is True or location == "path",
        words=raw.value.get("description"),
    )
    style = cast("Style", raw.value.get("style", _STYLES[location][0]))
    explode = raw.value.get("explode")
    return Field(
        argument=argument,
        name=name,
        location=location,
        style=style,
        explode=explode if isinstance(explode, bool) else style != "simple",
    )


def read_body(operation: Operation, arguments: Arguments) -> Body | None:
    """The body of an operation; what it is made of becomes arguments.

    Raises:
        Unmappable: It has a body that cannot be written.
    """
    if operation.source.mapping.get("requestBody") is None:
        return None
    raw = arguments.pool.space.followed(operation.source.at("requestBody"))
    media_type, kind = _written_as(raw)
    declared = raw.value.get("required")
    found = arguments.convert(raw.at("content", media_type, "schema"))
    properties, needed = _flattened(found, arguments.pool)
    if needed and declared is False:  # it is optional, but not all of its properties are
        properties, needed = {}, frozenset()
    required = declared is True or bool(needed)  # left out, it is an oversight
    sent_as = "application/json" if "*" in media_type else media_type
    if not properties:
        words = raw.value.get("description")
        argument = arguments.add(
            "body", found.schema, place="request", required=required, words=words
        )
        return Body(kind=kind, media_type=sent_as, argument=argument, required=required)
    arguments.converted[-1] = arguments.pool.measured({"properties": properties})
    fields = tuple(
        Field(
            argument=arguments.add(
                name,
                schema if isinstance(schema, dict) else {},
                place="body",
                required=required and name in needed,
            ),
            name=name,
        )
        for name, schema in properties.items()
    )
    return Body(kind=kind, media_type=sent_as, argument=None, fields=fields, required=required)


def _written_as(raw: Node) -> tuple[str, BodyKind]:
    """The media type that a body is sent as: JSON, or else a form."""
    content = raw.value.get("content")
    listed = list(content)[:MAX_MEDIA_TYPES] if isinstance(content, dict) else []
    found = next((name for name in listed if is_json(name)), None)
    if found is not None:
        return found, "json"
    if _FORM in listed:
        return _FORM, "form"
    raise Unmappable(
        f"only JSON and forms can be sent, and its body is {', '.join(listed)[:100] or 'nothing'}"
    )


def _flattened(found: Converted, pool: SchemaPool) -> tuple[dict[str, Any], frozenset[str]]:
    """The properties of an object, which may be referred to, and which it requires.

    None where the object is more than its properties, such as rules that hold between them, or is
    put together of several.

    Raises:
        Unmappable: A definition that it refers to cannot be converted.
    """
    schema: Mapping[str, Any] = found.schema
    for _ in range(_HOPS):
        if isinstance(reference := schema.get("$ref"), str) and schema.keys() <= _BESIDE:
            schema = pool.definition(reference).schema
    properties = schema.get("properties") or {}
    required = frozenset(schema.get("required") or ())
    pool.budget.spend(_A_PARAMETER * (1 + len(properties) + len(required)))
    is_whole = len(properties) <= MAX_ARGUMENTS and required <= properties.keys()
    return (properties, required) if is_whole and _is_plain(schema) else ({}, frozenset())


def _is_plain(part: Mapping[str, Any]) -> bool:
    """Whether a schema is that of an object, and says nothing but which properties it has."""
    kind = part.get("type", "object")
    is_object = kind == "object" or (isinstance(kind, list) and "object" in kind)
    return is_object and part.keys() <= _PLAIN and not part.get("additionalProperties")
