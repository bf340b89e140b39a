"""One episode for people."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from itertools import groupby

import click

from agentkit.cli.output import plural
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import (
    Diagnosis,
    Episode,
    Evidence,
    Recovery,
    RefineTrace,
    RetrievalTrace,
    Turn,
    TurnDiagnosis,
    Verdict,
)
from agentkit.episodes.labels import SPAN_ID, TRACE_ID
from agentkit.evaluation.results.texts import label_name, visible
from agentkit.messages import ToolCall, ToolResult

_LONGEST = 2_000
_NUMBERS = 5
"""Turns that are listed by their numbers."""


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


def render_episode(episode: Episode) -> None:
    """Print an episode from the request to the verdict."""
    for line in _lines(episode):
        click.echo(visible(line))


def _lines(episode: Episode) -> Iterator[str]:
    yield f"episode   {episode.episode_id}"
    yield f"started   {episode.started_at}"
    yield f"model     {episode.model}, library version {episode.library_version}"
    if episode.session_id:
        yield f"session   {episode.session_id} ({episode.history_length} messages before)"
    labels = dict(episode.metadata)
    settings, trace = labels.pop("settings", ""), labels.pop(TRACE_ID, "")
    labels.pop(SPAN_ID, None)
    if labels:
        yield f"labels    {', '.join(f'{k}={v}' for k, v in labels.items())}"
    if settings:
        yield f"settings  {settings}"
    if trace:
        yield f"trace     {trace}"
    yield f"request   {_indented(episode.request)}"
    for number, turn in enumerate(episode.turns, start=1):
        yield ""
        yield from _turn(number, turn)
    yield ""
    yield from _ending(episode)


def _turn(number: int, turn: Turn) -> Iterator[str]:
    yield f"turn {number}    {turn.seconds:.1f} s, {turn.usage.total_tokens:,} tokens"
    if turn.retrieval is not None:
        yield from _retrieval(turn.retrieval)
    if turn.refine is not None:
        yield from _refinement(turn.refine)
    if turn.message.text:
        yield f"  says    {_indented(turn.message.text)}"
    if turn.finish_reason is not None:
        yield f"  cut     {label_name(turn.finish_reason)}"
    results = {result.call_id: result for result in turn.results}
    for call in turn.message.tool_calls:
        yield f"  calls   {call_line(call)}"
        if call.call_id in results:
            yield f"    gives {_indented(result_line(results[call.call_id]))}"
    if turn.correction:
        yield f"  told    {_indented(turn.correction)}"


def _retrieval(trace: RetrievalTrace) -> Iterator[str]:
    for stage in trace.stages:
        yield (
            f"  stage   {stage.stage}: {stage.survivors:,} tools left, "
            f"{stage.tokens:,} tokens, {stage.seconds * 1000:.1f} ms"
        )
    yield f"  offered {', '.join(trace.offered) or 'nothing'}"


def _refinement(trace: RefineTrace) -> Iterator[str]:
    end = "two answers agreed" if trace.converged else "no two answers in a row agreed"
    rounds = f"{trace.iterations} round" + ("" if trace.iterations == 1 else "s")
    yield f"  refine  {trace.mode}: {rounds}, {end}, {trace.usage.total_tokens:,} extra tokens"
    for number, calls in enumerate(trace.proposals):
        chosen = "*" if number == trace.chosen else " "
        yield f"   {chosen} {number}: {'; '.join(map(call_line, calls))}"


def _ending(episode: Episode) -> Iterator[str]:
    usage = episode.usage
    yield f"ended     {episode.stop_reason}"
    if episode.error:
        yield f"error     {episode.error}"
    if episode.output is not None:
        output = episode.output
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        yield f"output    {_indented(text)}"
    yield (
        f"usage     {plural(usage.requests, 'request')}, {usage.prompt_tokens:,} tokens read "
        f"({usage.cached_tokens:,} cached), {usage.completion_tokens:,} written, "
        f"{episode.seconds:.1f} s"
    )
    if episode.verdict is not None:
        yield from _verdict(episode.verdict)
    if episode.diagnosis is not None:
        found = () if episode.verdict is None else episode.verdict.evidence
        yield from _diagnosis(episode.diagnosis, told={one.message for one in found})


def _verdict(verdict: Verdict) -> Iterator[str]:
    told = "passed" if verdict.passed else "failed"
    if verdict.fault is not None:
        told = f"{label_name(verdict.fault)}, which says nothing about the agent"
    elif verdict.score not in {0.0, 1.0}:
        told += f", score {verdict.score:.3f}"
    yield f"verdict   {told}{f' ({verdict.verifier})' if verdict.verifier else ''}"
    for finding in verdict.evidence:
        yield f"          {_finding(finding)}"
    if verdict.metrics:
        values = (f"{label_name(name)} {value:g}" for name, value in verdict.metrics.items())
        yield f"metrics   {', '.join(values)}"


def _finding(finding: Evidence) -> str:
    where = "" if finding.turn is None else f"turn {finding.turn + 1}: "
    return where + _indented(finding.message)


def _diagnosis(diagnosis: Diagnosis, told: Container[str]) -> Iterator[str]:
    """Each turn that something is wrong with; turns that say the same in a row stand together."""
    yield f"diagnosis {label_name(diagnosis.label)}"
    faulty = (turn for turn in diagnosis.turns if turn.label not in NOT_FAILURES)
    described = ((turn.turn + 1, tuple(_turn_diagnosis(turn, told))) for turn in faulty)
    for (first, *rest), same in groupby(described, key=lambda one: one[1]):
        numbers = [number for number, _ in same]
        span = f"turn {numbers[0]}"
        if len(numbers) > 1:
            span = f"turns {', '.join(map(str, numbers[:_NUMBERS]))}"
            span += f" and {len(numbers) - _NUMBERS} more" if len(numbers) > _NUMBERS else ""
        yield f"          {span}: {first}"
        yield from (f"            {line}" for line in rest)
    for recovery in diagnosis.recoveries:
        yield f"          {_recovery(recovery)}"


def _turn_diagnosis(turn: TurnDiagnosis, told: Container[str]) -> Iterator[str]:
    about = ".".join(filter(None, (turn.tool, turn.parameter)))
    about = f" ({about})" if about else ""
    others = ", ".join(label_name(label) for label in turn.labels if label != turn.label)
    yield f"{label_name(turn.label)}{about}{f', also {others}' if others else ''}"
    for message in dict.fromkeys(finding.message for finding in turn.evidence):
        if message not in told:
            yield f"found {_indented(message)}"
    if turn.hint:
        yield f"hint  {_indented(turn.hint)}"


def _recovery(recovery: Recovery) -> str:
    return (
        f"turn {recovery.turn + 1}: the failed call of {recovery.tool} "
        f"({label_name(recovery.kind)}): {label_name(recovery.outcome)}"
    )


def _indented(text: str) -> str:
    return _cut(text).replace("\n", "\n          ")


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text):,} characters; --json shows all)"
