"""Summaries that are nearly those of other tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.library.derived import Snapshot
from agentkit.retrieval.words import terms
from agentkit.tools.tool import Tool

_ALIKE = 0.7
_LEAST_TERMS = 3
_FREQUENT = 200
"""A term of more tools than this tells none apart, and is skipped when looking for candidates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryTerms:
    """The terms of each tool's summary, and the tools of each term."""

    of_tool: Mapping[str, frozenset[str]]
    tools: Mapping[str, tuple[str, ...]]


class _Summaries:
    """Works the terms out once a library; see ``agentkit.library.derived``."""

    def build(self, library: Snapshot) -> SummaryTerms:
        return _indexed({name: _terms(tool) for name, tool in library.tools.items()})

    def update(
        self,
        value: SummaryTerms,
        library: Snapshot,
        added: Sequence[Tool],
        removed: Collection[str],
    ) -> SummaryTerms:
        changed = {tool.name: _terms(tool) for tool in added}
        gone = set(removed).union(changed)
        touched = set(chain(*changed.values(), *(value.of_tool.get(name, ()) for name in gone)))
        kept = {
            name: words
            for name, words in value.of_tool.items()
            if name not in gone or name in changed
        }
        of_tool = kept | changed
        fresh = {
            term: tuple(n for n in value.tools.get(term, ()) if n not in gone) for term in touched
        }
        for name, words in changed.items():
            for term in words:
                fresh[term] = (*fresh[term], name)
        return SummaryTerms(of_tool=of_tool, tools={**value.tools, **fresh})


SUMMARIES = _Summaries()
"""The kind of derived value that ``Library.derived`` keeps the terms under."""


def _terms(tool: Tool) -> frozenset[str]:
    return frozenset(terms(tool.definition.description.summary))


def _indexed(of_tool: Mapping[str, frozenset[str]]) -> SummaryTerms:
    tools: dict[str, list[str]] = {}
    for name, words in of_tool.items():
        for term in words:
            tools.setdefault(term, []).append(name)
    return SummaryTerms(
        of_tool=of_tool, tools={term: tuple(names) for term, names in tools.items()}
    )


def no_near_copy(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that comes close to another tool's and so takes calls that belong there.

    Alike are summaries that share seven tenths of their terms (Jaccard). Two that were as close
    before may stay so: duplicates are the Tool Manager's business. Whether bystanders lose calls is
    measured by a gate; this sees the plain case before anything is run.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_near_copy(rewrite("weather_now", {"sentence": "One city at a time."})))
        []
        >>> near = {"summary": "Expected temperature in Celsius for each of the coming days."}
        >>> [found.message for found in no_near_copy(rewrite("weather_now", near))]
        ['it says nearly the same as the summary of weather_forecast']
    """
    before, after = change.summaries
    if before == after:
        return
    said, had = frozenset(terms(after)), frozenset(terms(before))
    for name, words in _closest(change, said):
        likeness = _jaccard(said, words)
        if likeness >= _ALIKE and likeness > _jaccard(had, words):
            yield FailedCheck(
                code="near_copy",
                layer="semantic",
                field="summary",
                message=f"it says nearly the same as the summary of {name}",
                advice="say what sets the tool apart",
                excerpt=after[:120],
            )
            return


def _closest(change: ProposedChange, said: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    if len(said) < _LEAST_TERMS:
        return
    summaries = change.library.derived(SUMMARIES)
    rare = [names for term in said if len(names := summaries.tools.get(term, ())) <= _FREQUENT]
    shared = Counter(chain.from_iterable(rare))
    for name, _ in shared.most_common(8):
        if name != change.base.name:
            yield name, summaries.of_tool[name]


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
