"""``agentkit``: the commands, loaded one by one when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from agentkit.errors import AgentKitError, UsageError

EXIT_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended: 128 plus the number of SIGINT."""

COMMANDS: Mapping[str, str] = {
    "demo": "agentkit.cli.demo:demo",
    "run": "agentkit.cli.run:run",
    "chat": "agentkit.cli.chat:chat",
    "tools": "agentkit.cli.tools:tools",
    "search": "agentkit.cli.search:search",
    "episodes": "agentkit.cli.episodes:episodes",
    "models": "agentkit.cli.models:models",
    "bench": "agentkit.cli.bench:bench",
    "version": "agentkit.cli.version:version",
}
"""Command name to the place of its implementation, in the order of the help page."""


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
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

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
