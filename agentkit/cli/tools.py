"""``agentkit tools``: list, show and draw tools; the group of the commands about tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.options import AtVersion, StoreUrl, command
from agentkit.cli.output import (
    Output,
    cut,
    fold,
    one_line,
    plural,
    print_facts,
    print_line,
    print_table,
    say,
)
from agentkit.cli.stores import opened_to_read
from agentkit.errors import CompositeError, LibraryError
from agentkit.evolution.proposers.composites import source_of
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults
from agentkit.retrieval.cards import type_text
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence

_BOUNDS = re.compile(r"(exclusiveM|m)(in|ax)|multipleOf|pattern|format|const")
"""Keywords of a schema that bound a value."""

_SHAPES = {"composite": '("{}")', "primitive": '(["{}"])', "missing": '["{}"]:::missing'}
"""Mermaid shapes of a tool."""


@click.group(
    cls=CommandGroup,
    places={
        "add": "agentkit.cli.add:add",
        "approve": "agentkit.cli.approve:approve",
        "doctor": "agentkit.cli.doctor:doctor",
        "import": "agentkit.cli.add:import_",
    },
)
def tools() -> None:
    """List, show, add and examine tools.

    Each change makes a new library version, and nothing is lost: 'agentkit log --tool NAME' shows
    the history of a tool, and 'agentkit rollback' restores from it.
    """


@command("list", group=tools)
def list_(*, at: AtVersion, store_url: StoreUrl) -> Output:
    """List the tools of the library.

    Examples:
      agentkit tools list
      agentkit tools list --at 1 | grep flight
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)

    def view() -> None:
        rows = [
            (one.name, _signature_line(one), one_line(one.description.summary))
            for one in library.definitions
        ]
        print_table([fold("tool"), cut("parameters"), cut("summary")], rows)
        say(f"{plural(len(library), 'tool')} in library version {library.version}")

    return Output(record=[_brief(one) for one in library.definitions], view=view)


def _signature_line(definition: ToolDefinition) -> str:
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
    print_line(definition.name)
    print_line(f"\n{definition.text or '(no description)'}\n")
    rows = list(_parameters(definition))
    if rows:
        titles = ("parameter", "type", "required", "default", "meaning")
        print_table([fold(title) for title in titles], rows)
    click.echo("" if rows else "no parameters\n")
    print_facts([*_facts(definition), *_composition(library, definition)])
    if definition.is_composite:
        try:
            click.echo(f"\n{source_of(definition)}", nl=False)
        except CompositeError as error:
            click.echo(f"\nThe program is broken: {error}")


def _parameters(definition: ToolDefinition) -> Iterator[tuple[str, ...]]:
    texts, required = definition.description.parameters, definition.signature.required
    properties: Mapping[str, Any] = definition.signature.properties
    for name, schema in properties.items():
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        bounds = (f"{key} {_json(known[key])}" for key in known if _BOUNDS.match(key))
        yield (
            name,
            type_text(schema),
            "yes" if name in required else "no",
            _json(known["default"]) if "default" in known else "",
            " ".join(filter(None, (texts.get(name, ""), ", ".join(bounds)))),
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
    declared = ", ".join(name if holds else f"not {name}" for name, holds in effects)
    yield "effects", declared or "not declared"
    if definition.description.tags:
        yield "tags", ", ".join(definition.description.tags)
    yield from (("before", condition) for condition in specification.pre)
    yield from (("after", condition) for condition in specification.post)
    for rule in specification.rules:
        yield "learned", f"{rule_sentence(rule)} ({rule.kind})"
    for example in definition.examples:
        result = _json(example.result) if example.is_whole else "(not kept)"
        yield "example", f"{_json(example.arguments)} -> {result}"
    named = f"named {origin.original_name} there" if origin.original_name else ""
    yield "origin", " ".join(filter(None, (origin.kind, origin.reference, origin.licence, named)))
    yield "digest", definition.digest


def _composition(library: Library, definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    """Show a composite's children, and the composites that use a tool."""
    name, dag = definition.name, library.dag
    if definition.is_composite:
        depth, saved = dag.depths.get(name), _saved_calls(library, name)
        yield "depth", f"unknown: {dag.why_unknown(name)}" if depth is None else str(depth)
        if saved is not None:
            yield "saves", _calls(saved)
        faults = {fault.child: f"  ! {fault.code}" for fault in pin_faults(library, [name])}
        pins = {pin.name: pin.digest[:12] for pin in definition.signature.children}
        for child in dict.fromkeys((*dag.children[name], *pins)):
            yield "calls", f"{child} {pins.get(child, 'not pinned')}{faults.get(child, '')}"
    if dag.parents[name]:
        yield "used by", ", ".join(dag.parents[name])


def _saved_calls(library: Library, name: str) -> int | None:
    """Calls that one call saves; None where a circle, a gap or a broken program hides it."""
    try:
        return library.dag.flat_size(name) - 1
    except (LibraryError, CompositeError):
        return None


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{rounded(number)} calls"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@command(short_help="Draw what composites call, as a Mermaid flowchart.", group=tools)
def graph(name: str | None = None, *, at: AtVersion, store_url: StoreUrl) -> Output:
    """Draw what the tool NAME, or every composite, calls, as a Mermaid flowchart.

    Boxes are composites with their depth and the calls they save, pills are primitives. Red marks
    a missing tool, a dashed arrow a call whose pin is broken (see 'agentkit check').

    Examples:
      agentkit tools graph > tools.mmd
      agentkit tools graph net_total --json
    """
    with opened_to_read(store_url) as store:
        library = store.load(at)
    nodes, edges = _drawn(library, name)
    record = {"library_version": library.version, "nodes": nodes, "edges": edges}
    nothing = f"library version {library.version} has no composites"
    return Output(
        record=record,
        view=lambda: click.echo("\n".join(_mermaid(nodes, edges))) if nodes else say(nothing),
    )


def _drawn(library: Library, name: str | None) -> tuple[list[Any], list[Any]]:
    """Tools and calls as JSON objects, in the order of the library; missing tools come last."""
    dag = library.dag
    waiting = list(dag.composites if name is None else [library[name].name])
    found: set[str] = set()
    while waiting:
        one = waiting.pop()
        waiting += dag.children.get(one, ()) if one not in found else ()
        found.add(one)
    known = [one for one in dag.children if one in found]
    nodes = [
        {
            "name": one,
            "kind": "composite" if library[one].definition.is_composite else "primitive",
            "depth": dag.depths.get(one),
            "saved_calls": _saved_calls(library, one),
        }
        for one in known
    ]
    nodes += [{"name": one, "kind": "missing"} for one in sorted(found - set(known))]
    composites = [one for one in dag.composites if one in found]
    faults = {(one.tool, one.child): one.message for one in pin_faults(library, composites)}
    edges = [
        {"parent": parent, "child": child, "fault": faults.get((parent, child))}
        for parent in known
        for child in dag.children[parent]
    ]
    return nodes, edges


def _mermaid(nodes: list[Any], edges: list[Any]) -> Iterator[str]:
    yield "flowchart TD"
    ids = {node["name"]: f"n{number}" for number, node in enumerate(nodes)}
    for node in nodes:
        label = _mermaid_text(node["name"])
        if node["kind"] == "missing":
            label += "<br/>not in the library"
        elif node["kind"] == "composite":
            depth, saved = node["depth"], node["saved_calls"]
            label += "<br/>depth unknown" if depth is None else f"<br/>depth {depth}"
            label += "" if saved is None else f", saves {_calls(saved)}"
        yield f"    {ids[node['name']]}{_SHAPES[node['kind']].format(label)}"
    for edge in edges:
        arrow = "-.->" if edge["fault"] else "-->"
        yield f"    {ids[edge['parent']]} {arrow} {ids[edge['child']]}"
    if any(node["kind"] == "missing" for node in nodes):
        yield "    classDef missing fill:#fef2f2,stroke:#dc2626,color:#991b1b"


def _mermaid_text(text: str) -> str:
    """Characters that mean something to Mermaid or HTML become numbered entities."""
    kept = r"[^\w .,:;()/+=*@!?$%'-]"
    return re.sub(kept, lambda found: f"#{ord(found[0])};", one_line(text))
