"""A group whose larger commands are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyCommands(click.Group):
    """A group that knows where some of its commands live.

    Args:
        places: For each command ``module:attribute``; imported when the command runs, or when the
            group's help page needs its first sentence.
        options: As for ``click.Group``.
    """

    def __init__(self, *args: Any, places: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = dict(places)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted as click sorts them."""
        return sorted([*super().list_commands(ctx), *self._places])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now if need be; None when there is no such command."""
        place = self._places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command
