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
from collections.abc import Iterable, Iterator, Mapping
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
_WORD = re.compile(r"_+|[A-Z]*[^A-Z_]+_*|[A-Z]+_*")

_STYLES: Mapping[str, tuple[Style, ...]] = {
    "path": ("simple",),
    "query": ("form", "deepObject"),
    "header": ("simple",),
}
"""The styles of each place; the first is the default."""

_IGNORED_HEADERS = frozenset({"accept", "authorization", "content-type"})
"""OpenAPI says that parameters of these names mean nothing: other parts of it govern them."""

_FRAMING_HEADERS = frozenset(
    {"connection", "content-length", "cookie", "host", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "proxy-authorization", "accept-encoding"}
)
"""Headers that frame the request: left to a model, they could make two of one."""

_PLAIN = frozenset(
    {"$ref", "additionalProperties", "allOf", "default", "deprecated", "description", "examples"}
    | {"properties", "required", "title", "type"}
)
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
    if len(given) > _LONGEST_ID:
        given = given[: _LONGEST_ID // 2] + given[-_LONGEST_ID // 2 :]
    words = _WORD.findall(identifier(f"{prefix}{given}", fallback=method.lower()))
    while sum(map(len, words)) > MAX_TOOL_NAME and len(words) > 2:
        del words[len(words) // 2]
    return "".join(words)[:MAX_TOOL_NAME]


class Names:
    """Names that are taken, and the first free one like another.

    Example:
        >>> names = Names()
        >>> names.take("list"), names.take("list"), names.take("list")
        ('list', 'list__2', 'list__3')
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # by name, so that equal ones do not start from 2 each

    def take(self, wanted: str) -> str:
        """``wanted`` if it is free, else the first free one of ``wanted__2``, ``wanted__3``, ..."""
        name, number = wanted, self._next.get(wanted, 2)
        while name in self._next:
            suffix = f"__{number}"
            name, number = f"{wanted[: MAX_TOOL_NAME - len(suffix)]}{suffix}", number + 1
        self._next[wanted] = number
        self._next.setdefault(name, 2)
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._next


@dataclass(kw_only=True, slots=True)
class Arguments:
    """Collects the properties of a tool's parameters schema.

    Attributes:
        pool: Converts schemas.
        properties: The schema of each argument, in order.
        required: Arguments that a call must give.
        converted: The schemas that they are made of.
        notes: What a reader would want to know.
    """

    pool: SchemaPool
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

        A name that is taken is told apart by ``place``: ``query_id``, ``body_id``.
        """
        wanted = identifier(name[:_LONGEST_ID])
        argument = self._taken.take(f"{place}_{wanted}" if wanted in self._taken else wanted)
        if argument != name:
            self.notes.append(f"the {place} parameter {name[:100]!r} is the argument {argument!r}")
        told = words.strip() if isinstance(words, str) else ""
        self.properties[argument] = {**schema, "description": told} if told else dict(schema)
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

    One that can not be sent is left out with a note, if the call can do without it.

    Args:
        operation: The operation.
        arguments: Where the arguments are collected.
        secret: Place and name, in lower case, of what carries a key; a model never fills it.

    Raises:
        Unmappable: A parameter that is needed can not be sent, or there are too many.
    """
    found: list[Field] = []
    for raw in _merged_parameters(operation, arguments.pool):
        name, location = raw.value.get("name"), raw.value.get("in")
        if not isinstance(name, str) or not name:
            raise Unmappable("a parameter has no name")
        needed = raw.value.get("required") is True or location == "path"
        barred = _barred(name, location, operation.path, secret)
        fault = "" if barred else _unsendable(raw.value, name, location)
        if fault and needed:
            raise Unmappable(fault)
        if barred or fault:
            arguments.notes.append(barred or fault)
        else:
            found.append(_read_parameter(raw, arguments))
    known = {parameter.name for parameter in found if parameter.location == "path"}
    for name in PLACEHOLDER.findall(operation.path):
        if name not in known:
            raise Unmappable(
                f"the path has the placeholder {{{name}}}, but no path parameter is named so"
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


def _barred(name: str, location: object, path: str, secret: frozenset[tuple[str, str]]) -> str:
    """Why a parameter is no argument; empty when it is one."""
    if location == "path" and f"{{{name}}}" not in path:
        return f"the path has no placeholder {{{name[:100]}}}"
    if (str(location), name.lower()) in secret:
        return f"the {location} parameter {name} carries a key, which comes from the environment"
    if location == "header" and name.lower() in _IGNORED_HEADERS:
        return f"OpenAPI gives a header parameter named {name} no meaning"
    if location == "header" and name.lower() in _FRAMING_HEADERS:
        return f"the header {name} frames the request and is not left to a model"
    return ""


def _unsendable(raw: Mapping[str, Any], name: str, location: object) -> str:
    """Why a parameter can not be sent; empty when it can."""
    styles = _STYLES.get(str(location))
    if styles is None:
        return (
            f"the parameter {name[:100]!r} is in {location!r:.40}; known are {', '.join(_STYLES)}"
        )
    if raw.get("style", styles[0]) not in styles:
        return (
            f"the {location} parameter {name[:100]!r} has the style {raw['style']!r:.40}; there "
            f"{' and '.join(styles)} can be used"
        )
    if "content" in raw:
        return f"the parameter {name[:100]!r} is written as a document of its own (content)"
    return ""


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
        Unmappable: It has a body that can not be written.
    """
    if operation.source.mapping.get("requestBody") is None:
        return None
    raw = arguments.pool.space.followed(operation.source.at("requestBody"))
    media_type, kind = _written_as(raw)
    media = raw.at("content", media_type, "schema")
    given = raw.value.get("required")
    found = arguments.convert(media)
    properties, needed, fault = _flattened(found, arguments.pool)
    if needed and not fault and given is False:
        fault = "it is optional, but not all of its properties are"
    required = given is True or (bool(needed) and not fault)  # left out, it is an oversight
    sent_as = "application/json" if "*" in media_type else media_type
    if fault:
        if properties:
            arguments.notes.append(f"the body is one argument: {fault}")
        argument = arguments.add(
            "body",
            found.schema,
            place="request",
            required=required,
            words=raw.value.get("description"),
        )
        return Body(kind=kind, media_type=sent_as, argument=argument, required=required)
    arguments.converted[-1] = arguments.pool.measured({"properties": properties})
    fields: list[Field] = []
    for name, schema in properties.items():
        argument = arguments.add(
            name,
            schema if isinstance(schema, dict) else {},
            place="body",
            required=required and name in needed,
        )
        fields.append(Field(argument=argument, name=name))
    return Body(
        kind=kind, media_type=sent_as, argument=None, fields=tuple(fields), required=required
    )


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


def _flattened(found: Converted, pool: SchemaPool) -> tuple[dict[str, Any], frozenset[str], str]:
    """The properties of an object, its references and ``allOf`` followed; what it requires.

    Returns:
        The schema of each property, the names that the object must have, and why the object is
        more than its properties; empty when it is not.

    Raises:
        Unmappable: A definition that it refers to can not be converted.
    """
    properties: dict[str, Any] = {}
    required: set[str] = set()
    fault = ""
    for part in _parts(found.schema, pool, set(), 0):
        own, needed = part.get("properties") or {}, part.get("required") or ()
        pool.budget.spend(_A_PARAMETER * (1 + len(own) + len(needed)))
        fault = fault or _fault(part)
        clash = next((name for name in own if properties.get(name, own[name]) != own[name]), None)
        if clash is not None:
            fault = fault or f"its parts describe {clash!r} differently"
        properties |= own
        required.update(needed)
        if len(properties) > MAX_ARGUMENTS:
            return properties, frozenset(), f"it has more than {MAX_ARGUMENTS} properties"
    unknown = required - properties.keys()
    if not fault and unknown:
        fault = f"it requires {min(unknown)!r}, which it does not describe"
    return properties, frozenset(required), fault or ("" if properties else "it has no properties")


def _parts(
    schema: Mapping[str, Any], pool: SchemaPool, seen: set[str], depth: int
) -> Iterator[Mapping[str, Any]]:
    """The schemas that an object has to fit all together, the outermost last."""
    if depth > _HOPS:
        yield {"not": {}}  # a rule, so that the object stays in one piece
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:  # twice says no more than once
        seen.add(reference)
        yield from _parts(pool.definition(reference).schema, pool, seen, depth + 1)
    for branch in schema.get("allOf", ()):
        if isinstance(branch, Mapping):
            yield from _parts(branch, pool, seen, depth + 1)
    yield schema


def _fault(part: Mapping[str, Any]) -> str:
    kind = part.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return "it is no object"
    if rules := sorted(part.keys() - _PLAIN):
        return f"rules hold between its properties ({', '.join(rules)[:100]})"
    return "it takes names that are not declared" if part.get("additionalProperties") else ""
