"""``agentkit episodes prune``: what is kept of the past."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import opened_to_read
from agentkit.errors import UsageError
from agentkit.library.capabilities import EpisodeVolume, PruningPreview, Retention
from agentkit.library.episode_stores import pruning

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{tail}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for tail, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_MOST_DIGITS = 30
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def duration(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """A time such as ``30d``, ``12h`` or ``90m``; a callback of an option.

    Raises:
        click.BadParameter: The text is none.
    """
    if text is None:
        return None
    number, unit = _parts(text, _SECONDS, "time; write 30d, 12h, 90m, 45s or 2w")
    try:
        return timedelta(seconds=number * unit)
    except OverflowError as error:
        raise click.BadParameter(f"{text!r} is longer than the calendar") from error


def size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """A number of bytes such as ``500MB``, ``2GiB`` or ``1000``; a callback of an option.

    Raises:
        click.BadParameter: The text is none.
    """
    if text is None:
        return None
    number, unit = _parts(text, _BYTES, "size; write 500MB, 2GB, 2GiB or 1000")
    return int(number * unit)


def _parts(text: str, units: Mapping[str, int], what: str) -> tuple[float, int]:
    found = _QUANTITY.fullmatch(text.strip())
    unit = units.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise click.BadParameter(f"{text!r} is no {what}")
    if len(found[1]) > _MOST_DIGITS:
        raise click.BadParameter(f"{text!r} is more than there can be")
    return float(found[1]), unit


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
