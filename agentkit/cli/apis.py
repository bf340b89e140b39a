"""API descriptions on the command line: recognised on import, and given code for a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from agentkit.cli.output import say, say_some
from agentkit.errors import UsageError
from agentkit.interop import openapi  # a door: it loads when there is a description
from agentkit.tools.tool import Tool

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--openapi",
        "apis",
        multiple=True,
        metavar="FILE",
        help="An OpenAPI 3 description whose operations are offered, and called over HTTP; may be "
        "given several times.",
    ),
    click.option(
        "--api-server", metavar="URL", help="The base URL of these calls, instead of the file's."
    ),
    click.option(
        "--api-auth",
        multiple=True,
        metavar="SCHEME=VARIABLE",
        help="The environment variable that holds the secret of a security scheme of the file.",
    ),
)


def api_options(command: Command) -> Command:
    """Give a command the options that name API descriptions."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def load_apis(files: Sequence[str], *, server: str | None, auth: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of API descriptions; what could not be mapped is told on stderr.

    Args:
        files: Paths of the descriptions.
        server: The base URL of their calls; None takes theirs.
        auth: Pairs ``SCHEME=VARIABLE``. With several files each takes those that it knows.

    Raises:
        DefinitionError: A file is no OpenAPI 3 description.
        UsageError: A file can not be read, or an option does not fit.
    """
    variables = _variables(auth)
    tools: list[Tool] = []
    known: set[str] = set()
    for file in files:
        opened = openapi.read_document(Path(file))
        schemes = _schemes(opened.root)
        known |= schemes.keys()
        found = openapi.openapi_tools(
            opened.root,
            reference=opened.reference,
            server=server,
            auth={name: variables[name] for name in variables if name in schemes},
        )
        tell_unusable(found.report)
        tools += found.tools
    if unknown := sorted(variables.keys() - known):
        raise UsageError(
            f"--api-auth: no security scheme is named {unknown[0]!r}; there are: "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    return tuple(tools)


def _schemes(root: Mapping[str, Any]) -> Mapping[str, Any]:
    components = root.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, Mapping) else None
    return schemes if isinstance(schemes, Mapping) else {}


def _variables(auth: Sequence[str]) -> dict[str, openapi.Env]:
    found = {}
    for pair in auth:
        name, equals, variable = pair.partition("=")
        if not equals or not name:
            raise UsageError("--api-auth is written SCHEME=VARIABLE, such as api_key=PETSTORE_KEY")
        found[name.strip()] = openapi.Env(variable.strip())
    return found


def recognised(data: bytes) -> bool:
    """Whether the content of a file is an API description: JSON or YAML with its key."""
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in {b"{", b"["}:
        try:
            return openapi.is_openapi(json.loads(text))
        except (ValueError, RecursionError):
            return False
    return any(line.startswith((b"openapi:", b"swagger:")) for line in text.splitlines()[:200])


def tell(report: openapi.OpenApiReport) -> None:
    """Say on stderr what came of a description."""
    say(report.summary)
    say(f"calls go to {report.server or 'no server that is known: give --api-server'}")
    tell_unusable(report)
    for note in report.notes:
        say(note)
    count = sum(len(entry.notes) for entry in report.operations)
    if count:
        say(f"{count:,} notes on operations (--json has all)")


def tell_unusable(report: openapi.OpenApiReport) -> None:
    """Say on stderr which operations have no tool because they can not be mapped."""
    lines = (f"{entry.label} is not mapped: {entry.reason}" for entry in report.unusable)
    say_some(lines, rest=" (agentkit tools import --json names all)")
