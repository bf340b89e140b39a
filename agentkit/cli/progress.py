"""Progress on stderr: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from agentkit.cli.output import say, stderr

_SECONDS_BETWEEN_LINES = 15.0


class Progress(Protocol):
    """Told how much of a long step is done."""

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """``done`` of ``total``; ``note`` says what the newest part brought."""
        ...


@contextmanager
def progress() -> Iterator[Callable[[str], Progress]]:
    """Show the progress of the steps of one command.

    Yields:
        A function that begins a step: it takes the step's title, and returns what to call
        whenever some of it is done.
    """
    if sys.stderr.isatty():
        with _bars() as begin:
            yield begin
    else:
        yield _Lines


@contextmanager
def _bars() -> Iterator[Callable[[str], Progress]]:
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with RichProgress(*columns, console=stderr()) as shown:

        def begin(title: str) -> Progress:
            task = shown.add_task(title, total=None, note="")

            def update(done: float, total: float, note: str = "") -> None:
                shown.update(task, completed=done, total=total, note=note)

            return update

        yield begin


class _Lines:
    """A line at the beginning, then one every so often, and one at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._started = self._told = time.monotonic()
        say(f"{title} ...")

    def __call__(self, done: float, total: float, note: str = "") -> None:
        now = time.monotonic()
        if done < total and now - self._told < _SECONDS_BETWEEN_LINES:
            return
        self._told = now
        spent = now - self._started
        left = spent * (total - done) / done if done else 0.0
        share = 100 * done / total if total else 100
        tail = f" {note}" if note else ""
        say(f"{self._title}: {share:3.0f}%, {spent:.0f} s spent, about {left:.0f} s left{tail}")
