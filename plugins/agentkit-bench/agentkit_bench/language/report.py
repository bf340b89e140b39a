"""The language report: what the histories of tools say about their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

from agentkit.errors import ToolNotFoundError
from agentkit.library.library import nearest_names
from agentkit.library.store import EventStore, ToolRevision, ToolStore
from agentkit.retrieval.cards import TokenCounter, counted, estimate_tokens, schema_text
from agentkit.retrieval.word_vectors import packaged_embedder
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.language.measures import (
    DEPTH_PROXY,
    LEXICAL_PROXY,
    WINDOW,
    Convergence,
    character_distance,
    convergence,
    levenshtein,
    moving_type_token_ratio,
    sentence_depths,
    similarities,
    texts_of,
    type_token_ratio,
    word_distance,
)
from agentkit_bench.language.words import words

if TYPE_CHECKING:
    from agentkit.retrieval.embedders import Embedder

FORMAT_VERSION = 1
"""Version of the JSON form of a report."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextMeasures:
    """One state of a text.

    Attributes:
        words: How many it has.
        type_token_ratio: Different words for each; None without words. Falls with length.
        moving_ratio: The mean ratio of all windows of equal length; None for a text shorter than
            the window.
        depth: Of its deepest sentence, by the report's ``depth_method``; 0 without words.
        mean_depth: The mean over its sentences.
        tokens: What its definitions cost in a prompt in full, by the report's ``token_method``.
    """

    words: int
    type_token_ratio: float | None
    moving_ratio: float | None
    depth: float
    mean_depth: float
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TextChange:
    """From one state of a text to another.

    Attributes:
        characters: Normalised edit distance in characters, 0 to 1.
        words: The same in words and marks.
        similarity: Likeness of meaning, by the report's ``similarity_method``; None where nothing
            is known of one of the texts.
    """

    characters: float
    words: float
    similarity: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldLanguage:
    """One field of a tool, first against last; both texts are kept for the difference in words.

    Attributes:
        field: ``summary``, ``usage_rules``, ``rules``, ``parameters.city``, ...
        before: The first text; empty when the field came later.
        after: The last one; empty when it is gone.
        change: How far apart they are.
    """

    field: str
    before: str
    after: str
    change: TextChange


@dataclass(frozen=True, kw_only=True, slots=True)
class RevisionLanguage:
    """One revision.

    Attributes:
        version: The library version that made it.
        created_at: ISO 8601 time in UTC.
        author: Who made it.
        reason: Why, in words.
        proposal_id: The change that made it.
        fields: The fields whose words it changed.
        measures: Its words.
        change: From the revision before; None for the first.
        from_first: From the first revision; None for the first.
    """

    version: int
    created_at: str
    author: str
    reason: str
    proposal_id: str
    fields: tuple[str, ...]
    measures: TextMeasures
    change: TextChange | None
    from_first: TextChange | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolLanguage:
    """One tool.

    Attributes:
        tool_name: The tool.
        revisions: Its revisions, those left out in which it was removed.
        removed_at: Library versions that removed it.
        is_removed: Whether it is gone now.
        window: Words of the window of ``moving_ratio``: the same for all revisions, so that they
            compare; None where the shortest is too short for any.
        fields: The fields whose words differ between first and last.
        convergence: The sizes of its rounds. A round is a revision that changed words.
    """

    tool_name: str
    revisions: tuple[RevisionLanguage, ...]
    removed_at: tuple[int, ...]
    is_removed: bool
    window: int | None
    fields: tuple[FieldLanguage, ...]
    convergence: Convergence

    @property
    def first(self) -> RevisionLanguage:
        """The first revision."""
        return self.revisions[0]

    @property
    def last(self) -> RevisionLanguage:
        """The last one."""
        return self.revisions[-1]

    @property
    def rounds(self) -> int:
        """How often its words were changed."""
        return len(self.convergence.sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """The edits that were the nth of their tools.

    Attributes:
        number: From 1.
        tools: How many tools had so many.
        mean_size: Mean normalised edit distance in characters from the round before.
        largest: The largest of them.
    """

    number: int
    tools: int
    mean_size: float
    largest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryTokens:
    """What all tools together cost at one library version, in full."""

    version: int
    tools: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeLanguage:
    """All tools that are there now together, each with its first against its last words.

    Attributes:
        before: The first words, the tools in the order of their names.
        after: The last ones.
        edit_share: The edits of all tools, in characters, for each character of the longer side:
            the mean of the tools' distances, weighted by length, unchanged tools included.
        mean_change: The unweighted mean over the changed tools; None when none changed.
        mean_similarity: The mean over the changed tools of which it is known; None for none.
    """

    before: TextMeasures
    after: TextMeasures
    edit_share: float
    mean_change: float | None
    mean_similarity: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageReport:
    """How the words of a library's tools changed.

    Attributes:
        tools: Each tool, by name.
        whole: All of them together.
        rounds: The edits by round.
        tokens: The cost of the library by version.
        similarity_method: How ``similarity`` was found; a proxy says that it is one.
        depth_method: How ``depth`` was found; a proxy says that it is one.
        token_method: How tokens were counted.
        window: Words of the window of ``moving_ratio`` for the whole, and at most for a tool.
    """

    tools: tuple[ToolLanguage, ...]
    whole: WholeLanguage
    rounds: tuple[Round, ...]
    tokens: tuple[LibraryTokens, ...]
    similarity_method: str
    depth_method: str
    token_method: str
    window: int

    @property
    def changed(self) -> tuple[ToolLanguage, ...]:
        """The tools whose words were ever changed, those with the most rounds first."""
        changed = [tool for tool in self.tools if tool.rounds]
        return tuple(sorted(changed, key=lambda tool: (-tool.rounds, tool.tool_name)))

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {"format": FORMAT_VERSION, **asdict(self)}


Histories = Mapping[str, Sequence[ToolRevision]]
"""The revisions of each tool by name, ascending."""


def histories_of(store: ToolStore, tools: Iterable[str] = ()) -> dict[str, Sequence[ToolRevision]]:
    """The revisions of tools, by name.

    A store has no list of all names that it ever held. Without ``tools`` these are the tools of the
    newest library, and those that the chain of events names, so that removed ones are among them.
    One that was removed before a library kept events has to be asked for by name.

    Args:
        store: Where the library is kept.
        tools: The names of tools; empty for all that are found.

    Raises:
        ToolNotFoundError: The store never held a tool of a given name.
    """
    wanted = sorted(set(tools)) or sorted(_names(store))
    found = {name: store.history(name) for name in wanted}
    known = {name: history for name, history in found.items() if history}
    if tools and len(known) < len(found):
        missing = next(name for name, history in found.items() if not history)
        nearest = nearest_names(missing, _names(store))
        raise ToolNotFoundError(missing, nearest=nearest, version=store.load().version)
    return known


def _names(store: ToolStore) -> set[str]:
    names = {tool.name for tool in store.load()}
    if isinstance(store, EventStore):
        names |= {event.tool_name for event in store.events() if event.tool_name}
    return names


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A revision that has a definition, with its texts.

    Attributes:
        revision: The revision.
        definition: Its definition.
        fields: What it says, by field.
        whole: All of that as one text.
        words: The words of that.
    """

    revision: ToolRevision
    definition: ToolDefinition
    fields: Mapping[str, str]
    whole: str
    words: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """A tool's history.

    Attributes:
        name: The tool.
        states: The revisions that have a definition, one at least.
        history: All revisions, those included in which it was removed.
    """

    name: str
    states: Sequence[State]
    history: Sequence[ToolRevision]

    @property
    def first(self) -> State:
        """The first state."""
        return self.states[0]

    @property
    def last(self) -> State:
        """The last state, also of a tool that is gone."""
        return self.states[-1]

    @property
    def removed_at(self) -> tuple[int, ...]:
        """Library versions that removed it."""
        return tuple(one.version for one in self.history if one.definition is None)

    @property
    def is_removed(self) -> bool:
        """Whether it is gone now."""
        return self.history[-1].definition is None


def read_story(name: str, history: Sequence[ToolRevision]) -> Story | None:
    """A history with its texts; None when it holds no definition at all."""
    states = tuple(_states(history))
    return Story(name=name, states=states, history=history) if states else None


def differing(before: State, after: State) -> tuple[str, ...]:
    """The fields whose words differ, in the order of the later text."""
    fields = dict.fromkeys((*after.fields, *before.fields))
    return tuple(one for one in fields if before.fields.get(one) != after.fields.get(one))


def _states(history: Sequence[ToolRevision]) -> Iterator[State]:
    for revision in history:
        definition = revision.definition
        if definition is not None:
            fields = texts_of(definition)
            whole = "\n".join(fields.values())
            yield State(
                revision=revision,
                definition=definition,
                fields=fields,
                whole=whole,
                words=words(whole),
            )


TOKEN_ESTIMATE = "estimate: one for four bytes"  # noqa: S105 (no password)
"""What a number of tokens is called that no tokenizer counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """What the numbers that need equipment are found with.

    Attributes:
        embedder: Turns texts into vectors; None for the lexical proxy.
        count_tokens: Counts tokens.
        window: Words of the moving window, at most.
    """

    embedder: Embedder | None = None
    count_tokens: TokenCounter = estimate_tokens
    window: int = WINDOW

    @classmethod
    def installed(cls) -> Measures:
        """What this machine has: word vectors if the extra ``vectors`` is installed."""
        return cls(embedder=packaged_embedder())

    @property
    def similarity_method(self) -> str:
        """How likeness is found."""
        if self.embedder is None:
            return LEXICAL_PROXY
        return f"cosine of vectors: {self.embedder.fingerprint}"

    @property
    def token_method(self) -> str:
        """How tokens are counted."""
        if self.count_tokens is estimate_tokens:
            return TOKEN_ESTIMATE
        return f"counted by {getattr(self.count_tokens, '__qualname__', 'a given counter')}"

    def tokens(self, revision: ToolRevision) -> int:
        """What a definition costs in a prompt in full; 0 for a removal."""
        if revision.definition is None:
            return 0
        return counted(schema_text(revision.definition), self.count_tokens)

    def of(self, states: Sequence[State], window: int) -> TextMeasures:
        """The numbers of some texts together; no moving ratio for a window of 0 words."""
        tokens = [word for state in states for word in state.words]
        depths = [d for state in states for d in sentence_depths(state.whole)]
        return TextMeasures(
            words=len(tokens),
            type_token_ratio=type_token_ratio(tokens),
            moving_ratio=moving_type_token_ratio(tokens, window) if window else None,
            depth=max(depths, default=0.0),
            mean_depth=fmean(depths) if depths else 0.0,
            tokens=sum(self.tokens(state.revision) for state in states),
        )


PROXIES = Measures()
"""Nothing that has to be installed, so that every machine finds the same numbers."""


class Changes:
    """The changes between the texts of some tools.

    Meanings are compared in one batch, as embedders like it.

    Args:
        stories: The tools.
        embedder: As for ``Measures``.
    """

    def __init__(self, stories: Iterable[Story], embedder: Embedder | None) -> None:
        pairs = list(dict.fromkeys(pair for story in stories for pair in _pairs(story)))
        alike = similarities(pairs, embedder)
        self._known = {
            (before, after): TextChange(
                characters=character_distance(before, after),
                words=word_distance(before, after),
                similarity=similarity,
            )
            for (before, after), similarity in zip(pairs, alike, strict=True)
        }

    def between(self, before: str, after: str) -> TextChange:
        """The change from the text of a revision, whole or a field, to that of a later one."""
        return self._known[before, after]


def _pairs(story: Story) -> Iterator[tuple[str, str]]:
    """The texts that will be compared."""
    before = story.first
    for state in story.states:
        yield before.whole, state.whole
        yield story.first.whole, state.whole
        before = state
    for field in differing(story.first, story.last):
        yield story.first.fields.get(field, ""), story.last.fields.get(field, "")


_SHORTEST_WINDOW = 10
"""Words: in fewer almost every word is another, whatever the text."""


def language_report(histories: Histories, measures: Measures = PROXIES) -> LanguageReport:
    """How the words of tools changed from revision to revision.

    Nothing here asks a model. The report says by which method each number was found; numbers of
    different methods do not compare.

    Args:
        histories: The revisions of each tool by name, ascending; see ``histories_of``.
        measures: Embedder and token counter; ``Measures.installed()`` for what is there.

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
        depth_method=DEPTH_PROXY,
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
