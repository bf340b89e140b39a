"""``TypeEvidence``: a declared type, and guesses at what the values mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentkit.tools.types.lattice import ANY, TypeSet

_MOST_CERTAIN = 0.99
"""No guess is certain; only a declaration is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A meaning that values probably have.

    Attributes:
        meaning: One of ``agentkit.tools.signature.MEANINGS``.
        confidence: Between 0 and 1.
    """

    meaning: str
    confidence: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeEvidence:
    """All that is known about the type of a parameter, a result or a value.

    Attributes:
        declared: What the schema says; sure.
        meanings: What names, texts and values suggest beyond that, the surest first.
    """

    declared: TypeSet = ANY
    meanings: tuple[Guess, ...] = ()

    def likely(self, confidence: float = 0.9) -> TypeSet:
        """The declared type with the surest meaning, if that is at least so sure."""
        if not self.meanings or self.meanings[0].confidence < confidence or self.declared.is_any:
            return self.declared
        return self.declared.with_meaning(self.meanings[0].meaning)


def pooled(guesses: Iterable[Guess]) -> tuple[Guess, ...]:
    """Guesses from independent clues together, the surest first.

    Two clues for one meaning make it surer than either: both have to be wrong.

    Example:
        >>> pooled([Guess(meaning="date", confidence=0.8), Guess(meaning="date", confidence=0.5)])
        (Guess(meaning='date', confidence=0.9),)
    """
    guesses = tuple(guesses)
    if len(guesses) < 2:
        return guesses
    doubt: dict[str, float] = {}
    for guess in guesses:
        doubt[guess.meaning] = doubt.get(guess.meaning, 1.0) * (1.0 - guess.confidence)
    sure = {meaning: min(round(1.0 - left, 4), _MOST_CERTAIN) for meaning, left in doubt.items()}
    ranked = sorted(sure.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Guess(meaning=meaning, confidence=value) for meaning, value in ranked)
