"""Reading a judge's answer: which of the numbered candidates it means.

A judge can only choose among what it was shown: numbers out of range and invented names are
passed over, and what is named twice counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentkit.retrieval.asking import values_in

_LABELS = ("number", "id", "index", "tool", "name", "tool_name", "candidate")
_VERDICTS = ("compatible", "verdict", "accept", "accepted", "ok", "satisfied", "judgement",
             "judgment", "answer", "result")  # fmt: skip
_YES = frozenset({"yes", "true", "compatible", "accept", "accepted", "keep", "ok", "satisfied"})
_NO = frozenset({"no", "false", "incompatible", "reject", "rejected", "drop", "not compatible"})
_ACCEPTED = ("compatible", "accepted", "accept", "keep", "kept", "yes")
_REJECTED = ("incompatible", "rejected", "reject", "drop", "dropped", "no")
_LINE = re.compile(r"^[ \t]*(?:[-*][ \t]*)?#?(\d{1,6})\b", re.MULTILINE)
_NUMBERS = re.compile(r"\s*+#?\d{1,6}(?:[\s,;>]++#?\d{1,6})*+\s*+\.?\s*+")
"""Nothing is tried twice: otherwise a list with prose behind it takes exponential time."""


def read_order(text: str, names: Sequence[str]) -> list[int]:
    """The places of the candidates that an answer names, in its order; empty for nonsense.

    Args:
        text: The answer.
        names: The candidates as they were shown, number 1 first.

    Example:
        >>> read_order('Best: [2, 1, 2, 99, "no_such_tool"]', ["add", "sub", "mul"])
        [1, 0]
        >>> read_order('["mul", {"name": "add", "score": 0.2}]', ["add", "sub", "mul"])
        [2, 0]
        >>> read_order("I would use sub here.", ["add", "sub", "mul"])
        [1]
        >>> read_order("No idea!", ["add", "sub", "mul"])
        []
    """
    places = _Places(names)
    for value in values_in(text):
        if order := places.distinct(places.listed(value)):
            return order
    return places.distinct(places.in_prose(text))


def read_verdicts(text: str, names: Sequence[str]) -> dict[int, bool]:
    """Place to verdict, for the candidates that an answer judges; empty for nonsense.

    A bare list of candidates means the compatible ones: all others are rejected.

    Example:
        >>> read_verdicts('{"1": true, "sub": "no", "9": false}', ["add", "sub", "mul"])
        {0: True, 1: False}
        >>> read_verdicts("[3]", ["add", "sub", "mul"])
        {0: False, 1: False, 2: True}
    """
    places = _Places(names)
    for value in values_in(text):
        if verdicts := _verdicts(value, places):
            return verdicts
    return {}


class _Places:
    """From what an answer calls a candidate to its place."""

    def __init__(self, names: Sequence[str]) -> None:
        self.count = len(names)
        self._by_name = {name.casefold(): place for place, name in reversed([*enumerate(names)])}

    def of(self, label: Any) -> int | None:
        """The place that a number or a name stands for."""
        if isinstance(label, bool) or not isinstance(label, int | float | str):
            return None
        if isinstance(label, str):
            known = self._by_name.get(label.strip().casefold())
            if known is not None:
                return known
            digits = re.match(r"\s*#?(\d{1,6})(?!\d)", label)
            label = int(digits[1]) if digits else 0
        place = int(label) - 1 if 0 < label <= self.count else -1
        return place if place >= 0 else None

    def listed(self, value: Any) -> Iterator[int | None]:
        """The candidates in a list, an object around a list, or an object of scores."""
        if isinstance(value, Mapping):
            inner = next((part for part in value.values() if isinstance(part, list)), None)
            if inner is None:
                yield from self._scored(value)
            value = inner or ()
        for item in value:
            yield self.labelled(item) if isinstance(item, Mapping) else self.of(item)

    def labelled(self, item: Mapping[str, Any]) -> int | None:
        """The candidate that an object is about."""
        found = (self.of(item[key]) for key in _LABELS if key in item)
        return next((place for place in found if place is not None), None)

    def _scored(self, value: Mapping[str, Any]) -> Iterator[int | None]:
        """``{"add": 0.9, "sub": 0.2}``, highest first; one object about one candidate."""
        scores = {
            name: score
            for name, score in value.items()
            if isinstance(score, int | float) and not isinstance(score, bool)
        }
        if self.labelled(value) is not None:
            yield self.labelled(value)
        else:
            yield from (self.of(name) for name in sorted(scores, key=lambda name: -scores[name]))

    def in_prose(self, text: str) -> Iterator[int | None]:
        """Bare numbers, numbers that start lines, else names that stand in the text."""
        if _NUMBERS.fullmatch(text):
            yield from (self.of(number) for number in re.findall(r"\d+", text))
        yield from (self.of(number) for number in _LINE.findall(text))
        folded = text.casefold()
        spans = ((_first_mention(folded, name), place) for name, place in self._by_name.items())
        yield from (place for at, place in sorted(spans) if at >= 0)

    @staticmethod
    def distinct(places: Iterator[int | None]) -> list[int]:
        """Each place once, in order."""
        return list(dict.fromkeys(place for place in places if place is not None))


def _first_mention(text: str, name: str) -> int:
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) if name in text else None
    return found.start() if found else -1


def _verdicts(value: Any, places: _Places) -> dict[int, bool]:
    if isinstance(value, list):
        return _listed_verdicts(value, places)
    if not isinstance(value, Mapping):
        return {}
    verdicts = _grouped(value, places)
    for label, said in value.items():
        place, verdict = places.of(label), _verdict(said)
        if place is not None and verdict is not None:
            verdicts[place] = verdict
    if verdicts:
        return verdicts
    inner = next((part for part in value.values() if isinstance(part, list | Mapping)), None)
    return _verdicts(inner, places) if inner is not None else _listed_verdicts([value], places)


def _listed_verdicts(items: Sequence[Any], places: _Places) -> dict[int, bool]:
    judged = {}
    for item in items:
        if isinstance(item, Mapping):
            place = places.labelled(item)
            verdict = next((_verdict(item[key]) for key in _VERDICTS if key in item), None)
            if place is not None and verdict is not None:
                judged[place] = verdict
    if judged:
        return judged
    accepted = set(places.distinct(places.listed(items)))
    return {place: place in accepted for place in range(places.count)} if accepted else {}


def _grouped(value: Mapping[str, Any], places: _Places) -> dict[int, bool]:
    """``{"compatible": [1, 2], "incompatible": [3]}``."""
    judged: dict[int, bool] = {}
    for keys, verdict in ((_ACCEPTED, True), (_REJECTED, False)):
        for key in keys:
            if isinstance(value.get(key), list):
                judged |= dict.fromkeys(places.distinct(places.listed(value[key])), verdict)
    return judged


def _verdict(said: Any) -> bool | None:
    if isinstance(said, Mapping):
        said = next((said[key] for key in _VERDICTS if key in said), None)
    if isinstance(said, bool):
        return said
    if isinstance(said, int | float):
        return bool(said) if said in {0, 1} else None
    if not isinstance(said, str):
        return None
    word = said.strip().strip(".!").casefold()
    first = re.split(r"[\s,.:;(\-]", word, maxsplit=1)[0]
    if word in _NO or first in _NO or word.startswith("not "):
        return False
    return True if word in _YES or first in _YES else None
