"""How the arguments of a tool become an HTTP request, as records. They hold no secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Location = Literal["path", "query", "header", "cookie"]
Style = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"
]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter of an operation.

    Attributes:
        argument: The name of the tool's argument.
        name: The name in the request.
        location: Where it is sent.
        style: How lists and objects are written.
        explode: Whether their parts are written one by one.
        allow_reserved: Whether reserved characters stay as they are, in a query.
        as_json: Whether the value is written as JSON, for a parameter with ``content``.
    """

    argument: str
    name: str
    location: Location
    style: Style
    explode: bool
    allow_reserved: bool = False
    as_json: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyField:
    """One property of a form or an object body.

    Attributes:
        argument: The name of the tool's argument, when the body is spread over arguments.
        name: The name in the request.
        is_file: Whether it is sent as a file, in a multipart body.
        content_type: The media type of the part, in a multipart body; empty for the usual one.
        style: How lists and objects are written, in a form.
        explode: Whether their parts are written one by one.
        allow_reserved: Whether reserved characters stay as they are.
    """

    argument: str
    name: str
    is_file: bool = False
    content_type: str = ""
    style: Style = "form"
    explode: bool = True
    allow_reserved: bool = False


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
    fields: tuple[BodyField, ...] = ()
    required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SecurityScheme:
    """One way to prove who is calling.

    Attributes:
        name: Its name in the document.
        kind: ``key``, ``basic`` or ``bearer``; ``unsupported`` for what needs more than a value.
        location: Where a key is sent: ``header``, ``query`` or ``cookie``.
        parameter: The name under which a key is sent.
        told: What it is, for people.
    """

    name: str
    kind: Literal["key", "basic", "bearer", "unsupported"]
    location: Location = "header"
    parameter: str = "Authorization"
    told: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestPlan:
    """How a call of one tool becomes a request.

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
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    accept: tuple[str, ...] = ()
    security: tuple[tuple[SecurityScheme, ...], ...] = ()
    repeatable: bool = False
    is_known: bool = True
