"""The calls of a tool as evidence: which were taken, which were refused, and in what words."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.diagnosis.findings import Step, parameter_of, steps_of
from agentkit.diagnosis.labels import blamed_argument, breaks_learned_rule
from agentkit.episodes import Episode, Evidence
from agentkit.evolution.serving.feedback import is_by_user
from agentkit.library.library import Library
from agentkit.messages import FailureKind, JsonObject, ToolFailure
from agentkit.tools.rules.earlier import EarlierCall

_OF_THE_TOOL: frozenset[FailureKind] = frozenset(
    {"invalid_arguments", "contract_violated", "retry_requested", "tool_error", "tool_failed"}
)
"""Failures whose words are those of the tool or of its contract."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedCall:
    """One call of a tool.

    Attributes:
        episode_id: The episode that it was made in.
        arguments: What it gave.
        is_accepted: Whether the tool took it, whatever a verifier said of it later.
        refusal: How the tool refused it; None when it did not, or when its failure says nothing
            about the call.
        blamed: Names of parameters that the refusal or the verifier points at.
        earlier: Calls that succeeded before it; None when the conversation began before the
            episode, so that nobody knows.
        refusals: What tools said when they refused calls before it.
        request: What the user asked.
        party: Who asked, as far as the episode says: its own id, conversation and user.
    """

    episode_id: str
    arguments: JsonObject
    is_accepted: bool
    refusal: ToolFailure | None = None
    blamed: frozenset[str] = frozenset()
    earlier: tuple[EarlierCall, ...] | None = None
    refusals: tuple[str, ...] = ()
    request: str = ""
    party: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRecord:
    """All that was observed of one tool.

    Attributes:
        calls: Its calls, in the order of the episodes. A call that was refused for a learned rule
            is none: it never came to the tool, and what was learned is no evidence for itself.
        right: Values that verifiers held for right, each with the id of the episode, by parameter.
    """

    calls: list[ObservedCall] = field(default_factory=list)
    right: dict[str, list[tuple[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def accepted(self) -> tuple[ObservedCall, ...]:
        """The calls that the tool took."""
        return tuple(call for call in self.calls if call.is_accepted)

    @property
    def refused(self) -> tuple[ObservedCall, ...]:
        """The calls that the tool refused in its own words."""
        return tuple(call for call in self.calls if call.refusal is not None)


def observed(episodes: Iterable[Episode], library: Library) -> Mapping[str, ToolRecord]:
    """What episodes show of each tool of the library.

    Episodes whose verdict has a fault still show what tools took and refused; what the verdict
    says is left out.
    """
    records: dict[str, ToolRecord] = defaultdict(ToolRecord)
    for episode in episodes:
        verdict = episode.verdict
        evidence = () if verdict is None or verdict.fault else verdict.evidence
        if not is_by_user(verdict):  # whose word neither keeps a rule out nor takes one away
            _note_right(evidence, episode, records)
        wrong = defaultdict(set)
        for item in evidence:
            if item.call_id and item.parameter:
                wrong[item.call_id].add(item.parameter)
        earlier: list[EarlierCall] = []
        refusals: list[str] = []
        for turn in steps_of(episode, library):
            for step in turn:
                if _is_about_tool(step, library):
                    blamed = frozenset(wrong[step.call.call_id])
                    call = _observed(step, episode, blamed, earlier, refusals)
                    records[step.call.name].calls.append(call)
            earlier += [one for step in turn for one in _succeeded(step)]
            refusals += [text for step in turn for text in _refused(step)]
    return records


def _is_about_tool(step: Step, library: Library) -> bool:
    is_ours = step.failure is not None and breaks_learned_rule(step.failure)
    return step.call.malformed is None and step.call.name in library and not is_ours


def _note_right(
    evidence: Iterable[Evidence], episode: Episode, records: Mapping[str, ToolRecord]
) -> None:
    """What verifiers expected: allowed values come as a list, of which each one is right."""
    for item in evidence:
        if item.tool and item.parameter and item.expected is not None:
            values = item.expected if isinstance(item.expected, list | tuple) else [item.expected]
            right = records[item.tool].right[item.parameter]
            right += [(episode.episode_id, value) for value in (*values, item.expected)]


def _observed(
    step: Step,
    episode: Episode,
    wrong: frozenset[str],
    earlier: Iterable[EarlierCall],
    refusals: Iterable[str],
) -> ObservedCall:
    failure = step.failure
    is_refused = failure is not None and failure.kind in _OF_THE_TOOL
    blamed = _blamed(step) if is_refused else frozenset[str]()
    return ObservedCall(
        episode_id=episode.episode_id,
        arguments=step.call.arguments,
        is_accepted=step.result is not None and step.result.status == "ok" and failure is None,
        refusal=failure if is_refused else None,
        blamed=blamed | wrong,
        earlier=None if episode.history_length else tuple(earlier),
        refusals=tuple(refusals),
        request=episode.request,
        party=_party(episode),
    )


def _party(episode: Episode) -> frozenset[tuple[str, str]]:
    """What tells whose episode it is; two that share a part are of one user."""
    known = (
        ("episode", episode.episode_id),
        ("episode", episode.resumes),
        ("session", episode.session_id),
        ("user", episode.metadata.get("user")),
    )
    return frozenset((kind, name) for kind, name in known if name)


def _blamed(step: Step) -> frozenset[str]:
    failure, arguments = step.failure, step.call.arguments
    if failure is None:
        return frozenset()
    named = parameter_of(failure) or blamed_argument(failure, arguments) or ""
    return frozenset({named} - {""})


def _succeeded(step: Step) -> Iterable[EarlierCall]:
    if step.result is None or step.result.status != "ok" or step.failure is not None:
        return ()
    text = step.result.text or _as_text(step.result.value)
    return (EarlierCall(name=step.call.name, text=text),)


def _refused(step: Step) -> Iterable[str]:
    """What a model read of a failed call: the rule, and the values that were near."""
    texts = () if step.result is None else (step.result.text,)
    failure = step.failure
    return texts if failure is None else (*texts, failure.rule, *failure.nearest)


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
