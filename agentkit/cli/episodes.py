"""``agentkit episodes``: what happened, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import chain, islice
from typing import Annotated, Literal

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.options import Answers, AsJson, FromZero, StoreUrl, argument, command, option
from agentkit.cli.output import (
    Output,
    cut,
    fold,
    json_text,
    listing,
    one_line,
    print_json,
    print_line,
    right,
    say,
)
from agentkit.cli.stores import opened_if_there, opened_to_read
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Diagnosis, Episode, Evidence, Turn, Verdict
from agentkit.episodes.files import encode_episode, export_episodes
from agentkit.episodes.labels import SHADOW_OF, VIEW_OF, is_extra_record
from agentkit.episodes.redaction import Redaction
from agentkit.errors import StoreLookupError, UsageError
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.evolution.learning import feedback_on
from agentkit.library import EpisodeFilter, EpisodeStore
from agentkit.library.store import EpisodeVolume, Retention, pruning
from agentkit.messages import ToolCall, ToolResult
from agentkit.tools.error_messages import plural
from agentkit.tools.patterns import without_gaps

_LONGEST = 2_000
_NONE = (
    "the store has no episodes yet; 'agentkit run' records one. 'agentkit eval' keeps its episodes "
    "in a store of their own, which it names at the end"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeChoice:
    """The options that choose episodes.

    Attributes:
        session (ID): Only this conversation.
        tool (NAME): Only episodes that called this tool.
        verdict: Only episodes with this verdict; fault: the reference or the verifier is broken;
            none: not judged.
        label (KEY=VALUE): Only episodes with this label
    """

    session: str | None = None
    tool: str | None = None
    verdict: Literal["passed", "failed", "fault", "none"] | None = None
    label: tuple[str, ...] = ()

    def of(self, store: EpisodeStore, *, oldest_first: bool = False) -> Iterator[Episode]:
        """The episodes that fit."""
        pairs = [text.partition("=") for text in self.label]
        if strange := ["".join(pair) for pair in pairs if not pair[1]]:
            raise click.BadParameter(f"{strange[0]!r} is not KEY=VALUE", param_hint="--label")
        matching = EpisodeFilter(
            session_id=self.session,
            tool_name=self.tool,
            labels={key: value for key, _, value in pairs},
            oldest_first=oldest_first,
        )
        return (one for one in store.select(matching) if self.verdict in {None, _verdict(one)})


@click.group(cls=CommandGroup)
def episodes() -> None:
    """List, show, export and prune episodes; every run is recorded as one."""


@command("list", group=episodes)
def list_(*, choice: EpisodeChoice, limit: FromZero = 20, store_url: StoreUrl) -> Output:
    """List episodes, newest first.

    Records that no user saw are marked: (shadow), a candidate tried unseen, and (view), another
    view or a later judgement of an episode.

    Args:
        limit: Most rows, 0 for all.

    Examples:
      agentkit episodes list
      agentkit episodes list --verdict failed --label category=multiple
      agentkit episodes list --tool get_weather --limit 0 --json
    """
    with opened_to_read(store_url) as store:
        found = list(islice(choice.of(store), limit or None))
    titles = ("episode", "started UTC", fold("ended"), fold("verdict"), right("tokens"))
    return listing(
        [one.to_json() for one in found],
        [*titles, cut("request")],
        map(_row, found),
        note=f"{plural(len(found), 'episode')}; 'agentkit episodes show ID' shows one",
        nothing=_NONE if choice == EpisodeChoice() else "no episode fits",
    )


def _row(one: Episode) -> tuple[object, ...]:
    started = one.started_at[5:16].replace("T", " ")  # month to minute: a line of 80 is short
    tokens = f"{one.usage.total_tokens:,}"
    return one.episode_id, started, _ended(one), _judged(one), tokens, shown(one.request)


def _verdict(episode: Episode) -> str:
    if episode.verdict is None:
        return "none"
    if episode.verdict.fault is not None:
        return "fault"
    return "passed" if episode.verdict.passed else "failed"


def _ended(episode: Episode) -> str:
    """Describe how the run ended, and whether no user saw it."""
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


@command(group=episodes)
def show(
    episode_id: Annotated[str, argument("ID")], *, answers: Answers, store_url: StoreUrl
) -> Output:
    """Show one episode from the request to the verdict.

    ID is an episode's id, or 'last', the last one that a user saw. Answers of 'agentkit eval' are
    found too.

    Examples:
      agentkit episodes show last
      agentkit episodes show 019a5c2b7d10a5c2b7d1f0e3 --json
    """
    with opened_to_read(store_url) as store, opened_if_there(answers) as evaluations:
        episode = None if evaluations is None else evaluations.get(episode_id)
        episode = episode or _find(store, episode_id)
        feedback = [one.verdict for one in feedback_on(store, episode.episode_id) if one.verdict]
    further = {"feedback": [one.to_json() for one in feedback]} if feedback else {}

    def view() -> None:
        _print_episode(episode)
        for verdict in feedback:
            print_line(_feedback_line(verdict))

    return Output(record=episode.to_json() | further, view=view)


def _feedback_line(verdict: Verdict) -> str:
    """The user's feedback on the answer, in one line."""
    details = verdict.details
    parts = ["feedback: " + ("good" if verdict.passed else "not good")]
    parts += [str(details["source"])] if details.get("source") else []
    parts += [str(details["reason"])] if details.get("reason") else []
    if call := details.get("corrected_call"):
        arguments = json_text(call["arguments"])
        parts.append(f"expected {call['name']} {arguments}")
    return one_line("; ".join(parts))


def _find(store: EpisodeStore, episode_id: str) -> Episode:
    if episode_id == "last":
        served = (one for one in store.select() if not is_extra_record(one.metadata))
        if (newest := next(served, None)) is None:
            raise StoreLookupError(_NONE)
        return newest
    if (exact := store.get(episode_id)) is not None:
        return exact
    raise StoreLookupError(f"no episode has the id {episode_id!r}; see 'agentkit episodes list'")


@command(group=episodes)
def export(
    *,
    choice: EpisodeChoice,
    output: Annotated[str, option("-o", "--output")] = "-",
    redact: bool = False,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Write episodes to stdout or a file, oldest first.

    A file replaces an old one once all are written. On stdout episodes are always JSON lines;
    for a file --json prints how many it holds.

    Args:
        output (FILE): Where to write: a file, compressed if it ends in .gz, or stdout.
        redact: Remove personal data and secrets of known formats.

    Examples:
      agentkit episodes export -o episodes.jsonl
      agentkit episodes export -o episodes.jsonl.gz --redact
      agentkit episodes export --verdict passed | head -5
    """
    with opened_to_read(store_url) as store:
        found = choice.of(store, oldest_first=True)
        chosen = map(Redaction(), found) if redact else found
        if output == "-":
            lines = (encode_episode(one) for one in chosen)
            count = sum(map(_told, lines))
        else:
            count = export_episodes(output, chosen)
    if as_json and output != "-":
        print_json({"file": output, "episodes": count})
    say(f"{plural(count, 'episode')} written")


def _told(line: str) -> int:
    """Write a line to stdout; gives 1."""
    click.echo(line)
    return 1


@command(group=episodes)
def prune(
    *,
    max_age: Annotated[float | None, option(type=click.FloatRange(0, 36500))] = None,
    max_count: FromZero | None = None,
    store_url: StoreUrl,
) -> Output:
    """Delete old episodes, the oldest first.

    Definitions and their history stay. Export first what you want to learn from later: proposals
    and events name their evidence by episode id.

    Args:
        max_age (DAYS): Delete older ones.
        max_count: Keep at most N episodes.

    Examples:
      agentkit episodes prune --max-age 30
      agentkit episodes prune --max-count 1000000
    """
    if max_age is None and max_count is None:
        raise UsageError("give --max-age or --max-count")
    age = None if max_age is None else timedelta(days=max_age)
    retention = Retention(max_age=age, max_count=max_count)
    with opened_to_read(store_url) as store:
        keeper = pruning(store)
        gone, kept = keeper.prune(retention), keeper.volume()
    return Output(
        record={"gone": asdict(gone), "kept": asdict(kept)},
        view=lambda: say(f"{_in_words(gone)} deleted; the store holds {_in_words(kept)}"),
    )


def _in_words(volume: EpisodeVolume) -> str:
    return f"{plural(volume.count, 'episode')} ({volume.bytes:,} bytes)"


def call_line(call: ToolCall) -> str:
    """``get_weather(city="Oslo", days=3)``, with what nobody sees, or sees past, written out.

    People are asked whether such a call may run, so it must not look like another one.
    """
    if call.malformed is not None:
        return without_gaps(f"{_name(call.name)}(malformed: {_name(call.malformed)})")
    told = (f"{_name(k)}={json_text(v)}" for k, v in call.arguments.items())
    return without_gaps(f"{_name(call.name)}({', '.join(told)})")


def _name(text: str) -> str:
    """A name as it is; as JSON where a break in it would begin a line that is not ours."""
    return text if text.isprintable() else json.dumps(text)


def result_line(result: ToolResult) -> str:
    """The outcome of a call, with the rule that a failed one broke."""
    if result.failure is not None:
        if result.status == "denied":
            return f"denied: {result.failure.rule}"
        where = f" at {result.failure.path}" if result.failure.path else ""
        return f"{result.status} ({result.failure.kind}{where}): {result.failure.rule}"
    if result.status == "deferred":
        return "waits for somebody outside the run"
    return _cut(result.text)


def _print_episode(episode: Episode) -> None:
    """Print an episode from the request to the verdict."""
    turns = (_turn(number, turn) for number, turn in enumerate(episode.turns, start=1))
    for title, text in chain(_beginning(episode), *turns, _ending(episode)):
        lines = _cut(text).replace("\n", "\n" + " " * 10)
        print_line(f"{title:<10}{lines}".rstrip())


def _beginning(episode: Episode) -> Iterator[tuple[str, str]]:
    yield "episode", f"{episode.episode_id}, {episode.started_at}"
    yield "model", f"{episode.model}, library version {episode.library_version}"
    if episode.session_id:
        yield "session", f"{episode.session_id} ({episode.history_length} messages before)"
    if labels := {name: one for name, one in episode.metadata.items() if name != "settings"}:
        yield "labels", ", ".join(f"{name}={value}" for name, value in labels.items())
    yield "request", "\n".join((episode.request, *(one.label for one in episode.media)))


def _turn(number: int, turn: Turn) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield f"turn {number}", f"{turn.seconds:.1f} s, {turn.usage.total_tokens:,} tokens"
    if turn.retrieval is not None:
        yield "  offered", ", ".join(turn.retrieval.offered) or "nothing"
    if (trace := turn.refine) is not None:
        end = "two answers agreed" if trace.converged else "no two answers in a row agreed"
        yield "  refine", f"{trace.mode}: {plural(trace.iterations, 'round')}, {end}"
        for at, calls in enumerate(trace.proposals):
            chosen = "*" if at == trace.chosen else " "
            yield "", f"{chosen} {at}: {'; '.join(map(call_line, calls))}"
    if turn.message.text:
        yield "  says", turn.message.text
    if turn.finish_reason is not None:
        yield "  cut", label_name(turn.finish_reason)
    yield from _calls(turn)
    if turn.correction:
        yield "  correct", turn.correction


def _calls(turn: Turn) -> Iterator[tuple[str, str]]:
    results = {result.call_id: result for result in turn.results}
    for call in turn.message.tool_calls:
        yield "  calls", call_line(call)
        for one in turn.program_calls:
            if one.program == call.call_id:
                yield "    calls", f"{call_line(one.call)} -> {result_line(one.result)}"
        if call.call_id in results:
            yield "    gives", f" {result_line(results[call.call_id])}"


def _ending(episode: Episode) -> Iterator[tuple[str, str]]:
    usage, output = episode.usage, episode.output
    yield "", ""
    yield "ended", episode.stop_reason
    if episode.error:
        yield "error", episode.error
    if output is not None:
        yield "output", output if isinstance(output, str) else json.dumps(output)
    read = f"{usage.prompt_tokens:,} tokens read ({usage.cached_tokens:,} cached)"
    wrote = f"{usage.completion_tokens:,} written, {episode.seconds:.1f} s"
    yield "usage", f"{plural(usage.requests, 'request')}, {read}, {wrote}"
    if (verdict := episode.verdict) is not None:
        score = "" if verdict.score in {0.0, 1.0} else f", score {verdict.score:.3f}"
        yield "verdict", f"{_verdict(episode)}{score} ({verdict.verifier or 'no verifier named'})"
        yield from (("", _evidence(one)) for one in verdict.evidence)
    if episode.diagnosis is not None:
        yield from _diagnosis(episode.diagnosis)


def _evidence(one: Evidence) -> str:
    return f"{'' if one.turn is None else f'turn {one.turn + 1}: '}{one.message}"


def _diagnosis(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """Each turn that something is wrong with, what was found there, and what helps."""
    yield "diagnosis", label_name(diagnosis.label)
    for turn in (one for one in diagnosis.turns if one.label not in NOT_FAILURES):
        labels = map(label_name, dict.fromkeys((turn.label, *turn.labels)))
        yield "", f"turn {turn.turn + 1}: {', '.join(labels)}"
        found = [finding.message for finding in turn.evidence]
        found += [f"hint: {turn.hint}"] if turn.hint else []
        yield from (("", f"  {message}") for message in dict.fromkeys(found))


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text):,} characters; --json shows all)"
