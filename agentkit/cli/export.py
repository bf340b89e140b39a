"""``agentkit export``: the library as an artifact, or in the format of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.sources import read_source
from agentkit.errors import UsageError
from agentkit.interop import export as exporting
from agentkit.interop.export import formats
from agentkit.interop.export.formats import Rendering
from agentkit.library import signing

_FORMATS = ("artifact", *formats.FORMATS)


@click.command(
    epilog="""\b
Examples:
  agentkit export -o tools.json                  everything, with its history
  agentkit export -o tools.json --sign           signed with AGENTKIT_AUDIT_KEY
  agentkit export --format openai -o openai.json
  agentkit export order_total --format mcp       a tool, with what it calls
  agentkit export --from tools.json --format anthropic"""
)
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(_FORMATS),
    metavar="FORMAT",
    default="artifact",
    show_default=True,
    help=f"What to write: {', '.join(_FORMATS)}. An artifact holds everything, and 'agentkit "
    "import' reads it.",
)
@click.option("-o", "--output", metavar="FILE", help="Where to write; .gz is compressed.")
@click.option("--at", type=click.IntRange(min=1), metavar="VERSION", help="An earlier version.")
@click.option(
    "--history/--no-history",
    default=True,
    help="Whether earlier revisions and the events go along in an artifact.",
)
@click.option(
    "--sign",
    is_flag=True,
    help="Sign the artifact with the key in AGENTKIT_AUDIT_KEY or AGENTKIT_AUDIT_KEY_FILE.",
)
@click.option("--from", "source", metavar="FILE", help="An artifact to read instead of the store.")
@store_option
@json_option
def export(
    names: Sequence[str],
    *,
    format_name: str,
    output: str | None,
    at: int | None,
    history: bool,
    sign: bool,
    source: str | None,
    store_url: str,
    as_json: bool,
) -> None:
    """Write the library into a file: all of it, or the tools TOOL with what they call.

    An artifact holds definitions, history, evidence and digests. The other formats are for
    programs that know only their own; what they can not say is told on stderr, and in full by
    --json, which prints a record of what was written instead of the text itself.
    """
    is_artifact = format_name == "artifact"
    if sign and not is_artifact:
        raise UsageError("only an artifact can be signed: leave --format away")
    with read_source(source or store_url, version=at) as store:
        artifact = exporting.artifact_of(
            store, version=at, history=history and is_artifact, only=names
        )
    if is_artifact:
        _write_artifact(artifact, output, sign=sign, as_json=as_json)
        return
    rendering = formats.render(artifact.library, format_name)
    text = json.dumps(rendering.value, ensure_ascii=False, indent=2) + "\n"
    if output is not None:
        Path(output).write_text(text, encoding="utf-8")
    if as_json:
        losses = [loss.to_json() for loss in rendering.losses]
        further = {"names": dict(rendering.names), "losses": losses}
        print_json(_record(artifact, format_name, output, rendering.value) | further)
        return
    if output is None:
        click.echo(text, nl=False)
    _say_losses(rendering, format_name)


def _record(
    artifact: exporting.Artifact, format_name: str, output: str | None, content: object
) -> dict[str, object]:
    """What was written, and where; the content itself where there is no file."""
    library = artifact.library
    told = {"format": format_name, "tools": len(library), "library_version": library.version}
    return told | ({"content": content} if output is None else {"file": output})


def _write_artifact(
    artifact: exporting.Artifact, output: str | None, *, sign: bool, as_json: bool
) -> None:
    if sign:
        signer = signing.environment_signer()
        if signer is None:
            raise UsageError(
                f"--sign needs a key in {signing.KEY_VARIABLE} or {signing.KEY_FILE_VARIABLE}"
            )
        artifact = exporting.signed(artifact, signer)
    if output is None:
        click.echo(exporting.artifact_text(artifact), nl=False)  # which is JSON
        return
    digest = exporting.write_artifact(artifact, output)
    if as_json:
        print_json(_record(artifact, "artifact", output, None) | {"digest": digest})
        return
    library = artifact.library
    say(f"{plural(len(library), 'tool')} of library version {library.version} in {output}")
    click.echo(digest)


def _say_losses(rendering: Rendering, format_name: str) -> None:
    counts = rendering.counts()
    if not counts:
        say(f"{format_name} says all of it")
        return
    told = ", ".join(f"{part} ({count:,})" for part, count in counts.items())
    say(f"{format_name} can not express all of it: {told}; --json tells where")
