"""``agentkit tools``: look at the library, and change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import click

from agentkit import evolution
from agentkit.cli import apis
from agentkit.cli.files import read_content
from agentkit.cli.importing import ConflictPolicy, ImportPlan, plan_import
from agentkit.cli.lazy import LazyCommands
from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import (
    Column,
    one_line,
    plural,
    print_json,
    print_table,
    say,
    say_some,
    stdout,
)
from agentkit.cli.signatures import render_definition, signature_line
from agentkit.cli.stores import (
    author,
    commit,
    event_signer,
    new_proposal_id,
    opened,
    opened_to_read,
    person,
)
from agentkit.errors import ToolNotFoundError, UsageError
from agentkit.library import Library, LibraryChange, Store, ToolRevision
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources import openapi
from agentkit.tools.sources.json_schema import RejectedEntry, definitions_from_json

_ARTIFACT = b'"agentkit_artifact"'
"""The key with which an artifact begins."""

SHOWN_ON_TERMINAL = 100
"""Rows of ``tools list`` on a terminal when no limit is given; a pipe gets all of them."""

_ALL = " (--json names all)"

conflict_option = click.option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "replace", "suffix"]),
    default="error",
    show_default=True,
    help="When a name stands for another definition: report it, keep the old one, take the new "
    "one, or add the new one as NAME__2.",
)
reason_option = click.option("--reason", default="", help="Why, for the tool's history.")


@click.group(
    cls=LazyCommands,
    places={
        "check": "agentkit.cli.check:check",
        "compose": "agentkit.cli.compose:compose",
        "doctor": "agentkit.cli.doctor:doctor",
        "graph": "agentkit.cli.graph:graph",
    },
)
def tools() -> None:
    """Look at the tool library, and change it.

    The library is versioned: each change makes a new version, nothing is ever lost, and 'history'
    and 'rollback' work on every tool.
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
    epilog="""\b
Examples:
  agentkit tools add my_package.weather:get_weather
  agentkit tools add tools.py                 every @tool in the file
  agentkit tools add tools.py:add --on-conflict replace --reason 'clearer words'"""
)
@click.argument("targets", nargs=-1, required=True, metavar="MODULE:NAME|FILE.py[:NAME]...")
@conflict_option
@reason_option
@store_option
@json_option
def add(
    targets: Sequence[str], on_conflict: ConflictPolicy, reason: str, store_url: str, as_json: bool
) -> None:
    """Add the definitions of Python functions to the library.

    The code stays where it is: to run these tools, give the same target to 'agentkit run --tools'.
    """
    definitions = [tool.definition for tool in load_tools(targets)]
    with opened(store_url) as store:
        why = reason or f"add {' '.join(targets)}"
        plan, version = _import(store, definitions, on_conflict, why)
    _report(plan, version, as_json=as_json)


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
    reason: str,
    store_url: str,
    as_json: bool,
) -> None:
    """Import definitions from FILE: JSON or JSON lines, plain or .gz, '-' for stdin.

    Understood are the forms of OpenAI, Anthropic, MCP, Gemini, Bedrock and BFCL, agentkit's own,
    and OpenAPI 3 descriptions as JSON or YAML, whose operations become tools; 'agentkit run
    --openapi FILE' calls them. An entry that can not be imported is reported, the others are
    imported in one new library version, and the exit status is 1.
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
        with opened(store_url) as store:
            plan, version = _import(store, found.definitions, on_conflict, why)
        _report(plan, version, api=found.report, as_json=as_json)
        return
    batch = definitions_from_json(data, reference=file)
    with opened(store_url) as store:
        plan, version = _import(store, batch.definitions, on_conflict, why)
    _report(plan, version, batch.rejected, as_json=as_json)


def _import(
    store: Store, definitions: Sequence[ToolDefinition], on_conflict: ConflictPolicy, reason: str
) -> tuple[ImportPlan, int]:
    plan = ImportPlan()
    proposal_id = new_proposal_id("import")

    def build(library: Library) -> LibraryChange | None:
        nonlocal plan
        plan = plan_import(definitions, library, on_conflict=on_conflict)
        upserts = tuple(plan.upserts.values())
        if not upserts:
            return None
        return LibraryChange(
            proposal_id=proposal_id, upserts=upserts, author=author(), reason=reason
        )

    version = commit(store, build, operation="import")
    return plan, version


def _report(
    plan: ImportPlan,
    version: int,
    rejected: Sequence[RejectedEntry] = (),
    *,
    api: openapi.OpenApiReport | None = None,
    as_json: bool,
) -> None:
    unusable = [{"entry": entry.index + 1, "reason": entry.reason} for entry in rejected]
    if as_json:
        told_of_api = {} if api is None else {"openapi": api.to_json()}
        record = {"library_version": version, **plan.to_json(), "unusable": unusable}
        print_json({**record, **told_of_api})
    else:
        counts = {
            "added": len(plan.added),
            "replaced": len(plan.replaced),
            "renamed": len(plan.renamed),
            "skipped": len(plan.skipped),
            "unchanged": plan.unchanged,
            "refused": len(plan.refused),
            "unusable": len(unusable),
        }
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        click.echo(f"{told or 'nothing to import'}; library version {version}")
    taken = (f"{name!r} already stands for another definition" for name in plan.refused)
    say_some(
        (f"entry {entry['entry']} is unusable: {entry['reason']}" for entry in unusable), rest=_ALL
    )
    say_some(taken, rest=_ALL)
    if plan.refused:
        say("choose with --on-conflict which definition a name keeps, or 'suffix' for both")
    if api is not None:
        apis.tell(api)
    if unusable or plan.refused or (api is not None and api.unusable):
        raise click.exceptions.Exit(1)


@tools.command(
    epilog="""\b
Example:
  agentkit tools history get_weather"""
)
@click.argument("name")
@store_option
@json_option
def history(name: str, store_url: str, as_json: bool) -> None:
    """Show every revision of the tool NAME, oldest first."""
    with opened_to_read(store_url) as store:
        revisions = store.history(name)
        library = store.load()
    if not revisions:
        raise ToolNotFoundError(name, nearest=library.nearest(name), version=library.version)
    if as_json:
        print_json([_revision(revision) for revision in revisions])
        return
    columns = [
        Column(title="version", align="right"),
        Column(title="when (UTC)"),
        Column(title="digest"),
        Column(title="author", fit="fold"),
        Column(title="why", fit="fold"),
    ]
    print_table(columns, (_revision_row(revision) for revision in revisions))


def _revision_row(revision: ToolRevision) -> tuple[object, ...]:
    digest = "removed" if revision.definition is None else revision.definition.digest[:12]
    when = revision.created_at[:19].replace("T", " ")
    return revision.version, when, digest, revision.author, revision.reason


def _revision(revision: ToolRevision) -> dict[str, Any]:
    definition = revision.definition
    return {
        "version": revision.version,
        "created_at": revision.created_at,
        "author": revision.author,
        "reason": revision.reason,
        "proposal_id": revision.proposal_id,
        "evidence": list(revision.evidence),
        "digest": None if definition is None else definition.digest,
        "definition": None if definition is None else definition.to_json(),
    }


@tools.command(
    short_help="Give the tool NAME an earlier definition.",
    epilog="""\b
Example:
  agentkit tools rollback get_weather --to 3""",
)
@click.argument("name")
@click.option(
    "--to",
    type=click.IntRange(min=0),
    required=True,
    metavar="VERSION",
    help="The library version to go back to.",
)
@store_option
@json_option
def rollback(name: str, to: int, store_url: str, as_json: bool) -> None:
    """Give the tool NAME the definition that it had at library version VERSION.

    Rolling back makes a new version; see 'agentkit tools history NAME' for the old ones.
    """
    with opened(store_url) as store:
        version = evolution.ToolManager(store, author=person(), signer=event_signer()).restore(
            name, to_version=to
        )
    if as_json:
        print_json({"name": name, "restored_from": to, "library_version": version})
    else:
        click.echo(f"{name} is as it was at version {to}; library version {version}")
