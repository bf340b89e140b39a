"""The body of a request from the arguments of a call."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentkit.errors import ModelRetry
from agentkit.tools.sources.openapi.plan import Body, BodyField
from agentkit.tools.sources.openapi.serialise import query_pairs, scalar_text

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
