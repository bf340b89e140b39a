"""Writes the generated parts of the reference pages; called by cog, see ``make docs``."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator

import click

import agentkit.errors
from agentkit.cli.main import main
from agentkit.errors import AgentKitError, ToolSignal


def commands(
    command: click.Command = main, path: str = "agentkit"
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups before their members."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from commands(child, f"{path} {name}")


SHARED_BY = 3
"""An option that so many commands have, in the same words, is told once."""


def commands_text() -> str:
    """The options of many commands, and a section for each command: what it does, its own options.

    Examples are what ``--help`` shows beyond that.
    """
    rows = Counter(row for _, command in commands() for row in _option_rows(command))
    shared = sorted(row for row, count in rows.items() if count >= SHARED_BY)
    parts = ["## Options of many commands", "\n".join(shared)]
    for path, command in commands():
        usage = " ".join([path, *command.collect_usage_pieces(click.Context(command))])
        parts += [f"## {path}", inspect.cleandoc(command.help or ""), f"`{usage}`"]
        own = [row for row in _option_rows(command) if row not in shared]
        if own:
            parts.append("\n".join(own))
        named = [_names(row) for row in _option_rows(command) if row in shared]
        if named:
            parts.append(f"And {', '.join(named)}.")
    return "\n\n".join(parts) + "\n"


def _names(row: str) -> str:
    """The name in a row, without what its value is called."""
    return f"`{row.split('`')[1].split(maxsplit=1)[0].rstrip(',')}`"


def _option_rows(command: click.Command) -> list[str]:
    """What ``--help`` says of each option: its names, meaning, default, range and variable."""
    rows = []
    for one in command.params:
        if isinstance(one, click.Option) and not one.hidden:
            names, meaning = one.get_help_record(click.Context(main)) or ("", "")
            rows.append(f"* `{names}`: {' '.join(meaning.split())}")
    return rows


def errors() -> Iterator[tuple[int, type[Exception]]]:
    """Every error and signal with its depth in the tree, parents before children."""
    for root in (AgentKitError, ToolSignal):
        yield from _with_children(root, 0)


def _with_children(kind: type[Exception], depth: int) -> Iterator[tuple[int, type[Exception]]]:
    yield depth, kind
    for child in kind.__subclasses__():
        if child.__module__ == agentkit.errors.__name__:
            yield from _with_children(child, depth + 1)


def errors_text() -> str:
    """The tree of errors, each with its first sentence."""
    lines = []
    for depth, kind in errors():
        summary = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"{'  ' * depth}* `{kind.__name__}`: {summary}\n")
    return "".join(lines)
