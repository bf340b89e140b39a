"""``agentkit episodes import`` and ``prune``: what is kept of the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import click

from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.quantities import duration, size
from agentkit.cli.stores import opened, opened_to_read
from agentkit.episodes import Episode
from agentkit.episodes.files import import_episodes
from agentkit.episodes.jsonl import BrokenLine
from agentkit.errors import UsageError
from agentkit.library import EpisodeStore
from agentkit.library.abilities import BatchAppending, EpisodeVolume, PruningPreview, Retention
from agentkit.library.keeping.retention_loop import pruning

_AT_A_TIME = 256
_TOLD = 5
"""Lines without an episode that are told of each file; of more there is the count."""


@click.command(
    name="import",
    epilog="""\b
Examples:
  agentkit episodes import episodes.jsonl.gz
  agentkit episodes import spill/*.jsonl --store sqlite:///library.db""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@store_option
def import_(files: Sequence[str], store_url: str) -> None:
    """Keep the episodes of files: JSON lines or Parquet.

    Files compressed with gzip are read as well. An episode whose id the store knows is left as it
    is. Lines that hold no episode are told and left out; a file with nothing else is an error.
    """
    without: list[str] = []
    with opened(store_url) as store:
        for name in files:
            broken = _BrokenLines()
            count = _keep(store, _read(name, broken))
            broken.tell_rest(name)
            say(f"{name}: {plural(count, 'episode')} read")
            if broken.count and not count:
                without.append(name)
    if without:
        raise UsageError(f"no line is an episode in {', '.join(without)}; was another file meant?")


class _BrokenLines:
    """Tells of the first lines of a file that hold no episode, and counts the rest."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, broken: BrokenLine) -> None:
        self.count += 1
        if self.count <= _TOLD:
            say(str(broken))

    def tell_rest(self, name: str) -> None:
        if self.count > _TOLD:
            say(f"{name}: {self.count - _TOLD:,} more lines hold no episode")


def _read(name: str, broken: _BrokenLines) -> Iterator[Episode]:
    try:
        yield from import_episodes(name, on_broken=broken.tell)
    except OSError as error:
        raise UsageError(f"{name}: can not be read ({error.strerror or error})") from error


def _keep(store: EpisodeStore, episodes: Iterator[Episode]) -> int:
    count = 0
    while batch := tuple(islice(episodes, _AT_A_TIME)):
        count += len(batch)
        if isinstance(store, BatchAppending):
            store.append_many(batch)
        else:
            for episode in batch:
                store.append(episode)
    return count


@click.command(
    epilog="""\b
Examples:
  agentkit episodes prune --max-age 30d --dry-run
  agentkit episodes prune --max-bytes 2GB --max-count 1000000"""
)
@click.option(
    "--max-age", callback=duration, metavar="TIME", help="Delete older ones: 30d, 12h, 2w."
)
@click.option(
    "--max-bytes", callback=size, metavar="SIZE", help="Keep at most so much: 500MB, 2GB."
)
@click.option("--max-count", type=click.IntRange(min=0), metavar="N", help="Keep at most N.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and delete nothing.")
@store_option
@json_option
def prune(dry_run: bool, store_url: str, as_json: bool, **bounds: Any) -> None:
    """Delete old episodes, the oldest first.

    Definitions and their history stay. Export first what is to be learned from later: evidence
    that proposals and events name by id is then looked for in vain.
    """
    retention = Retention(**bounds)
    if retention == Retention():
        raise UsageError("say what may stay: --max-age, --max-bytes or --max-count")
    with opened_to_read(store_url) as store:
        keeper = pruning(store)
        gone = _preview(store, retention) if dry_run else keeper.prune(retention)
        kept = keeper.volume()
    if as_json:
        print_json({"gone": _as_json(gone), "kept": _as_json(kept), "dry_run": dry_run})
    else:
        verb = "would be deleted" if dry_run else "deleted"
        say(f"{_in_words(gone)} {verb}; the store holds {_in_words(kept)}")


def _preview(store: object, retention: Retention) -> EpisodeVolume:
    if not isinstance(store, PruningPreview):
        raise UsageError(
            f"{type(store).__name__} can not say beforehand what would go; leave out --dry-run"
        )
    return store.prunable(retention)


def _as_json(volume: EpisodeVolume) -> dict[str, int]:
    return {"count": volume.count, "bytes": volume.bytes}


def _in_words(volume: EpisodeVolume) -> str:
    return f"{plural(volume.count, 'episode')} ({volume.bytes:,} bytes)"
