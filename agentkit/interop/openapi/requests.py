"""One call as a request: URL, headers and body, without anything of HTTP's machinery."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from agentkit.errors import ModelRetry, ToolFailed
from agentkit.interop.openapi.credentials import Secrets
from agentkit.interop.openapi.parameters import PLACEHOLDER
from agentkit.interop.openapi.plan import Body, BodyField, Parameter, RequestPlan, Style

_PATH_CHARACTERS = "/:@!$&'()*+,;=~%-._"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PreparedRequest:
    """What is sent. It has no ``repr``, since it holds secrets.

    Attributes:
        method: In capitals.
        url: The whole URL.
        headers: Names and values.
        body: The body, if there is one.
        is_known: Whether it goes where the caller's own credentials may; see ``RequestPlan``.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: EncodedBody | None
    is_known: bool = True


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
    body = encode_body(plan.body, arguments) if plan.body is not None else None
    if body is not None and body.media_type:
        headers["Content-Type"] = body.media_type
    headers.update(secrets.headers)
    query = _query(given, secrets)
    url = f"{plan.server}{_path(plan, given)}"
    if query:
        url += ("&" if "?" in url else "?") + query
    return PreparedRequest(
        method=plan.method, url=url, headers=headers, body=body, is_known=plan.is_known
    )


def _path(plan: RequestPlan, given: list[tuple[Parameter, Any]]) -> str:
    values = {each.name: (each, value) for each, value in given if each.location == "path"}
    path, question, fixed = plan.path.partition("?")
    segments = []
    for segment in path.split("/"):
        made = ""
        end = 0
        for match in PLACEHOLDER.finditer(segment):
            made += quote(segment[end : match.start()], safe=_PATH_CHARACTERS)
            made += _placed(match[1], values)
            end = match.end()
        made += quote(segment[end:], safe=_PATH_CHARACTERS)
        if end and made.replace("%2E", ".") in {"", ".", ".."}:
            name = PLACEHOLDER.findall(segment)[0]
            raise ModelRetry(f"the value of {name} would change which address is called")
        segments.append(made)
    text = "/".join(segments)
    return (text if text.startswith("/") else f"/{text}") + question + fixed


def _placed(name: str, values: Mapping[str, tuple[Parameter, Any]]) -> str:
    if name not in values:
        raise ModelRetry(f"a value for {name} is needed, since it is part of the address")
    parameter, value = values[name]
    if parameter.as_json:
        return quote(scalar_text(_jsonable(value)), safe="")
    made = path_text(name, value, style=parameter.style, explode=parameter.explode)
    if not made:
        raise ModelRetry(
            f"`{parameter.argument}` may not be empty, since it is part of the address"
        )
    return made


def _jsonable(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _query(given: list[tuple[Parameter, Any]], secrets: Secrets) -> str:
    pairs: list[str] = []
    for parameter, value in given:
        if parameter.location != "query":
            continue
        if parameter.as_json:
            pairs.append(f"{quote(parameter.name, safe='')}={quote(_jsonable(value), safe='')}")
            continue
        found = query_pairs(
            parameter.name,
            value,
            style=parameter.style,
            explode=parameter.explode,
            allow_reserved=parameter.allow_reserved,
        )
        pairs += [f"{name}={text}" for name, text in found]
    pairs += [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in secrets.query]
    return "&".join(pairs)


def _headers(
    plan: RequestPlan, given: list[tuple[Parameter, Any]], secrets: Secrets
) -> dict[str, str]:
    accept = ", ".join(
        [*plan.accept, "*/*;q=0.1"] if plan.accept else ["application/json", "*/*;q=0.1"]
    )
    headers = {"Accept": accept}
    cookies: list[str] = []
    for parameter, value in given:
        if parameter.location == "header":
            text = (
                _jsonable(value)
                if parameter.as_json
                else header_text(value, explode=parameter.explode)
            )
            headers[parameter.name] = _one_line(text, parameter)
        elif parameter.location == "cookie":
            cookies += _cookies(parameter, value)
    cookies += [f"{name}={value}" for name, value in secrets.cookies]
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    return headers


def _cookies(parameter: Parameter, value: Any) -> list[str]:
    if parameter.as_json:
        return [f"{quote(parameter.name, safe='')}={quote(_jsonable(value), safe='')}"]
    found = query_pairs(parameter.name, value, style="form", explode=parameter.explode)
    return [f"{name}={text}" for name, text in found]


def _one_line(text: str, parameter: Parameter) -> str:
    if not text.isprintable():
        raise ModelRetry(
            f"`{parameter.argument}` is sent as a header, so it may hold no line breaks"
        )
    return text.strip()


_RESERVED = ":/?!$'()*,;=@"
_SEPARATORS: Mapping[str, str] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_MAX_DEPTH = 16


def scalar_text(value: Any) -> str:
    """A value as text: numbers and booleans as JSON writes them, what is nested as JSON.

    Example:
        >>> scalar_text(True), scalar_text(2.0), scalar_text({"a": [1]})
        ('true', '2.0', '{"a":[1]}')
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encoded(value: Any, *, allow_reserved: bool = False) -> str:
    """A value as text, percent-encoded for a URL."""
    return quote(scalar_text(value), safe=_RESERVED if allow_reserved else "")


def path_text(name: str, value: Any, *, style: Style, explode: bool) -> str:
    """What stands in place of a placeholder of a path.

    Example:
        >>> path_text("id", [3, 4], style="simple", explode=False)
        '3,4'
        >>> path_text("id", {"a": 1}, style="matrix", explode=True)
        ';a=1'
    """
    if style == "matrix":
        return _matrix(name, value, explode=explode)
    items = _items(value, explode=explode, assign="=")
    if style == "label":
        return "." + ("." if explode else ",").join(items) if items else ""
    return ",".join(items)


def _matrix(name: str, value: Any, *, explode: bool) -> str:
    key = encoded(name)
    if isinstance(value, Mapping) and explode:
        return "".join(f";{pair}" for pair in _items(value, explode=True, assign="=", bare=True))
    if isinstance(value, list) and explode:
        return "".join(_assigned(f";{key}", item) for item in _items(value, explode=True))
    items = _items(value, explode=False)
    return _assigned(f";{key}", ",".join(items)) if items else ""


def _assigned(key: str, text: str) -> str:
    return f"{key}={text}" if text else key


def _items(value: Any, *, explode: bool, assign: str = "=", bare: bool = False) -> list[str]:
    """The encoded parts of a value, to be joined.

    Args:
        value: Any JSON value; null is no part.
        explode: Whether an object's names and values are joined by ``assign``.
        assign: What joins them.
        bare: Whether an empty value leaves its name alone.
    """
    if isinstance(value, Mapping):
        pairs = [(encoded(k), encoded(v)) for k, v in value.items() if v is not None]
        if explode:
            return [k if bare and not v else f"{k}{assign}{v}" for k, v in pairs]
        return [part for pair in pairs for part in pair]
    if isinstance(value, list):
        return [encoded(item) for item in value if item is not None]
    return [] if value is None else [encoded(value)]


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
    if style == "deepObject" and isinstance(value, Mapping | list):
        yield from _deep(encoded(name), value, allow_reserved, 0)
        return
    if isinstance(value, Mapping):
        pairs = [(k, v) for k, v in value.items() if v is not None]
        if explode:
            yield from ((encoded(k), encoded(v, allow_reserved=allow_reserved)) for k, v in pairs)
            return
        parts = [part for pair in pairs for part in pair]
    elif isinstance(value, list):
        parts = [item for item in value if item is not None]
        if explode:
            yield from (
                (encoded(name), encoded(item, allow_reserved=allow_reserved)) for item in parts
            )
            return
    else:
        parts = [] if value is None else [value]
    if parts:
        separator = _SEPARATORS.get(style, ",")
        yield (
            encoded(name),
            separator.join(encoded(part, allow_reserved=allow_reserved) for part in parts),
        )


def _deep(name: str, value: Any, allow_reserved: bool, depth: int) -> Iterator[tuple[str, str]]:  # noqa: FBT001 - handed on, never written by a caller
    """``a[b][0]=c``. OpenAPI defines one level of an object; most servers read on like this."""
    if depth < _MAX_DEPTH and isinstance(value, Mapping | list) and value:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            inside = f"{name}%5B{quote(str(key), safe='')}%5D"
            yield from _deep(inside, item, allow_reserved, depth + 1)
    elif value is not None and value not in ({}, []):
        yield name, encoded(value, allow_reserved=allow_reserved)


def header_text(value: Any, *, explode: bool) -> str:
    """A header's value. Nothing is percent-encoded there (OpenAPI 3.1.1, 4.8.12.2).

    Example:
        >>> header_text({"a": 1, "b": 2}, explode=True), header_text(["x", "y"], explode=False)
        ('a=1,b=2', 'x,y')
    """
    if isinstance(value, Mapping):
        pairs = [(k, scalar_text(v)) for k, v in value.items() if v is not None]
        return ",".join(f"{k}={v}" if explode else f"{k},{v}" for k, v in pairs)
    if isinstance(value, list):
        return ",".join(scalar_text(item) for item in value if item is not None)
    return "" if value is None else scalar_text(value)


Part: TypeAlias = "tuple[str, tuple[str | None, bytes, str | None]]"
"""A part of a multipart body: its name, and its file name, content and media type."""

_NOTHING = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBody:
    """A body ready to be sent.

    Attributes:
        content: The bytes; None for a multipart body.
        parts: The parts of a multipart body.
        media_type: Its ``Content-Type``; empty where the boundary of parts is still to come.
    """

    content: bytes | None = None
    parts: tuple[Part, ...] = ()
    media_type: str = ""


def encode_body(body: Body, arguments: Mapping[str, Any]) -> EncodedBody | None:
    """The body of one call; None when nothing is sent.

    Raises:
        ModelRetry: A value can not be sent, such as base64 that is none.
    """
    value = _value(body, arguments)
    if value is _NOTHING:
        return None
    if body.kind == "json":
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return EncodedBody(content=text.encode(), media_type=body.media_type)
    if body.kind == "text":
        return EncodedBody(content=scalar_text(value).encode(), media_type=body.media_type)
    if body.kind == "binary":
        media_type = "application/octet-stream" if "*" in body.media_type else body.media_type
        return EncodedBody(content=_decoded(value, body.argument or ""), media_type=media_type)
    if not isinstance(value, Mapping):
        raise ModelRetry(f"`{body.argument}` must be an object, since it is sent as a form")
    fields = {field.name: field for field in body.fields}
    if body.kind == "form":
        return EncodedBody(content=_form(value, fields), media_type=body.media_type)
    return EncodedBody(parts=tuple(_parts(value, fields)))


def _value(body: Body, arguments: Mapping[str, Any]) -> Any:
    if body.argument is not None:
        return arguments.get(body.argument, _NOTHING)
    given = {
        field.name: arguments[field.argument]
        for field in body.fields
        if field.argument in arguments
    }
    return given if given or body.required else _NOTHING


def _field(name: str, fields: Mapping[str, BodyField]) -> BodyField:
    return fields.get(name) or BodyField(argument=name, name=name)


def _form(value: Mapping[str, Any], fields: Mapping[str, BodyField]) -> bytes:
    pairs: list[str] = []
    for name, item in value.items():
        rules = _field(name, fields)
        for key, text in query_pairs(
            name,
            item,
            style=rules.style,
            explode=rules.explode,
            allow_reserved=rules.allow_reserved,
        ):
            pairs.append(f"{key}={text}".replace("%20", "+"))
    return "&".join(pairs).encode("ascii")


def _parts(value: Mapping[str, Any], fields: Mapping[str, BodyField]) -> list[Part]:
    parts: list[Part] = []
    for name, item in value.items():
        rules = _field(name, fields)
        for one in item if isinstance(item, list) else [item]:
            if one is None:
                continue
            if rules.is_file:
                parts.append((name, _file(name, one, rules.content_type)))
            else:
                parts.append((name, _part(one, rules.content_type)))
    return parts


def _part(value: Any, content_type: str) -> tuple[None, bytes, str | None]:
    media_type = content_type or ("application/json" if isinstance(value, Mapping) else None)
    return None, scalar_text(value).encode(), media_type


def _file(name: str, value: Any, content_type: str) -> tuple[str, bytes, str]:
    if not isinstance(value, Mapping):
        value = {"filename": name, "text": scalar_text(value)}
    text, encoded = value.get("text"), value.get("base64")
    if (text is None) == (encoded is None):
        raise ModelRetry(f"give the content of `{name}` either as `text` or as `base64`")
    content = str(text).encode() if encoded is None else _decoded(encoded, f"{name}.base64")
    filename = str(value.get("filename") or name)
    kind = str(value.get("content_type") or content_type or "application/octet-stream")
    if not (filename.isprintable() and kind.isprintable()):
        raise ModelRetry(f"`filename` and `content_type` of `{name}` may hold no line breaks")
    return filename, content, kind


def _decoded(value: Any, argument: str) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ModelRetry(f"`{argument}` must be base64 (RFC 4648): {error}") from error
