"""One episode for people."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from agentkit.episodes import Episode, RefineTrace, RetrievalTrace, Turn
from agentkit.messages import ToolCall, ToolResult

_LONGEST = 2_000


def call_line(call: ToolCall) -> str:
    """``get_weather(city="Oslo", days=3)``."""
    if call.malformed is not None:
        return f"{call.name}(malformed: {call.malformed})"
    given = (f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
    return f"{call.name}({', '.join(given)})"


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
        click.echo(line)


def _lines(episode: Episode) -> Iterator[str]:
    yield f"episode   {episode.episode_id}"
    yield f"started   {episode.started_at}"
    yield f"model     {episode.model}, library version {episode.library_version}"
    if episode.session_id:
        yield f"session   {episode.session_id} ({episode.history_length} messages before)"
    if episode.metadata:
        yield f"labels    {', '.join(f'{k}={v}' for k, v in episode.metadata.items())}"
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
        f"usage     {usage.requests} requests, {usage.prompt_tokens:,} tokens read "
        f"({usage.cached_tokens:,} cached), {usage.completion_tokens:,} written, "
        f"{episode.seconds:.1f} s"
    )
    if episode.verdict is not None:
        yield f"verdict   {'passed' if episode.verdict.passed else 'failed'}"
        yield from (f"          {line}" for line in episode.verdict.evidence)


def _indented(text: str) -> str:
    return _cut(text).replace("\n", "\n          ")


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text):,} characters; --json shows all)"
