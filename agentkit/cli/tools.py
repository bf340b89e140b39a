"""``agentkit tools``: list, show and import tools; the group of the commands about tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.loading import read_content
from agentkit.cli.options import (
    AsJson,
    AtVersion,
    OnConflict,
    Reason,
    StoreUrl,
    command,
)
from agentkit.cli.output import (
    cut,
    fold,
    one_line,
    plural,
    print_facts,
    print_json,
    print_line,
    print_table,
    say,
    say_some,
)
from agentkit.cli.stores import (
    author,
    change_id,
    commit,
    manager_of,
    opened,
    opened_to_read,
    person,
)
from agentkit.errors import CompositeError, LibraryError, UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.proposers.composites import source_of
from agentkit.evolution.validation.approvals import acts_through_others
from agentkit.evolution.validation.foreign_texts import suspicions
from agentkit.interop import openapi
from agentkit.interop.export.importing import ImportedTool, ImportRequest, propose_tools
from agentkit.library import Library, LibraryChange, Store
from agentkit.library.dag import rounded
from agentkit.library.merging import ConflictPolicy, ImportPlan, plan_import
from agentkit.library.pins import pin_faults
from agentkit.retrieval.cards import type_text
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence
from agentkit.tools.sources.json_records import RejectedEntry, definitions_from_json
from agentkit.tools.tool import Tool

ARTIFACT = b'"agentkit_artifact"'
"""The key with which an artifact begins."""

_ALL = " (--json names all)"
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "at least of length",
    "maxLength": "at most of length",
    "minItems": "at least of length",
    "maxItems": "at most of length",
    "pattern": "like the regular expression",
    "format": "in the format",
    "const": "exactly",
}
"""What keywords say of a value, behind *must be*."""


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


@command("list", group=tools)
def list_(*, at: AtVersion, store_url: StoreUrl, as_json: AsJson) -> None:
    """List the tools of the library.

    Examples:
      agentkit tools list
      agentkit tools list --at 1 | grep flight
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)
    if as_json:
        print_json([_brief(definition) for definition in library.definitions])
        return
    print_table(
        [fold("tool"), cut("parameters"), cut("summary")],
        [
            (one.name, signature_line(one), one_line(one.description.summary))
            for one in library.definitions
        ],
    )
    say(f"{plural(len(library), 'tool')} in library version {library.version}")


def signature_line(definition: ToolDefinition) -> str:
    """``city: string, days?: integer``; a question mark means optional."""
    required = set(definition.signature.required)
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {type_text(schema)}"
        for name, schema in definition.signature.properties.items()
    )


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


@command(group=tools)
def show(name: str, *, at: AtVersion, store_url: StoreUrl, as_json: AsJson) -> None:
    """Show everything that is known about the tool NAME.

    With --json the output is the definition as the library keeps it, which 'tools import' reads
    back.

    Examples:
      agentkit tools show get_weather
      agentkit tools show get_weather --at 3 --json
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)
    definition = library[name].definition
    if as_json:
        print_json(definition.to_json())
        return
    print_line(definition.name)
    print_line(f"\n{definition.text or '(no description)'}\n")
    rows = list(_parameters(definition))
    titles = ("parameter", "type", "required", "default", "meaning")
    if rows:
        print_table([fold(title) for title in titles], rows)
    click.echo("" if rows else "no parameters\n")
    print_facts(_facts(definition))
    if definition.is_composite:
        print_facts(_composite_facts(library, definition))
        click.echo()
        try:
            click.echo(source_of(definition), nl=False)
        except CompositeError as error:
            click.echo(f"The body is no program: {error}")


def _parameters(definition: ToolDefinition) -> Iterator[tuple[str, ...]]:
    texts = definition.description.parameters
    required = set(definition.signature.required)
    properties: Mapping[str, Any] = definition.signature.properties
    for name, schema in properties.items():
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        bounds = ", ".join(f"{_BOUNDS[key]} {known[key]}" for key in known if key in _BOUNDS)
        meaning = (texts.get(name, ""), f"Must be {bounds}." if bounds else "")
        yield (
            name,
            type_text(schema),
            "yes" if name in required else "no",
            _json(known["default"]) if "default" in known else "",
            " ".join(filter(None, meaning)),
        )
        for path, text in texts.items():
            if path.startswith((f"{name}.", f"{name}[")):
                yield f"  {path}", "", "", "", text


def _facts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    signature, origin = definition.signature, definition.origin
    specification = definition.specification
    if signature.result is not None:
        yield "returns", _json(signature.result)
    effects = signature.effects.to_json().items()
    told = ", ".join(name if holds else f"not {name}" for name, holds in effects)
    yield "effects", told or "not declared"
    if definition.description.tags:
        yield "tags", ", ".join(definition.description.tags)
    yield from (("before", condition) for condition in specification.pre)
    yield from (("after", condition) for condition in specification.post)
    for rule in specification.rules:
        yield "learned", f"{rule_sentence(rule)} ({rule.kind})"
    for example in definition.examples:
        result = _json(example.result) if example.is_whole else "(not kept)"
        yield "example", f"{_json(example.arguments)} -> {result}"
    yield "origin", " ".join(filter(None, (origin.kind, origin.reference, origin.licence)))
    if origin.original_name:
        yield "named", f"{origin.original_name} at its origin"
    yield "digest", definition.digest


def _composite_facts(library: Library, definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    """What a composite is made of, and what is made of it."""
    name, dag = definition.name, library.dag
    depth = dag.depths.get(name)
    yield "depth", f"unknown: {dag.why_unknown(name)}" if depth is None else str(depth)
    flat = flat_size_or_none(library, name)
    if flat is not None:
        calls = "1 call" if flat == 2 else f"{rounded(flat - 1)} calls"
        yield "saves", f"{calls} (one call of it stands for {rounded(flat)} primitive calls)"
    faults = {fault.child: fault.code for fault in pin_faults(library, [name])}
    pins = {pin.name: pin.digest[:12] for pin in definition.signature.children}
    for child in dict.fromkeys((*dag.children[name], *pins)):
        wrong = f"  ! {faults[child]}" if child in faults else ""
        yield "calls", f"{child} {pins.get(child, 'not pinned')}{wrong}"
    if dag.parents[name]:
        yield "used by", ", ".join(dag.parents[name])


def flat_size_or_none(library: Library, name: str) -> int | None:
    """The flat size; None where a circle, a missing tool or a broken program leaves it unknown."""
    try:
        return library.dag.flat_size(name)
    except (LibraryError, CompositeError):
        return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@command("import", short_help="Import definitions from FILE, such as a catalogue.", group=tools)
def import_(
    file: str,
    *,
    prefix: str = "",
    on_conflict: OnConflict,
    overrule: tuple[str, ...] = (),
    reason: Reason,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Import definitions from FILE: JSON or JSON lines, plain or .gz, '-' for stdin.

    Accepts the forms of OpenAI, Anthropic, MCP, Gemini, Bedrock and BFCL, agentkit's own, and
    OpenAPI 3 descriptions as JSON or YAML, whose operations become tools. An entry that can not be
    imported is reported, the others are imported in one new library version, and the exit status is
    1. So it is with tools whose words write to the model, ask for secrets or hide signs; --overrule
    takes one all the same. Tools that act through others, by a program or a rule that calls what is
    not declared to only read, or by texts in a program, wait in 'agentkit review'.

    Args:
        prefix (TEXT): Comes before the name of each operation (OpenAPI).
        overrule (TOOL): Import a tool although checks speak against its words, or although it
            would wait, because you read it

    Examples:
      agentkit tools import catalogue.json
      agentkit tools import functions.jsonl --on-conflict suffix
      agentkit tools import openapi.yaml --prefix github_
      curl -s https://example.com/tools.json | agentkit tools import -
    """
    data = read_content(file)
    if ARTIFACT in data[:200]:
        raise UsageError(f"{file} is an artifact; type: agentkit import {file}")
    why = reason or f"import {file}"
    rejected: Sequence[RejectedEntry] = ()
    report = None
    if is_description(data):
        reference = "" if file == "-" else file
        found = openapi.openapi_tools(data, reference=reference, prefix=prefix)
        definitions, report = found.definitions, found.report
    else:
        batch = definitions_from_json(data, reference=file)
        definitions, rejected = batch.definitions, batch.rejected
    passed, against = _screened(definitions, overrule)
    with opened(store_url) as store:
        plan, version = import_definitions(store, passed, on_conflict, why, vouched=overrule)
        waiting: Sequence[ImportedTool] = ()
        if plan.held:
            request = ImportRequest(person=person(), reason=why)
            manager = manager_of(store, author=person())
            waiting = asyncio.run(propose_tools(plan.held.values(), manager, request))
    report_import(
        plan, version, rejected, api=report, against=against, waiting=waiting, as_json=as_json
    )


def _screened(
    definitions: Sequence[ToolDefinition], overruled: Sequence[str]
) -> tuple[list[ToolDefinition], dict[str, str]]:
    """The definitions whose words pass the checks of MCP listings, and what speaks against others.

    Raises:
        UsageError: There is no definition of a name that is overruled.
    """
    if unknown := sorted(set(overruled) - {one.name for one in definitions}):
        raise UsageError(f"the file has no tool {unknown[0]!r} to overrule")
    against = {
        one.name: "; ".join(map(str, failed))
        for one in definitions
        if one.name not in overruled and (failed := suspicions(one))
    }
    return [one for one in definitions if one.name not in against], against


def is_description(data: bytes) -> bool:
    """Whether the content of a file is an API description: JSON or YAML with its key."""
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in {b"{", b"["}:
        try:
            return openapi.is_openapi(json.loads(text))
        except (ValueError, RecursionError):
            return False
    return any(line.startswith((b"openapi:", b"swagger:")) for line in text.splitlines()[:200])


def import_definitions(
    store: Store,
    definitions: Sequence[ToolDefinition],
    on_conflict: ConflictPolicy,
    reason: str,
    *,
    vouched: Collection[str] | None = None,
) -> tuple[ImportPlan, int]:
    """Put definitions into the library in one new version.

    Args:
        store: Of the library.
        definitions: What comes.
        on_conflict: What happens to names that are taken.
        reason: Why, for the history.
        vouched: Names of those that somebody has read, where others may have to wait for a person;
            None where the caller vouches for all.

    Returns:
        What became of each name, and the library version afterwards.
    """
    plan = ImportPlan()
    proposal_id = change_id("import")

    def build(library: Library) -> LibraryChange | None:
        nonlocal plan
        plan = plan_import(definitions, library, on_conflict=on_conflict)
        if vouched is not None:
            _hold(plan, library, vouched)
        upserts = tuple(plan.upserts.values())
        if not upserts:
            return None
        return LibraryChange(
            proposal_id=proposal_id, upserts=upserts, author=author(), reason=reason
        )

    version = commit(store, build, operation="import")
    return plan, version


def _hold(plan: ImportPlan, library: Library, vouched: Collection[str]) -> None:
    """Take out of a plan what acts through other tools, unless somebody has read it."""
    came_as = {new: old for old, new in plan.renamed}
    coming = {name: Tool(definition=one) for name, one in plan.upserts.items()}
    tools = {**coming, **library.tools}  # what is here says itself what it does
    for name, tool in coming.items():
        if came_as.get(name, name) not in vouched and acts_through_others(tool.definition, tools):
            plan.hold(name)


def report_import(
    plan: ImportPlan,
    version: int,
    rejected: Sequence[RejectedEntry] = (),
    *,
    api: openapi.OpenApiReport | None = None,
    against: Mapping[str, str] = MappingProxyType({}),
    waiting: Sequence[ImportedTool] = (),
    as_json: bool,
) -> None:
    """Print what became of each definition.

    Raises:
        Exit: With status 1, where one could not be imported.
    """
    unusable = [{"entry": entry.index + 1, "reason": entry.reason} for entry in rejected]
    if as_json:
        of_api = {} if api is None else {"openapi": api.to_json()}
        held = [one.to_json() for one in waiting]
        left_out = {"held": held, "unusable": unusable, "suspicious": dict(against)}
        print_json({"library_version": version, **plan.to_json(), **left_out, **of_api})
    else:
        names = ("added", "replaced", "renamed", "skipped")
        counts = {name: len(getattr(plan, name)) for name in names} | {"unchanged": plan.unchanged}
        counts |= {"refused": len(plan.refused), "unusable": len(unusable)}
        counts |= {"suspicious": len(against), "held": len(waiting)}
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        click.echo(f"{told or 'nothing to import'}; library version {version}")
    say_some((f"entry {one['entry']} is unusable: {one['reason']}" for one in unusable), rest=_ALL)
    refused = (f"{name!r} already stands for another definition" for name in plan.refused)
    say_some(refused, rest=_ALL)
    say_some((f"{shown(name)} is left out: {why}" for name, why in against.items()), rest=_ALL)
    if against:
        say("take a tool whose words you have read with --overrule TOOL")
    say_some((f"{shown(one.name)} is held: {shown(one.why, 400)}" for one in waiting), rest=_ALL)
    if waiting:
        say("'agentkit review' has what waits; take a tool that you have read with --overrule TOOL")
    if plan.refused:
        say("choose with --on-conflict which definition a name keeps, or 'suffix' for both")
    if api is not None:
        _say_mapped(api)
    if unusable or plan.refused or against or waiting or (api is not None and api.unusable):
        raise click.exceptions.Exit(1)


def _say_mapped(report: openapi.OpenApiReport) -> None:
    """Say what came of an API description."""
    say(report.summary)
    say(f"calls go to {report.server or 'no server that is known'}")
    say_some((f"{one.label} is not mapped: {one.reason}" for one in report.unusable), rest=_ALL)
    for note in report.notes:
        say(note)
    if count := sum(len(entry.notes) for entry in report.operations):
        say(f"{count:,} notes on operations (--json has all)")
