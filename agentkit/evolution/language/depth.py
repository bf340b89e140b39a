"""How deeply sentences are nested: by a parser where there is one, else by a named proxy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentkit.errors import UsageError
from agentkit.evolution.language.pieces import words

DEPTH_PROXY = "proxy: sentence length and prepositions, no parser"
"""What a depth is called that no parser gave."""

_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?![a-z])|(?<=[\u3002\uff01\uff1f])|\n+"
)

_WORDS = """
about after against among as at based before between by during for from in including into of
on over per since than through to under until via using with within without
"""
_PREPOSITIONS = frozenset(_WORDS.split())


class Parser(Protocol):
    """Finds which word of a sentence depends on which."""

    @property
    def name(self) -> str:
        """The parser and its model; depths of different parsers do not compare."""
        ...

    def heads(self, text: str) -> Sequence[Sequence[int]]:
        """For each sentence the number of each word's head, counted from 1; 0 for a root.

        This is the column HEAD of the CoNLL-U format of Universal Dependencies.
        """
        ...


@dataclass(frozen=True)
class SpacyParser:
    """A spaCy pipeline as a ``Parser``. spaCy itself is not imported here.

    Example::

        import spacy

        parser = SpacyParser(spacy.load("en_core_web_sm"))

    Attributes:
        pipeline: A loaded pipeline with a dependency parser.
    """

    pipeline: Callable[[str], Any]

    @property
    def name(self) -> str:
        """Such as ``spaCy en_core_web_sm 3.8.0``."""
        told = getattr(self.pipeline, "meta", {})
        return f"spaCy {told.get('lang', '')}_{told.get('name', '')} {told.get('version', '')}"

    def heads(self, text: str) -> list[list[int]]:
        """The heads of the tokens of each sentence."""
        return [_spacy_heads(sentence) for sentence in self.pipeline(text).sents]


@dataclass(frozen=True)
class StanzaParser:
    """A Stanza pipeline as a ``Parser``, as ToolDNA used it. Stanza is not imported here.

    Example::

        import stanza

        parser = StanzaParser(stanza.Pipeline("en", processors="tokenize,pos,lemma,depparse"))

    Attributes:
        pipeline: A pipeline with the processor ``depparse``.
    """

    pipeline: Callable[[str], Any]

    @property
    def name(self) -> str:
        """Such as ``Stanza en``."""
        return f"Stanza {getattr(self.pipeline, 'lang', '')}".rstrip()

    def heads(self, text: str) -> list[list[int]]:
        """The heads of the words of each sentence."""
        return [[word.head for word in one.words] for one in self.pipeline(text).sentences]


def sentence_depths(text: str, parser: Parser | None = None) -> list[float]:
    """The depth of each sentence of a text; empty for a text without words.

    ToolDNA (section 4.4, table 4) reports a "syntactic tree depth" of 8 before and 7 after, found
    with Stanza, and does not say of which trees, nor whether this is the largest or a mean. We take
    dependency trees, count the words from the root down to the lowest one, and leave it to the
    report to give both the largest depth and the mean.

    Args:
        text: Any text.
        parser: Finds the heads; None for ``depth_proxy``.

    Raises:
        UsageError: The parser gave heads that are no trees.

    Example:
        >>> [round(depth, 1) for depth in sentence_depths("List cars. Give the city of sale.")]
        [1.6, 2.8]
    """
    if not words(text):
        return []
    if parser is None:
        return [depth_proxy(sentence) for sentence in sentences(text)]
    lines = [
        line for line in text.splitlines() if words(line)
    ]  # no sentence goes over a line's end
    return [float(tree_depth(one)) for line in lines for one in parser.heads(line) if len(one)]


def tree_depth(heads: Sequence[int]) -> int:
    """The words on the longest way from a root down, the root included; 0 without words.

    Args:
        heads: For each word the number of its head, counted from 1; 0 for a root.

    Raises:
        UsageError: A head is no word of the sentence, or words hang on each other in a circle.

    Example:
        >>> tree_depth([2, 0, 5, 5, 2])  # "She sells the used cars"
        3
    """
    depths = {0: 0}
    for start in range(1, len(heads) + 1):
        way: list[int] = []
        at = start
        while at not in depths:
            if len(way) > len(heads) or not 0 < at <= len(heads):
                raise UsageError(
                    f"the parser's heads {list(heads)[:20]} are no tree: word {start} does not "
                    "hang on a root; give the number of each word's head from 1, and 0 for a root"
                )
            way.append(at)
            at = heads[at - 1]
        for below in reversed(way):
            depths[below] = depths[at] + 1
            at = below
    return max(depths.values())


def depth_proxy(sentence: str) -> float:
    """A stand-in for the depth of a sentence where there is no parser.

    It is ``log2(n + 1)``, the levels of the flattest binary tree of its ``n`` words, and a quarter
    for each English preposition, which hangs one phrase below another. Over 3,337 sentences of
    public tool descriptions it orders them much as the dependency trees of spaCy's
    ``en_core_web_sm`` 3.8 do (Spearman's rank correlation .80), and little more than their length
    does by itself (.78); among sentences of 8 to 14 words it is .43, against .36. It lies 1.4 below
    the trees in the mean. Counts of subordinate clauses and brackets were tried and made it worse.
    So a difference of the proxy says that sentences got longer or shorter, and hardly more.

    Args:
        sentence: One sentence.

    Example:
        >>> depth_proxy("List the cars"), depth_proxy("List the cars in town")
        (2.0, 2.834962500721156)
    """
    said = words(sentence)
    return math.log2(len(said) + 1) + sum(word in _PREPOSITIONS for word in said) / 4


def sentences(text: str) -> list[str]:
    """The sentences of a text that hold a word; a line break ends one, a small letter goes on.

    Example:
        >>> sentences("Rates, e.g. for loans. 查询天气。请给出城市。")
        ['Rates, e.g. for loans.', '查询天气。', '请给出城市。']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if words(part)]


def _spacy_heads(sentence: Iterable[Any]) -> list[int]:
    tokens = list(sentence)
    place = {token.i: at for at, token in enumerate(tokens, 1)}
    return [0 if token.head.i == token.i else place[token.head.i] for token in tokens]
