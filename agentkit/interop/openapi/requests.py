"""The plan of an operation's requests, and one call as a request: URL, headers and body."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from agentkit.errors import ModelRetry, ToolFailed
from agentkit.interop.openapi.credentials import Secrets, SecurityScheme

Location = Literal["path", "query", "header", "cookie", "body"]
Style = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"
]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]

Part: TypeAlias = "tuple[str, tuple[str | None, bytes, str | None]]"
"""A part of a multipart body: its name, and its file name, content and media type."""

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""A placeholder of a path."""

_PATH_CHARACTERS = "/:@!$&'()*+,;=~%-._"
_RESERVED = ":/?!$'()*,;=@"
_SEPARATORS: Mapping[str, str] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_MAX_DEPTH = 16
_NOTHING = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A parameter of an operation, or a property of its body, and how it is sent.

    Attributes:
        argument: The name of the tool's argument.
        name: The name in the request.
        location: Where it is sent.
        style: How lists and objects are written.
        explode: Whether their parts are written one by one.
        allow_reserved: Whether reserved characters stay as they are, in a query or a form.
        as_json: Whether the value is written as JSON, for a parameter with ``content``.
        is_file: Whether it is sent as a file, in a multipart body.
        content_type: The media type of the part, in a multipart body; empty for the usual one.
    """

    argument: str
    name: str
    location: Location = "body"
    style: Style = "form"
    explode: bool = True
    allow_reserved: bool = False
    as_json: bool = False
    is_file: bool = False
    content_type: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of a request.

    Attributes:
        kind: How it is written.
        media_type: Its ``Content-Type``.
        argument: The argument that holds all of it; None when its properties are arguments.
        fields: Its properties, as far as they are known.
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
        accept: Media types that the operation answers with, the best first.
        security: Alternatives; of each, all schemes are needed. Empty when nothing is wanted; an
            alternative without schemes allows anonymous calls.
        repeatable: Whether an identical second request changes nothing more.
        is_known: Whether credentials may go to the server: it is the API's own, or the caller
            named it. Elsewhere a description could have keys sent to whom it likes.
    """

    tool_name: str
    method: str
    server: str
    path: str
    parameters: tuple[Field, ...] = ()
    body: Body | None = None
    accept: tuple[str, ...] = ()
    security: tuple[tuple[SecurityScheme, ...], ...] = ()
    repeatable: bool = False
    is_known: bool = True


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PreparedRequest:
    """What is sent. It has no ``repr``, since it holds secrets.

    Attributes:
        method: In capitals.
        url: The whole URL.
        headers: Names and values.
        content: The body; None for none, and for a multipart body.
        parts: The parts of a multipart body.
        is_known: Whether it goes where the caller's own credentials may; see ``RequestPlan``.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    parts: tuple[Part, ...] = ()
    is_known: bool = True


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


def prepare(plan: RequestPlan, arguments: Mapping[str, Any], secrets: Secrets) -> PreparedRequest:
    """The request of one call.

    Args:
        plan: How arguments are sent.
        arguments: By argument name, as the tool's schema allows.
        secrets: What proves who is calling.

    Raises:
        ModelRetry: A value can not be sent where it belongs.
        ToolFailed: No server is known.
    """
    if not plan.server:
        raise ToolFailed(
            f"no server is known for {plan.tool_name}: the API's description names no absolute "
            "URL. The person who runs this program has to give the URL of its server"
        )
    given = [
        (each, arguments[each.argument])
        for each in plan.parameters
        if arguments.get(each.argument) is not None
    ]
    headers = _headers(plan, given, secrets)
    content, parts, media_type = encode_body(plan.body, arguments)
    if media_type:
        headers["Content-Type"] = media_type
    headers.update(secrets.headers)
    pairs = [
        pair for each, value in given if each.location == "query" for pair in _pairs(each, value)
    ]
    pairs += [(quote(name, safe=""), quote(value, safe="")) for name, value in secrets.query]
    url = f"{plan.server}{_path(plan, given)}"
    if pairs:
        url += ("&" if "?" in url else "?") + "&".join(f"{name}={text}" for name, text in pairs)
    return PreparedRequest(
        method=plan.method,
        url=url,
        headers=headers,
        content=content,
        parts=parts,
        is_known=plan.is_known,
    )


def _path(plan: RequestPlan, given: list[tuple[Field, Any]]) -> str:
    values = {each.name: (each, value) for each, value in given if each.location == "path"}
    path, question, fixed = plan.path.partition("?")
    segments = []
    for segment in path.split("/"):
        texts = PLACEHOLDER.split(segment)  # what stands between names, and the names
        for place, text in enumerate(texts):
            is_name = place % 2
            texts[place] = _placed(text, values) if is_name else quote(text, safe=_PATH_CHARACTERS)
        made = "".join(texts)
        if len(texts) > 1 and made.replace("%2E", ".") in {"", ".", ".."}:
            name = PLACEHOLDER.findall(segment)[0]
            raise ModelRetry(f"the value of {name} would change which address is called")
        segments.append(made)
    text = "/".join(segments)
    return (text if text.startswith("/") else f"/{text}") + question + fixed


def _placed(name: str, values: Mapping[str, tuple[Field, Any]]) -> str:
    if name not in values:
        raise ModelRetry(f"a value for {name} is needed, since it is part of the address")
    field, value = values[name]
    if field.as_json:
        return quote(_json(value), safe="")
    made = path_text(name, value, style=field.style, explode=field.explode)
    if not made:
        raise ModelRetry(f"`{field.argument}` may not be empty, since it is part of the address")
    return made


def _pairs(field: Field, value: Any) -> Iterable[tuple[str, str]]:
    if field.as_json:
        return [(quote(field.name, safe=""), quote(_json(value), safe=""))]
    return query_pairs(
        field.name,
        value,
        style=field.style,
        explode=field.explode,
        allow_reserved=field.allow_reserved,
    )


def _headers(plan: RequestPlan, given: list[tuple[Field, Any]], secrets: Secrets) -> dict[str, str]:
    headers = {"Accept": ", ".join([*(plan.accept or ["application/json"]), "*/*;q=0.1"])}
    cookies: list[str] = []
    for field, value in given:
        if field.location == "header":
            text = _json(value) if field.as_json else header_text(value, explode=field.explode)
            if not text.isprintable():
                raise ModelRetry(
                    f"`{field.argument}` is sent as a header, so it may hold no line breaks"
                )
            headers[field.name] = text.strip()
        elif field.location == "cookie":
            cookies += [f"{name}={text}" for name, text in _pairs(field, value)]
    cookies += [f"{name}={value}" for name, value in secrets.cookies]
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    return headers


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def scalar_text(value: Any) -> str:
    """A value as text: numbers and booleans as JSON writes them, what is nested as JSON.

    Example:
        >>> scalar_text(True), scalar_text(2.0), scalar_text({"a": [1]})
        ('true', '2.0', '{"a":[1]}')
    """
    return value if isinstance(value, str) else _json(value)


def _encoded(value: Any, *, allow_reserved: bool = False) -> str:
    return quote(scalar_text(value), safe=_RESERVED if allow_reserved else "")


def path_text(name: str, value: Any, *, style: Style, explode: bool) -> str:
    """What stands in place of a placeholder of a path.

    Example:
        >>> path_text("id", [3, 4], style="simple", explode=False)
        '3,4'
        >>> path_text("id", {"a": 1}, style="matrix", explode=True)
        ';a=1'
    """
    key = _encoded(name)
    if isinstance(value, Mapping):
        pairs = [(_encoded(k), _encoded(v)) for k, v in value.items() if v is not None]
        if style == "matrix" and explode:
            return "".join(_assigned(k, v) for k, v in pairs)
        items = (
            [f"{k}={v}" for k, v in pairs] if explode else [part for pair in pairs for part in pair]
        )
    else:
        items = [
            _encoded(one)
            for one in (value if isinstance(value, list) else [value])
            if one is not None
        ]
        if style == "matrix" and explode and isinstance(value, list):
            return "".join(_assigned(key, item) for item in items)
    if not items:
        return ""
    if style == "matrix":
        return _assigned(key, ",".join(items))
    return "." + ("." if explode else ",").join(items) if style == "label" else ",".join(items)


def _assigned(key: str, text: str) -> str:
    return f";{key}={text}" if text else f";{key}"


def query_pairs(
    name: str, value: Any, *, style: Style, explode: bool, allow_reserved: bool = False
) -> Iterator[tuple[str, str]]:
    """Names and values for a query or a form, both percent-encoded.

    Example:
        >>> list(query_pairs("id", [3, 4], style="form", explode=True))
        [('id', '3'), ('id', '4')]
        >>> list(query_pairs("filter", {"age": {"min": 3}}, style="deepObject", explode=True))
        [('filter%5Bage%5D%5Bmin%5D', '3')]
    """

    def text(item: Any) -> str:
        return _encoded(item, allow_reserved=allow_reserved)

    if style == "deepObject" and isinstance(value, Mapping | list):
        yield from ((key, text(item)) for key, item in _deep(_encoded(name), value, 0))
        return
    if isinstance(value, Mapping):
        pairs = [(k, v) for k, v in value.items() if v is not None]
        if explode:
            yield from ((_encoded(k), text(v)) for k, v in pairs)
            return
        parts = [part for pair in pairs for part in pair]
    else:
        given = value if isinstance(value, list) else [value]
        parts = [item for item in given if item is not None]
        if explode:
            yield from ((_encoded(name), text(item)) for item in parts)
            return
    if parts:
        yield _encoded(name), _SEPARATORS.get(style, ",").join(map(text, parts))


def _deep(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """``a[b][0]=c``. OpenAPI defines one level of an object; most servers read on like this."""
    if depth < _MAX_DEPTH and isinstance(value, Mapping | list) and value:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            yield from _deep(f"{name}%5B{quote(str(key), safe='')}%5D", item, depth + 1)
    elif value is not None and value not in ({}, []):
        yield name, value


def header_text(value: Any, *, explode: bool) -> str:
    """A header's value. Nothing is percent-encoded there (OpenAPI 3.1.1, 4.8.12.2).

    Example:
        >>> header_text({"a": 1, "b": 2}, explode=True), header_text(["x", "y"], explode=False)
        ('a=1,b=2', 'x,y')
    """
    if isinstance(value, Mapping):
        pairs = [(k, scalar_text(v)) for k, v in value.items() if v is not None]
        return ",".join(f"{k}={v}" if explode else f"{k},{v}" for k, v in pairs)
    given = value if isinstance(value, list) else [value]
    return ",".join(scalar_text(item) for item in given if item is not None)


def encode_body(
    body: Body | None, arguments: Mapping[str, Any]
) -> tuple[bytes | None, tuple[Part, ...], str]:
    """The body of one call: its bytes, or the parts of a multipart body; and its media type.

    Raises:
        ModelRetry: A value can not be sent, such as base64 that is none.
    """
    value = _NOTHING if body is None else _body_value(body, arguments)
    if body is None or value is _NOTHING:
        return None, (), ""
    if body.kind == "json":
        return _json(value).encode(), (), body.media_type
    if body.kind == "text":
        return scalar_text(value).encode(), (), body.media_type
    if body.kind == "binary":
        media_type = "application/octet-stream" if "*" in body.media_type else body.media_type
        return _decoded(value, body.argument or ""), (), media_type
    if not isinstance(value, Mapping):
        raise ModelRetry(f"`{body.argument}` must be an object, since it is sent as a form")
    known = {field.name: field for field in body.fields}
    fields = [
        (known.get(name) or Field(argument=name, name=name), item) for name, item in value.items()
    ]
    if body.kind == "form":
        pairs = [f"{key}={text}" for field, item in fields for key, text in _pairs(field, item)]
        return "&".join(pairs).replace("%20", "+").encode("ascii"), (), body.media_type
    parts = (
        _part(field, one)
        for field, item in fields
        for one in (item if isinstance(item, list) else [item])
        if one is not None
    )
    return None, tuple(parts), ""  # the boundary of the parts is still to come


def _body_value(body: Body, arguments: Mapping[str, Any]) -> Any:
    if body.argument is not None:
        return arguments.get(body.argument, _NOTHING)
    given = {
        field.name: arguments[field.argument]
        for field in body.fields
        if field.argument in arguments
    }
    return given if given or body.required else _NOTHING


def _part(field: Field, value: Any) -> Part:
    if not field.is_file:
        media_type = "application/json" if isinstance(value, Mapping) else None
        return field.name, (None, scalar_text(value).encode(), field.content_type or media_type)
    name = field.name
    if not isinstance(value, Mapping):
        value = {"filename": name, "text": scalar_text(value)}
    text, encoded = value.get("text"), value.get("base64")
    if (text is None) == (encoded is None):
        raise ModelRetry(f"give the content of `{name}` either as `text` or as `base64`")
    content = str(text).encode() if encoded is None else _decoded(encoded, f"{name}.base64")
    filename = str(value.get("filename") or name)
    kind = str(value.get("content_type") or field.content_type or "application/octet-stream")
    if not (filename.isprintable() and kind.isprintable()):
        raise ModelRetry(f"`filename` and `content_type` of `{name}` may hold no line breaks")
    return name, (filename, content, kind)


def _decoded(value: Any, argument: str) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ModelRetry(f"`{argument}` must be base64 (RFC 4648): {error}") from error
