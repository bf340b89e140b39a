"""What ``agentkit tools show`` adds for a composite: what it is made of, and its program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from agentkit.cli.graph_model import flat_size_or_none
from agentkit.errors import CompositeError
from agentkit.evolution.proposals.composites.prompt import python_type
from agentkit.library import Library
from agentkit.library.dag import rounded
from agentkit.library.pins import pin_faults
from agentkit.tools.composite.codec import program_from_json
from agentkit.tools.composite.limits import READING_LIMITS
from agentkit.tools.composite.render import render
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


def source_of(definition: ToolDefinition) -> str:
    """The program of a composite as a Python function that composes to the same program.

    Raises:
        CompositeError: The body is no program.
    """
    program = program_from_json(definition.body or {}, limits=READING_LIMITS)
    signature = definition.signature
    types: dict[str, Any] = {
        name: python_type(schema) for name, schema in signature.properties.items()
    }
    returns = "" if signature.result is None else python_type(signature.result)
    return render(program, definition.name, annotations=types, returns=returns)


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
