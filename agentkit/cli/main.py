"""``agentkit``: the commands, loaded one by one when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from agentkit.errors import AgentKitError, UsageError

EXIT_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended: 128 plus the number of SIGINT."""

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("agentkit.cli.demo:demo", "Run the main job: real questions, tools and model."),
    "run": ("agentkit.cli.run:run", "Ask an agent a question and print its answer."),
    "chat": ("agentkit.cli.chat:chat", "Talk with an agent, turn by turn."),
    "serve": ("agentkit.cli.serve:serve", "Serve an agent over HTTP, or a library over MCP."),
    "tools": ("agentkit.cli.tools:tools", "Look at the tool library, and change it."),
    "search": ("agentkit.cli.search:search", "Rank the library's tools for a query."),
    "evolve": ("agentkit.cli.evolve:evolution_round", "Repair definitions from what went wrong."),
    "proposals": ("agentkit.cli.proposals:proposals", "Decide on suggested changes of tools."),
    "edits": ("agentkit.cli.edits:edits", "Propose what people edited in files of tools."),
    "rollback": ("agentkit.cli.proposals:rollback", "Take a promoted change of a tool back."),
    "episodes": ("agentkit.cli.episodes:episodes", "Look at what happened in each run."),
    "audit": ("agentkit.cli.audit:audit", "See who changed the library, and that this is true."),
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

The words stand here too so that ``agentkit --help`` imports no command.
"""


class Failure(click.ClickException):
    """An error of ours as one line on stderr; exit status 1."""


class Misuse(click.ClickException):
    """A command that could not have worked as it was given; exit status 2."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are first needed.

    It is also the boundary at which errors become exit statuses: 2 for misuse, 1 for anything
    else that went wrong, 130 for Ctrl-C.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands on the help page."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and word its failure.

        With ``--debug`` errors pass through with their trace.
        """
        if ctx.params.get("debug"):
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except UsageError as error:
            raise Misuse(_line(error)) from error
        except AgentKitError as error:
            raise Failure(_line(error)) from error
        except OSError as error:
            raise Failure(f"{type(error).__name__}: {error}") from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted; what was complete until now is kept.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except Exception as error:
            raise Failure(
                f"unexpected {type(error).__name__}: {_line(error)} "
                "(run 'agentkit --debug ...' for the trace, and please report it)"
            ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


@click.group(
    cls=LazyGroup,
    epilog="Data goes to stdout, messages go to stderr. Exit status: 0 done, 1 failed, 2 misuse, "
    "130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show the Python trace of an error.")
def main(debug: bool) -> None:
    """Agents whose tool definitions are living, versioned data.

    Start with 'agentkit demo': it runs a small local model on public questions and shows what
    happened. 'agentkit COMMAND --help' explains each command with examples.
    """
