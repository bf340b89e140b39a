"""What a sentence is about, and the numbers in it."""

from __future__ import annotations

import re

from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import Edit

NUMBER = r"[-\u2212]?\d{1,3}(?:[ ,.'\u2019]\d{3})+(?:[.,]\d+)?|[-\u2212]?\d+(?:[.,]\d+)?"
_NUMBER = re.compile(NUMBER)
_THOUSANDS = re.compile(r"(?<=\d)[ ,.'\u2019](?=\d{3}(?!\d))")


def about(change: ProposedChange, edit: Edit, sentence: str) -> ParameterFacts | None:
    """The parameter that a sentence is about: that of its text, or the one that it names."""
    if edit.parameter:
        return change.parameters.get(edit.parameter)
    named = [
        facts
        for path, facts in change.parameters.items()
        if re.search(rf"(?<![\w.]){re.escape(path.casefold())}(?![\w])", sentence)
    ]
    return named[0] if len(named) == 1 else None


def numbers_in(text: str) -> set[float]:
    """The numbers in a text, in each way in which they can be read.

    Example:
        >>> sorted(numbers_in("1.500 or 2,5"))
        [1.5, 2.5, 1500.0]
    """
    found: set[float] = set()
    for match in _NUMBER.finditer(text):
        found.update(readings_of(match.group()))
    return found


def readings_of(written: str) -> set[float]:
    """The numbers that one written number may mean: ``1.500`` is 1500 in German."""
    plain = written.replace("\u2212", "-")
    forms = {_THOUSANDS.sub("", plain).replace(",", "."), plain.replace(",", ".")}
    return {float(form) for form in forms if re.fullmatch(r"-?\d{1,300}(?:\.\d+)?", form)}
