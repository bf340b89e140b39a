"""Groups of commands: loaded one by one, unknown names answered, errors as exit statuses."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from agentkit.errors import (
    AgentKitError,
    DatasetError,
    DuplicateToolError,
    UnknownSchemeError,
    UsageError,
)
from agentkit.evaluation.results.texts import visible

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "agentkit.commands"
"""A plugin registers a click command here, under the name of the command."""

FIRST_PARTY = {"bench": "agentkit-bench", "studio": "agentkit-studio"}
"""Plugins of ours by command, for the pip line where one is absent."""

EXIT_INTERRUPTED = 130
"""Exit status of a program ended by Ctrl-C: 128 plus the number of SIGINT."""

EXIT_RULE = (
    "Data goes to stdout, messages to stderr. Exit status: 0 success, 1 failure or findings, "
    "2 misuse, such as a missing file, store or name, 130 interrupted."
)
"""The rule for all commands, as ``agentkit --help`` tells it."""


class Failure(click.ClickException):
    """An error of ours as its sentence on stderr, or as the list that it is; exit status 1."""

    def format_message(self) -> str:
        """The message, which may quote a name or a text that would steer the terminal."""
        return visible(self.message)


class Misuse(Failure):
    """A command that could not have worked as it was given; exit status 2."""

    exit_code = 2


class CommandGroup(click.Group):
    """A group whose larger commands are imported when they are asked for.

    An unknown name is answered with the nearest one.

    Args:
        places: For each of these commands ``module:attribute``; imported when the command runs,
            or when the group's help page needs its first sentence.
        options: As for ``click.Group``.
    """

    def __init__(self, *args: Any, places: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = dict(places or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted as click sorts them."""
        return sorted([*super().list_commands(ctx), *self._places])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now if need be; None when there is no such command."""
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._places[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve like click, with the nearest names for an unknown command."""
        name = args[0]
        is_word = not name.startswith("-")
        if is_word and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            near = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if name in FIRST_PARTY:
                hint = f" It comes with a plugin. Run: pip install {FIRST_PARTY[name]}"
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


class ListsWhenAlone(CommandGroup):
    """A group that takes the options of its ``list`` when no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, those of ``list`` where they begin with no command."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


class LazyGroup(CommandGroup):
    """The outermost group, whose commands are all imported when they are first needed.

    Commands of plugins are found by their entry points; none takes the place of one of ours. It is
    also the boundary at which errors become exit statuses: 2 for misuse, 1 for anything else that
    went wrong, 130 for Ctrl-C.

    Args:
        commands: Command name to the place of its implementation, ``module:attribute``, and what
            the help page says about it, so that the page itself imports no command.
        options: As for ``click.Group``.
    """

    def __init__(self, *args: Any, commands: Mapping[str, tuple[str, str]], **options: Any) -> None:
        places = {name: place for name, (place, _) in commands.items()}
        super().__init__(*args, places=places, **options)
        self._summaries = {name: words for name, (_, words) in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help page."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, ours or a plugin's, imported now; None when there is no such command."""
        if cmd_name in self._summaries:
            return super().get_command(ctx, cmd_name)
        return plugin_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands; those of plugins with what their distributions say, unimported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
        plugins = [one for one in _plugins() if one.name not in self._summaries]
        others = sorted({one.name: _summary(one) for one in plugins}.items())
        if others:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(others)

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
        except AgentKitError as error:
            kind = Misuse if _is_misuse(error) else Failure
            lines = (line.rstrip() for line in str(error).splitlines() if line.strip())
            raise kind("\n".join(lines)) from error  # lists stay lists
        except FileNotFoundError as error:
            raise Misuse(f"{error.filename}: no such file or folder") from error
        except OSError as error:
            raise Failure(f"{type(error).__name__}: {error}") from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted; completed work is kept.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except Exception as error:
            raise Failure(
                f"unexpected {type(error).__name__}: {' '.join(str(error).split())} "
                f"(run '{self.name} --debug ...' for the trace, and please report it)"
            ) from error


def _summary(plugin: EntryPoint) -> str:
    """Describe a plugin's distribution; without one, where the plugin comes from."""
    if plugin.dist is None or "Summary" not in plugin.dist.metadata:
        return plugin.value
    return plugin.dist.metadata["Summary"]


def plugin_command(name: str) -> click.Command | None:
    """A plugin's command, imported now; None where no plugin brings it."""
    plugin = next((one for one in _plugins() if one.name == name), None)
    command: click.Command | None = None if plugin is None else plugin.load()
    return command


def _plugins() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _is_misuse(error: AgentKitError) -> bool:
    """Whether a command's argument is wrong or missing: a file, a store, a name."""
    is_absent = isinstance(error.__cause__, FileNotFoundError | IsADirectoryError)
    return is_absent or isinstance(
        error, UsageError | LookupError | UnknownSchemeError | DatasetError | DuplicateToolError
    )
