"""One episode for people, and one call or result on a line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentkit.cli.output import plural, print_line
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Diagnosis, Episode, Turn, Verdict
from agentkit.episodes.labels import SPAN_ID, TRACE_ID
from agentkit.evaluation.results.texts import label_name, visible
from agentkit.messages import ToolCall, ToolResult

_LONGEST = 2_000


def call_line(call: ToolCall) -> str:
    """``get_weather(city="Oslo", days=3)``, with characters that nobody sees written out.

    People are asked whether such a call may run, so it must not look like another one.
    """
    if call.malformed is not None:
        return visible(f"{call.name}(malformed: {call.malformed})")
    given = (f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
    return visible(f"{call.name}({', '.join(given)})")


def result_line(result: ToolResult) -> str:
    """What came of a call, with the rule that a failed one broke."""
    if result.failure is not None:
        if result.status == "denied":
            return f"denied: {result.failure.rule}"
        where = f" at {result.failure.path}" if result.failure.path else ""
        return f"{result.status} ({result.failure.kind}{where}): {result.failure.rule}"
    if result.status == "deferred":
        return "waits for somebody outside the run"
    return _cut(result.text)


def print_episode(episode: Episode) -> None:
    """Print an episode from the request to the verdict."""
    for title, text in (*_beginning(episode), ("", "")):
        _print(title, text)
    for number, turn in enumerate(episode.turns, start=1):
        for title, text in _turn(number, turn):
            _print(title, text)
        _print("", "")
    for title, text in _ending(episode):
        _print(title, text)


def _print(title: str, text: str) -> None:
    lines = _cut(text).replace("\n", "\n" + " " * 10)
    print_line(f"{title:<10}{lines}".rstrip())


def _beginning(episode: Episode) -> Iterator[tuple[str, str]]:
    yield "episode", episode.episode_id
    yield "started", episode.started_at
    yield "model", f"{episode.model}, library version {episode.library_version}"
    if episode.session_id:
        yield "session", f"{episode.session_id} ({episode.history_length} messages before)"
    labels = dict(episode.metadata)
    apart = {"settings": labels.pop("settings", ""), "trace": labels.pop(TRACE_ID, "")}
    labels.pop(SPAN_ID, None)
    if labels:
        yield "labels", ", ".join(f"{name}={value}" for name, value in labels.items())
    yield from ((title, text) for title, text in apart.items() if text)
    yield "request", episode.request


def _turn(number: int, turn: Turn) -> Iterator[tuple[str, str]]:
    yield f"turn {number}", f"{turn.seconds:.1f} s, {turn.usage.total_tokens:,} tokens"
    if turn.retrieval is not None:
        yield "  offered", ", ".join(turn.retrieval.offered) or "nothing"
    if (trace := turn.refine) is not None:
        end = "two answers agreed" if trace.converged else "no two answers in a row agreed"
        extra = f"{trace.usage.total_tokens:,} extra tokens"
        yield "  refine", f"{trace.mode}: {plural(trace.iterations, 'round')}, {end}, {extra}"
        for at, calls in enumerate(trace.proposals):
            chosen = "*" if at == trace.chosen else " "
            yield "", f"{chosen} {at}: {'; '.join(map(call_line, calls))}"
    if turn.message.text:
        yield "  says", turn.message.text
    if turn.finish_reason is not None:
        yield "  cut", label_name(turn.finish_reason)
    results = {result.call_id: result for result in turn.results}
    for call in turn.message.tool_calls:
        yield "  calls", call_line(call)
        if call.call_id in results:
            yield "    gives", f" {result_line(results[call.call_id])}"
    if turn.correction:
        yield "  told", turn.correction


def _ending(episode: Episode) -> Iterator[tuple[str, str]]:
    usage, output = episode.usage, episode.output
    yield "ended", episode.stop_reason
    if episode.error:
        yield "error", episode.error
    if output is not None:
        yield "output", output if isinstance(output, str) else json.dumps(output)
    yield (
        "usage",
        (
            f"{plural(usage.requests, 'request')}, {usage.prompt_tokens:,} tokens read "
            f"({usage.cached_tokens:,} cached), {usage.completion_tokens:,} written, "
            f"{episode.seconds:.1f} s"
        ),
    )
    if episode.verdict is not None:
        yield from _verdict(episode.verdict)
    if episode.diagnosis is not None:
        found = () if episode.verdict is None else episode.verdict.evidence
        yield from _diagnosis(episode.diagnosis, told={one.message for one in found})


def _verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    told = "passed" if verdict.passed else "failed"
    if verdict.fault is not None:
        told = f"{label_name(verdict.fault)}, which says nothing about the agent"
    elif verdict.score not in {0.0, 1.0}:
        told += f", score {verdict.score:.3f}"
    yield "verdict", f"{told}{f' ({verdict.verifier})' if verdict.verifier else ''}"
    for one in verdict.evidence:
        yield "", f"{'' if one.turn is None else f'turn {one.turn + 1}: '}{one.message}"
    if verdict.metrics:
        values = (f"{label_name(name)} {value:g}" for name, value in verdict.metrics.items())
        yield "metrics", ", ".join(values)


def _diagnosis(diagnosis: Diagnosis, told: set[str]) -> Iterator[tuple[str, str]]:
    """Each turn that something is wrong with, and what the verdict has not said already."""
    yield "diagnosis", label_name(diagnosis.label)
    for turn in diagnosis.turns:
        if turn.label in NOT_FAILURES:
            continue
        about = ".".join(filter(None, (turn.tool, turn.parameter)))
        named = f"{label_name(turn.label)}{f' ({about})' if about else ''}"
        others = ", ".join(label_name(label) for label in turn.labels if label != turn.label)
        yield "", f"turn {turn.turn + 1}: {named}{f', also {others}' if others else ''}"
        for message in dict.fromkeys(finding.message for finding in turn.evidence):
            if message not in told:
                yield "", f"  found {message}"
        if turn.hint:
            yield "", f"  hint  {turn.hint}"
    for one in diagnosis.recoveries:
        kind, outcome = label_name(one.kind), label_name(one.outcome)
        yield "", f"turn {one.turn + 1}: the failed call of {one.tool} ({kind}): {outcome}"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text):,} characters; --json shows all)"
