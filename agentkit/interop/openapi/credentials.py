"""What proves who is calling: looked up at the call, put into the request, taken out of texts."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

from agentkit.errors import ToolFailed, UsageError
from agentkit.interop.openapi.plan import SecurityScheme

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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

    def read(self, environment: Mapping[str, str] | None = None) -> str | None:
        """The value without white space at its ends; None when it is unset or empty."""
        given = (os.environ if environment is None else environment).get(self.name, "")
        return given.strip() or None


@dataclass(frozen=True, kw_only=True, slots=True)
class BasicEnv:
    """User name and password of HTTP's basic scheme, each in a variable of its own.

    Attributes:
        username: The variable that holds the user name.
        password: The variable that holds the password.
    """

    username: Env
    password: Env


Credential: TypeAlias = "Env | BasicEnv"
"""Where a secret comes from. A single ``Env`` for the basic scheme holds ``user:password``."""


def variables_of(credential: Credential) -> Iterator[Env]:
    """The variables that a credential reads."""
    if isinstance(credential, BasicEnv):
        yield from (credential.username, credential.password)
    else:
        yield credential


_SHORTEST_SECRET = 4
"""Shorter values are not looked for in texts: they would be found everywhere."""


@dataclass(kw_only=True, repr=False)
class Secrets:
    """The secrets of one request, in the places where they are sent. It has no ``repr``.

    Attributes:
        headers: Headers to send.
        query: Names and values for the query.
        cookies: Names and values of cookies.
        values: The secret texts themselves.
    """

    headers: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    cookies: list[tuple[str, str]] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the caller's would be sent."""
        return not (self.headers or self.query or self.cookies)

    def redacted(self, text: str) -> str:
        """The text without the secrets, also where they are written as in a URL."""
        shown = {form for value in self.values for form in (value, quote(value, safe=""))}
        for form in sorted(shown, key=len, reverse=True):
            if len(form) >= _SHORTEST_SECRET:
                text = text.replace(form, "[redacted]")
        return text


class Credentials:
    """Where the secrets of an API come from.

    Args:
        auth: For each security scheme the variables that hold its secret.
        headers: Headers of every request.
        schemes: The schemes of the document.

    Raises:
        UsageError: A scheme is not in the document or not supported, or a value is no ``Env``.
    """

    def __init__(
        self,
        *,
        auth: Mapping[str, Credential],
        headers: Mapping[str, str | Env],
        schemes: Mapping[str, SecurityScheme],
    ) -> None:
        for name, given in auth.items():
            _check(name, given, schemes)
        for name, value in headers.items():
            _check_header(name, value)
        self._auth = dict(auth)
        self._headers = dict(headers)

    @property
    def is_empty(self) -> bool:
        """Whether no credential was given at all."""
        return not self._auth

    def secrets_for(
        self, alternatives: tuple[tuple[SecurityScheme, ...], ...], *, lenient: bool
    ) -> Secrets:
        """The secrets of one request: of the first alternative all of whose variables are set.

        Args:
            alternatives: What the operation wants.
            lenient: Whether a call without credentials is tried when none were given, because the
                caller's own client may bring them.

        Raises:
            ToolFailed: No alternative can be met; the message names the variables, never a value.
        """
        secrets = Secrets()
        self._add_headers(secrets)
        missing: list[str] = []
        for schemes in alternatives:
            if not schemes or any(scheme.name not in self._auth for scheme in schemes):
                continue
            unset = self._unset(schemes)
            if not unset:
                for scheme in schemes:
                    _add(scheme, self._auth[scheme.name], secrets)
                return secrets
            missing += unset
        anonymous = not alternatives or () in alternatives or (lenient and self.is_empty)
        if anonymous:
            return secrets
        raise ToolFailed(_refusal(alternatives, missing))

    def _unset(self, schemes: Iterable[SecurityScheme]) -> list[str]:
        variables = (each for scheme in schemes for each in variables_of(self._auth[scheme.name]))
        return [each.name for each in variables if each.read() is None]

    def _add_headers(self, secrets: Secrets) -> None:
        for name, given in self._headers.items():
            if isinstance(given, str):
                secrets.headers[name] = given
                continue
            value = given.read()
            if value is None:
                raise ToolFailed(
                    f"the header {name} comes from the environment variable {given.name}, which "
                    "is not set; the person who runs this program has to set it"
                )
            secrets.headers[name] = _sendable(value, given)
            secrets.values.append(value)


def _check_header(name: str, value: object) -> None:
    if not isinstance(value, str | Env):
        kind = type(value).__name__
        raise UsageError(f"the header {name!r} is text or Env(...), got a {kind}")


def _check(name: str, given: object, schemes: Mapping[str, SecurityScheme]) -> None:
    scheme = schemes.get(name)
    if scheme is None:
        known = ", ".join(f"{each.name} ({each.told})" for each in schemes.values()) or "none"
        raise UsageError(f"the document has no security scheme {name!r}; it has: {known}")
    if scheme.kind == "unsupported":
        raise UsageError(
            f"the security scheme {name!r} is not supported ({scheme.told}); give a client "
            "that proves who is calling"
        )
    if not isinstance(given, Env | BasicEnv):
        # The value is not shown: it may be the secret itself.
        raise UsageError(
            f"auth[{name!r}] is a {type(given).__name__}; name the environment variable that holds "
            f"the secret: auth={{{name!r}: Env('VARIABLE')}}"
        )
    if isinstance(given, BasicEnv) and scheme.kind != "basic":
        raise UsageError(f"the security scheme {name!r} is {scheme.told}; give one Env(...)")


def _refusal(alternatives: tuple[tuple[SecurityScheme, ...], ...], missing: list[str]) -> str:
    if missing:
        names = " and ".join(dict.fromkeys(missing))
        return (
            f"the environment variable {names} is not set, and the API wants the credential that "
            "it holds; the person who runs this program has to set it"
        )
    wanted = " or ".join(
        " with ".join(f"{scheme.name} ({scheme.told})" for scheme in schemes)
        for schemes in alternatives
    )
    return (
        f"the API wants a credential for this call, and none was configured: {wanted}. The person "
        "who runs this program has to give it, as in auth={'NAME': Env('VARIABLE')}"
    )


def _add(scheme: SecurityScheme, credential: Credential, secrets: Secrets) -> None:
    if scheme.kind == "basic":
        _add_basic(credential, secrets)
        return
    variable = next(variables_of(credential))
    value = _sendable(variable.read() or "", variable)
    secrets.values.append(value)
    if scheme.kind == "bearer":
        secrets.headers["Authorization"] = f"Bearer {value}"
    elif scheme.location == "query":
        secrets.query.append((scheme.parameter, value))
    elif scheme.location == "cookie":
        secrets.cookies.append((scheme.parameter, value))
    else:
        secrets.headers[scheme.parameter] = value


def _add_basic(credential: Credential, secrets: Secrets) -> None:
    parts = [_sendable(each.read() or "", each) for each in variables_of(credential)]
    pair = ":".join(parts)
    encoded = base64.b64encode(pair.encode()).decode("ascii")
    secrets.values += [encoded, pair, *parts, pair.partition(":")[2]]
    secrets.headers["Authorization"] = f"Basic {encoded}"


def _sendable(value: str, variable: Env) -> str:
    if not value.isprintable():
        raise ToolFailed(
            f"the environment variable {variable.name} holds a line break or another control "
            "character, which can not be sent"
        )
    return value
