"""Which words of a request speak for which tool: an explanation, not the ranking itself."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agentkit.evaluation.doctor.parts import parts
from agentkit.evaluation.doctor.text_mends import sentences
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

_NAME, _DESCRIPTION, _PARAMETER_NAME, _PARAMETER_TEXT = 3.0, 1.0, 0.5, 0.25
"""What an occurrence counts by field, as in ``agentkit.retrieval.FieldWeights``."""

_SATURATION = 1.2
_WORD = re.compile(r"[^\W_]+")
_FEWEST_SPEAKERS = 3


class TermWeights:
    """Weights of terms in the tools of a catalogue: BM25F with the retriever's defaults.

    Any retriever may be behind a ranking; what it weighs is not known here. The words named are
    those that a lexical ranker would rank by.

    Args:
        definitions: All tools of the catalogue.
    """

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self._terms = {definition.name: _by_term(definition) for definition in definitions}
        counts = Counter(term for found in self._terms.values() for term in found)
        total = len(self._terms)
        self._common = {
            term for term, count in counts.items() if count > max(_FEWEST_SPEAKERS, total / 10)
        }
        self._rarity = {
            term: math.log(1 + (total - count + 0.5) / (count + 0.5))
            for term, count in counts.items()
        }

    def causes(self, query: str, own: ToolDefinition, rival: ToolDefinition) -> tuple[str, ...]:
        """Words of the query that count more for the rival, those with the largest lead first.

        When no word does, those that weigh most for the rival.
        """
        theirs, ours = self._weights(rival), self._weights(own)
        known = [term for term in dict.fromkeys(terms(query)) if term in theirs and len(term) > 1]
        leads = {term: theirs[term] - ours.get(term, 0.0) for term in known}
        leading = [term for term in known if leads[term] > 0]
        weights = leads if leading else theirs
        chosen = sorted(leading or known, key=lambda term: (-weights[term], term))
        return _spelled(chosen, query)

    def only(self, first: ToolDefinition, second: ToolDefinition) -> tuple[str, ...]:
        """Words of the first tool's name and first sentence that the second lacks altogether.

        The rarest come first; numbers, codes and what a tenth of all tools say are left out.
        """
        other = self._terms[second.name]
        name = terms(first.origin.original_name or first.name)
        opening = next(iter(sentences(first.description.summary)), "")
        said = dict.fromkeys((*name, *terms(opening)))
        found = [term for term in said if term not in other and self._tells(term)]
        chosen = sorted(found, key=lambda term: (-self._rarity.get(term, 0.0), term))
        return _spelled(chosen, opening)

    def _tells(self, term: str) -> bool:
        is_word = len(term) > 1 and not any(char.isdigit() for char in term)
        return is_word and term not in self._common

    def _weights(self, definition: ToolDefinition) -> Mapping[str, float]:
        return {
            term: self._rarity[term] * count / (_SATURATION + count)
            for term, count in self._terms[definition.name].items()
        }


def _spelled(chosen: Sequence[str], text: str) -> tuple[str, ...]:
    """Terms as the text writes them: ``cities``, where the index cuts the plural to ``citie``."""
    words = {
        found[0]: word.lower() for word in _WORD.findall(text) if len(found := terms(word)) == 1
    }
    return tuple(words.get(term, term) for term in chosen)


def _by_term(definition: ToolDefinition) -> dict[str, float]:
    """How much each term of a tool counts, before rarity."""
    found: dict[str, float] = {}
    every = list(parts(definition.parameters_schema))
    names = " ".join(part.name for part in every if part.name)
    texts = " ".join(str(part.schema.get("description", "")) for part in every)
    for weight, text in (
        (_NAME, definition.name),
        (_DESCRIPTION, definition.text),
        (_PARAMETER_NAME, names),
        (_PARAMETER_TEXT, texts),
    ):
        for term in terms(text):
            found[term] = found.get(term, 0.0) + weight
    return found
