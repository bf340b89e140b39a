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
from agentkit_bench.language.measures import (
    DEPTH_PROXY,
    LEXICAL_PROXY,
    WINDOW,
    Convergence,
    convergence,
    levenshtein,
    moving_type_token_ratio,
    normalised_distance,
    sentence_depths,
    similarities,
    texts_of,
    type_token_ratio,
    word_distance,
)
from agentkit_bench.language.words import words

if TYPE_CHECKING:
    from agentkit.retrieval.embedders import Embedder

FORMAT_VERSION = 2
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
        fields: The fields whose words differ between first and last.
        convergence: The sizes of its rounds. A round is a revision that changed words.
    """

    tool_name: str
    revisions: tuple[RevisionLanguage, ...]
    removed_at: tuple[int, ...]
    is_removed: bool
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
        similarity_method: How ``similarity`` was found; a proxy says that it is one.
        depth_method: How ``depth`` was found; a proxy says that it is one.
        token_method: How tokens were counted.
        window: Words of the window of ``moving_ratio``.
    """

    tools: tuple[ToolLanguage, ...]
    whole: WholeLanguage
    rounds: tuple[Round, ...]
    similarity_method: str
    depth_method: str
    token_method: str
    window: int = WINDOW

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
class _State:
    """A revision that has a definition, with its texts by field and as one."""

    revision: ToolRevision
    fields: Mapping[str, str]
    whole: str
    schema: str

    @classmethod
    def of(cls, history: Sequence[ToolRevision]) -> list[_State]:
        """The states of a tool, those left out in which it was removed."""
        found = []
        for revision in history:
            if revision.definition is not None:
                fields = texts_of(revision.definition)
                whole, schema = "\n".join(fields.values()), schema_text(revision.definition)
                found.append(cls(revision=revision, fields=fields, whole=whole, schema=schema))
        return found

    def differing(self, before: _State) -> tuple[str, ...]:
        """The fields whose words differ, in the order of the later text."""
        fields = dict.fromkeys((*self.fields, *before.fields))
        return tuple(one for one in fields if before.fields.get(one) != self.fields.get(one))


TOKEN_ESTIMATE = "estimate: one for four bytes"  # noqa: S105 (no password)
"""What a number of tokens is called that no tokenizer counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """What the numbers that need equipment are found with.

    Attributes:
        embedder: Turns texts into vectors; None for the lexical proxy.
        count_tokens: Counts tokens.
    """

    embedder: Embedder | None = None
    count_tokens: TokenCounter = estimate_tokens

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

    def of(self, states: Iterable[_State]) -> TextMeasures:
        """The numbers of some texts together."""
        found = list(states)
        tokens = [word for state in found for word in words(state.whole)]
        depths = [depth for state in found for depth in sentence_depths(state.whole)]
        return TextMeasures(
            words=len(tokens),
            type_token_ratio=type_token_ratio(tokens),
            moving_ratio=moving_type_token_ratio(tokens),
            depth=max(depths, default=0.0),
            mean_depth=fmean(depths) if depths else 0.0,
            tokens=sum(counted(state.schema, self.count_tokens) for state in found),
        )


PROXIES = Measures()
"""Nothing that has to be installed, so that every machine finds the same numbers."""

_Changes = Mapping[tuple[str, str], TextChange]


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
    stories = {name: _State.of(histories[name]) for name in sorted(histories)}
    stories = {name: states for name, states in stories.items() if states}
    changes = _changes(stories.values(), measures.embedder)
    tools = tuple(
        _tool(name, states, histories[name], measures, changes) for name, states in stories.items()
    )
    there = [stories[tool.tool_name] for tool in tools if not tool.is_removed]
    return LanguageReport(
        tools=tools,
        whole=_whole(there, measures, changes),
        rounds=tuple(_rounds(tools)),
        similarity_method=measures.similarity_method,
        depth_method=DEPTH_PROXY,
        token_method=measures.token_method,
    )


def _changes(stories: Iterable[Sequence[_State]], embedder: Embedder | None) -> _Changes:
    """The change of each pair of texts that the report compares; embedders like one batch."""
    pairs = list(dict.fromkeys(pair for states in stories for pair in _pairs(states)))
    return {
        (before, after): TextChange(
            characters=normalised_distance(before, after),
            words=word_distance(before, after),
            similarity=similarity,
        )
        for (before, after), similarity in zip(pairs, similarities(pairs, embedder), strict=True)
    }


def _pairs(states: Sequence[_State]) -> Iterator[tuple[str, str]]:
    """Each state with the one before and with the first, and each field's first and last text."""
    first, last = states[0], states[-1]
    for before, state in zip([first, *states], states, strict=False):
        yield before.whole, state.whole
        yield first.whole, state.whole
    for field in last.differing(first):
        yield first.fields.get(field, ""), last.fields.get(field, "")


def _tool(
    name: str,
    states: Sequence[_State],
    history: Sequence[ToolRevision],
    measures: Measures,
    changes: _Changes,
) -> ToolLanguage:
    first, last = states[0], states[-1]
    texts = [text for text, _ in groupby(state.whole for state in states)]
    return ToolLanguage(
        tool_name=name,
        revisions=tuple(_revisions(states, measures, changes)),
        removed_at=tuple(one.version for one in history if one.definition is None),
        is_removed=history[-1].definition is None,
        fields=tuple(
            FieldLanguage(field=field, before=old, after=new, change=changes[old, new])
            for field in last.differing(first)
            for old, new in [(first.fields.get(field, ""), last.fields.get(field, ""))]
        ),
        convergence=convergence([changes[pair].characters for pair in pairwise(texts)], texts),
    )


def _revisions(
    states: Sequence[_State], measures: Measures, changes: _Changes
) -> Iterator[RevisionLanguage]:
    before: _State | None = None
    for state in states:
        made = state.revision
        yield RevisionLanguage(
            version=made.version,
            created_at=made.created_at,
            author=made.author,
            reason=made.reason,
            proposal_id=made.proposal_id,
            fields=state.differing(before) if before else (),
            measures=measures.of([state]),
            change=changes[before.whole, state.whole] if before else None,
            from_first=changes[states[0].whole, state.whole] if before else None,
        )
        before = state


def _whole(
    stories: Sequence[Sequence[_State]], measures: Measures, changes: _Changes
) -> WholeLanguage:
    pairs = [(states[0].whole, states[-1].whole) for states in stories]
    edits = sum(levenshtein(old, new) for old, new in pairs)
    longest = sum(max(len(old), len(new)) for old, new in pairs)
    changed = [changes[old, new] for old, new in pairs if old != new]
    known = [change.similarity for change in changed if change.similarity is not None]
    return WholeLanguage(
        before=measures.of(states[0] for states in stories),
        after=measures.of(states[-1] for states in stories),
        edit_share=edits / longest if longest else 0.0,
        mean_change=fmean(change.characters for change in changed) if changed else None,
        mean_similarity=fmean(known) if known else None,
    )


def _rounds(tools: Sequence[ToolLanguage]) -> Iterator[Round]:
    for number in range(1, 1 + max((tool.rounds for tool in tools), default=0)):
        sizes = [tool.convergence.sizes[number - 1] for tool in tools if tool.rounds >= number]
        yield Round(number=number, tools=len(sizes), mean_size=fmean(sizes), largest=max(sizes))
