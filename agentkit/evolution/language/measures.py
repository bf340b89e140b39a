"""With what the numbers are found that need equipment: vectors, a parser, a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from agentkit.evolution.language.depth import DEPTH_PROXY, Parser, sentence_depths
from agentkit.evolution.language.diversity import (
    WINDOW,
    moving_type_token_ratio,
    type_token_ratio,
)
from agentkit.evolution.language.edit_distance import character_distance, word_distance
from agentkit.evolution.language.records import TextChange, TextMeasures
from agentkit.evolution.language.similarity import LEXICAL_PROXY, similarities
from agentkit.evolution.language.stories import State, Story, differing
from agentkit.library.store import ToolRevision
from agentkit.retrieval.cards import schema_text
from agentkit.retrieval.tokens import TokenCounter, counted, estimate_tokens
from agentkit.retrieval.word_vectors import packaged_embedder

if TYPE_CHECKING:
    from agentkit.retrieval.embedders import Embedder

TOKEN_ESTIMATE = "estimate: one for four bytes"  # noqa: S105 (no password)
"""What a number of tokens is called that no tokenizer counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """What the numbers that need equipment are found with.

    Attributes:
        embedder: Turns texts into vectors; None for the lexical proxy.
        parser: Finds the heads of words; None for the proxy of depth.
        count_tokens: Counts tokens.
        window: Words of the moving window, at most.
    """

    embedder: Embedder | None = None
    parser: Parser | None = None
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
    def depth_method(self) -> str:
        """How depth is found."""
        return DEPTH_PROXY if self.parser is None else self.parser.name

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
        depths = [d for state in states for d in sentence_depths(state.whole, self.parser)]
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
