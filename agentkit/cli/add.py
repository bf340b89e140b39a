"""``agentkit tools add`` and ``agentkit tools import``: Python tools, composites, catalogues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, TextIO

import click

from agentkit.cli.loading import load_tools, read_content
from agentkit.cli.options import (
    OnConflict,
    Reason,
    StoreUrl,
    Targets,
    argument,
    command,
    option,
)
from agentkit.cli.output import Output, say, say_some
from agentkit.cli.stores import author, change_id, commit, manager_of, opened, person
from agentkit.errors import SourceProblem, UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.dry_run import InsertPolicy
from agentkit.evolution.insertion import SAME_TOOL, CheckResult
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.validation.approvals import acts_through_others
from agentkit.evolution.validation.foreign_texts import suspicions
from agentkit.interop import openapi
from agentkit.interop.export.importing import ImportedTool, ImportRequest, propose_tools
from agentkit.library import Library, LibraryChange, Store
from agentkit.library.merging import ConflictPolicy, ImportPlan, plan_import
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import RejectedEntry, definitions_from_json
from agentkit.tools.tool import Tool

ARTIFACT = b'"agentkit_artifact"'
"""The key with which an artifact begins."""

_ALL = " (--json names all)"
_LONGEST_SOURCE = 1_000_000
"""Characters of the text of one composite."""


@command(short_help="Add Python tools, or a composite.")
def add(
    sources: Annotated[tuple[str, ...], argument("[MODULE:NAME|FILE.py[:NAME]]...")] = (),
    *,
    composite: Annotated[TextIO | None, option(type=click.File(encoding="utf-8"))] = None,
    targets: Targets,
    dry_run: bool = False,
    revise: bool = False,
    run_undeclared: bool = False,
    on_conflict: OnConflict,
    reason: Reason,
    store_url: StoreUrl,
) -> Output:
    """Add the definitions of Python functions to the library.

    The code stays where it is: to run these tools, give the same target to 'agentkit run --tools'.

    With --composite the function in FILE is not run as Python. Its text is parsed into a program
    that calls tools of the library and tried on its worked calls; then it is added, merged into a
    tool that does the same, or rejected with the reason and exit status 1.

    Args:
        composite (FILE): Make a composite of the one Python function in FILE, - for stdin.
        dry_run: With --composite: say what would happen.
        revise: With --composite: replace a composite of the same name.
        run_undeclared: Also run tools that declare no effects while trying composites: your word
            that they touch nothing. Otherwise they answer from their worked calls.

    Examples:
      agentkit tools add my_package.weather:get_weather
      agentkit tools add tools.py                 every @tool in the file
      agentkit tools add tools.py:add --on-conflict replace --reason 'clearer words'
      agentkit tools add --composite order_total.py --tools calculator.py --dry-run
    """
    if composite is not None:
        policy = InsertPolicy(allow_revisions=revise, run_undeclared=run_undeclared)
        code = load_tools(targets)
        with opened(store_url) as store:
            manager = manager_of(store, code, trying=policy, author=person())
            return _add_composite(manager, composite, reason, dry_run=dry_run)
    sources = sources or targets  # those of the project
    if not sources:
        raise UsageError("what should be added? Give a Python file, or --composite FILE")
    definitions = [tool.definition for tool in load_tools(sources)]
    with opened(store_url) as store:
        why = reason or f"add {' '.join(sources)}"
        plan, version = _import_definitions(store, definitions, on_conflict, why)
    return _report_import(plan, version)


def _add_composite(manager: ToolManager, file: TextIO, reason: str, *, dry_run: bool) -> Output:
    """Make a composite of the one function in a file, and add it, unless it is a dry run."""
    try:
        source = file.read(_LONGEST_SOURCE + 1)
    except UnicodeDecodeError as error:
        raise UsageError(f"{file.name}: not UTF-8 text ({error})") from error
    if len(source) > _LONGEST_SOURCE:
        raise UsageError(f"{file.name}: more than {_LONGEST_SOURCE:,} characters")
    if dry_run:
        outcome = manager.preview(source)
    else:
        outcome = manager.insert(source, reason=reason or f"compose {file.name}")
    return Output(
        record={**outcome.to_json(), "dry_run": dry_run},
        view=lambda: _print_outcome(outcome, source, file.name, dry_run=dry_run),
        failed=bool(outcome.failed),
    )


def _print_outcome(outcome: CheckResult, source: str, file: str, *, dry_run: bool) -> None:
    if outcome.failed:
        failed = outcome.failed[0]
        say(f"rejected [{failed.code}]: {failed.message}")
        for problem in outcome.problems:
            _print_place(problem, source, file)
        if not outcome.problems:
            say(f"  {failed.advice}")
        return
    click.echo(f"{'dry run: ' if dry_run else ''}{outcome}")
    found = outcome.duplicate
    if found is not None and f"def {found.name}(" in source and found.reason != SAME_TOOL:
        say(f"--revise replaces {found.name} with this text")


def _print_place(problem: SourceProblem, source: str, file: str) -> None:
    """The problem with its line and a caret under its column, as compilers print it."""
    say(f"{file}:{problem.line}:{problem.column}: {problem.message} [{problem.code}]")
    lines = source.splitlines()
    if 0 < problem.line <= len(lines):
        line = lines[problem.line - 1]
        before = "".join(c if c == "\t" else " " for c in line[: problem.column - 1])
        say(f"    {line}\n    {before}^")
    say(f"    {problem.advice}")


@command("import", short_help="Import definitions from FILE, such as a catalogue.")
def import_(
    file: str,
    *,
    prefix: str = "",
    on_conflict: OnConflict,
    overrule: tuple[str, ...] = (),
    reason: Reason,
    store_url: StoreUrl,
) -> Output:
    """Import definitions from FILE: JSON or JSON lines, plain or .gz, '-' for stdin.

    Accepts the formats of OpenAI, Anthropic, MCP, Gemini, Bedrock and BFCL, agentkit's own, and
    OpenAPI 3 descriptions as JSON or YAML, whose operations become tools.

    Unusable entries are reported, and so are tools whose words address the model, ask for secrets
    or hide characters; the exit status is then 1, and the others are imported in one new library
    version. Tools that act through others (programs and rules that call what is not declared
    read-only) wait in 'agentkit review'. --overrule takes a tool that you have read in any case.

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
    if _is_openapi(data):
        reference = "" if file == "-" else file
        found = openapi.openapi_tools(data, reference=reference, prefix=prefix)
        definitions, report = found.definitions, found.report
    else:
        batch = definitions_from_json(data, reference=file)
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
        plan, version = _import_definitions(store, passed, on_conflict, why, vouched=overrule)
        waiting: Sequence[ImportedTool] = ()
        if plan.held:
            request = ImportRequest(person=person(), reason=why)
            manager = manager_of(store, author=person())
            waiting = asyncio.run(propose_tools(plan.held.values(), manager, request))
    return _report_import(plan, version, rejected, api=report, against=against, waiting=waiting)


def _is_openapi(data: bytes) -> bool:
    """Whether the content of a file is an API description: JSON or YAML with its key."""
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in {b"{", b"["}:
        try:
            return openapi.is_openapi(json.loads(text))
        except (ValueError, RecursionError):
            return False
    return any(line.startswith((b"openapi:", b"swagger:")) for line in text.splitlines()[:200])


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
        vouched: Names of those a person has read, where others may have to wait for a person;
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


def _report_import(
    plan: ImportPlan,
    version: int,
    rejected: Sequence[RejectedEntry] = (),
    *,
    api: openapi.OpenApiReport | None = None,
    against: Mapping[str, str] = MappingProxyType({}),
    waiting: Sequence[ImportedTool] = (),
) -> Output:
    """Report the outcome of each definition, with reasons on stderr."""
    unusable = [{"entry": entry.index + 1, "reason": entry.reason} for entry in rejected]
    record = {"library_version": version, **plan.to_json()}
    record |= {"held": [one.to_json() for one in waiting], "unusable": unusable}
    record |= {"suspicious": dict(against)} | ({} if api is None else {"openapi": api.to_json()})
    names = ("added", "replaced", "renamed", "skipped")
    counts = {name: len(getattr(plan, name)) for name in names} | {"unchanged": plan.unchanged}
    counts |= {"refused": len(plan.refused), "unusable": len(unusable)}
    counts |= {"suspicious": len(against), "held": len(waiting)}
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    say_some((f"entry {one['entry']} is unusable: {one['reason']}" for one in unusable), rest=_ALL)
    say_some((f"{name!r} already has another definition" for name in plan.refused), rest=_ALL)
    say_some((f"{shown(name)} is left out: {why}" for name, why in against.items()), rest=_ALL)
    say_some((f"{shown(one.name)} is held: {shown(one.why, 400)}" for one in waiting), rest=_ALL)
    if against or waiting:
        waits = "; 'agentkit review' lists what is held" if waiting else ""
        say(f"import a tool that you have read with --overrule TOOL{waits}")
    if plan.refused:
        say("--on-conflict says which definition a name keeps, 'suffix' keeps both")
    if api is not None:
        say(api.summary)
        say(f"calls go to {api.server or 'no known server'}")
        say_some((f"{one.label} is not mapped: {one.reason}" for one in api.unusable), rest=_ALL)
        say_some(api.notes)
    return Output(
        record=record,
        view=lambda: click.echo(f"{summary or 'nothing to import'}; library version {version}"),
        failed=bool(
            unusable or plan.refused or against or waiting or (api is not None and api.unusable)
        ),
    )
