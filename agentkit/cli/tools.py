"""``agentkit tools`` and ``agentkit search``: list, show, examine and rank tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

import click

from agentkit._waiting import wait_for
from agentkit.cli.boundary import CommandGroup
from agentkit.cli.loading import load_tools, read_content
from agentkit.cli.options import AtVersion, StoreUrl, argument, command, option
from agentkit.cli.output import (
    LineProgress,
    Output,
    cut,
    fold,
    json_text,
    listing,
    one_line,
    print_facts,
    print_line,
    print_table,
    right,
    say,
    say_some,
)
from agentkit.cli.stores import opened_to_read, retriever_of
from agentkit.errors import CompositeError
from agentkit.evaluation.doctor.catalogue import KINDS, Catalogue, listed
from agentkit.evaluation.doctor.checks import Checkup, examine
from agentkit.evaluation.results.texts import visible
from agentkit.evolution.proposers.composites import source_of
from agentkit.library import Library
from agentkit.library.pins import pin_faults
from agentkit.retrieval.cards import type_text
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retrieval
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural
from agentkit.tools.rules import rule_sentence
from agentkit.tools.sources.json_records import definitions_from_json

_BOUNDS = re.compile(r"(exclusiveM|m)(in|ax)|multipleOf|pattern|format|const")
"""Keywords of a schema that bound a value."""

_HEAVIEST, _SHOWN, _MANY = 3, 20, 1000


@click.group(
    cls=CommandGroup,
    places={
        "add": "agentkit.cli.add:add",
        "approve": "agentkit.cli.add:approve",
        "import": "agentkit.cli.add:import_",
    },
)
def tools() -> None:
    """List, show, add and examine tools.

    Each change makes a new library version, and nothing is lost: 'agentkit log --tool NAME' shows
    the history of a tool, and 'agentkit rollback' restores from it.
    """


@command("list", short_help="List the tools and instructions of the library.", group=tools)
def list_(*, at: AtVersion, store_url: StoreUrl) -> Output:
    """List the tools of the library, and the instructions of agents.

    Examples:
      agentkit tools list
      agentkit tools list --at 1 | grep flight
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)
    return listing(
        [one.to_json() for one in library.all_definitions],
        [fold("tool"), cut("parameters"), cut("summary")],
        (
            (one_line(one.name), _signature_line(one), one_line(one.description.summary))
            for one in library.all_definitions
        ),
        note=f"{plural(len(library), 'tool')} in library version {library.version}",
    )


def _signature_line(definition: ToolDefinition) -> str:
    """``city: string, days?: integer``; a question mark means optional."""
    signature = definition.known_signature
    return ", ".join(
        one_line(f"{name}{'' if name in signature.required else '?'}: {type_text(schema)}")
        for name, schema in signature.properties.items()
    )


@command(group=tools)
def show(name: str, *, at: AtVersion, store_url: StoreUrl) -> Output:
    """Show everything about the tool NAME.

    With --json, print the stored definition, which 'tools import' reads back.

    Examples:
      agentkit tools show get_weather
      agentkit tools show get_weather --at 3 --json
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)
    definition = library[name].definition
    return Output(record=definition.to_json(), view=lambda: _print_tool(library, definition))


def _print_tool(library: Library, definition: ToolDefinition) -> None:
    print_line(one_line(definition.name))
    print_line(f"\n{definition.text or '(no description)'}\n")
    rows = list(_parameters(definition))
    if rows:
        titles = ("parameter", "type", "required", "default", "meaning")
        print_table([fold(title) for title in titles], rows)
    click.echo("" if rows else "no parameters\n")
    print_facts([*_facts(definition), *_composition(library, definition)])
    if definition.is_composite:
        try:
            click.echo(f"\n{visible(source_of(definition))}", nl=False)
        except CompositeError as error:
            click.echo(f"\nThe program is broken: {visible(str(error))}")


def _parameters(definition: ToolDefinition) -> Iterator[tuple[str, ...]]:
    signature, texts = definition.known_signature, definition.description.parameters
    properties: Mapping[str, Any] = signature.properties
    for name, schema in properties.items():
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        bounds = (f"{key} {json_text(known[key])}" for key in known if _BOUNDS.match(key))
        yield (
            one_line(name),
            one_line(type_text(schema)),
            "yes" if name in signature.required else "no",
            json_text(known["default"]) if "default" in known else "",
            " ".join(filter(None, (texts.get(name, ""), ", ".join(bounds)))),
        )
        for path, text in texts.items():
            if path.startswith((f"{name}.", f"{name}[")):
                yield f"  {one_line(path)}", "", "", "", text


def _facts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    signature, origin = definition.signature, definition.origin
    if signature.result is not None:
        yield "returns", json_text(signature.result)
    effects = signature.effects.to_json().items()
    declared = ", ".join(name if holds else f"not {name}" for name, holds in effects)
    yield "effects", declared or "not declared"
    if definition.description.tags:
        yield "tags", ", ".join(definition.description.tags)
    specification = definition.specification
    yield from (("before", condition) for condition in specification.pre)
    yield from (("after", condition) for condition in specification.post)
    for rule in specification.rules:
        yield "learned", f"{rule_sentence(rule)} ({rule.kind})"
    for example in definition.examples:
        result = json_text(example.result) if example.is_whole else "(not kept)"
        yield "example", f"{json_text(example.arguments)} -> {result}"
    parts = (origin.kind, origin.reference, origin.licence, origin.original_name)
    yield "origin", one_line(", ".join(filter(None, parts)))
    yield "digest", definition.digest


def _composition(library: Library, definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    """Show a composite's children, and the composites that use a tool."""
    name, dag = definition.name, library.dag
    if definition.is_composite:
        depth = dag.depths.get(name)
        yield "depth", f"unknown: {dag.why_unknown(name)}" if depth is None else str(depth)
        pins = {pin.name: pin.digest[:12] for pin in definition.signature.children}
        for child in dict.fromkeys((*dag.children.get(name, ()), *pins)):
            yield "calls", f"{one_line(child)} {pins.get(child, 'not pinned')}"
        yield from (("fault", one_line(one.message)) for one in pin_faults(library, [name]))
    if above := dag.parents.get(name):
        yield "used by", one_line(", ".join(above))


@command(short_help="Examine a catalogue of tools.", group=tools)
def doctor(
    files: Annotated[tuple[str, ...], argument("[FILE]...")] = (),
    *,
    check: Annotated[tuple[str, ...], option(type=click.Choice(tuple(KINDS)))] = (),
    tool: tuple[str, ...] = (),
    exit_code: bool = False,
    store_url: StoreUrl,
) -> Output:
    """Examine a catalogue of tools, without a model.

    Reports token costs; missing, empty or unclean texts; undeclared types; near duplicates; pairs
    that retrieval confuses, with the words that cause it; clashing names; schemas that providers
    refuse; tools that episodes never used.

    Each FILE is examined instead of the library, and several as one catalogue: JSON or JSON lines,
    plain or .gz, as 'tools import' reads it, '-' for stdin; or FILE.py[:NAME].

    Args:
        check (CODE): Only this kind of finding, in full
        tool (NAME): Only findings about this tool, in full
        exit_code: Exit status 1 when there are errors.

    Examples:
      agentkit tools doctor
      agentkit tools doctor catalogue.jsonl.gz
      agentkit tools doctor --check confused
    """
    if files:
        catalogue = Catalogue.of([one for name in files for one in _read(name)])
    else:
        with opened_to_read(store_url) as store:
            catalogue = Catalogue.of(store.load().definitions, episodes=store.select())
    if (count := len(catalogue.library)) > _MANY:
        catalogue = replace(catalogue, progress=LineProgress(f"Examining {count:,} tools"))
    checkup = examine(catalogue, codes=check, tools=tool)
    return Output(
        record=checkup.to_json(),
        view=lambda: _print_kinds(checkup) if check or tool else _print_overview(checkup),
        failed=exit_code and any(one.kind.severity == "error" for one in checkup.findings),
    )


def _read(name: str) -> Iterable[ToolDefinition]:
    """The definitions of a file; what is unusable in it is said and left out."""
    if name.partition(":")[0].endswith(".py"):
        return [tool.definition for tool in load_tools([name])]
    batch = definitions_from_json(read_content(name), reference=name)
    say_some(f"{name}: entry {one.index + 1} is unusable: {one.reason}" for one in batch.rejected)
    return batch.definitions


def _print_overview(checkup: Checkup) -> None:
    """A few numbers, then one row a kind of finding."""
    weights, total = checkup.weights, checkup.tokens
    if not weights:
        click.echo("there are no tools")
        return
    heaviest = [
        f"{one_line(name)} {tokens:,}" for name, tokens in list(weights.items())[:_HEAVIEST]
    ]
    print_line(
        f"{plural(len(weights), 'tool')}, {total:,} prompt tokens when all are offered, "
        f"{total // len(weights):,} each on average\nheaviest: {', '.join(heaviest)}"
    )
    rows = [
        (kind.code, kind.severity, len(found), sum(one.tokens for one in found) or "", kind.title)
        for kind, found in checkup.grouped()
    ]
    click.echo("" if rows else "nothing was found")
    if rows:
        print_table(["check", "severity", right("found"), right("tokens"), fold("what")], rows)
        say("\n--check CODE shows one kind in full, --tool NAME what concerns one tool")


def _print_kinds(checkup: Checkup) -> None:
    """Every finding, kind by kind, with why it matters and what to do."""
    if not checkup.findings:
        click.echo("nothing was found")
    for kind, found in checkup.grouped():
        print_line(f"{kind.code} ({kind.severity}): {kind.title}")
        print_line(f"why: {kind.why}\ndo: {kind.advice}\n", indent=2)
        rows = [(listed(one.tools, shown=1), one.what) for one in found[:_SHOWN]]
        print_table([fold("tool"), fold("what")], rows)
        click.echo()
        if len(found) > _SHOWN:
            say(f"{_SHOWN} of {len(found):,} shown; --json has all")


@command()
def search(query: str, *, limit: int = 10, store_url: StoreUrl) -> Output:
    """Rank the library's tools for QUERY, as an agent would.

    Tools marked with * would be offered to the model in full; the others of the shortlist would
    appear as one-line cards at most. --json also says what each stage left and cost, and where the
    score of each tool comes from.

    Args:
        limit: Most rows.

    Examples:
      agentkit search "area of a triangle"
      agentkit search "book a flight" --limit 3 --json
    """
    with opened_to_read(store_url) as store:
        library = store.load()  # while it is open it also gives, and keeps, the search index
        retriever = retriever_of(store) or default_retriever()
        found = wait_for(retriever.retrieve(query, library))
    hits, trace = found.hits[:limit], found.trace()
    record = {**trace.to_json(), "library_version": library.version, "tokens": found.tokens}
    record["hits"] = [
        {"name": one.definition.name}
        | {"score": one.score, "fields": dict(one.fields), "reason": one.reason}
        for one in hits
    ]

    def view() -> None:
        if not hits:
            say(_nothing_found(found, library))
            return
        rows = (
            (
                rank,
                "*" if hit.definition.name in trace.offered else "",
                one_line(hit.definition.name),
                f"{hit.score:.3f}",
                hit.reason,
                one_line(hit.definition.description.summary),
            )
            for rank, hit in enumerate(hits, 1)
        )
        columns = (right("#"), "", fold("tool"), right("score"), fold("why"), cut("summary"))
        print_table(columns, rows)
        say(
            f"{len(found.hits)} of {len(library):,} tools in the shortlist, {len(trace.offered)} "
            f"offered in full (*), about {found.tokens:,} prompt tokens; "
            f"library version {library.version}"
        )

    return Output(record=record, view=view)


def _nothing_found(found: Retrieval, library: Library) -> str:
    if not library:
        return "The library is empty; fill it with 'agentkit tools import FILE' or 'tools add'."
    words = f" No tool has: {', '.join(found.unmatched)}" if found.unmatched else ""
    return f"None of {plural(len(library), 'tool')} in version {library.version} matches.{words}"
