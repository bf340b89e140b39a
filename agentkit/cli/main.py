"""``agentkit``: the commands, loaded one by one when they are asked for."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import import_module

import click

from agentkit._version import __version__
from agentkit.cli.boundary import EXIT_RULE, LazyGroup

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("agentkit.cli.project:init", "Create a project with a working sample."),
    "demo": ("agentkit.cli.demo:demo", "See tools repair their own definitions."),
    "run": ("agentkit.cli.run:run", "Ask an agent a question, or chat with it."),
    "serve": ("agentkit.cli.serve:serve", "Serve an agent over HTTP, or a library over MCP."),
    "eval": (
        "agentkit.cli.evaluate:evaluation",
        "Measure an agent on a benchmark or on your own tasks.",
    ),
    "evolve": (
        "agentkit.cli.evolve:evolution_round",
        "Learn from failures, and promote what helps.",
    ),
    "review": ("agentkit.cli.review:review", "Decide on proposed changes."),
    "rollback": ("agentkit.cli.review:rollback", "Undo a change, or pin a version."),
    "log": ("agentkit.cli.audit:log", "Show and verify the change log."),
    "tools": ("agentkit.cli.tools:tools", "List, show, add and examine tools."),
    "search": ("agentkit.cli.tools:search", "Rank the library's tools for a query."),
    "episodes": ("agentkit.cli.episodes:episodes", "List, show, export and prune recorded runs."),
    "export": (
        "agentkit.cli.transfer:export",
        "Export the library as an artifact or for a provider.",
    ),
    "import": ("agentkit.cli.transfer:import_file", "Import an artifact, or episodes."),
    "store": ("agentkit.cli.transfer:store", "Copy a store with its history."),
    "models": ("agentkit.cli.models:models", "List and install local models, and show prices."),
    "check": ("agentkit.cli.audit:check", "Find problems, and say how to fix them."),
}
"""Command name to the place of its implementation and what the help page says about it.

The words stand here so that ``agentkit --help`` imports no command.
"""


@click.group(
    "agentkit",
    cls=LazyGroup,
    commands=COMMANDS,
    epilog=EXIT_RULE,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    __version__,
    "-V",
    "--version",
    message=f"agentkit %(version)s, Python {platform.python_version()}",
    help="Print the versions of agentkit and Python.",
)
@click.option("--debug", is_flag=True, help="Show the Python trace of an error.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:  # noqa: ARG001 - LazyGroup reads it
    """Agents whose tool definitions are living, versioned data.

    Start with 'agentkit demo': a small local model fails, its tools learn from the failures, and
    the same questions succeed. 'agentkit init' creates a project, whose agentkit.toml sets the
    defaults of options. 'agentkit COMMAND --help' explains a command with examples.
    """
    if context.invoked_subcommand is not None:
        import_module("agentkit.cli.project").give_defaults(context, COMMANDS)


if __name__ == "__main__":
    main(prog_name="agentkit")
