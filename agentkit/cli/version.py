"""``agentkit version``."""

from __future__ import annotations

import json
import platform

import click

from agentkit._version import __version__
from agentkit.cli.options import json_option


@click.command(epilog="Example:  agentkit version --json")
@json_option
def version(as_json: bool) -> None:
    """Print the versions of agentkit and Python."""
    python = platform.python_version()
    if as_json:
        click.echo(json.dumps({"agentkit": __version__, "python": python}))
    else:
        click.echo(f"agentkit {__version__}, Python {python}")
