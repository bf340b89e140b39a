"""What words say about meanings: lists of values, and clues in names and descriptions.

The words are in ``vocabulary.json``. Their confidences were chosen by hand on the development parts
of public catalogues; docs/tools.md says how often they are right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_WORDS: Mapping[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)

MONTHS: frozenset[str] = frozenset(_WORDS["months"])
"""Months of the year."""

CURRENCIES: frozenset[str] = frozenset(_WORDS["currencies"])
"""The codes of ISO 4217 that catalogues use."""

LISTS: Mapping[str, frozenset[str]] = {
    "unit": frozenset(_WORDS["units"]),
    "weekday": frozenset(_WORDS["weekdays"]),
    "month": MONTHS,
    "language": frozenset(_WORDS["languages"]),
    "country": frozenset(_WORDS["countries"]),
    "currency": frozenset(code.casefold() for code in CURRENCIES),
    "colour": frozenset(_WORDS["colours"]),
}
"""Values, in small letters, by what they mean; names of countries that are also common words are
left out."""

LAST_WORDS: Mapping[str, tuple[str, float]] = _WORDS["last_words"]
"""What the last word of a name suggests, and how surely: the noun that the others describe."""

LAST_TWO_WORDS: Mapping[str, tuple[str, float]] = _WORDS["last_two_words"]
"""What the last two words suggest; this wins over the last one alone. An empty meaning is none."""

FIRST_WORDS: Mapping[str, tuple[str, float]] = _WORDS["first_words"]
"""What the first word suggests where the last one says nothing."""

TEXT_CLUES: Sequence[tuple[str, float, str, re.Pattern[str]]] = [
    (meaning, confidence, needed, re.compile(pattern, re.DOTALL))
    for meaning, confidence, needed, pattern in _WORDS["text_clues"]
]
"""Meaning, confidence, a text that must occur (a cheap test), and a pattern of descriptions."""
