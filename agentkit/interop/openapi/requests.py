"""The plan of an operation's requests, and one call as a request: URL, headers and body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote, urlencode

from agentkit.errors import ModelRetry, ToolFailed
from agentkit.interop.openapi.credentials import Secrets, SecurityScheme, parameter_key

Location = Literal["path", "query", "header", "body"]
Style = Literal["simple", "form", "deepObject"]
BodyKind = Literal["json", "form"]

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""A placeholder of a path."""

_PATH_CHARACTERS = "/:@!$&'()*+,;=~%-._"


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A parameter of an operation, or a property of its body, and how it is sent.

    Attributes:
        argument: The name of the tool's argument.
        name: The name in the request.
        location: Where it is sent.
        style: How lists and objects are written.
        explode: Whether their parts are written one by one.
    """

    argument: str
    name: str
    location: Location = "body"
    style: Style = "form"
    explode: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of a request.

    Attributes:
        kind: How it is written.
        media_type: Its ``Content-Type``.
        argument: The argument that holds all of it; None when its properties are arguments.
        fields: Its properties, when they are arguments.
        required: Whether an empty body is sent when nothing is given.
    """

    kind: BodyKind
    media_type: str
    argument: str | None
    fields: tuple[Field, ...] = ()
    required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestPlan:
    """How a call of one tool becomes a request. It holds no secret.

    Attributes:
        tool_name: The tool.
        method: In capitals.
        server: The base URL, without a slash at its end; empty when none is known.
        path: The path with its placeholders.
        parameters: The parameters.
        body: The body, if there is one.
        security: Alternatives; of each, all schemes are needed. Empty when nothing is wanted; an
            alternative without schemes allows anonymous calls.
        secret: Place and name (``parameter_key``) of what carries a secret of these.
        repeatable: Whether an identical second request changes nothing more.
    """

    tool_name: str
    method: str
    server: str
    path: str
    parameters: tuple[Field, ...] = ()
    body: Body | None = None
    security: tuple[tuple[SecurityScheme, ...], ...] = ()
    secret: frozenset[tuple[str, str]] = frozenset()
    repeatable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PreparedRequest:
    """A request ready to send. It has no ``repr``, since it holds secrets.

    Attributes:
        method: In capitals.
        url: The whole URL.
        headers: Names and values.
        content: The body; None for none.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON.

    Example:
        >>> is_json("application/vnd.api+json; charset=utf-8"), is_json("image/png")
        (True, False)
    """
    bare = media_type.partition(";")[0].strip().lower()
    known = {"application/json", "*/*", "application/*", "text/json"}
    return bare in known or bare.endswith("+json")


def prepare(plan: RequestPlan, arguments: Mapping[str, Any], secrets: Secrets) -> PreparedRequest:
    """The request of one call.

    Args:
        plan: How arguments are sent.
        arguments: By argument name, as the tool's schema allows.
        secrets: What proves who is calling.

    Raises:
        ModelRetry: A value cannot be sent where it belongs.
        ToolFailed: No server is known.
    """
    if not plan.server:
        raise ToolFailed(
            f"no server is known for {plan.tool_name}: the API's description names no absolute "
            "URL. The person who runs this program has to give the URL of its server"
        )
    placed: dict[str, list[tuple[Field, Any]]] = {"path": [], "query": [], "header": []}
    for each in plan.parameters:
        if arguments.get(each.argument) is not None:
            placed[each.location].append((each, arguments[each.argument]))
    headers = {"Accept": "application/json, */*;q=0.1", "Accept-Encoding": "gzip, deflate"}
    headers |= {each.name: _header(each, value) for each, value in placed["header"]}
    content = None if plan.body is None else _body(plan, plan.body, arguments)
    if content is not None and plan.body is not None:
        headers["Content-Type"] = plan.body.media_type
    pairs = [pair for each, value in placed["query"] for pair in query_pairs(each, value)]
    _refuse_keys(pairs, plan.secret)
    query = urlencode([*pairs, *secrets.query], quote_via=quote, safe="")
    url = f"{plan.server}{_path(plan, placed['path'])}" + (f"?{query}" if query else "")
    headers |= secrets.headers
    return PreparedRequest(method=plan.method, url=url, headers=headers, content=content)


def _path(plan: RequestPlan, placed: list[tuple[Field, Any]]) -> str:
    values = {each.name: (each, value) for each, value in placed}
    parts = PLACEHOLDER.split(plan.path)  # what stands between names, and the names
    made = [
        _placed(part, values) if place % 2 else quote(part, safe=_PATH_CHARACTERS)
        for place, part in enumerate(parts)
    ]
    # what is encoded within a value stays so, and only what both make together counts
    seen = "".join(
        part.replace("%", "\0") if place % 2 else part for place, part in enumerate(made)
    )
    if len(made) > 1 and leaves_its_path(seen):
        raise ModelRetry("the values given would change which address is called")
    text = "".join(made)
    return text if text.startswith("/") else f"/{text}"


def leaves_its_path(path: str) -> bool:
    """Whether a path holds a segment of dots alone, however it is encoded.

    Example:
        >>> leaves_its_path("/a/%2e%2e/b"), leaves_its_path("/a/v1.2/b")
        (True, False)
    """
    parts = re.split(r"[/\\]", unquote(path))
    return any(part.partition(";")[0] in {".", ".."} for part in parts)


def _placed(name: str, values: Mapping[str, tuple[Field, Any]]) -> str:
    if name not in values:
        raise ModelRetry(f"a value for {name} is needed, since it is part of the address")
    field, value = values[name]
    made = ",".join(quote(text, safe="") for text in _texts(field, value))
    if not made:
        raise ModelRetry(f"`{field.argument}` may not be empty, since it is part of the address")
    return made


def _header(field: Field, value: Any) -> str:
    text = ",".join(_texts(field, value))
    if not text.isprintable():
        raise ModelRetry(f"`{field.argument}` is sent as a header, so it may hold no line breaks")
    return text.strip()


def _texts(field: Field, value: Any) -> list[str]:
    """The parts of a value in the style ``simple``."""
    if isinstance(value, Mapping):
        raise ModelRetry(f"`{field.argument}` may be no object, since it is part of the address")
    return [scalar_text(item) for item in _items(value)]


def _items(value: Any) -> list[Any]:
    return [item for item in (value if isinstance(value, list) else [value]) if item is not None]


def query_pairs(field: Field, value: Any) -> Iterator[tuple[str, str]]:
    """Names and values for a query or a form.

    Example:
        >>> ids = Field(argument="id", name="id", location="query")
        >>> list(query_pairs(ids, [3, 4]))
        [('id', '3'), ('id', '4')]
        >>> deep = Field(argument="f", name="f", location="query", style="deepObject")
        >>> list(query_pairs(deep, {"age": 3}))
        [('f[age]', '3')]
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = f"{field.name}[{key}]" if field.style == "deepObject" else str(key)
            yield from ((name, scalar_text(one)) for one in _items(item))
    elif field.explode:
        yield from ((field.name, scalar_text(item)) for item in _items(value))
    elif items := _items(value):
        yield field.name, ",".join(map(scalar_text, items))


def scalar_text(value: Any) -> str:
    """A value as text: numbers and booleans as JSON writes them, what is nested as JSON.

    Example:
        >>> scalar_text(True), scalar_text(2.0), scalar_text({"a": [1]})
        ('true', '2.0', '{"a":[1]}')
    """
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _refuse_keys(pairs: list[tuple[str, str]], secret: frozenset[tuple[str, str]]) -> None:
    """Keep a model from sending a credential of its own beside, or in place of, the caller's."""
    for name, _ in pairs:
        if ("query", parameter_key(name)) in secret:
            raise ModelRetry(f"{name!r:.100} carries a key of the API, which is not yours to give")


def _body(plan: RequestPlan, body: Body, arguments: Mapping[str, Any]) -> bytes | None:
    """The body of one call; None for none.

    Raises:
        ModelRetry: It is to be a form, and is not an object, or holds the name of a credential.
    """
    value: Any
    if body.argument is None:
        fields = (field for field in body.fields if field.argument in arguments)
        value = {field.name: arguments[field.argument] for field in fields}
        if not value and not body.required:
            return None
    elif body.argument in arguments:
        value = arguments[body.argument]
    else:
        return None
    if body.kind == "json":
        return _json(value).encode()
    if not isinstance(value, Mapping):
        raise ModelRetry(f"`{body.argument}` must be an object, since it is sent as a form")
    pairs: list[tuple[str, str]] = []
    for name, item in value.items():
        pairs += query_pairs(Field(argument=name, name=name, style="deepObject"), item)
    _refuse_keys(pairs, plan.secret)
    return urlencode(pairs).encode("ascii")
