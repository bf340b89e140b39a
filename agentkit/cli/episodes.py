"""``agentkit episodes``: what happened, and what is kept of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Literal, TextIO, cast, get_args

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.episode_view import print_episode
from agentkit.cli.options import (
    Decorated,
    answers_option,
    command,
    common_options,
    flag,
    number,
    option,
    several,
)
from agentkit.cli.output import (
    Column,
    cut,
    fold,
    one_line,
    plural,
    print_json,
    print_line,
    print_table,
    right,
    say,
)
from agentkit.cli.stores import opened_if_there, opened_to_read
from agentkit.episodes import Episode, Verdict
from agentkit.episodes.files import export_episodes, write_episodes
from agentkit.episodes.labels import SHADOW_OF, VIEW_OF, is_extra_record
from agentkit.episodes.redaction import Redaction
from agentkit.errors import StoreLookupError, UsageError
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.evolution.feedback import feedback_on
from agentkit.library import EpisodeFilter, EpisodeStore
from agentkit.library.capabilities import EpisodeVolume, PruningPreview, Retention
from agentkit.library.episode_stores import pruning

VerdictFilter = Literal["passed", "failed", "fault", "none"]

_NONE = (
    "the store holds no episodes yet; 'agentkit run' makes one. Those of 'agentkit eval' lie in a "
    "store of their own, which it names at its end"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{tail}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for tail, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_QUANTITY = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([A-Za-z]*)")
_FILTERS = (
    option("--session", metavar="ID", help="Only this conversation."),
    option("--tool", metavar="NAME", help="Only episodes that called this tool."),
    option(
        "--verdict",
        type=click.Choice(get_args(VerdictFilter)),
        help="Only episodes that were judged so; fault: the reference or the verifier is broken; "
        "none: not judged.",
    ),
    several("--label", "labels", metavar="KEY=VALUE", help="Only episodes with this label"),
)


def _filters(command: Decorated) -> Decorated:
    for one in reversed(_FILTERS):
        command = one(command)
    return command


@click.group(cls=CommandGroup)
def episodes() -> None:
    """Look at what happened: every run is kept as an episode."""


@command("list", group=episodes)
@_filters
@number("--limit", low=0, default=20, help="Most rows, 0 for all.")
@common_options
def list_(limit: int, store_url: str, as_json: bool, **filters: Any) -> None:
    """List episodes, newest first.

    Records beside what users saw are marked: (shadow), a candidate tried unseen, and (view),
    another view or a later judgement of an episode.

    Examples:
      agentkit episodes list
      agentkit episodes list --verdict failed --label category=multiple
      agentkit episodes list --tool get_weather --limit 0 --json
    """
    with opened_to_read(store_url) as store:
        found = list(islice(_select(store, **filters), limit or None))
    if as_json:
        print_json([_brief(episode) for episode in found])
        return
    if not found:
        say("no episode fits" if any(filters.values()) else _NONE)
        return
    of_tasks = any("task" in one.metadata for one in found)
    columns: list[Column | str] = [
        "episode",
        "started UTC",
        *([fold("task")] if of_tasks else []),
        fold("ended"),
    ]
    columns += [fold("verdict"), right("tokens"), cut("request")]
    rows = [
        (
            one.episode_id,
            one.started_at[5:16].replace("T", " "),  # month to minute: a line of 80 is short
            *([shown(one.metadata.get("task", ""))] if of_tasks else []),
            _ended(one),
            _judged(one),
            f"{one.usage.total_tokens:,}",
            shown(one.request),
        )
        for one in found
    ]
    print_table(columns, rows)
    say(f"{plural(len(found), 'episode')}; agentkit episodes show ID tells all about one")


def _select(
    store: EpisodeStore,
    *,
    session: str | None,
    tool: str | None,
    verdict: VerdictFilter | None,
    labels: Sequence[str],
    oldest_first: bool = False,
) -> Iterator[Episode]:
    wanted = {}
    for text in labels:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
        wanted[key] = value
    matching = EpisodeFilter(
        session_id=session, tool_name=tool, labels=wanted, oldest_first=oldest_first
    )
    return (one for one in store.select(matching) if verdict in {None, _verdict(one)})


def _verdict(episode: Episode) -> VerdictFilter:
    if episode.verdict is None:
        return "none"
    if episode.verdict.fault is not None:
        return "fault"
    return "passed" if episode.verdict.passed else "failed"


def _ended(episode: Episode) -> str:
    """How the run ended, and whether the record is of something that no user saw."""
    if SHADOW_OF in episode.metadata:
        return f"{episode.stop_reason} (shadow)"
    return f"{episode.stop_reason}{' (view)' if VIEW_OF in episode.metadata else ''}"


def _judged(episode: Episode) -> str:
    """``passed``, or why not, as far as that is known."""
    if episode.verdict is None:
        return ""
    if episode.verdict.fault is not None:
        return label_name(episode.verdict.fault)
    if episode.verdict.passed or episode.diagnosis is None:
        return _verdict(episode)
    return label_name(episode.diagnosis.label)


def _brief(episode: Episode) -> dict[str, Any]:
    record = episode.to_json()
    names = ("episode_id", "started_at", "session_id", "model", "request", "stop_reason")
    return {name: record.get(name) for name in names} | {
        "verdict": record.get("verdict"),
        "calls": [call.to_json() for call in episode.calls],
        "tokens": episode.usage.total_tokens,
        "seconds": episode.seconds,
        "metadata": dict(episode.metadata),
    }


@command(group=episodes)
@click.argument("episode_id", metavar="ID")
@answers_option
@common_options
def show(episode_id: str, answers: str, store_url: str, as_json: bool) -> None:
    """Show one episode from the request to the verdict.

    ID is an episode's id, the beginning of one, or 'last', the last one that a user saw. What is
    not in the store is looked up among the answers of 'agentkit eval'.

    Examples:
      agentkit episodes show last
      agentkit episodes show 019a5c --json
    """
    with opened_to_read(store_url) as store, opened_if_there(answers) as evaluations:
        episode = None if evaluations is None else evaluations.get(episode_id)
        episode = episode or _find(store, episode_id)
        said = [one.verdict for one in feedback_on(store, episode.episode_id) if one.verdict]
    if as_json:
        further = {"feedback": [one.to_json() for one in said]} if said else {}
        print_json(episode.to_json() | further)
        return
    print_episode(episode)
    for verdict in said:
        print_line(_feedback_line(verdict))


def _feedback_line(verdict: Verdict) -> str:
    """What a user said of the answer, in one line."""
    parts = ["feedback: " + ("good" if verdict.passed else "not good")]
    parts += [str(verdict.details.get("source", ""))]
    if reason := verdict.details.get("reason"):
        parts.append(f"in their words: {one_line(str(reason))}")
    if call := verdict.details.get("corrected_call"):
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        parts.append(f"right would be {call['name']} {arguments}")
    return "; ".join(parts)


def _find(store: EpisodeStore, episode_id: str) -> Episode:
    if episode_id == "last":
        served = (one for one in store.select() if not is_extra_record(one.metadata))
        if (newest := next(served, None)) is None:
            raise StoreLookupError(_NONE)
        return newest
    if (exact := store.get(episode_id)) is not None:
        return exact
    found = [one for one in store.select() if one.episode_id.startswith(episode_id)]
    if len(found) != 1:
        ids = ", ".join(episode.episode_id for episode in found[:5])
        known = f"{len(found)} ids begin so: {ids}" if found else "none begins so"
        raise StoreLookupError(f"no episode has the id {episode_id!r}, and {known}")
    return found[0]


@command(group=episodes)
@_filters
@option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Where to write: a file, compressed if it ends in .gz, or stdout.",
)
@flag("--oldest-first", help="In the order in which they were kept.")
@flag("--redact", help="Without personal data and secrets of known formats.")
@common_options
def export(output: str, *, redact: bool, store_url: str, as_json: bool, **filters: Any) -> None:
    """Write episodes to stdout or a file, newest first.

    A few are held at a time. A file takes the place of an old one when all are written. On stdout
    episodes are JSON lines in any case; of a file --json tells how many it holds.

    Examples:
      agentkit episodes export -o episodes.jsonl
      agentkit episodes export -o episodes.jsonl.gz --oldest-first
      agentkit episodes export --verdict passed | head -5
    """
    with opened_to_read(store_url) as store:
        found = _select(store, **filters)
        count = _write(output, map(Redaction(), found) if redact else found)
    if as_json and output != "-":
        print_json({"file": output, "episodes": count})
    say(f"{plural(count, 'episode')} written")


def _write(out: str, found: Iterable[Episode]) -> int:
    if out == "-":
        with click.open_file("-", "w", encoding="utf-8") as stdout:
            return write_episodes(cast("TextIO", stdout), found)
    try:
        return export_episodes(out, found)
    except OSError as error:
        raise UsageError(f"{out}: can not be written ({error.strerror or error})") from error


def _duration(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """A time such as ``30d``, ``12h`` or ``90m``; a callback of an option."""
    if text is None:
        return None
    try:
        return timedelta(seconds=_amount(text, _SECONDS, "time; write 30d, 12h, 90m, 45s or 2w"))
    except OverflowError as error:
        raise click.BadParameter(f"{text!r} is longer than the calendar") from error


def _size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """A number of bytes such as ``500MB``, ``2GiB`` or ``1000``; a callback of an option."""
    what = "size; write 500MB, 2GB, 2GiB or 1000"
    return None if text is None else int(_amount(text, _BYTES, what))


def _amount(text: str, units: Mapping[str, int], what: str) -> float:
    found = _QUANTITY.fullmatch(text.strip())
    unit = units.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise click.BadParameter(f"{text!r} is no {what}")
    return float(found[1]) * unit


@command(group=episodes)
@option("--max-age", callback=_duration, metavar="TIME", help="Delete older ones: 30d, 12h, 2w.")
@option("--max-bytes", callback=_size, metavar="SIZE", help="Keep at most so much: 500MB, 2GB.")
@number("--max-count", low=0, help="Keep at most N.")
@flag("--dry-run", help="Say what would go, and delete nothing.")
@common_options
def prune(dry_run: bool, store_url: str, as_json: bool, **bounds: Any) -> None:
    """Delete old episodes, the oldest first.

    Definitions and their history stay. Export first what is to be learned from later: evidence
    that proposals and events name by id is then looked for in vain.

    Examples:
      agentkit episodes prune --max-age 30d --dry-run
      agentkit episodes prune --max-bytes 2GB --max-count 1000000
    """
    retention = Retention(**bounds)
    if retention == Retention():
        raise UsageError("say what may stay: --max-age, --max-bytes or --max-count")
    with opened_to_read(store_url) as store:
        keeper = pruning(store)
        if not dry_run:
            gone = keeper.prune(retention)
        elif isinstance(store, PruningPreview):
            gone = store.prunable(retention)
        else:
            raise UsageError(
                f"{type(store).__name__} can not say beforehand what would go; leave out --dry-run"
            )
        kept = keeper.volume()
    if as_json:
        amounts = {"gone": gone, "kept": kept}
        told = {name: {"count": one.count, "bytes": one.bytes} for name, one in amounts.items()}
        print_json({**told, "dry_run": dry_run})
    else:
        verb = "would be deleted" if dry_run else "deleted"
        say(f"{_in_words(gone)} {verb}; the store holds {_in_words(kept)}")


def _in_words(volume: EpisodeVolume) -> str:
    return f"{plural(volume.count, 'episode')} ({volume.bytes:,} bytes)"
