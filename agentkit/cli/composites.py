"""What ``agentkit tools show`` adds for a composite: what it is made of, and its program."""

from __future__ import annotations

from collections.abc import Iterator

import click

from agentkit.cli.graph import flat_size_or_none
from agentkit.errors import CompositeError
from agentkit.evolution.proposers.composites import source_of
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults
from agentkit.tools.definition import ToolDefinition


def render_composite(library: Library, definition: ToolDefinition) -> None:
    """Print the children, the place in the DAG and the program of a composite."""
    for title, value in _facts(library, definition):
        click.echo(f"{title:<9}{value}")
    click.echo()
    try:
        click.echo(source_of(definition), nl=False)
    except CompositeError as error:
        click.echo(f"The body is no program: {error}")


def _facts(library: Library, definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    name, dag = definition.name, library.dag
    if name in dag.depths:
        yield "depth", str(dag.depths[name])
    else:
        yield "depth", f"unknown: {dag.why_unknown(name)}"
    flat = flat_size_or_none(library, name)
    if flat is not None:
        saved = f"{rounded(flat - 1)} {'call' if flat == 2 else 'calls'}"
        stands_for = f"{rounded(flat)} primitive {'call' if flat == 1 else 'calls'}"
        yield "saves", f"{saved} (one call of it stands for {stands_for})"
    faults = {fault.child: fault for fault in pin_faults(library, [name])}
    pins = {pin.name: pin.digest for pin in definition.signature.children}
    for child in dict.fromkeys((*dag.children[name], *pins)):
        digest = pins.get(child, "not pinned")[:12]
        wrong = f"  ! {faults[child].code}" if child in faults else ""
        yield "calls", f"{child} {digest}{wrong}"
    above = dag.parents[name]
    if above:
        yield "used by", ", ".join(above)
