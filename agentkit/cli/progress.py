"""Progress on stderr: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click

from agentkit.cli.output import say, stderr

_SECONDS_BETWEEN_LINES = 15.0
_SECONDS_ON_TERMINAL = 0.2
_MOMENT_SECONDS = 1.0


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
        yield LineProgress


@contextmanager
def _bars() -> Iterator[Callable[[str], Progress]]:
    from rich.progress import (
        BarColumn,
        Progress as RichProgress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

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


class LineProgress:
    """Progress told line by line: a line at the beginning, one every so often, one at the end.

    On a terminal each line takes the place of the one before. Needs nothing but stderr, so it can
    be pickled and told by another process.

    Args:
        title: What is being done.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_replaced = sys.stderr.isatty()
        self._started = self._told = time.monotonic()
        self._tell(f"{title} ...", is_last=False)

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """``done`` of ``total``, as ``Progress`` has it."""
        now = time.monotonic()
        pause = _SECONDS_ON_TERMINAL if self._is_replaced else _SECONDS_BETWEEN_LINES
        if done < total and now - self._told < pause:
            return
        self._told = now
        spent = now - self._started
        tail = f", {note}" if note else ""
        if done >= total:
            self._tell(f"{self._title}: 100%, done in {spent:.0f} s{tail}", is_last=True)
            return
        left = spent * (total - done) / done if done else 0.0
        share = 100 * done / total
        line = f"{self._title}: {share:3.0f}%, {spent:.0f} s spent, about {left:.0f} s left{tail}"
        self._tell(line, is_last=False)

    def _tell(self, line: str, *, is_last: bool) -> None:
        if self._is_replaced:
            click.echo(f"\r\x1b[2K{line}", nl=is_last, err=True)
        else:
            say(line)


@contextmanager
def slow_progress() -> Iterator[Callable[[str], Callable[[float, float], None]]]:
    """As ``progress``, but a step is silent until it has taken longer than a moment."""
    with progress() as begin:

        def watch(title: str) -> Callable[[float, float], None]:
            return _SlowStep(begin, title)

        yield watch


class _SlowStep:
    def __init__(self, begin: Callable[[str], Progress], title: str) -> None:
        self._begin, self._title = begin, title
        self._shown: Progress | None = None
        self._started = time.monotonic()

    def __call__(self, done: float, total: float) -> None:
        if self._shown is None and time.monotonic() - self._started > _MOMENT_SECONDS:
            self._shown = self._begin(self._title)
        if self._shown is not None:
            self._shown(done, total)
