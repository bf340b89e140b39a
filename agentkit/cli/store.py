"""``agentkit store``: a store as a whole: copying, comparing, checking and compacting it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

from agentkit.cli.options import default_store_url, json_option
from agentkit.cli.output import print_json, say
from agentkit.cli.progress import progress
from agentkit.cli.store_view import (
    render_check,
    render_compacted,
    render_comparison,
    render_copied,
)
from agentkit.cli.stores import opened, opened_to_read, opened_untouched
from agentkit.errors import UsageError
from agentkit.library.abilities import Compactable
from agentkit.library.copying.checking import check_store
from agentkit.library.copying.comparing import compare_stores
from agentkit.library.copying.copying import copy_store
from agentkit.library.copying.progress import Told
from agentkit.library.opening import file_of
from agentkit.library.signing import KEY_FILE_VARIABLE, KEY_VARIABLE, key_texts, read_verifier

_MOMENT_SECONDS = 1.0

url_argument = click.argument(
    "url", metavar="[URL]", envvar="AGENTKIT_STORE", default=default_store_url, required=False
)

no_episodes_option = click.option(
    "--no-episodes", is_flag=True, help="Leave episodes out: only definitions and events."
)


@click.group()
def store() -> None:
    """Copy, compare, check and compact stores.

    A store is named by its URL: sqlite:///library.db, library.db, postgres://..., redis://...,
    dir:library, artifact:tools.json, https://... .
    """


@store.command(
    short_help="Copy the store SOURCE into the store TARGET.",
    epilog="""\b
Examples:
  agentkit store copy library.db sqlite:///backup.db
  agentkit store copy library.db postgres://agentkit@db/agentkit
  agentkit store copy artifact:tools.json restored.db --no-episodes""",
)
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@no_episodes_option
@json_option
def copy(source: str, target: str, no_episodes: bool, as_json: bool) -> None:
    """Copy the store SOURCE into the store TARGET, with its whole history, and compare both.

    Versions keep their numbers and times, events their hashes and signatures, episodes their order.
    TARGET is empty, or holds a beginning of the same history; then the rest is copied. So run it
    again after it was interrupted, or now and then to keep a copy up to date. Nothing in TARGET is
    ever changed, and of SOURCE nothing at all.
    """
    _require_two(source, target)
    with opened_untouched(source) as ours, opened(target) as theirs, _told() as begin:
        report = copy_store(ours, theirs, episodes=not no_episodes, progress=begin)
    print_json(report.to_json()) if as_json else render_copied(report, episodes=not no_episodes)
    if report.is_behind:
        say("the source holds more by now; run the command again to copy that too")


@store.command(
    short_help="Tell whether two stores hold the same history.",
    epilog="""\b
Examples:
  agentkit store compare library.db sqlite:///backup.db
  agentkit store compare library.db dir:tools --no-episodes --json""",
)
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="SECOND")
@no_episodes_option
@json_option
def compare(first: str, second: str, no_episodes: bool, as_json: bool) -> None:
    """Tell whether two stores hold the same history; the exit status is 1 when they do not.

    Named is where they part: the first difference in versions, tools, events and episodes. To see
    what differs between two libraries of today, use 'agentkit diff'.
    """
    with opened_untouched(first) as ours, opened_untouched(second) as theirs, _told() as begin:
        found = compare_stores(ours, theirs, episodes=not no_episodes, progress=begin)
    print_json(found.to_json()) if as_json else render_comparison(found, episodes=not no_episodes)
    if not found.is_equal:
        raise click.exceptions.Exit(1)


@store.command(
    short_help="Look for damage in the store URL.",
    epilog=f"""\b
Examples:
  agentkit store check
  agentkit store check sqlite:///backup.db --json

\b
A key for the signatures of events comes from the variable {KEY_VARIABLE},
or from the file that {KEY_FILE_VARIABLE} names.""",
)
@url_argument
@json_option
def check(url: str, as_json: bool) -> None:
    """Look for damage in the store URL; the exit status is 1 when there is some.

    Everything is read: the file itself, every definition with its digest worked out anew, the chain
    of events and what it says of the definitions, the pins of composites, every episode. Nothing is
    written. Without URL it is the store that other commands use.
    """
    texts = key_texts()
    verifier = read_verifier(texts) if texts else None
    with opened_untouched(url) as opened_store, _told() as begin:
        found = check_store(opened_store, verifier=verifier, progress=begin)
    print_json(found.to_json()) if as_json else render_check(found)
    if not found.is_sound:
        raise click.exceptions.Exit(1)


@store.command(
    short_help="Give back room that the store URL does not need.",
    epilog="""\b
Examples:
  agentkit store compact
  agentkit store compact sqlite:///backup.db""",
)
@url_argument
@json_option
def compact(url: str, as_json: bool) -> None:
    """Give back room that the store URL does not need; nothing that it holds is lost.

    Room is left behind by deleted episodes and by what was worked out for older libraries. A SQLite
    file is written anew: that takes as much free disk for a while, once more for temporary files,
    and programs that write to it wait.
    """
    with opened_to_read(url) as held:
        done = held.compact() if isinstance(held, Compactable) else None
    if as_json:
        print_json(None if done is None else asdict(done))
    else:
        render_compacted(done)


def _require_two(source: str, target: str) -> None:
    """Refuse copies that could not be of use."""
    if target.strip().lower().partition(":")[0] == "memory":
        raise UsageError("a copy in memory: would be gone with this command; name another target")
    one, other = file_of(source), file_of(target)
    is_same_file = one is not None and other is not None and one.resolve() == other.resolve()
    if source == target or is_same_file:
        raise UsageError("SOURCE and TARGET are the same store; name another target")


@contextmanager
def _told() -> Iterator[Callable[[str], Told]]:
    """Progress on stderr, of the steps that are long enough to tell how far they are."""
    with progress() as begin:

        def watch(title: str) -> Told:
            return _Step(begin, title)

        yield watch


class _Step:
    """Begins to tell of a step when it takes longer than a moment; most do not."""

    def __init__(self, begin: Callable[[str], Told], title: str) -> None:
        self._begin, self._title = begin, title
        self._told: Told | None = None
        self._started = time.monotonic()

    def __call__(self, done: float, total: float) -> None:
        """``done`` of ``total``."""
        if self._told is None and time.monotonic() - self._started > _MOMENT_SECONDS:
            self._told = self._begin(self._title)
        if self._told is not None:
            self._told(done, total)
