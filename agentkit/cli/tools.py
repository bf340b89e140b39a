"""``agentkit tools``: look at the library, and change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import click

from agentkit.cli import apis
from agentkit.cli.boundary import CommandGroup
from agentkit.cli.files import read_content
from agentkit.cli.importing import (
    ConflictPolicy,
    conflict_option,
    import_definitions,
    overrule_option,
    reason_option,
    report_import,
    screened,
)
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import (
    Column,
    one_line,
    plural,
    print_json,
    print_table,
    say,
    stdout,
)
from agentkit.cli.signatures import render_definition, signature_line
from agentkit.cli.stores import (
    opened,
    opened_to_read,
)
from agentkit.errors import UsageError
from agentkit.interop import openapi
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import definitions_from_json

_ARTIFACT = b'"agentkit_artifact"'
"""The key with which an artifact begins."""

SHOWN_ON_TERMINAL = 100
"""Rows of ``tools list`` on a terminal when no limit is given; a pipe gets all of them."""


@click.group(
    cls=CommandGroup,
    places={
        "add": "agentkit.cli.add:add",
        "approve": "agentkit.cli.approve:approve",
        "doctor": "agentkit.cli.doctor:doctor",
        "graph": "agentkit.cli.graph:graph",
    },
)
def tools() -> None:
    """Look at the tool library, and change it.

    The library is versioned: each change makes a new version, and nothing is ever lost. 'agentkit
    log --tool NAME' shows the history of a tool, and 'agentkit rollback' goes back in it.
    """


@tools.command(
    "list",
    epilog="""\b
Examples:
  agentkit tools list
  agentkit tools list --match weather --json
  agentkit tools list --at 1 | grep flight""",
)
@click.option("--match", default="", metavar="TEXT", help="Only names that contain TEXT.")
@click.option("--at", type=click.IntRange(min=0), metavar="VERSION", help="An earlier version.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Most rows, 0 for all.  [default: {SHOWN_ON_TERMINAL} on a terminal, else all]",
)
@store_option
@json_option
def list_(match: str, at: int | None, limit: int | None, store_url: str, as_json: bool) -> None:
    """List the tools of the library."""
    with opened_to_read(store_url) as store:
        library = store.load(at)
    found = [d for d in library.definitions if match.casefold() in d.name.casefold()]
    shown = found[: _limit(limit, as_json=as_json)]
    if as_json:
        print_json([_brief(definition) for definition in shown])
        return
    columns = [
        Column(title="tool", fit="fold"),
        Column(title="made of"),
        Column(title="parameters", fit="cut"),
        Column(title="summary", fit="cut"),
    ]
    rows = [_row(definition) for definition in shown]
    if not any(definition.is_composite for definition in shown):
        columns, rows = [columns[0], *columns[2:]], [(row[0], *row[2:]) for row in rows]
    print_table(columns, rows)
    rest = f", {len(shown):,} shown (--limit 0 for all)" if len(shown) < len(found) else ""
    say(f"{plural(len(found), 'tool')} in library version {library.version}{rest}")


def _limit(limit: int | None, *, as_json: bool) -> int | None:
    if limit is None:
        return SHOWN_ON_TERMINAL if stdout().is_terminal and not as_json else None
    return limit or None


def _row(definition: ToolDefinition) -> tuple[str, ...]:
    summary = one_line(definition.description.summary)
    children = len(definition.signature.children)
    made_of = plural(children, "tool") if definition.is_composite else ""
    return definition.name, made_of, signature_line(definition), summary


def _brief(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "summary": definition.description.summary,
        "parameters": list(definition.signature.properties),
        "required": list(definition.signature.required),
        "digest": definition.digest,
        "origin": definition.origin.kind,
        "children": [child.name for child in definition.signature.children],
    }


@tools.command(
    epilog="""\b
Examples:
  agentkit tools show get_weather
  agentkit tools show get_weather --at 3 --json"""
)
@click.argument("name")
@click.option("--at", type=click.IntRange(min=0), metavar="VERSION", help="An earlier version.")
@store_option
@json_option
def show(name: str, at: int | None, store_url: str, as_json: bool) -> None:
    """Show everything that is known about the tool NAME.

    With --json the output is the definition as the library keeps it, which 'tools import' reads
    back.
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)
    definition = library[name].definition
    if as_json:
        print_json(definition.to_json())
        return
    render_definition(definition)
    if definition.is_composite:
        from agentkit.cli.composites import render_composite  # the language is slow to load

        render_composite(library, definition)


@tools.command(
    "import",
    short_help="Import definitions from FILE, such as a catalogue.",
    epilog="""\b
Examples:
  agentkit tools import catalogue.json
  agentkit tools import functions.jsonl --on-conflict suffix
  agentkit tools import openapi.yaml --prefix github_
  curl -s https://example.com/tools.json | agentkit tools import -""",
)
@click.argument("file", metavar="FILE")
@click.option(
    "--format",
    "given_as",
    type=click.Choice(["auto", "json", "openapi"]),
    default="auto",
    show_default=True,
    help="What FILE holds; auto tells an OpenAPI description by its key.",
)
@click.option("--prefix", default="", help="Comes before the name of each operation (OpenAPI).")
@click.option(
    "--include-deprecated", is_flag=True, help="Import deprecated operations too (OpenAPI)."
)
@conflict_option
@overrule_option
@reason_option
@store_option
@json_option
def import_(
    file: str,
    *,
    given_as: Literal["auto", "json", "openapi"],
    prefix: str,
    include_deprecated: bool,
    on_conflict: ConflictPolicy,
    overruled: Sequence[str],
    reason: str,
    store_url: str,
    as_json: bool,
) -> None:
    """Import definitions from FILE: JSON or JSON lines, plain or .gz, '-' for stdin.

    Understood are the forms of OpenAI, Anthropic, MCP, Gemini, Bedrock and BFCL, agentkit's own,
    and OpenAPI 3 descriptions as JSON or YAML, whose operations become tools; 'agentkit run
    --openapi FILE' calls them. An entry that can not be imported is reported, the others are
    imported in one new library version, and the exit status is 1. So it is with tools whose words
    write to the model, ask for secrets or hide signs; --overrule takes one all the same.
    """
    data = read_content(file)
    if _ARTIFACT in data[:200]:
        raise UsageError(f"{file} is an artifact, and 'agentkit import' takes these in")
    why = reason or f"import {file}"
    if given_as == "openapi" or (given_as == "auto" and apis.recognised(data)):
        reference = "" if file == "-" else file
        found = openapi.openapi_tools(
            data, reference=reference, prefix=prefix, include_deprecated=include_deprecated
        )
        passed, against = screened(found.definitions, overruled)
        with opened(store_url) as store:
            plan, version = import_definitions(store, passed, on_conflict, why)
        report_import(plan, version, api=found.report, against=against, as_json=as_json)
        return
    batch = definitions_from_json(data, reference=file)
    passed, against = screened(batch.definitions, overruled)
    with opened(store_url) as store:
        plan, version = import_definitions(store, passed, on_conflict, why)
    report_import(plan, version, batch.rejected, against=against, as_json=as_json)
