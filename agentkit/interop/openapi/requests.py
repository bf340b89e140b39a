"""The plan of an operation's requests, the credentials they need, and one call as a request.

A description says which credentials an operation requires; environment variables hold them. Secrets
are looked up at the call, put into the request, and taken out of texts.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote, unquote, urlencode

from agentkit.errors import ModelRetry, ToolFailed, UsageError
from agentkit.interop.openapi.documents import Operation, ReferenceSpace, Unmappable

# --- credentials ----------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST_SECRET = 4
"""Shorter values are not looked for in texts: they would be found everywhere."""

_BEARER_PARAMETERS = ("access_token", "oauth_token")
_MAX_SCHEMES = 20
"""Most alternatives of one operation, and most schemes of one alternative."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SecurityScheme:
    """One way to prove who is calling.

    Attributes:
        name: Its name in the document.
        kind: ``key``, ``basic`` or ``bearer``; ``unsupported`` for what needs more than a value.
        location: Where a key is sent.
        parameter: The name under which a key is sent.
        summary: A short description, for people.
    """

    name: str
    kind: Literal["key", "basic", "bearer", "unsupported"]
    location: Literal["header", "query"] = "header"
    parameter: str = "Authorization"
    summary: str = ""


Requirements: TypeAlias = tuple[tuple[SecurityScheme, ...], ...]
"""Alternatives, of each of which all schemes are needed; empty when nothing is wanted."""


def read_schemes(space: ReferenceSpace) -> dict[str, SecurityScheme]:
    """The security schemes of a document by name; one that is broken is unsupported."""
    declared = space.root.at("components", "securitySchemes")
    schemes: dict[str, SecurityScheme] = {}
    for name in declared.mapping:
        try:
            schemes[name] = _scheme(name, space.followed(declared.at(name)).value)
        except Unmappable as error:
            schemes[name] = SecurityScheme(name=name, kind="unsupported", summary=str(error))
    return schemes


def _scheme(name: str, raw: Mapping[str, Any]) -> SecurityScheme:
    kind, place, key = raw.get("type"), raw.get("in"), raw.get("name")
    if kind == "apiKey" and place in ("header", "query") and isinstance(key, str):
        where = cast("Literal['header', 'query']", place)
        summary = f"a key in the {place} {key}"
        return SecurityScheme(name=name, kind="key", location=where, parameter=key, summary=summary)
    if kind in ("oauth2", "openIdConnect"):
        summary = f"a ready access token of {kind}, sent as bearer"
        return SecurityScheme(name=name, kind="bearer", summary=summary)
    scheme = str(raw.get("scheme", "")).lower()
    if kind == "http" and scheme == "bearer":
        return SecurityScheme(name=name, kind="bearer", summary="a bearer token")
    if kind == "http" and scheme == "basic":
        return SecurityScheme(name=name, kind="basic", summary="user and password (http basic)")
    summary = f"type {kind!r}" + "".join(f" {text!r:.40}" for text in (scheme, place) if text)
    return SecurityScheme(name=name, kind="unsupported", summary=summary)


def requirements_of(
    operation: Operation, root: Mapping[str, Any], schemes: Mapping[str, SecurityScheme]
) -> Requirements:
    """The requirements of an operation, or else of the document.

    Raises:
        Unmappable: It is not a list of objects, or too long.
    """
    requirements = operation.source.mapping.get("security", root.get("security"))
    if requirements is None:
        return ()
    if (
        not isinstance(requirements, list)
        or len(requirements) > _MAX_SCHEMES
        or not all(isinstance(each, dict) and len(each) <= _MAX_SCHEMES for each in requirements)
    ):
        raise Unmappable(f"its security is not a list of at most {_MAX_SCHEMES} requirements")
    summary = "it is not under components/securitySchemes"
    return tuple(
        tuple(
            schemes.get(name) or SecurityScheme(name=name, kind="unsupported", summary=summary)
            for name in each
        )
        for each in requirements
    )


def parameter_key(name: str, location: str = "query") -> str:
    """Normalise a parameter's name: servers may read ``KEY``, ``key[0]`` and ``my.key`` alike.

    Of headers, many take ``X_Key`` for ``X-Key``.

    Example:
        >>> parameter_key("My.Key[a]"), parameter_key("My_Key", "header")
        ('my_key', 'my-key')
    """
    key = re.sub(r"[. ]", "_", name.partition("[")[0].strip().lower())
    return key.replace("_", "-") if location == "header" else key


def secret_parameters(alternatives: Requirements) -> frozenset[tuple[str, str]]:
    """Place and name, in lower case, of what carries a secret of these schemes.

    A bearer token may travel in the query too (RFC 6750, section 2.3), and descriptions list that
    among the parameters; we send it as a header only.
    """
    found: set[tuple[str, str]] = set()
    for scheme in (scheme for schemes in alternatives for scheme in schemes):
        found.add((scheme.location, parameter_key(scheme.parameter, scheme.location)))
        if scheme.kind == "bearer":
            found.update(("query", name) for name in _BEARER_PARAMETERS)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Env:
    """The value of an environment variable, named here and read at each call.

    Attributes:
        name: The variable.

    Example:
        >>> Env("PETSTORE_TOKEN")
        Env(name='PETSTORE_TOKEN')
    """

    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(str(self.name)):
            # The text is not shown: it may be the secret itself.
            raise UsageError(
                "Env takes the name of an environment variable (letters, digits and _), "
                "not the secret"
            )

    def read(self) -> str | None:
        """The value without white space at its ends; None when it is unset or empty.

        Raises:
            ToolFailed: It cannot be sent.
        """
        value = os.environ.get(self.name, "").strip() or None
        if value is not None and not value.isprintable():
            raise ToolFailed(
                f"the environment variable {self.name} holds a line break or another control "
                "character, which cannot be sent"
            )
        return value


@dataclass(kw_only=True, repr=False)
class Secrets:
    """The secrets of one request, in the places where they are sent. It has no ``repr``.

    Attributes:
        headers: Headers to send.
        query: Names and values for the query.
        values: The secret texts themselves.
    """

    headers: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the caller's would be sent."""
        return not (self.headers or self.query)

    def add(self, scheme: SecurityScheme, value: str) -> None:
        """Take in the secret of a scheme."""
        self.values.append(value)
        if scheme.kind == "basic":
            encoded = base64.b64encode(value.encode()).decode("ascii")
            user, _, password = value.partition(":")
            self.values += [encoded, user, password]
            self.headers["Authorization"] = f"Basic {encoded}"
        elif scheme.kind == "bearer":
            self.headers["Authorization"] = f"Bearer {value}"
        elif scheme.location == "query":
            self.query.append((scheme.parameter, value))
        else:
            self.headers[scheme.parameter] = value

    def redacted_name(self, text: str) -> str:
        """A name without the secrets, in whatever case it writes them."""
        for value in filter(lambda value: len(value) >= _SHORTEST_SECRET, self.values):
            text = _in_url(value, case=re.IGNORECASE).sub(_REDACTED, text)
            text = _in_json(value, case=re.IGNORECASE).sub(_REDACTED, text)
        return text

    def redacted(self, text: str) -> str:
        """The text without the secrets, also where they are written as in a URL or in JSON."""
        for value in sorted(set(self.values), key=len, reverse=True):
            if len(value) < _SHORTEST_SECRET:
                continue
            text = _PERCENT_SIGN.sub("%", text.replace(value, _REDACTED))
            if "%" in text or "+" in text:
                text = _in_url(value).sub(_REDACTED, text)
            if "\\" in text:
                text = _in_json(value).sub(_REDACTED, text)
        return text


_REDACTED = "[redacted]"
_PERCENT_SIGN = re.compile(r"\\{1,7}+u0025")  # as JSON may write it


def _percent(text: str) -> str:
    """Each byte percent-encoded, also where a URL need not."""
    return "".join(f"%{byte:02x}" for byte in text.encode())


def _in_url(value: str, *, case: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A text however a URL may write its characters."""
    ways = (
        f"(?:{re.escape(char)}|(?i:{_percent(char)}){'|[+]' * (char == ' ')})" for char in value
    )
    return re.compile("".join(ways), case)


def _in_json(value: str, *, case: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A text however a JSON string may write its characters, also one within another.

    Three levels are read: a bound, so that a text of backslashes takes linear time.
    """
    ways = (
        rf"(?:\\{{1,7}}+u(?i:{ord(char):04x})|"
        + (r"\\{1,8}+)" if char == "\\" else rf"\\{{0,7}}+{re.escape(char)})")
        for char in value
    )
    return re.compile("".join(ways), case)


def check_auth(auth: Mapping[str, Env], schemes: Mapping[str, SecurityScheme]) -> None:
    """Refuse variables for what the document does not ask for.

    Raises:
        UsageError: A scheme is not in the document or not supported, or a value is not a ``Env``.
    """
    for name, env in auth.items():
        scheme = schemes.get(name)
        if scheme is None:
            known = (
                ", ".join(f"{each.name} ({each.summary})" for each in schemes.values()) or "none"
            )
            raise UsageError(f"the document has no security scheme {name!r}; it has: {known}")
        if scheme.kind == "unsupported":
            raise UsageError(
                f"the security scheme {name!r} is not supported ({scheme.summary}); give a client "
                "that proves who is calling"
            )
        if not isinstance(env, Env):
            # The value is not shown: it may be the secret itself.
            raise UsageError(
                f"auth[{name!r}] is a {type(env).__name__}; name the environment variable that "
                f"holds the secret: auth={{{name!r}: Env('VARIABLE')}}"
            )


def secrets_for(alternatives: Requirements, auth: Mapping[str, Env], *, lenient: bool) -> Secrets:
    """The secrets of one request: of the first alternative all of whose variables are set.

    Args:
        alternatives: What the operation wants.
        auth: For each security scheme the variable that holds its secret.
        lenient: Whether a call without credentials is tried when none were given, because the
            caller's own client may bring them.

    Raises:
        ToolFailed: No alternative can be met; the message names the variables, never a value.
    """
    secrets = Secrets()
    missing: list[str] = []
    for schemes in alternatives:
        if not schemes or any(scheme.name not in auth for scheme in schemes):
            continue
        values = {scheme: auth[scheme.name].read() for scheme in schemes}
        unset = [auth[scheme.name].name for scheme in schemes if values[scheme] is None]
        if not unset:
            for scheme, value in values.items():
                secrets.add(scheme, value or "")
            return secrets
        missing += unset
    if not alternatives or () in alternatives or (lenient and not auth):
        return secrets
    required = " or ".join(
        " with ".join(f"{one.name} ({one.summary})" for one in schemes) for schemes in alternatives
    )
    problem = f"none was configured: {required}"
    if missing:
        problem = f"the environment variable {' and '.join(dict.fromkeys(missing))} is not set"
    raise ToolFailed(
        f"the API wants a credential for this call, and {problem}. The person who runs this "
        "program has to give it, as in auth={'NAME': Env('VARIABLE')}"
    )


# --- requests -------------------------------------------------------------------------------------

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
        if not name.isprintable():  # servers may read ``key\0x`` as ``key``
            raise ModelRetry(
                f"{name!r:.100} is sent as a name, so it may hold no control characters"
            )
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
