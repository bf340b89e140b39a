"""Security schemes and what an operation wants of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from agentkit.interop.openapi.plan import Location, SecurityScheme
from agentkit.interop.openapi.remote import Operation, ReferenceSpace, Unmappable, below
from agentkit.interop.openapi.report import OpenApiNote

_BEARER_PARAMETERS = ("access_token", "oauth_token")
_PLACES = ("query", "header", "cookie")  # looked up by values that may not be hashable


def read_schemes(
    root: Mapping[str, Any], space: ReferenceSpace, notes: list[OpenApiNote]
) -> dict[str, SecurityScheme]:
    """The security schemes of a document by name; one that is broken is unsupported."""
    components = root.get("components")
    given = components.get("securitySchemes") if isinstance(components, Mapping) else None
    schemes: dict[str, SecurityScheme] = {}
    for name, raw in given.items() if isinstance(given, Mapping) else ():
        at = below("/components/securitySchemes", name)
        try:
            found = space.followed(raw, document="", pointer=at)
            schemes[name] = _scheme(name, found.value)
        except Unmappable as error:
            schemes[name] = SecurityScheme(name=name, kind="unsupported", told=error.message)
        if schemes[name].kind == "unsupported":
            message = f"the security scheme {name!r} is not supported: {schemes[name].told}"
            notes.append(OpenApiNote(pointer=at, code="security_unsupported", message=message))
    return schemes


def _scheme(name: str, raw: Mapping[str, Any]) -> SecurityScheme:
    kind = raw.get("type")
    if kind == "apiKey" and raw.get("in") in _PLACES and isinstance(raw.get("name"), str):
        place, key = cast("Location", raw["in"]), raw["name"]
        return SecurityScheme(
            name=name, kind="key", location=place, parameter=key, told=f"a key in the {place} {key}"
        )
    if kind in ("oauth2", "openIdConnect"):
        told = f"a ready access token of {kind}, sent as bearer"
        return SecurityScheme(name=name, kind="bearer", told=told)
    scheme = str(raw.get("scheme", "")).lower()
    if kind == "http" and scheme == "bearer":
        return SecurityScheme(name=name, kind="bearer", told="a bearer token")
    if kind == "http" and scheme == "basic":
        return SecurityScheme(name=name, kind="basic", told="user and password (http basic)")
    told = f"type {kind!r}" + (f" with scheme {scheme!r}" if scheme else "")
    return SecurityScheme(name=name, kind="unsupported", told=told)


def secret_parameters(schemes: Iterable[SecurityScheme]) -> frozenset[tuple[Location, str]]:
    """Place and name, in lower case, of what carries a secret of these schemes.

    A bearer token may travel in the query too (RFC 6750, section 2.3), and descriptions list that
    among the parameters; we send it as a header only.
    """
    found: set[tuple[Location, str]] = set()
    for scheme in schemes:
        found.add((scheme.location, scheme.parameter.lower()))
        if scheme.kind == "bearer":
            found.update(("query", name) for name in _BEARER_PARAMETERS)
    return frozenset(found)


def requirements_of(
    operation: Operation, root: Mapping[str, Any], schemes: Mapping[str, SecurityScheme]
) -> tuple[tuple[SecurityScheme, ...], ...]:
    """Alternatives, of each of which all schemes are needed; empty when nothing is wanted.

    Raises:
        Unmappable: A requirement is no object.
    """
    given = operation.body.get("security", root.get("security"))
    at = below(operation.pointer, "security")
    if given is None:
        return ()
    if not isinstance(given, list):
        raise Unmappable(f"its security is a {type(given).__name__}, not a list", pointer=at)
    return tuple(tuple(_of_one(each, schemes, at)) for each in given)


def _of_one(
    requirement: object, schemes: Mapping[str, SecurityScheme], at: str
) -> Iterator[SecurityScheme]:
    if not isinstance(requirement, Mapping):
        raise Unmappable("a security requirement is an object", pointer=at)
    for name in requirement:
        unknown = SecurityScheme(
            name=name, kind="unsupported", told="it is not under components/securitySchemes"
        )
        yield schemes.get(name, unknown)
