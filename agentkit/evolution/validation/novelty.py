"""What a change says that nothing bears out: the measure for who must read it.

Checks see poison that states its wish. One that is worded like an honest rewrite passes every list
of phrases. It has to say something, though, and say it with words: a tenth *more*, the *last* one,
a *relative*. So the question is turned round. A rewrite whose words all stand in the tool already
(its texts, names, schema, worked calls), or say nothing by themselves
(``phrases/plain_words.txt``), and that claims nothing with them (``claims.py``), needs nobody. Any
other waits for a judge or a person (``ValidationPolicy.new_words``). So does one in a language that
has no plain words here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from agentkit.evolution.validation.claims import Claims, values_shown
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import Edit, ParameterFacts, leaves, mapping, rules_of
from agentkit.evolution.validation.tool_names import without_closed_forms
from agentkit.evolution.validation.wording import (
    ISO,
    LETTERS,
    WIDE,
    WRITTEN_SO,
    alike,
    counts,
    folded,
    formal,
    is_plain,
    masks,
    numbers_in,
    plain_abroad,
    plain_unspaced,
    readings_of,
    says,
    spaced,
    stands_in,
    stem,
    stems,
    stems_of,
    symbols_in,
    units,
    without_conversions,
    without_examples,
    words,
)

_WORD = re.compile(r"[^\W\d_]+|\d[\d.,]*|[%€£$]")
_NUMBER = re.compile(r"\d[\d.,]*")
_JOINT = re.compile(r"_|[a-z][A-Z]")
_WHOLE = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CLAUSE = re.compile(r"[.;,:]\s+|[\u3002\uff1b\uff0c]")
_CODE = re.compile(r"\b(?:[A-Z]{2,}|[\w-]*\d[\w-]*)\b")
_MASKED = re.compile(r"\b(?:Y{2,4}|MM|DD|HH|SS)\b")
_BEFORE_OBJECTS = frozenset(
    ["the", "a", "an", "all", "any", "each", "every", "new", "old", "it", "them"]
)


def says_new(change: ProposedChange) -> bool:
    """Whether a change says something that neither the tool nor plain words say.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> says_new(rewrite("weather_forecast", {"parameters.days": "Days, from 1 to 7."}))
        False
        >>> says_new(rewrite("cars_search", {"parameters.max_price": "Price; a tenth more."}))
        True
    """
    return any(True for _ in new_words(change))


def new_words(change: ProposedChange) -> Iterator[tuple[Edit, tuple[str, ...]]]:
    """The changed texts that say something new, each with the words that do.

    A parameter's text counts as new as well when it does not begin with that parameter, or less
    than a third of it is about it: it is exchanged then, in words that the tool has elsewhere.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> moved = rewrite("cars_search", {"parameters.max_price": "Highest price, a tenth more."})
        >>> [words for _, words in new_words(moved)]
        [('tenth', 'more')]
    """
    if change.base.is_composite and not change.summaries[0]:
        return  # a program that is new, with its first words: InsertTool and a person look at it
    grounds = _Grounds(change)
    for edit in change.edits:
        if edit.kind not in {"example", "rule"}:
            found = tuple(dict.fromkeys(grounds.unknown(edit)))
            if len(found) == 1 and _is_rewritten(edit) and _is_of_catalogues(found[0]):
                found = ()
            if found := found or tuple(islice(Claims(change, edit, grounds.stems).found(), 1)):
                yield edit, found


def _is_rewritten(edit: Edit) -> bool:
    """Whether a text says what tool or parameter are, and is no sentence more about its use."""
    is_longer = bool(edit.before) and edit.after.startswith(edit.before)
    return edit.kind == "parameter" or (edit.kind == "summary" and not is_longer)


def _is_of_catalogues(word: str) -> bool:
    """Whether many unrelated tools use a word, and it can do no harm."""
    known = words("catalogue_words")
    return not known.isdisjoint((word, word.removesuffix("s"), f"{word}s"))


class _Grounds:
    """What a tool says already, made ready for looking words up."""

    def __init__(self, change: ProposedChange) -> None:
        self._change = change
        base = change.base
        said: list[object] = [base.name, *change.parameters, base.signature.parameters]
        said += [base.signature.result, *(_keys(one.result) for one in base.examples)]
        said += [facts.values for facts in change.parameters.values()]
        said += [rule.words for rule in rules_of(change.candidate) if hasattr(rule, "words")]
        parts = [str(leaf) for part in said for leaf in leaves(part)]
        texts = (without_examples(text.text) for text in change.texts if text.kind != "example")
        said_so = "\n".join((*texts, *parts))
        joined = filter(_JOINT.search, dict.fromkeys(_WHOLE.findall(said_so)))
        apart = " ".join(map(spaced, joined))
        self._said = folded(f"{said_so}\n{apart}")
        self.stems = stems_of(self._said)
        self._numbers = change.shown_numbers | numbers_in(self._said)
        for facts in change.parameters.values():
            self._numbers |= facts.numbers
        self._measures = {units()[word] for word in LETTERS.findall(self._said) if word in units()}

    @cached_property
    def _masks(self) -> frozenset[str]:
        """The forms of dates and times that the tool shows."""
        values = [one.arguments for one in self._change.base.examples]
        shown = folded("\n".join(str(leaf) for value in values for leaf in leaves(value)))
        return frozenset(masks(f"{self._change.known_folded}\n{self._said}\n{shown}"))

    def unknown(self, edit: Edit) -> Iterator[str]:
        """The words and numbers of a text that nothing bears out."""
        about = _About(self._change, edit)
        about_what = f"{edit.parameter} {edit.before}"
        text = without_conversions(edit.after.translate(WIDE), about_what)
        text = says("quoted").sub(" ", without_examples(text))
        text = without_closed_forms(self._change, folded(text))
        yield from (found.group() for found in says("all talk").finditer(text))
        yield from sorted(symbols_in(edit.after) - symbols_in(self._said))
        yield from about.other_defaults(text)
        text = says("what was said").sub(" ", text)
        text = says("how long").sub(lambda f: "" if about.has_length(f[1]) else f[1], text)
        text = says("of form").sub(" ", says("bound").sub(" ", text))
        if forms := set(masks(text)):
            yield from sorted(forms - (self._masks or ISO))
        text = WRITTEN_SO.sub(" ", text)
        if edit.kind == "summary":
            yield from self._other_deed(text)
        alike_numbers = Counter(map(_significant, _NUMBER.findall(edit.after)))
        found = _WORD.findall(text)
        for word in found:
            if word[0].isdigit():
                number = word.rstrip(".,")
                yield from () if self._knows_number(number, alike_numbers) else (number,)
            elif _UNSPACED.search(word):
                yield from self._unspaced(word)
            elif not self._is_grounded(word):
                yield word
        content = list(self._content(found, about))
        if edit.parameter and content and not (content[0] and 3 * sum(content) >= len(content)):
            yield f"nothing of {edit.parameter}"

    def _content(self, found: Iterable[str], about: _About) -> Iterator[bool]:
        """Of each known word that speaks of something, whether it speaks of the parameter."""
        has_begun = False
        for word in found:
            if word[0].isdigit() or _UNSPACED.search(word) or not self._is_grounded(word):
                continue
            cut = stem(word)
            is_own = cut in about.stems
            is_of_another = word not in units() and cut not in (stems() if has_begun else formal())
            if is_own or (is_of_another and word not in plain_abroad()):
                has_begun = True
                yield is_own

    def _other_deed(self, text: str) -> Iterator[str]:
        """The verb with which a summary begins when the tool did not say that it does this."""
        found = LETTERS.findall(text)
        done = stems_of(folded(f"{self._change.summaries[0]} {spaced(self._change.base.name)}"))
        if not found or stem(found[0]) in done:
            return
        if is_plain(found[0]):
            if self._change.base.signature.effects.writes and stem(found[0]) in stems("describing"):
                yield found[0]
        elif found[1:] and found[1] in _BEFORE_OBJECTS:
            yield found[0]

    def _is_grounded(self, word: str) -> bool:
        cut = stem(word)
        is_letter = len(word) == 1 and word.isascii()
        if is_letter or cut in self.stems or cut in stems() or word in plain_abroad():
            return True
        return units().get(word) in self._measures or counts().get(word) in self._numbers

    def _knows_number(self, written: str, alike_numbers: Counter[str]) -> bool:
        """One that stands somewhere already, or that another number of the text explains."""
        digits = _significant(written)
        is_known = bool(readings_of(written) & self._numbers)
        return is_known or (bool(digits) and alike_numbers[digits] > 1)

    def _unspaced(self, word: str) -> Iterator[str]:
        """What is left of Chinese and Japanese when what is known and plain is taken away."""
        for run in plain_unspaced().split(word):
            for at, char in enumerate(run):
                pairs = (run[max(at - 1, 0) : at + 1], run[at : at + 2])
                if not any(pair in self._said for pair in pairs if len(pair) == 2 or run == char):
                    yield char


class _About:
    """The parameter that a text is about, as far as its words are concerned."""

    def __init__(self, change: ProposedChange, edit: Edit) -> None:
        self._facts = change.parameters.get(edit.parameter) or ParameterFacts(path="")
        before = str(mapping(change.base.description.parameters).get(edit.parameter, ""))
        self._before = folded(before)
        known = (*self._facts.values, *change.given(edit.parameter))
        self.stems = stems_of(folded(" ".join((before, spaced(edit.parameter), *map(str, known)))))
        self.stems |= frozenset().union(*(group for group in alike() if group & self.stems))
        codes = _MASKED.sub(" ", " ".join(_CODE.findall(before))).split()
        taken = (*known, *change.taken(edit.parameter), *codes)
        self._examples = tuple(map(str, taken or values_shown(edit.after)))

    def other_defaults(self, text: str) -> Iterator[str]:
        """The values that a clause calls the default, where schema and text so far have others."""
        by_default = says("by default")
        told = [clause for clause in _CLAUSE.split(self._before) if by_default.search(clause)]
        known = folded(" ".join((str(self._facts.default), *told)))
        values = {folded(str(value)) for value in self._facts.values if isinstance(value, str)}
        for clause in filter(by_default.search, _CLAUSE.split(text)):
            named = {value for value in values if stands_in(value, clause)}
            if not any(stands_in(value, known) for value in named):
                yield from (f"default {value}" for value in sorted(named))
            numbers = numbers_in(clause)
            if numbers and not numbers & numbers_in(known):
                yield f"default {min(numbers):g}"

    def has_length(self, written: str) -> bool:
        """Whether a value that was given, or is listed, has so many characters of some kind."""
        number = counts().get(written) or float(written)
        return any(
            number in {len(value), *(sum(map(kind, value)) for kind in (str.isdigit, str.isalpha))}
            for value in self._examples
        )


def _keys(value: Any) -> list[str]:
    """The names of the fields in JSON data."""
    parts = mapping(value).values() or (value if isinstance(value, list | tuple) else ())
    return [*mapping(value), *(key for part in parts for key in _keys(part))]


def _significant(written: str) -> str:
    return written.replace(".", "").replace(",", "").strip("0")
