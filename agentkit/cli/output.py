"""What commands print: data on stdout, messages on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import click

from agentkit.evaluation.results.texts import visible

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_NARROWEST = 8
_SAID = 10

PIPED_WIDTH = 120
"""Columns of a table that does not go to a terminal, unless ``COLUMNS`` says otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        title: Its heading.
        align: ``right`` for numbers.
        fit: ``keep`` never breaks a value; ``fold`` breaks a long one over lines; ``cut`` shows
            what fits on the line of a terminal, for text that another command shows in full;
            nothing is cut in a file or a pipe.
    """

    title: str
    align: Literal["left", "right"] = "left"
    fit: Literal["keep", "fold", "cut"] = "keep"


def say(message: str) -> None:
    """A message for people, on stderr."""
    click.echo(message, err=True)


def say_some(messages: Iterable[str], *, rest: str = "") -> None:
    """The first ten of many messages on stderr, how many more there are, and where the rest is."""
    told = list(messages)
    for message in told[:_SAID]:
        say(message)
    if len(told) > _SAID:
        say(f"... and {len(told) - _SAID:,} more of these{rest}")


def print_text(text: str, *, indent: str = "") -> None:
    """A sentence on stdout, on as many lines of the terminal as it takes."""
    lines = wrap(
        text,
        width=stdout().width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,  # names of packages and options stay whole
    )
    click.echo("\n".join(lines))


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """One line of JSON lines on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout that fits the terminal, unless what must not be broken takes more.

    Cells are plain text, never markup, and what a terminal would obey is made visible.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    widths = _widths(columns, cells, console.width)
    if not console.is_terminal:
        widths = [
            max(width, _longest(cells, at)) if column.fit == "cut" else width
            for at, (column, width) in enumerate(zip(columns, widths, strict=True))
        ]
    # A line that the terminal breaks can still be read; a number broken over lines can not.
    console.width = max(console.width, sum(widths) + _GAP * (len(widths) - 1))
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title,
            justify=column.align,
            width=width,
            no_wrap=column.fit == "cut",
            overflow="ellipsis" if column.fit == "cut" else "fold",
        )
    for row in cells:
        table.add_row(*map(Text, row))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:  # no blanks at the end of lines in files and pipes
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _longest(rows: Sequence[Sequence[str]], at: int) -> int:
    from rich.cells import cell_len

    return max((cell_len(row[at]) for row in rows), default=0)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """Share out the line: first what is kept, then what is folded, then what is cut.

    Columns to fold leave half of the rest to those that are cut, when there are any. Where not all
    fits, titles are broken between words.
    """
    from rich.cells import cell_len

    def longest(at: int, titles: Iterable[str]) -> int:
        return max(map(cell_len, (*titles, *(row[at] for row in rows))))

    left = available - _GAP * (len(columns) - 1)
    needed = [longest(at, [column.title]) for at, column in enumerate(columns)]
    if sum(needed) > left:
        needed = [longest(at, column.title.split()) for at, column in enumerate(columns)]
    widths = list(needed)
    for fit in ("keep", "fold", "cut"):
        own = [at for at, column in enumerate(columns) if column.fit == fit]
        later = fit == "fold" and any(column.fit == "cut" for column in columns)
        for number, at in enumerate(sorted(own, key=needed.__getitem__)):
            share = max(left // (2 if later else 1) // (len(own) - number), _NARROWEST)
            widths[at] = needed[at] if fit == "keep" else min(needed[at], share)
            left -= widths[at]
    return widths


def stdout() -> Console:
    """The console for data."""
    from rich.console import Console

    piped = not sys.stdout.isatty()
    width = PIPED_WIDTH if piped and "COLUMNS" not in os.environ else None
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """The console for messages and progress."""
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False)


def one_line(text: str) -> str:
    """``text`` with its line breaks and runs of blanks made single blanks."""
    return " ".join(text.split())


def plural(number: int, noun: str) -> str:
    """``3 tools``, ``1 tool``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
