"""From histories to a ``LanguageReport``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean

from agentkit.evolution.language.edit_distance import levenshtein
from agentkit.evolution.language.histories import Histories
from agentkit.evolution.language.measures import PROXIES, Changes, Measures
from agentkit.evolution.language.records import (
    FieldLanguage,
    LanguageReport,
    LibraryTokens,
    RevisionLanguage,
    Round,
    ToolLanguage,
    WholeLanguage,
)
from agentkit.evolution.language.stories import State, Story, differing, read_story
from agentkit.evolution.language.trends import convergence

_SHORTEST_WINDOW = 10
"""Words: in fewer almost every word is another, whatever the text."""


def language_report(histories: Histories, measures: Measures = PROXIES) -> LanguageReport:
    """How the words of tools changed from revision to revision.

    Nothing here asks a model. The report says by which method each number was found; numbers of
    different methods do not compare.

    Args:
        histories: The revisions of each tool by name, ascending; see ``histories_of``.
        measures: Embedder, parser and token counter; ``Measures.installed()`` for what is there.

    Returns:
        The report; tools without any definition in their history are left out.

    Example:
        >>> from agentkit import ToolDefinition
        >>> from agentkit.library import ToolRevision
        >>> from agentkit.tools.definition import Description
        >>> def revision(version, text):
        ...     definition = ToolDefinition(name="cars", description=Description(summary=text))
        ...     return ToolRevision(version=version, definition=definition, proposal_id=text)
        >>> history = [revision(1, "Used cars."), revision(2, "All cars.")]
        >>> report = language_report({"cars": history})
        >>> [round(one.mean_size, 2) for one in report.rounds], report.similarity_method
        ([0.4], 'lexical proxy: cosine of term counts')
    """
    read = (read_story(name, histories[name]) for name in sorted(histories))
    stories = [story for story in read if story is not None]
    reader = _Reader(measures=measures, changes=Changes(stories, measures.embedder))
    tools = tuple(reader.tool(story) for story in stories)
    return LanguageReport(
        tools=tools,
        whole=reader.whole(stories),
        rounds=tuple(_rounds(tools)),
        tokens=tuple(_tokens_by_version(stories, measures)),
        similarity_method=measures.similarity_method,
        depth_method=measures.depth_method,
        token_method=measures.token_method,
        window=measures.window,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """Turns stories into numbers."""

    measures: Measures
    changes: Changes

    def tool(self, story: Story) -> ToolLanguage:
        window = _window(story, self.measures.window)
        revisions = tuple(self._revisions(story, window))
        texts = [text for text, _ in groupby(state.whole for state in story.states)]
        sizes = [self.changes.between(old, new).characters for old, new in pairwise(texts)]
        return ToolLanguage(
            tool_name=story.name,
            revisions=revisions,
            removed_at=story.removed_at,
            is_removed=story.is_removed,
            window=window or None,
            fields=tuple(self._fields(story)),
            convergence=convergence(sizes, texts),
        )

    def _revisions(self, story: Story, window: int) -> Iterator[RevisionLanguage]:
        before: State | None = None
        for state in story.states:
            made, first = state.revision, story.first
            yield RevisionLanguage(
                version=made.version,
                created_at=made.created_at,
                author=made.author,
                reason=made.reason,
                proposal_id=made.proposal_id,
                fields=differing(before, state) if before else (),
                measures=self.measures.of([state], window),
                change=self.changes.between(before.whole, state.whole) if before else None,
                from_first=self.changes.between(first.whole, state.whole) if before else None,
            )
            before = state

    def _fields(self, story: Story) -> Iterator[FieldLanguage]:
        for field in differing(story.first, story.last):
            old, new = story.first.fields.get(field, ""), story.last.fields.get(field, "")
            change = self.changes.between(old, new)
            yield FieldLanguage(field=field, before=old, after=new, change=change)

    def whole(self, stories: Sequence[Story]) -> WholeLanguage:
        there = [story for story in stories if not story.is_removed]
        pairs = [(story.first.whole, story.last.whole) for story in there]
        edits = sum(levenshtein(old, new) for old, new in pairs)
        longest = sum(max(len(old), len(new)) for old, new in pairs)
        changed = [self.changes.between(old, new) for old, new in pairs if old != new]
        known = [change.similarity for change in changed if change.similarity is not None]
        window = self.measures.window
        return WholeLanguage(
            before=self.measures.of([story.first for story in there], window),
            after=self.measures.of([story.last for story in there], window),
            edit_share=edits / longest if longest else 0.0,
            mean_change=fmean(change.characters for change in changed) if changed else None,
            mean_similarity=fmean(known) if known else None,
        )


def _window(story: Story, most: int) -> int:
    """The words of one window for all revisions of a tool; 0 where the shortest has too few."""
    shortest = min(len(state.words) for state in story.states)
    window = min(most, shortest)
    return window if window >= min(_SHORTEST_WINDOW, most) else 0


def _rounds(tools: Sequence[ToolLanguage]) -> Iterator[Round]:
    for number in range(1, 1 + max((tool.rounds for tool in tools), default=0)):
        sizes = [tool.convergence.sizes[number - 1] for tool in tools if tool.rounds >= number]
        yield Round(number=number, tools=len(sizes), mean_size=fmean(sizes), largest=max(sizes))


def _tokens_by_version(stories: Sequence[Story], measures: Measures) -> Iterator[LibraryTokens]:
    """The cost after each version that changed one of the tools."""
    steps = [
        (revision.version, story.name, revision) for story in stories for revision in story.history
    ]
    costs: dict[str, int] = {}
    for version, made in groupby(sorted(steps, key=lambda step: step[:2]), lambda step: step[0]):
        for _, name, revision in made:
            costs[name] = measures.tokens(revision)
            if revision.definition is None:
                del costs[name]
        yield LibraryTokens(version=version, tools=len(costs), tokens=sum(costs.values()))
