"""Writes the generated parts of the reference pages; called by cog, see ``make docs``."""

from __future__ import annotations

import inspect
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


def commands_text() -> str:
    """A section for each command: what it does, how it is called, its options."""
    parts = []
    for path, command in commands():
        usage = " ".join([path, *command.collect_usage_pieces(click.Context(command))])
        parts += [f"## {path}", inspect.cleandoc(command.help or ""), f"```text\n{usage}\n```"]
        rows = [row for row in map(_option_row, command.params) if row]
        if rows:
            parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
        if command.epilog:
            parts.append(f"```text\n{inspect.cleandoc(command.epilog.replace(chr(8), ''))}\n```")
    return "\n\n".join(parts) + "\n"


def _option_row(parameter: click.Parameter) -> str:
    """What ``--help`` says of an option: its names, meaning, default, range and variable."""
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return ""
    names, meaning = parameter.get_help_record(click.Context(main)) or ("", "")
    cells = (f"`{names}`", " ".join(meaning.split()))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


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
