"""Which values a parameter is known to take, and whether an example is one of that kind.

An example steers: a model that was told no value takes the one that it has read. So an example must
be a known value of its own parameter (enum, default, worked or accepted call, text so far), or have
the form that the parameter declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import Edit, folded, mapping, numbers_in, stands_in
from agentkit.evolution.validation.wording import EXAMPLE, UNITS, WIDE, masks, stems_of, word_stems

_VALUE = re.compile(r"[\w.+*?@/:=#-]*[\w*?/]")
_INTRODUCED = re.compile(
    r"^(?:[Ss]uch as|e\.g\.,?|[Ff]or (?:example|instance),?|[Ll]ike|z\. ?B\."
    r"|[Zz]um Beispiel|[Pp]ar exemple|comme"
    r"|[Pp]\. ?ej\.|[Pp]or ejemplo|como|beispielsweise|[Ee]xample:|例如|比如|例えば|例|如):?"
    r"|^\((?:e\.g\.,?|z\. ?B\.|如)?"
)
_JOINING = frozenset({"or", "and", "oder", "und", "ou", "et", "y", "o", "to"})
_SHOWN = re.compile(
    r"(?:e\.g\.,?|[Ss]uch as|[Ff]or (?:example|instance),?|[Ll]ike|[Ee]xample:) ([^).;]+)"
    r"|(?<!\w)[\"'`]([^\"'`]{1,40})[\"'`](?!\w)"
)
_LISTED = re.compile(r",|\b(?:or|and)\b|[\"'`]")
_HAS_SIGNS = re.compile(r"[\d=*/_@-]")
_SHAPES = ((re.compile(r"[A-Z]+"), "A"), (re.compile(r"[a-z]+"), "a"), (re.compile(r"\d+"), "9"))

_NAME = re.compile(r"[A-Z][^\W\d_]{2,20}(?: [A-Z][^\W\d_]{2,20})?")
_CODE = re.compile(r"[A-Z]{2,5}|[A-Za-z]{0,8}[-_]?\d[A-Za-z0-9_-]{0,15}")
_PATH = re.compile(r"[A-Za-z][\w-]*(?:/[A-Za-z][\w-]*){0,4}\.(?!key|pem|env|pfx|p12)[a-z]\w{0,4}")
_SENSITIVE = re.compile(r"secret|passw|token|creden|private|key|ssh|shadow|wallet")
_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)?"
    r"|\d\d?[./-]\d\d?[./-]\d{4}|\d\d:\d\d(?::\d\d)?"
)
_DECLARED = (
    ("glob", "", re.compile(r"(?:\w+/)*\*\.(?!key|pem|env|pfx|p12)\w{1,4}")),
    ("year", "", re.compile(r"(?:19|20)\d\d")),
    ("currency", "4217", re.compile(r"[A-Z]{3}")),
    ("country", "3166", re.compile(r"[A-Z]{2,3}")),
    ("language", "639", re.compile(r"[a-z]{2,3}")),
)
"""What parameters are called, the standard that a text may name, and how values then look."""

NUMERIC = frozenset({"number", "integer"})


def is_code(value: str) -> bool:
    """Whether a value is a code: with digits or signs, or a few capitals."""
    return bool(_HAS_SIGNS.search(value)) or (value.isupper() and len(value) <= 5)


class KnownValues:
    """The values of the parameter that a text is about; of all parameters where it is about none.

    Args:
        change: The change.
        edit: The text.
        own: The stems of the words by which the parameter is known.
    """

    def __init__(self, change: ProposedChange, edit: Edit, own: frozenset[str]) -> None:
        self._change, self._edit, self._own = change, edit, own
        self._facts = change.parameters.get(edit.parameter)
        self._only_reads = bool(change.base.signature.effects.is_read_only)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Every value that schema, calls, texts so far and trusted origins show."""
        paths = [self._edit.parameter] if self._edit.parameter else list(self._change.parameters)
        return tuple(str(value) for path in paths for value in self._of(path))

    def _of(self, path: str) -> Iterator[Any]:
        if facts := self._change.parameters.get(path):
            yield from facts.values
            yield from () if facts.default is None else (facts.default,)
        yield from self._change.given(path)
        before = str(mapping(self._change.base.description.parameters).get(path, ""))
        for match in EXAMPLE.finditer(before):
            yield from _VALUE.findall(_INTRODUCED.sub("", match.group()))
        for match in _SHOWN.finditer(before):
            yield from filter(None, map(str.strip, _LISTED.split(match[1] or match[2])))
        yield from (word for word in before.split() if re.search(r"[\d=*/]", word))
        yield from (origin.text for origin in self._change.origins if origin.is_used)

    def foreign(self, known_words: frozenset[str]) -> Iterator[str]:
        """The examples of the text that nothing bears out.

        Args:
            known_words: The stems of what the tool says of itself.
        """
        for match in EXAMPLE.finditer(self._edit.after.translate(WIDE)):
            told = match.group()
            if self._illustrates(told):
                continue
            for value in _VALUE.findall(_INTRODUCED.sub("", told)):
                is_noted = told.startswith("(") and _is_word(value, known_words)
                if folded(value) in _JOINING or is_noted or self._knows(value):
                    continue
                if not self._has_declared_form(value.strip(".")):
                    yield value

    def _illustrates(self, told: str) -> bool:
        """Whether names only show what a text looks like.

        One name alone suggests a value where a call may leave the parameter out. Where each call
        must give it, what the user asked for decides, and so it does beside several names.
        """
        facts = self._facts
        if not self._only_reads or facts is None or facts.values or facts.is_formed:
            return False
        parts = [part.strip(" .()'\"`") for part in _LISTED.split(_INTRODUCED.sub("", told))]
        parts = [part for part in parts if part]
        if word_stems("people") & self._own or not any(map(_NAME.fullmatch, parts)):
            return False
        is_one_of_kind = all(_NAME.fullmatch(part) or _CODE.fullmatch(part) for part in parts)
        return is_one_of_kind and (len(parts) > 1 or facts.required)

    def _knows(self, value: str) -> bool:
        small = folded(value).rstrip(".,")
        if not any(stands_in(small, known) for known in map(folded, self.values)):
            return False
        is_number = self._facts is not None and self._facts.types <= NUMERIC
        if self._only_reads or not is_number:
            return True
        given = " ".join(map(str, self._change.given(self._edit.parameter)))
        return bool(numbers_in(value) & numbers_in(given))  # a bound alone is no example of a use

    def _has_declared_form(self, value: str) -> bool:
        facts = self._facts
        if facts is None or facts.values:
            return False
        if facts.types == {"boolean"}:
            return value.casefold() in {"true/false", "true", "false", "yes/no"}
        if facts.types and facts.types <= NUMERIC:
            return self._is_likely(value, facts)
        if facts.pattern:
            return re.search(facts.pattern, value) is not None
        return _DATE.fullmatch(value) is not None or self._is_of_kind(value, facts)

    def _is_of_kind(self, value: str, facts: ParameterFacts) -> bool:
        """Whether a text is a code, a path or a name of the kind that its parameter takes."""
        is_path = _PATH.fullmatch(value) is not None
        known = (*self.values, *map(str, self._change.taken(self._edit.parameter)))
        shapes = {_shape(value) for value in known if is_code(value)}
        if is_code(value) and not is_path and (shapes or not self._only_reads):
            return _shape(value) in shapes
        if _CODE.fullmatch(value) and not word_stems("people") & self._own - word_stems("codes"):
            return True
        if is_path and self._only_reads and facts.required:
            return not _SENSITIVE.search(value.casefold())
        text = folded(self._edit.after)
        return any(
            (not standard or standard in text or "code" in text)
            and stems_of(name) <= self._own
            and form.fullmatch(value)
            for name, standard, form in _DECLARED
        )

    def _is_likely(self, value: str, facts: ParameterFacts) -> bool:
        """Whether a number lies within the bounds, and near those that are known."""
        found = numbers_in(value)
        if not self._only_reads or not found or not all(map(facts.takes, found)):
            return False
        largest = max((abs(one) for one in numbers_in(" ".join(self.values))), default=10_000.0)
        return max(map(abs, found)) <= 10 * max(largest, 100.0)


def _is_word(value: str, known_words: frozenset[str]) -> bool:
    small = folded(value)
    return bool(next(masks(small), "")) or small in UNITS or stems_of(small) <= known_words


def _shape(value: str) -> str:
    if value.isalpha():
        return f"{'A' if value.isupper() else 'a'}{len(value)}"
    for pattern, sign in _SHAPES:
        value = pattern.sub(sign, value)
    return value
