"""``agentkit episodes``: what happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO, cast, get_args

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.episode_keeping import prune
from agentkit.cli.episode_view import render_episode
from agentkit.cli.options import answers_option, json_option, store_option
from agentkit.cli.output import (
    Column,
    one_line,
    plural,
    print_json,
    print_table,
    print_text,
    say,
)
from agentkit.cli.stores import opened_if_there, opened_to_read
from agentkit.episodes import Episode, Verdict
from agentkit.episodes.files import SUFFIXES, FileFormat, export_episodes, format_of
from agentkit.episodes.jsonl import write_episodes
from agentkit.episodes.labels import SHADOW_OF, VIEW_OF, is_extra_record
from agentkit.episodes.redaction import Redaction
from agentkit.errors import StoreLookupError, UsageError
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.evolution.feedback import feedback_on
from agentkit.library import EpisodeFilter, EpisodeStore

_NONE = (
    "the store holds no episodes yet; 'agentkit run' makes one. Those of 'agentkit eval' lie in a "
    "store of their own, which it names at its end"
)

VerdictFilter = Literal["passed", "failed", "fault", "none"]

_FILTERS = (
    click.option("--session", metavar="ID", help="Only this conversation."),
    click.option("--tool", metavar="NAME", help="Only episodes that called this tool."),
    click.option(
        "--stop-reason",
        metavar="WORD",
        help="Only episodes that ended so, such as finished or step_limit.",
    ),
    click.option(
        "--verdict",
        type=click.Choice(get_args(VerdictFilter)),
        help="Only episodes that were judged so; fault: the reference or the verifier is broken; "
        "none: not judged.",
    ),
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="KEY=VALUE",
        help="Only episodes with this label; may be given several times.",
    ),
)


def _filters(command: Any) -> Any:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.group(cls=CommandGroup)
def episodes() -> None:
    """Look at what happened: every run is kept as an episode."""


@episodes.command(
    "list",
    epilog="""\b
Examples:
  agentkit episodes list
  agentkit episodes list --verdict failed --label category=multiple
  agentkit episodes list --tool get_weather --limit 0 --json""",
)
@_filters
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Most rows, 0 for all.",
)
@store_option
@json_option
def list_(limit: int, store_url: str, as_json: bool, **filters: Any) -> None:
    """List episodes, newest first.

    Records beside what users saw are marked: (shadow), a candidate tried unseen, and (view),
    another view or a later judgement of an episode.
    """
    with opened_to_read(store_url) as store:
        found = _first(_select(store, **filters), limit)
    if as_json:
        print_json([_brief(episode) for episode in found])
        return
    if not found:
        say("no episode fits" if any(filters.values()) else _NONE)
        return
    are_attempts = bool(found) and all("task" in episode.metadata for episode in found)
    _print_attempts(found) if are_attempts else _print_runs(found)
    say(f"{plural(len(found), 'episode')}; agentkit episodes show ID tells all about one")


def _select(
    store: EpisodeStore,
    *,
    session: str | None,
    tool: str | None,
    stop_reason: str | None,
    verdict: VerdictFilter | None,
    labels: Sequence[str],
    oldest_first: bool = False,
) -> Iterator[Episode]:
    wanted = dict(_label(text) for text in labels)
    matching = EpisodeFilter(
        session_id=session,
        tool_name=tool,
        stop_reason=stop_reason,
        labels=wanted,
        oldest_first=oldest_first,
    )
    for episode in store.select(matching):
        if verdict in {None, _verdict(episode)}:
            yield episode


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value


def _first(found: Iterable[Episode], limit: int) -> list[Episode]:
    kept: list[Episode] = []
    for episode in found:
        kept.append(episode)
        if len(kept) == limit:
            break
    return kept


def _verdict(episode: Episode) -> VerdictFilter:
    if episode.verdict is None:
        return "none"
    if episode.verdict.fault is not None:
        return "fault"
    return "passed" if episode.verdict.passed else "failed"


def _print_runs(found: Sequence[Episode]) -> None:
    columns = [
        Column(title="episode"),
        Column(title="started UTC"),
        Column(title="ended"),
        Column(title="verdict"),
        Column(title="tokens", align="right"),
        Column(title="request", fit="cut"),
    ]
    rows = (
        (
            episode.episode_id,
            episode.started_at[5:16].replace("T", " "),  # month to minute: a line of 80 is short
            _ended(episode),
            _judged(episode),
            f"{episode.usage.total_tokens:,}",
            shown(episode.request),
        )
        for episode in found
    )
    print_table(columns, rows)


def _print_attempts(found: Sequence[Episode]) -> None:
    """Episodes of an evaluation: which task each is about matters more than when it was."""
    columns = [
        Column(title="episode"),
        Column(title="task", fit="fold"),
        Column(title="ended"),
        Column(title="verdict", fit="fold"),
        Column(title="request", fit="cut"),
    ]
    rows = (
        (
            episode.episode_id,
            shown(episode.metadata["task"]),
            _ended(episode),
            _judged(episode),
            shown(episode.request),
        )
        for episode in found
    )
    print_table(columns, rows)


def _ended(episode: Episode) -> str:
    """How the run ended, and whether the record is of something that no user saw."""
    if SHADOW_OF in episode.metadata:
        return f"{episode.stop_reason} (shadow)"
    if VIEW_OF in episode.metadata:
        return f"{episode.stop_reason} (view)"
    return episode.stop_reason


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
    return {
        "episode_id": episode.episode_id,
        "started_at": episode.started_at,
        "session_id": episode.session_id,
        "model": episode.model,
        "request": episode.request,
        "stop_reason": episode.stop_reason,
        "verdict": None if episode.verdict is None else episode.verdict.to_json(),
        "calls": [call.to_json() for call in episode.calls],
        "tokens": episode.usage.total_tokens,
        "seconds": episode.seconds,
        "metadata": dict(episode.metadata),
    }


@episodes.command(
    epilog="""\b
Examples:
  agentkit episodes show last
  agentkit episodes show 019a5c --json"""
)
@click.argument("episode_id", metavar="ID")
@answers_option
@store_option
@json_option
def show(episode_id: str, answers: str, store_url: str, as_json: bool) -> None:
    """Show one episode from the request to the verdict.

    ID is an episode's id, the beginning of one, or 'last', the last one that a user saw. What is
    not in the store is looked up among the answers of 'agentkit eval'.
    """
    with opened_to_read(store_url) as store, opened_if_there(answers) as evaluations:
        episode = None if evaluations is None else evaluations.get(episode_id)
        episode = episode or _find(store, episode_id)
        said = [one.verdict for one in feedback_on(store, episode.episode_id) if one.verdict]
    if as_json:
        further = {"feedback": [one.to_json() for one in said]} if said else {}
        print_json(episode.to_json() | further)
        return
    render_episode(episode)
    for verdict in said:
        print_text(_feedback_line(verdict))


def _feedback_line(verdict: Verdict) -> str:
    """What a user said of the answer, in one line."""
    parts = ["feedback: " + ("good" if verdict.passed else "not good")]
    parts += [str(verdict.details.get("source", ""))]
    if reason := verdict.details.get("reason"):
        parts.append(f"in their words: {one_line(str(reason))}")
    if call := verdict.details.get("corrected_call"):
        parts.append(
            f"right would be {call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"
        )
    return "; ".join(parts)


def _find(store: EpisodeStore, episode_id: str) -> Episode:
    if episode_id == "last":
        served = (one for one in store.select() if not is_extra_record(one.metadata))
        newest = next(served, None)
        if newest is None:
            raise StoreLookupError(_NONE)
        return newest
    exact = store.get(episode_id)
    if exact is not None:
        return exact
    found = [e for e in store.select() if e.episode_id.startswith(episode_id)]
    if len(found) != 1:
        ids = ", ".join(episode.episode_id for episode in found[:5])
        known = f"{len(found)} ids begin so: {ids}" if found else "none begins so"
        raise StoreLookupError(f"no episode has the id {episode_id!r}, and {known}")
    return found[0]


@episodes.command(
    epilog="""\b
Examples:
  agentkit episodes export -o episodes.jsonl
  agentkit episodes export -o episodes.parquet --oldest-first
  agentkit episodes export --verdict passed | head -5"""
)
@_filters
@click.option("--limit", default=0, type=click.IntRange(min=0), metavar="N", help="Most episodes.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Where to write: .jsonl, .jsonl.gz or .parquet; stdout by default.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(FileFormat)),
    help="How to write, where the name of the file does not say.",
)
@click.option("--oldest-first", is_flag=True, help="In the order in which they were kept.")
@click.option("--redact", is_flag=True, help="Without personal data and secrets of known formats.")
@store_option
@json_option
def export(
    limit: int,
    output: str,
    form: FileFormat | None,
    *,
    redact: bool,
    store_url: str,
    as_json: bool,
    **filters: Any,
) -> None:
    """Write episodes to stdout or a file, newest first.

    A few are held at a time. A file takes the place of an old one when all are written. On stdout
    episodes are JSON lines in any case; of a file --json tells how many it holds.
    """
    with opened_to_read(store_url) as store:
        found = _select(store, **filters)
        if limit:
            found = islice(found, limit)
        count = _write(output, form, map(Redaction(), found) if redact else found)
    if as_json and output != "-":
        print_json({"file": output, "episodes": count})
    say(f"{plural(count, 'episode')} written")


def _write(out: str, form: FileFormat | None, found: Iterable[Episode]) -> int:
    if out != "-":
        known = form or (format_of(out) if Path(out).suffix.lower() in SUFFIXES else "jsonl")
        try:
            return export_episodes(out, found, form=known)
        except OSError as error:
            raise UsageError(f"{out}: can not be written ({error.strerror or error})") from error
    if form not in {None, "jsonl"}:
        raise UsageError(f"{form} is no text for a terminal; name a file with --output")
    with click.open_file("-", "w", encoding="utf-8") as stdout:
        return write_episodes(cast("TextIO", stdout), found)


episodes.add_command(prune)
