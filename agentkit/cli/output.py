"""Output of commands: data on stdout, messages and progress on stderr.

Foreign text is made visible here, so that it cannot steer a terminal.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from agentkit.evaluation.results.texts import visible
from agentkit.tools.patterns import escaped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ADDED, REMOVED, WRONG, DIM, HEADING = "green", "red", "bold red", "dim", "bold cyan"
"""Styles of lines."""

PIPED_WIDTH = 120
"""Columns of a table that does not go to a terminal, unless ``COLUMNS`` says otherwise."""

_GAP = 2
_NARROWEST = 8
_WHERE_LINES_ARE_LONG = 40
_SAID = 10
_SECONDS_BETWEEN_LINES = 15.0
_SECONDS_ON_TERMINAL = 0.2


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """The result of a command: for programs, for people, and whether it failed.

    Attributes:
        record: What ``--json`` prints.
        view: Prints it for people.
        failed: Whether the exit status is 1.
    """

    record: Any
    view: Callable[[], object]
    failed: bool = False

    def show(self, *, as_json: bool) -> None:
        """Print it in one of both ways.

        Raises:
            Exit: With status 1, where it failed.
        """
        if as_json:
            print_json(self.record)
        else:
            self.view()
        if self.failed:
            raise click.exceptions.Exit(1)


def right(title: str) -> Column:
    """A column of numbers."""
    return Column(title=title, align="right")


def fold(title: str) -> Column:
    """A column whose long values take several lines."""
    return Column(title=title, fit="fold")


def cut(title: str) -> Column:
    """A column whose long values are cut on a terminal."""
    return Column(title=title, fit="cut")


def listing(
    records: Sequence[Any],
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[object]],
    *,
    note: str = "",
    nothing: str = "",
) -> Output:
    """The output of a command that lists things: their records, or a table of them.

    Args:
        records: What ``--json`` prints.
        columns: As for ``print_table``.
        rows: A row for each record.
        note: Said after the table.
        nothing: Said in place of an empty table.
    """

    def view() -> None:
        is_empty = bool(nothing) and not records
        if not is_empty:
            print_table(columns, rows)
        if words := nothing if is_empty else note:
            say(words)

    return Output(record=records, view=view)


def say(message: str) -> None:
    """A message for people, on stderr."""
    click.echo(visible(message), err=True)


def say_some(messages: Iterable[str], *, rest: str = "") -> None:
    """The first ten of many messages on stderr, how many more there are, and where the rest is.

    Each is a line, whatever names it holds.
    """
    listed = list(messages)
    for message in listed[:_SAID]:
        say(" ".join(message.splitlines()))
    if len(listed) > _SAID:
        say(f"... and {len(listed) - _SAID:,} more of these{rest}")


def print_line(text: str | Text, *, style: str = "", indent: int = 0) -> None:
    """A text on stdout, line by line: wrapped and coloured on a terminal, whole in a pipe."""
    from rich.text import Text

    console = stdout()
    styled = Text(visible(text), style=style) if isinstance(text, str) else text
    for line in styled.split("\n", allow_blank=True) or [Text()]:
        width = max(console.width - indent, 20)
        for row in line.wrap(console, width) if console.is_terminal else [line]:
            row.rstrip()
            console.print(Text(" " * indent if row else "").append_text(row), soft_wrap=True)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values on stdout, a line each; further lines of a value stand below it."""
    rows = list(facts)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        lines = visible(str(value)).replace("\n", "\n" + " " * width)
        click.echo(f"{name:<{width}}{lines}".rstrip())


def json_text(value: object) -> str:
    """A value as JSON on one line, within what people read."""
    return json.dumps(value, ensure_ascii=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(escaped(json.dumps(value, indent=2, ensure_ascii=False)))


def print_json_line(value: Any) -> None:
    """One line of JSON lines on stdout."""
    click.echo(escaped(json_text(value)))


def print_table(columns: Sequence[Column | str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout that fits the terminal, unless what must not be broken takes more.

    Args:
        columns: The columns; a title alone is a column that keeps its values whole.
        rows: Cells are plain text, never markup, and what a terminal would obey is made visible.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    shown = [Column(title=one) if isinstance(one, str) else one for one in columns]
    cells = [
        [
            "" if cell is None else _in_cell(cell, column)
            for cell, column in zip(row, shown, strict=True)
        ]
        for row in rows
    ]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    has_long_lines = not console.is_terminal and any(one.fit == "cut" for one in shown)
    least, narrow = 0, _WHERE_LINES_ARE_LONG if has_long_lines else _NARROWEST
    for at, column in enumerate(shown):
        is_whole = column.fit == "keep" or (column.fit == "cut" and not console.is_terminal)
        widest = max(map(cell_len, (column.title, *(row[at] for row in cells))))
        least += (widest if is_whole else min(widest, narrow)) + _GAP
        table.add_column(column.title, justify=column.align, no_wrap=is_whole, overflow="fold")
    # A line that the terminal breaks can still be read; a number broken over lines cannot.
    console.width = max(console.width, least - _GAP)
    for row in cells:
        table.add_row(
            *(
                Text(cell, no_wrap=True, overflow="ellipsis") if column.fit == "cut" else cell
                for cell, column in zip(row, shown, strict=True)
            )
        )
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _in_cell(cell: object, column: Column) -> str:
    """What is shown of a value; only where long ones take several lines may it have breaks."""
    text = visible(str(cell))
    return text if column.fit == "fold" else " ".join(text.splitlines())


def stdout() -> Console:
    """The console for data."""
    from rich.console import Console

    piped = not sys.stdout.isatty()
    width = PIPED_WIDTH if piped and "COLUMNS" not in os.environ else None
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def is_interactive() -> bool:
    """Whether somebody is there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def one_line(text: str) -> str:
    """``text`` with its line breaks and runs of blanks made single blanks."""
    return " ".join(text.split())


class LineProgress:
    """Progress on stderr: a line at the beginning, one every so often, one at the end.

    On a terminal each line replaces the one before. Needs nothing but stderr, so it can be pickled
    and used by another process.

    Args:
        title: What is being done.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_replaced = sys.stderr.isatty()
        self._started = self._printed_at = time.monotonic()
        self._print(f"{title} ...")

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """Take note that ``done`` of ``total`` is done; ``note`` says what the newest part is."""
        now, is_last = time.monotonic(), done >= total
        pause = _SECONDS_ON_TERMINAL if self._is_replaced else _SECONDS_BETWEEN_LINES
        if not is_last and now - self._printed_at < pause:
            return
        self._printed_at = now
        share, spent = 1 if is_last else done / total, now - self._started
        tail = f", {note}" if note else ""
        self._print(f"{self._title}: {share:4.0%} after {spent:.0f} s{tail}", is_last=is_last)

    def _print(self, line: str, *, is_last: bool = False) -> None:
        if self._is_replaced:  # the next line takes its place
            click.echo(f"\x1b[2K{visible(line)}\r", nl=is_last, err=True)
        else:
            say(line)
