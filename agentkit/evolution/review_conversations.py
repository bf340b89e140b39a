"""Conversations in which a tool failed, in short: the request, the wrong call and the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.redaction import Redaction
from agentkit.evolution.model_view import ModelView
from agentkit.messages import ToolCall, ToolResult
from agentkit.tools.fit import fits

FindEpisode: TypeAlias = Callable[[str], Episode | None]
"""Gives the episode of an id, None where it is not kept; ``EpisodeStore.get`` is one."""

MOST_CONVERSATIONS = 3
_MOST_READ = 64  # episodes of one proposal in which failing calls are looked for


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """A conversation in which the tool failed.

    Attributes:
        episode_id: Which.
        request: What the user asked for.
        tool: The tool that was called; empty where nothing was.
        arguments: What it was called with, each value as JSON.
        wrong: Names of the arguments that were wrong, as far as anything says so.
        answer: What the tool answered.
        verdict: What a verifier found; empty for nothing.
    """

    episode_id: str
    request: str
    tool: str = ""
    arguments: Mapping[str, str]
    wrong: tuple[str, ...] = ()
    answer: str = ""
    verdict: str = ""


def failing_conversations(
    find: FindEpisode, evidence: Iterable[str], tool: str, after: ModelView | None
) -> Iterator[Conversation]:
    """Conversations in which the tool failed, or, where none did, what there is."""
    redact, others, found = Redaction(), list[Conversation](), 0
    for episode_id in list(dict.fromkeys(evidence))[:_MOST_READ]:
        episode = find(episode_id)
        if episode is None:
            continue
        told, is_failing = _conversation(redact(episode), tool, after)
        if is_failing:
            yield told
            found += 1
        else:
            others.append(told)
        if found == MOST_CONVERSATIONS:
            return
    yield from others[: MOST_CONVERSATIONS - found]


def _conversation(
    episode: Episode, tool: str, after: ModelView | None
) -> tuple[Conversation, bool]:
    """An episode in short, and whether a call of the tool failed in it."""
    verdict = episode.verdict
    findings = () if verdict is None or verdict.passed else verdict.evidence
    blamed = {one.parameter for one in findings if one.tool in {"", tool} and one.parameter}
    calls = [
        (call, result)
        for turn in episode.turns
        for call, result in _pairs(turn.message.tool_calls, turn.results)
        if episode.library_names.get(call.name, call.name) == tool
    ]
    failed = [pair for pair in calls if pair[1] is not None and pair[1].status != "ok"]
    said = "; ".join(dict.fromkeys(one.message for one in findings))
    told = Conversation(
        episode_id=episode.episode_id, request=episode.request, arguments={}, verdict=said
    )
    if not calls:
        return told, False
    call, result = (failed or calls)[0]
    told = replace(
        told,
        tool=tool,
        arguments={
            name: json.dumps(v, ensure_ascii=False, default=repr)
            for name, v in call.arguments.items()
        },
        wrong=_wrong(call, result, blamed, after),
        answer=_answer(result),
    )
    return told, bool(failed or findings)


def _pairs(
    calls: Iterable[ToolCall], results: Iterable[ToolResult]
) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    by_id = {result.call_id: result for result in results}
    return ((call, by_id.get(call.call_id)) for call in calls)


def _wrong(
    call: ToolCall, result: ToolResult | None, blamed: set[str], after: ModelView | None
) -> tuple[str, ...]:
    """Arguments that the failure or a verifier names, or that the changed schema refuses."""
    failure = None if result is None else result.failure
    named = {failure.path.split(".")[0].split("[")[0]} if failure is not None else set()
    schema = {} if after is None else after.parameters
    properties = schema.get("properties", {})
    refused = {
        name
        for name, value in call.arguments.items()
        if isinstance(properties, Mapping)
        and fits(value, properties.get(name, {}), root=schema) is False
    }
    return tuple(name for name in call.arguments if name in named | refused | blamed)


def _answer(result: ToolResult | None) -> str:
    if result is None:
        return ""
    return result.text if result.failure is None else result.failure.rule
