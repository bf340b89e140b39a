"""Every text of an episode, and what of it is none: ids, names and fixed words stay as they are.

Kept as they are: ids (of episodes, sessions, calls, traces), names (of tools, models, verifiers,
stages, metrics), digests, and the labels that agentkit itself writes. Everything else that holds
words is changed, keys of JSON objects included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agentkit.episodes.diagnosis import Attribution, Diagnosis, TurnDiagnosis
from agentkit.episodes.episode import Episode, GoalTrace, RefineTrace, RetrievalTrace, Turn
from agentkit.episodes.labels import ROUTE_LABELS, SHADOW_OF, TRACE_LABELS, VIEW_OF
from agentkit.episodes.redaction.json_values import JsonTexts
from agentkit.episodes.verdict import Evidence, Verdict
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult

_OUR_LABELS = ROUTE_LABELS | TRACE_LABELS | {SHADOW_OF, VIEW_OF}


def change_texts(episode: Episode, change: Callable[[str], str]) -> Episode:
    """The episode with each of its texts as ``change`` returns it.

    This is the hook for what knows more than patterns. Token ids are left out: they are the
    texts once more. So are parts of an answer that only its provider understands, where they
    would change: a provider takes them as they were, or not at all.

    Example:
        >>> quiet = change_texts(Episode(episode_id="e1", request="I am Ann"), lambda text: "-")
        >>> quiet.episode_id, quiet.request
        ('e1', '-')
    """
    return EpisodeTexts(json=JsonTexts(text=change)).episode(episode)


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeTexts:
    """Changes the texts of each part of an episode.

    Attributes:
        json: Changes texts, alone and in JSON data.
        keeps_tokens: Whether token ids stay.
    """

    json: JsonTexts
    keeps_tokens: bool = False

    def episode(self, one: Episode) -> Episode:
        """The whole record."""
        return replace(
            one,
            request=self._text(one.request),
            turns=tuple(map(self._turn, one.turns)),
            output=self.json.value(one.output),
            error=None if one.error is None else self._text(one.error),
            verdict=None if one.verdict is None else self._verdict(one.verdict),
            diagnosis=None if one.diagnosis is None else self._diagnosis(one.diagnosis),
            metadata=self._labels(one.metadata),
        )

    def _text(self, text: str) -> str:
        return self.json.text(text)

    def _labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        ours = {name: value for name, value in labels.items() if name in _OUR_LABELS}
        others = {name: value for name, value in labels.items() if name not in _OUR_LABELS}
        return {**ours, **self.json.object(others)}

    def _turn(self, one: Turn) -> Turn:
        return replace(
            one,
            message=self._message(one.message),
            results=tuple(map(self._result, one.results)),
            retrieval=None if one.retrieval is None else self._trace(one.retrieval),
            searches=tuple(map(self._trace, one.searches)),
            refine=None if one.refine is None else self._refine(one.refine),
            correction=self._text(one.correction),
            tokens=one.tokens if self.keeps_tokens else None,
        )

    def _message(self, one: AssistantMessage) -> AssistantMessage:
        items = tuple(
            item for item in one.provider_items if self.json.value(item.data) == item.data
        )
        calls = tuple(map(self._call, one.tool_calls))
        return replace(one, text=self._text(one.text), tool_calls=calls, provider_items=items)

    def _call(self, one: ToolCall) -> ToolCall:
        malformed = None if one.malformed is None else self._text(one.malformed)
        return replace(one, arguments=self.json.object(one.arguments), malformed=malformed)

    def _result(self, one: ToolResult) -> ToolResult:
        return replace(
            one,
            value=self.json.value(one.value),
            text=self._text(one.text),
            failure=None if one.failure is None else self._failure(one.failure),
        )

    def _failure(self, one: ToolFailure) -> ToolFailure:
        excerpt = one.schema_excerpt
        return replace(
            one,
            rule=self._text(one.rule),
            path=self._text(one.path),
            schema_excerpt=None if excerpt is None else self.json.object(excerpt),
            nearest=tuple(map(self._text, one.nearest)),
        )

    def _trace(self, one: RetrievalTrace) -> RetrievalTrace:
        query = self._text(one.query)
        words = query.casefold()  # a word of what was taken out is no word any more
        left = (term for term in one.unmatched if query == one.query or term.casefold() in words)
        return replace(
            one,
            query=query,
            notes=tuple(map(self._text, one.notes)),
            goals=tuple(map(self._goal, one.goals)),
            unmatched=tuple(map(self._text, left)),
        )

    def _goal(self, one: GoalTrace) -> GoalTrace:
        return replace(one, intent=self._text(one.intent))

    def _refine(self, one: RefineTrace) -> RefineTrace:
        return replace(
            one,
            proposals=tuple(tuple(map(self._call, calls)) for calls in one.proposals),
            tokens=one.tokens if self.keeps_tokens else (),
        )

    def _verdict(self, one: Verdict) -> Verdict:
        evidence = tuple(map(self._evidence, one.evidence))
        return replace(one, evidence=evidence, details=self.json.object(one.details))

    def _evidence(self, one: Evidence) -> Evidence:
        return replace(
            one,
            message=self._text(one.message),
            parameter=self._text(one.parameter),
            expected=self.json.value(one.expected),
            actual=self.json.value(one.actual),
        )

    def _diagnosis(self, one: Diagnosis) -> Diagnosis:
        return replace(one, turns=tuple(map(self._turn_diagnosis, one.turns)))

    def _turn_diagnosis(self, one: TurnDiagnosis) -> TurnDiagnosis:
        return replace(
            one,
            parameter=self._text(one.parameter),
            evidence=tuple(map(self._evidence, one.evidence)),
            hint=self._text(one.hint),
            attributions=tuple(map(self._attribution, one.attributions)),
        )

    def _attribution(self, one: Attribution) -> Attribution:
        return replace(one, parameter=self._text(one.parameter))
