"""``agentkit tools graph``: a picture of what the tools of the library are made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from agentkit.cli.graph_layout import lay_out
from agentkit.cli.graph_model import Picture, picture
from agentkit.cli.graph_png import png
from agentkit.cli.graph_svg import svg
from agentkit.cli.graph_text import as_json as graph_json
from agentkit.cli.graph_text import dot, mermaid, tree
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, say, stdout
from agentkit.cli.stores import opened_to_read
from agentkit.errors import UsageError

_SUFFIXES = {
    ".txt": "text",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".json": "json",
}

_WRITERS: Mapping[str, Callable[[Picture, int], bytes]] = {
    "text": lambda shown, _: _text("\n".join(tree(shown))),
    "mermaid": lambda shown, _: _text("\n".join(mermaid(shown))),
    "dot": lambda shown, _: _text("\n".join(dot(shown))),
    "json": lambda shown, version: _text(
        json.dumps(graph_json(shown, version), indent=2, ensure_ascii=False)
    ),
    "svg": lambda shown, _: svg(lay_out(shown)).encode(),
    "png": lambda shown, _: png(lay_out(shown)),
}
"""Each format as the bytes of a file, from what is shown and the library's version."""


@click.command(
    epilog="""\b
Examples:
  agentkit tools graph
  agentkit tools graph net_total --output net_total.svg
  agentkit tools graph add --up --format text
  agentkit tools graph --format dot | dot -Tpdf > tools.pdf"""
)
@click.argument("name", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_WRITERS)),
    help="What to write.  [default: by the suffix of --output, else text on a terminal, else "
    "mermaid]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write, '-' for stdout.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Steps to go from NAME, or from the composites that no other one calls.  [default: all]",
)
@click.option("--up", is_flag=True, help="Show what is made of NAME, not what NAME is made of.")
@click.option("--at", type=click.IntRange(min=0), metavar="VERSION", help="An earlier version.")
@store_option
@json_option
def graph(
    name: str | None,
    form: str | None,
    output: Path | None,
    depth: int | None,
    *,
    up: bool,
    at: int | None,
    store_url: str,
    as_json: bool,
) -> None:
    """Draw what the tool NAME, or every composite, is made of.

    An arrow runs from a composite to each tool that its program calls. Composites are boxes with
    their depth and the calls that they save, primitives are pills. Red dashes mark a call whose
    pin does not hold (see 'agentkit check') and a tool that is missing. PNG needs Pillow:
    pip install "agentkit-evolve[graph]".
    """
    if up and name is None:
        raise UsageError("--up shows what is made of one tool; give its NAME")
    if as_json and form not in {None, "json"}:
        raise UsageError(f"choose one of --json and --format {form}")
    form = "json" if as_json else form
    with opened_to_read(store_url) as store:
        library = store.load(at)
    shown = picture(library, name, levels=depth, upward=up)
    if not shown.nodes and form != "json":
        say(f"library version {library.version} has no composite yet")
        say("'agentkit tools add --composite FILE' makes one")
        return
    to_stdout = output is None or str(output) == "-"
    chosen = form or _usual(None if to_stdout else output)
    content = _WRITERS[chosen](shown, library.version)
    if to_stdout:
        click.echo(content, nl=False)
    else:
        _write(output, content)
        edges = plural(len(shown.edges), "call")
        say(f"{plural(len(shown.nodes), 'tool')} and {edges} drawn in {output}")


def _usual(output: Path | None) -> str:
    if output is None:
        return "text" if stdout().is_terminal else "mermaid"
    known = _SUFFIXES.get(output.suffix.lower())
    if known is None:
        raise UsageError(
            f"{output}: the suffix says nothing about the format; use one of "
            f"{', '.join(_SUFFIXES)}, or give --format"
        )
    return known


def _write(output: Path | None, content: bytes) -> None:
    if output is None:
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{output}: can not be written ({error.strerror})") from error


def _text(text: str) -> bytes:
    return f"{text}\n".encode()
