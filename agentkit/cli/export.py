"""``agentkit export``: the library as an artifact, or in the format of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from agentkit import export as exporting
from agentkit.cli.options import store_option
from agentkit.cli.output import plural, say
from agentkit.cli.sources import read_source
from agentkit.errors import UsageError
from agentkit.export.renderers import formats
from agentkit.export.renderers.rendering import Rendering
from agentkit.library import signing

_FORMATS = ("artifact", *formats.FORMATS)


@click.command(
    epilog="""\b
Examples:
  agentkit export -o tools.json                  everything, with its history
  agentkit export -o tools.json --sign           signed with AGENTKIT_AUDIT_KEY
  agentkit export --format openai --strict -o openai.json
  agentkit export order_total --format python    a tool, with what it calls
  agentkit export --from tools.json --format markdown"""
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
@click.option(
    "--strict",
    is_flag=True,
    help="Ask for the provider's strict mode, where a tool can be said in it.",
)
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
@click.option(
    "--report", metavar="FILE", help="Write what the format could not say into FILE, as JSON."
)
@click.option("--from", "source", metavar="FILE", help="An artifact to read instead of the store.")
@store_option
def export(
    names: Sequence[str],
    *,
    format_name: str,
    output: str | None,
    strict: bool,
    at: int | None,
    history: bool,
    sign: bool,
    report: str | None,
    source: str | None,
    store_url: str,
) -> None:
    """Write the library into a file: all of it, or the tools TOOL with what they call.

    An artifact holds definitions, history, evidence and digests. The other formats are for
    programs that know only their own, and the report on stderr tells what they can not say.
    """
    is_artifact = format_name == "artifact"
    _check_options(is_artifact=is_artifact, sign=sign, report=report, strict=strict)
    with read_source(source or store_url, version=at) as store:
        artifact = exporting.artifact_of(
            store, version=at, history=history and is_artifact, only=names
        )
    if is_artifact:
        _write_artifact(artifact, output, sign=sign)
        return
    rendering = formats.render(artifact.library, format_name, strict=strict)
    text = rendering.value
    if not formats.FORMATS[format_name].is_text:
        text = json.dumps(rendering.value, ensure_ascii=False, indent=2) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")
    if report is not None:
        told = {
            "names": dict(rendering.names),
            "losses": [loss.to_json() for loss in rendering.losses],
        }
        Path(report).write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n")
    _say_losses(rendering, format_name, report)


def _check_options(*, is_artifact: bool, sign: bool, report: str | None, strict: bool) -> None:
    if is_artifact and (strict or report is not None):
        raise UsageError("an artifact says everything: --strict and --report are for other formats")
    if sign and not is_artifact:
        raise UsageError("only an artifact can be signed: leave --format away")


def _write_artifact(artifact: exporting.Artifact, output: str | None, *, sign: bool) -> None:
    if sign:
        signer = signing.environment_signer()
        if signer is None:
            raise UsageError(
                f"--sign needs a key in {signing.KEY_VARIABLE} or {signing.KEY_FILE_VARIABLE}"
            )
        artifact = exporting.signed(artifact, signer)
    if output is None:
        click.echo(exporting.artifact_text(artifact), nl=False)
        return
    told = exporting.write_artifact(artifact, output)
    library = artifact.library
    say(f"{plural(len(library), 'tool')} of library version {library.version} in {output}")
    click.echo(told)


def _say_losses(rendering: Rendering, format_name: str, report: str | None) -> None:
    counts = rendering.counts()
    if not counts:
        say(f"{format_name} says all of it")
        return
    told = ", ".join(f"{keyword} ({count:,})" for keyword, count in counts.items())
    where = f"; {report} tells where" if report else "; --report FILE tells where"
    say(f"not said as the library says it: {told}{where}")
