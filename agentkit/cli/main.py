"""``agentkit``: the commands, loaded one by one when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping

import click

from agentkit.cli.boundary import LazyGroup

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("agentkit.cli.demo:demo", "See tools repair their own definitions."),
    "run": ("agentkit.cli.run:run", "Ask an agent a question and print its answer."),
    "chat": ("agentkit.cli.chat:chat", "Talk with an agent, turn by turn."),
    "serve": ("agentkit.cli.serve:serve", "Serve an agent over HTTP, or a library over MCP."),
    "tools": ("agentkit.cli.tools:tools", "Look at the tool library, and change it."),
    "search": ("agentkit.cli.search:search", "Rank the library's tools for a query."),
    "evolve": ("agentkit.cli.evolve:evolution_round", "Repair definitions from what went wrong."),
    "review": ("agentkit.cli.review:review", "Decide on suggested changes of tools."),
    "edits": ("agentkit.cli.edits:edits", "Propose what people edited in files of tools."),
    "rollback": ("agentkit.cli.rollback:rollback", "Take a change back, or hold a version."),
    "episodes": ("agentkit.cli.episodes:episodes", "Look at what happened in each run."),
    "log": ("agentkit.cli.log:log", "Show and verify who changed the library."),
    "store": ("agentkit.cli.store:store", "Copy, compare, check and compact stores."),
    "export": ("agentkit.cli.export:export", "Write the library for others, or into an artifact."),
    "import": (
        "agentkit.cli.import_artifact:import_artifact",
        "Bring an artifact into the library.",
    ),
    "diff": ("agentkit.cli.diff:diff", "See what changed between two libraries."),
    "report": ("agentkit.cli.report:report", "See what became of a library, such as its words."),
    "eval": ("agentkit.cli.evaluate:evaluation", "Measure how good an agent is on a benchmark."),
    "models": ("agentkit.cli.models:models", "Install, list and remove weights of local models."),
    "bench": ("agentkit.cli.bench:bench", "Measure how well tools are found, and what runs cost."),
    "version": ("agentkit.cli.version:version", "Print the versions of agentkit and Python."),
}
"""Command name to the place of its implementation and what the help page says about it.

The words stand here so that ``agentkit --help`` imports no command.
"""


@click.group(
    "agentkit",
    cls=LazyGroup,
    commands=COMMANDS,
    epilog="Data goes to stdout, messages go to stderr. Exit status: 0 done, 1 failed, 2 misuse, "
    "130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show the Python trace of an error.")
def main(debug: bool) -> None:
    """Agents whose tool definitions are living, versioned data.

    Start with 'agentkit demo': a small local model fails, its tools learn from that, and it is
    right. 'agentkit COMMAND --help' explains each command with examples.
    """
