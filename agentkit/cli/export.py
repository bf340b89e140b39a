"""``agentkit export``: the library as an artifact, or in the format of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from agentkit.cli.options import command, common_options, flag, number, option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import read_source
from agentkit.errors import UsageError
from agentkit.interop import export as exporting
from agentkit.interop.export import formats
from agentkit.library import signing

_FORMATS = ("artifact", *formats.FORMATS)


@command()
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@option(
    "--format",
    "format_name",
    type=click.Choice(_FORMATS),
    metavar="FORMAT",
    default="artifact",
    help=f"What to write: {', '.join(_FORMATS)}. An artifact holds everything, and 'agentkit "
    "import' reads it.",
)
@option("-o", "--output", metavar="FILE", help="Where to write; .gz is compressed.")
@number("--at", metavar="VERSION", help="An earlier version.")
@flag("--no-history", help="Leave earlier revisions and the events out of an artifact.")
@flag("--sign", help="Sign the artifact with the key in AGENTKIT_AUDIT_KEY(_FILE).")
@option("--from", "source", metavar="FILE", help="An artifact to read instead of the store.")
@common_options
def export(
    names: Sequence[str],
    *,
    format_name: str,
    output: str | None,
    at: int | None,
    no_history: bool,
    sign: bool,
    source: str | None,
    store_url: str,
    as_json: bool,
) -> None:
    """Write the library into a file: all of it, or the tools TOOL with what they call.

    An artifact holds definitions, history, evidence and digests. The other formats are for
    programs that know only their own; what they can not express is listed on stderr, and in full
    by --json, which prints a record of what was written instead of the text itself.

    Examples:
      agentkit export -o tools.json                  everything, with its history
      agentkit export -o tools.json --sign           signed with AGENTKIT_AUDIT_KEY
      agentkit export --format openai -o openai.json
      agentkit export order_total --format mcp       a tool, with what it calls
      agentkit export --from tools.json --format anthropic
    """
    is_artifact = format_name == "artifact"
    if sign and not is_artifact:
        raise UsageError("only an artifact can be signed: leave --format away")
    history = is_artifact and not no_history
    with read_source(source or store_url, version=at) as store:
        artifact = exporting.artifact_of(store, version=at, history=history, only=names)
    library = artifact.library
    record = {"format": format_name, "tools": len(library), "library_version": library.version}
    record |= {} if output is None else {"file": output}
    if is_artifact:
        artifact = _signed(artifact) if sign else artifact
        if output is None:
            click.echo(exporting.artifact_text(artifact), nl=False)  # which is JSON
            return
        digest = exporting.write_artifact(artifact, output)
        if as_json:
            print_json(record | {"digest": digest})
            return
        say(f"{plural(len(library), 'tool')} of library version {library.version} in {output}")
        click.echo(digest)
        return
    rendering = formats.render(library, format_name)
    text = json.dumps(rendering.value, ensure_ascii=False, indent=2) + "\n"
    if output is not None:
        Path(output).write_text(text, encoding="utf-8")
    elif not as_json:
        click.echo(text, nl=False)
    if as_json:
        content = {"content": rendering.value} if output is None else {}
        losses = [loss.to_json() for loss in rendering.losses]
        print_json(record | content | {"names": dict(rendering.names), "losses": losses})
        return
    lost = ", ".join(f"{name} ({count:,})" for name, count in rendering.counts().items())
    unsaid = f"can not express all of it: {lost}; --json tells where"
    say(f"{format_name} {unsaid if lost else 'says all of it'}")


def _signed(artifact: exporting.Artifact) -> exporting.Artifact:
    signer = signing.environment_signer()
    if signer is None:
        raise UsageError(
            f"--sign needs a key in {signing.KEY_VARIABLE} or {signing.KEY_FILE_VARIABLE}"
        )
    return exporting.signed(artifact, signer)
