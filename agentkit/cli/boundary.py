"""The outermost group of a program: commands loaded one by one, errors as exit statuses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from agentkit.errors import AgentKitError, UsageError

EXIT_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended: 128 plus the number of SIGINT."""


class Failure(click.ClickException):
    """An error of ours as its sentence on stderr, or as the list that it is; exit status 1."""


class Misuse(click.ClickException):
    """A command that could not have worked as it was given; exit status 2."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are first needed.

    It is also the boundary at which errors become exit statuses: 2 for misuse, 1 for anything
    else that went wrong, 130 for Ctrl-C.

    Args:
        commands: Command name to the place of its implementation, ``module:attribute``, and what
            the help page says about it, so that the page itself imports no command.
        options: As for ``click.Group``.
    """

    def __init__(self, *args: Any, commands: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help page."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such command."""
        if cmd_name not in self._places:
            return None
        module, _, attribute = self._places[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands on the help page."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in self._places.items()])

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
            raise Misuse(_lines(error)) from error
        except AgentKitError as error:
            raise Failure(_lines(error)) from error
        except OSError as error:
            raise Failure(f"{type(error).__name__}: {error}") from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted; what was complete until now is kept.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except Exception as error:
            raise Failure(
                f"unexpected {type(error).__name__}: {_line(error)} "
                f"(run '{self.name} --debug ...' for the trace, and please report it)"
            ) from error


def _lines(error: AgentKitError) -> str:
    """What an error of ours says: lists, such as two configurations beside each other, stay so."""
    return "\n".join(line.rstrip() for line in str(error).splitlines() if line.strip())


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
