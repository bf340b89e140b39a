"""``agentkit``: the commands, loaded one by one when they are asked for."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import import_module

import click

from agentkit._version import __version__
from agentkit.cli.boundary import EXIT_RULE, LazyGroup

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("agentkit.cli.project:init", "Begin a project in a folder, with a sample that runs."),
    "demo": ("agentkit.cli.demo.command:demo", "See tools repair their own definitions."),
    "run": ("agentkit.cli.run:run", "Ask an agent a question and print its answer."),
    "chat": ("agentkit.cli.run:chat", "Talk with an agent, turn by turn."),
    "serve": ("agentkit.cli.serve:serve", "Serve an agent over HTTP, or a library over MCP."),
    "eval": ("agentkit.cli.evaluate:evaluation", "Measure how good an agent is on a benchmark."),
    "evolve": ("agentkit.cli.evolve:evolution_round", "Repair definitions from what went wrong."),
    "review": ("agentkit.cli.review:review", "Decide on suggested changes of tools."),
    "rollback": ("agentkit.cli.rollback:rollback", "Take a change back, or hold a version."),
    "log": ("agentkit.cli.log:log", "Show and verify who changed the library."),
    "tools": ("agentkit.cli.tools:tools", "Look at the tool library, and change it."),
    "search": ("agentkit.cli.search:search", "Rank the library's tools for a query."),
    "episodes": ("agentkit.cli.episodes:episodes", "Look at what happened in each run."),
    "export": (
        "agentkit.cli.transfer:export",
        "Write the library for others, or an artifact.",
    ),
    "import": ("agentkit.cli.transfer:import_file", "Bring in an artifact, or episodes."),
    "store": ("agentkit.cli.transfer:store", "Copy stores, and compare them."),
    "models": ("agentkit.cli.models:models", "List and install the weights of local models."),
    "check": ("agentkit.cli.check:check", "Report what is wrong, and what to do about it."),
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

    Start with 'agentkit demo': a small local model fails, its tools learn from that, and it is
    right. 'agentkit init' begins a project of your own, where options have their defaults in
    agentkit.toml. 'agentkit COMMAND --help' explains each command with examples.
    """
    if context.invoked_subcommand is not None:
        import_module("agentkit.cli.project").give_defaults(context, COMMANDS)


if __name__ == "__main__":
    main(prog_name="agentkit")
