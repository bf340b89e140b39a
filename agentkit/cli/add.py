"""``agentkit tools add``, ``import`` and ``approve``: code, catalogues, servers."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated, Any

import click

from agentkit.cli.loading import load_tools, read_content
from agentkit.cli.options import (
    AsJson,
    OnConflict,
    Reason,
    StoreUrl,
    argument,
    command,
)
from agentkit.cli.output import (
    Output,
    is_interactive,
    json_text,
    one_line,
    print_json,
    print_line,
    say,
    say_some,
)
from agentkit.cli.project import current_project
from agentkit.cli.stores import manager_of, opened, person
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.validation.approvals import acts_through_others
from agentkit.evolution.validation.foreign_texts import suspicions
from agentkit.interop import openapi
from agentkit.interop.export.importing import ImportedTool, ImportRequest, propose_tools
from agentkit.interop.mcp.client import McpServer, approved_in, keep_tools
from agentkit.interop.mcp.listing import HeldTool
from agentkit.interop.mcp.transports import HttpPlace, Place, StdioPlace
from agentkit.library import Library, LibraryChange, Store
from agentkit.library.directory.files import from_yaml
from agentkit.library.merging import ConflictPolicy, ImportPlan, plan_import
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural
from agentkit.tools.sources.json_records import RejectedEntry, definitions_from_json
from agentkit.tools.tool import Tool

ARTIFACT = b'"agentkit_artifact"'
"""The key with which an artifact begins."""

_ALL = " (--json names all)"
_WAITS = "a file's programs and rules that use other tools, or hold texts, are for a person to read"


@command(short_help="Add Python tools.")
def add(
    sources: Annotated[tuple[str, ...], argument("[MODULE:NAME|FILE.py[:NAME]]...")] = (),
    *,
    on_conflict: OnConflict,
    reason: Reason,
    store_url: StoreUrl,
) -> Output:
    """Add the definitions of Python functions to the library.

    The code stays where it is: to run these tools, give the same target to 'agentkit run --tools'.
    Without a target, the tools of the project are added.

    Examples:
      agentkit tools add my_package.weather:get_weather
      agentkit tools add tools.py                 every @tool in the file
      agentkit tools add tools.py:add --on-conflict replace --reason 'clearer words'
    """
    sources = sources or tuple(current_project().defaults.get("targets", ()))
    if not sources:
        raise UsageError("what should be added? Give a Python file")
    definitions = [tool.definition for tool in load_tools(sources)]
    with opened(store_url) as store:
        why = reason or f"add {' '.join(sources)}"
        plan, version = _import_definitions(store, definitions, on_conflict, why)
    return _imported(plan, version)


@command("import", short_help="Import definitions from FILE, such as a catalogue.")
def import_(
    file: str,
    *,
    prefix: str = "",
    on_conflict: OnConflict,
    overrule: tuple[str, ...] = (),
    yes: bool = False,
    reason: Reason,
    store_url: StoreUrl,
) -> Output:
    """Import definitions from FILE: JSON or JSON lines, plain or .gz, '-' for stdin.

    Accepts the formats of OpenAI, Anthropic, MCP, Gemini, Bedrock and BFCL, agentkit's own, also as
    the .yaml files of a 'dir:' store, and OpenAPI 3 descriptions as JSON or YAML, whose operations
    become tools.

    All that models will read of the tools is shown, and you are asked whether to import them.
    Unusable entries are reported, and so are tools whose words address the model, ask for secrets
    or hide characters; the exit status is then 1, and the others are imported in one new library
    version. Programs that call what is not declared read-only, rules that demand other tools, and
    texts in either wait in 'agentkit review'. --overrule takes a tool that you have read anyhow.

    Args:
        prefix (TEXT): Comes before the name of each operation (OpenAPI).
        overrule (TOOL): Import a tool although checks speak against its words, or although it
            would wait, because you read it
        yes: Do not show and ask; needed without a terminal.

    Examples:
      agentkit tools import catalogue.json
      agentkit tools import functions.jsonl --on-conflict skip
      agentkit tools import openapi.yaml --prefix github_
      cat tools/*.jsonl | agentkit tools import --yes -
    """
    data = read_content(file)
    if ARTIFACT in data[:200]:
        raise UsageError(f"{file} is an artifact; type: agentkit import {file}")
    why = reason or f"import {file}"
    rejected: Sequence[RejectedEntry] = ()
    api = None
    if _is_openapi(data):
        reference = "" if file == "-" else file
        found = openapi.openapi_tools(data, reference=reference, prefix=prefix)
        definitions, api = found.definitions, found.report
    else:
        written = from_yaml(data.decode(errors="replace")) if file.endswith(".yaml") else data
        batch = definitions_from_json(written, reference=file)
        definitions, rejected = batch.definitions, batch.rejected
    if unknown := sorted(set(overrule) - {one.name for one in definitions}):
        raise UsageError(f"the file has no tool {unknown[0]!r} to overrule")
    against = {
        one.name: "; ".join(map(str, failed))
        for one in definitions
        if one.name not in overrule and (failed := suspicions(one))
    }
    passed = [one for one in definitions if one.name not in against]
    with opened(store_url) as store:
        if not yes:
            ask_for(passed, store.load(), on_conflict)
        plan, version = _import_definitions(store, passed, on_conflict, why, vouched=overrule)
        waiting: Sequence[ImportedTool] = ()
        if plan.held:
            request = ImportRequest(person=person(), reason=why)
            manager = manager_of(store, author=person())
            waiting = asyncio.run(propose_tools(plan.held.values(), manager, request))
    say_some((f"entry {one.index + 1} is unusable: {one.reason}" for one in rejected), rest=_ALL)
    say_some((f"{shown(name)} is left out: {why}" for name, why in against.items()), rest=_ALL)
    say_some((f"{shown(one.name)} is held: {shown(one.why, 400)}" for one in waiting), rest=_ALL)
    if waiting:
        say(f"{_WAITS}; 'agentkit review' lists what is held")
    if against or waiting:
        say("import a tool that you have read with --overrule TOOL")
    if api is not None:
        say(f"{api.summary}\ncalls go to {api.server or 'no known server'}")
        say_some((f"{one.label} is not mapped: {one.reason}" for one in api.unusable), rest=_ALL)
        say_some(api.notes)
    record: dict[str, Any] = {
        "held": [one.to_json() for one in waiting],
        "unusable": [{"entry": one.index + 1, "reason": one.reason} for one in rejected],
        "suspicious": against,
    }
    counts = {name: len(one) for name, one in record.items()}
    if api is not None:
        record["openapi"] = api.to_json()
    is_short = any(counts.values()) or (api is not None and bool(api.unusable))
    return _imported(plan, version, record, counts, failed=is_short)


def ask_for(
    definitions: Iterable[ToolDefinition], library: Library, on_conflict: ConflictPolicy
) -> None:
    """Show what would come of a file, and ask whether to import it.

    Args:
        definitions: Those of the file.
        library: As it is.
        on_conflict: What happens to names that are taken.

    Raises:
        UsageError: Nobody can be asked here.
        click.Abort: The answer is no.
    """
    coming = plan_import(definitions, library, on_conflict=on_conflict).upserts
    if not coming:
        return
    for name, definition in coming.items():
        say(one_line(name))
        for text in filter(None, _read_by_models(definition)):
            say(f"    {one_line(text)}")
    _ask("import", plural(len(coming), "tool"))


def _ask(act: str, what: str) -> None:
    if not is_interactive():
        raise UsageError(
            f"nobody can be asked here to {act} {what}; read the list, then repeat the command "
            "with --yes"
        )
    click.confirm(f"{act.capitalize()} {what}?", abort=True, err=True)


def _is_openapi(data: bytes) -> bool:
    """Whether the content of a file is an API description: JSON or YAML with its key."""
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in {b"{", b"["}:
        try:
            return openapi.is_openapi(read_json(text))
        except ValueError:
            return False
    return any(line.startswith((b"openapi:", b"swagger:")) for line in text.split(b"\n", 200)[:200])


def _import_definitions(
    store: Store,
    definitions: Sequence[ToolDefinition],
    on_conflict: ConflictPolicy,
    reason: str,
    *,
    vouched: Collection[str] | None = None,
) -> tuple[ImportPlan, int]:
    """Put definitions into the library in one new version.

    Args:
        store: The store of the library.
        definitions: What comes.
        on_conflict: What happens to names that are taken.
        reason: Why, for the history.
        vouched: Names of those a person has read, where what acts through other tools waits for a
            person; None where the caller vouches for all.

    Returns:
        What became of each name, and the library version afterwards.
    """
    plan, change_id = ImportPlan(), f"import-{uuid.uuid4().hex}"

    def build(library: Library) -> LibraryChange | None:
        nonlocal plan
        plan = plan_import(definitions, library, on_conflict=on_conflict)
        coming = {name: Tool(definition=one) for name, one in plan.upserts.items()}
        tools = {**coming, **library.tools}  # what is here says itself what it does
        unread = [] if vouched is None else [name for name in coming if name not in vouched]
        for name in unread:
            if acts_through_others(coming[name].definition, tools):
                plan.hold(name)
        if not (upserts := tuple(plan.upserts.values())):
            return None
        return LibraryChange(proposal_id=change_id, upserts=upserts, author=by.name, reason=reason)

    by = person()
    version = manager_of(store, author=by).edit(build, operation="import")
    return plan, version


def _imported(
    plan: ImportPlan,
    version: int,
    more: dict[str, Any] | None = None,
    counted: dict[str, int] | None = None,
    *,
    failed: bool = False,
) -> Output:
    """Report what became of definitions; ``more`` and its counts tell what did not come."""
    names = ("added", "replaced", "skipped")
    counts = {name: len(getattr(plan, name)) for name in names} | {"unchanged": plan.unchanged}
    counts |= {"refused": len(plan.refused)} | (counted or {})
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    say_some((f"{name!r} already has another definition" for name in plan.refused), rest=_ALL)
    if plan.refused:
        say("--on-conflict says which definition a name keeps")
    return Output(
        record={"library_version": version, **plan.to_json(), **(more or {})},
        view=lambda: click.echo(f"{summary or 'nothing to import'}; library version {version}"),
        failed=failed or bool(plan.refused),
    )


@command(short_help="Approve the tools of an MCP server.")
def approve(
    name: str,
    place: Annotated[tuple[str, ...], argument("URL|-- COMMAND...", required=True)],
    *,
    tool: tuple[str, ...] = (),
    env: tuple[str, ...] = (),
    yes: bool = False,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Show the tools that an MCP server lists, and approve them.

    Approved tools are kept in the library with a fingerprint of everything the server said about
    them. A server that is given these approvals offers no other tool, and none that has changed.

    Args:
        tool (TOOL): Approve this tool, even if a check found something in it or it changed.
            Otherwise all new tools without findings
        env (VARIABLE): Pass this environment variable to COMMAND
        yes: Do not ask; needed without a terminal.

    Examples:
      agentkit tools approve orders -- python orders_server.py
      agentkit tools approve orders http://localhost:8000/mcp --yes
      agentkit tools approve orders --tool cancel --yes -- python orders_server.py

    In code:
      McpServer.stdio("python", ["orders_server.py"], name="orders",
                      approved=approved_in(library, "orders"))
    """
    with opened(store_url) as store:
        approved = approved_in(store.load(), name)
        with McpServer(_place(place, env), name=name, approved=approved) as server:
            chosen = _chosen(server, tool)
            if not as_json:
                _print_listing(server, chosen)
            what = f"{plural(len(chosen), 'tool')} of {name}"
            if chosen and not yes:
                _ask("approve", what)
            version = store.load().version
            if chosen:
                server.approve(*(held.name for held in chosen))
                version = keep_tools(manager_of(store, author=person()), server.tools)
                say(f"approved {what}; library version {version}")
            if as_json:
                held = [
                    {"name": one.name, "code": one.code, "reasons": list(one.reasons)}
                    for one in server.held
                ]
                names = [one.name for one in chosen]
                print_json({"server": name, "version": version, "approved": names, "held": held})


def _place(values: Sequence[str], variables: Sequence[str]) -> Place:
    if len(values) == 1 and values[0].startswith(("http://", "https://")):
        if variables:
            raise UsageError("--env is for a COMMAND; a URL gets no environment variables")
        return HttpPlace(url=values[0])
    if absent := [one for one in variables if one not in os.environ]:
        raise UsageError(f"the environment variable {absent[0]} is not set")
    environment = {one: os.environ[one] for one in variables}
    return StdioPlace(command=values[0], args=tuple(values[1:]), env=environment)


def _chosen(server: McpServer, names: Sequence[str]) -> list[HeldTool]:
    """The tools to approve.

    Raises:
        UsageError: A name is not listed, or nobody can approve it.
    """
    approved = {tool.name for tool in server.listing.tools}
    for name in names:
        held = server.listing.holding(name)
        if held is not None and not held.is_approvable:
            raise UsageError(f"{held} It cannot be approved.")
        if held is None and name not in approved:
            raise UsageError(f"{server.name} lists no tool {name!r}")
    return [
        held
        for held in server.held
        if held.is_approvable and (held.name in names if names else held.code == "unapproved")
    ]


def _print_listing(server: McpServer, chosen: Sequence[HeldTool]) -> None:
    for tool in server.listing.tools:
        print_line(f"approved  {one_line(tool.name)}")
    for held in server.held:
        is_new = held in chosen and held.code == "unapproved"
        print_line(f"{'new' if is_new else held.code}  {one_line(held.name)}")
        texts = [] if held.code == "unapproved" else [" ".join(held.reasons)]
        if held.tool is not None:
            hints = ", ".join(hint for hint, is_set in held.tool.hints.items() if is_set)
            says = f"says of itself: {hints}" if hints else ""
            texts = [*_read_by_models(held.tool.definition), says, *texts]
        for text in filter(None, texts):
            print_line(one_line(text), indent=4)


def _read_by_models(definition: ToolDefinition) -> Iterator[str]:
    """All that prompts will hold of a tool: who approves it has seen it."""
    signature = definition.known_signature
    yield from definition.text.splitlines()
    yield from (f"{name}: {text}" for name, text in definition.description.parameters.items())
    yield from (f"example {json_text(one.arguments)}" for one in definition.examples)
    if signature.properties:
        yield f"takes {json_text(signature.parameters)}"
    if signature.result:
        yield f"gives {json_text(signature.result)}"
