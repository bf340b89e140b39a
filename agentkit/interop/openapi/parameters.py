"""Parameters of path, query, header and cookie: arguments of the tool, and how they are sent."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkit.interop.openapi.plan import Location, Parameter, Style
from agentkit.interop.openapi.remote import Located, Operation, Unmappable, below
from agentkit.interop.openapi.report import OpenApiNote
from agentkit.interop.openapi.schemas import Converted, SchemaPool, examples_of


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


MAX_TOOL_NAME = 64
"""Longest name that every provider takes."""

_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_WORD = re.compile(r"_+|[A-Z]*[^A-Z_]+_*|[A-Z]+_*")


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


def tool_name(operation_id: object, method: str, path: str, *, prefix: str = "") -> str:
    """The name of an operation's tool: its id, or its method and path.

    Example:
        >>> tool_name("issues/list-for-repo", "get", "/repos/{owner}/issues")
        'issues_list_for_repo'
        >>> tool_name(None, "get", "/pets/{petId}", prefix="shop_")
        'shop_get_pets_petId'
    """
    given = operation_id if isinstance(operation_id, str) else ""
    if not _OTHER.sub("", given).strip("_"):
        given = f"{method.lower()}/{path}"
    return shortened(identifier(f"{prefix}{given}", fallback=method.lower()))


def shortened(name: str, *, longest: int = MAX_TOOL_NAME) -> str:
    """A name without as many words of its middle as do not fit.

    Its start tells what is done to what, its end what tells it from its siblings.

    Example:
        >>> shortened("get_metrics_load_balancer_network_bytes", longest=30)
        'get_metrics_load_network_bytes'
    """
    words = _WORD.findall(name)
    while sum(map(len, words)) > longest and len(words) > 2:
        del words[len(words) // 2]
    return "".join(words)[:longest]


def free_name(wanted: str, taken: Container[str], *, longest: int = MAX_TOOL_NAME) -> str:
    """``wanted`` if it is free, else the first free one of ``wanted__2``, ``wanted__3``, ...

    Example:
        >>> free_name("list", {"list"}), free_name("a" * 64, {"a" * 64})[-4:]
        ('list__2', 'a__2')
    """
    name, number = wanted, 2
    while name in taken:
        suffix = f"__{number}"
        name, number = f"{wanted[: longest - len(suffix)]}{suffix}", number + 1
    return name


PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""A placeholder of a path."""

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


def read_parameters(
    operation: Operation,
    arguments: Arguments,
    pool: SchemaPool,
    *,
    secret: frozenset[tuple[Location, str]] = frozenset(),
) -> tuple[Parameter, ...]:
    """The parameters of an operation, its path's included; each becomes an argument.

    Args:
        operation: The operation.
        arguments: Where the arguments are collected.
        pool: Converts schemas.
        secret: Place and name, in lower case, of what carries a key; a model never fills it.

    Raises:
        Unmappable: A parameter can not be sent, so calls of the operation can not be made.
    """
    found: list[Parameter] = []
    for raw in _merged(operation, pool):
        name, location = _name(raw)
        barred = _barred(name, location, operation.path, secret)
        if barred:
            arguments.note("parameter_left_out", barred, raw.pointer)
            continue
        found.append(_read(raw, name, location, arguments, pool))
    known = {parameter.name for parameter in found if parameter.location == "path"}
    for name in PLACEHOLDER.findall(operation.path):
        if name not in known:
            raise Unmappable(
                f"the path has the placeholder {{{name}}}, but no path parameter is named so",
                pointer=operation.pointer,
            )
    return tuple(found)


def _merged(operation: Operation, pool: SchemaPool) -> Iterable[Located]:
    """The path's parameters, then the operation's; one of the same name and place replaces."""
    by_key: dict[tuple[Any, Any], Located] = {}
    for raw in (*operation.shared, *_own(operation)):
        found = pool.space.followed(raw.value, document=raw.document, pointer=raw.pointer)
        by_key[str(found.value.get("name")), str(found.value.get("in"))] = found
    return by_key.values()


def _own(operation: Operation) -> Iterator[Located]:
    given = operation.body.get("parameters") or []
    at = below(operation.source.pointer, "parameters")
    if not isinstance(given, list):
        raise Unmappable(f"its parameters are a {type(given).__name__}, not a list", pointer=at)
    for index, part in enumerate(given):
        yield Located(value=part, document=operation.source.document, pointer=below(at, index))


def _name(raw: Located) -> tuple[str, Location]:
    name, location = raw.value.get("name"), raw.value.get("in")
    if not isinstance(name, str) or not name:
        raise Unmappable("a parameter has no name", pointer=raw.pointer)
    if location not in tuple(_STYLES):
        raise Unmappable(
            f"the parameter {name!r} is in {location!r}; known are {', '.join(_STYLES)}",
            pointer=raw.pointer,
        )
    return name, cast("Location", location)


def _barred(
    name: str, location: Location, path: str, secret: frozenset[tuple[Location, str]]
) -> str:
    """Why a parameter is no argument; empty when it is one."""
    if location == "path" and f"{{{name}}}" not in path:
        return f"the path has no placeholder {{{name}}}"
    if (location, name.lower()) in secret:
        return f"the {location} parameter {name} carries a key, which comes from the environment"
    if location != "header":
        return ""
    if name.lower() in _IGNORED_HEADERS:
        return f"OpenAPI gives a header parameter named {name} no meaning"
    if name.lower() in _FRAMING_HEADERS:
        return f"the header {name} frames the request and is not left to a model"
    return ""


def _read(
    raw: Located, name: str, location: Location, arguments: Arguments, pool: SchemaPool
) -> Parameter:
    schema, as_json = _schema(raw, name, pool)
    samples = examples_of({k: raw.value[k] for k in ("example", "examples") if k in raw.value})
    beside: dict[str, Any] = {}
    if samples and "examples" not in schema.schema:
        beside["examples"] = samples
    if raw.value.get("deprecated") is True:
        beside["deprecated"] = True
    if beside:  # the conversion is shared, so it is not changed
        schema = Converted(schema=schema.schema | beside, names=schema.names)
    words = raw.value.get("description")
    argument = arguments.add(
        name,
        schema,
        place=location,
        required=raw.value.get("required") is True or location == "path",
        pointer=raw.pointer,
        description=words.strip() if isinstance(words, str) else "",
    )
    style = _style(raw, name, location)
    explode = raw.value.get("explode")
    return Parameter(
        argument=argument,
        name=name,
        location=location,
        style=style,
        explode=explode if isinstance(explode, bool) else style in {"form", "deepObject"},
        allow_reserved=location == "query" and raw.value.get("allowReserved") is True,
        as_json=as_json,
    )


def _style(raw: Located, name: str, location: Location) -> Style:
    allowed = _STYLES[location]
    given = raw.value.get("style", allowed[0])
    if given not in allowed:
        raise Unmappable(
            f"the {location} parameter {name!r} has the style {given!r}; "
            f"there {', '.join(allowed)} can be used",
            pointer=raw.pointer,
        )
    return cast("Style", given)


def _schema(raw: Located, name: str, pool: SchemaPool) -> tuple[Converted, bool]:
    """The schema, and whether the value is written as JSON."""
    content = raw.value.get("content")
    if isinstance(content, Mapping) and content:
        media_type, part = next(iter(content.items()))
        if "json" not in media_type:
            raise Unmappable(
                f"the parameter {name!r} is written as {media_type}; only JSON is",
                pointer=below(raw.pointer, "content"),
            )
        given = part.get("schema", {}) if isinstance(part, Mapping) else {}
        at = below(raw.pointer, "content", media_type, "schema")
        return pool.convert(given, document=raw.document, pointer=at), True
    at = below(raw.pointer, "schema")
    given = raw.value.get("schema", {})
    return pool.convert(given, document=raw.document, pointer=at), False
