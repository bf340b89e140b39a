"""Help pages on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from agentkit.cli.main import main

WIDTH = 80


def groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names that lead to each group of commands, the outermost first."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


@pytest.mark.parametrize("path", list(groups(main)), ids=lambda path: " ".join(path) or "agentkit")
def test_no_summary_in_a_list_of_commands_is_cut_off(path) -> None:
    """A reader sees in one line what each command is for, to its end."""
    page = CliRunner().invoke(main, [*path, "--help"], terminal_width=WIDTH).output
    listed = page.partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()
    assert listed
    assert [line for line in listed if line.endswith("...") or len(line) > WIDTH] == []
