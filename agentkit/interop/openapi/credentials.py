"""Credentials: what a description requires, and the environment variables that hold them.

Secrets are looked up at the call, put into the request, and taken out of texts.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote

from agentkit.errors import ToolFailed, UsageError
from agentkit.interop.openapi.documents import Operation, ReferenceSpace, Unmappable

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
            for form in (value, quote(value, safe="")):
                text = re.sub(re.escape(form), _REDACTED, text, flags=re.IGNORECASE)
        return text

    def redacted(self, text: str) -> str:
        """The text without the secrets, also where they are written as in a URL or in JSON."""
        for value in sorted(set(self.values), key=len, reverse=True):
            if len(value) < _SHORTEST_SECRET:
                continue
            for form in (value, quote(value, safe="")):
                text = text.replace(form, _REDACTED)
            if "\\" in text and value in _ESCAPE.sub(_unescaped, text):
                text = _in_json(value).sub(_REDACTED, text)
        return text


_REDACTED = "[redacted]"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([^u]))")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else found[2]


def _in_json(value: str) -> re.Pattern[str]:
    """A text however a JSON string may write its characters."""
    ways = (
        rf"(?:\\u(?i:{ord(char):04x})|\\{re.escape(char)}"
        + ("" if char in '"\\' else f"|{re.escape(char)}")
        + ")"
        for char in value
    )
    return re.compile("".join(ways))


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
