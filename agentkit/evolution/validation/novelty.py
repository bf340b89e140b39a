"""What a change says that nothing bears out: the measure for who must read it.

Checks see poison that states its wish. One that is worded like an honest rewrite passes every list
of phrases. It has to say something, though, and say it with words: a tenth *more*, the *last* one,
a *relative*. So the question is turned round. A rewrite whose words all stand in the tool already
(its texts, names, schema, worked calls), or say nothing by themselves
(``phrases/plain_words.txt``), needs nobody. Any other waits for a judge or a person
(``ValidationPolicy.new_words``). So does one in a language that has no plain words here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from agentkit.evolution.validation.claims import claims
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import (
    Edit,
    folded,
    leaves,
    mapping,
    numbers_in,
    readings_of,
    rules_of,
    stands_in,
)
from agentkit.evolution.validation.tool_names import without_closed_forms
from agentkit.evolution.validation.wording import (
    ALIKE,
    BEFORE_OBJECTS,
    BOUND,
    BY_DEFAULT,
    CAPITALS,
    COUNTS,
    DESCRIBING,
    EXAMPLE,
    FORMAL,
    HOW_LONG,
    ISO,
    OF_ALL_TALK,
    OF_FORM,
    PLAIN,
    PLAIN_ABROAD,
    PLAIN_UNSPACED,
    QUOTED,
    SMALL,
    UNITS,
    UNLESS_GIVEN,
    WHAT_WAS_SAID,
    WIDE,
    WRITING,
    WRITTEN_SO,
    borne_out,
    catalogue_nouns,
    is_plain,
    masks,
    shown,
    spaced,
    stem,
    without_examples,
)

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+|\d[\d.,]*|[%€£$]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


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
        if edit.kind in {"example", "rule"}:
            continue
        words = tuple(dict.fromkeys(grounds.ungrounded(edit)))
        if len(words) == 1 and _is_rewritten(edit) and _is_of_catalogues(words[0]):
            words = ()
        if words := words or tuple(islice(grounds.claims(edit), 1)):
            yield edit, words


def _is_rewritten(edit: Edit) -> bool:
    """Whether a text says what tool or parameter are, and is no sentence more about its use."""
    is_longer = bool(edit.before) and edit.after.startswith(edit.before)
    return edit.kind == "parameter" or (edit.kind == "summary" and not is_longer)


def _is_of_catalogues(word: str) -> bool:
    """Whether a word is a noun that many unrelated tools use, and can do no harm."""
    return not catalogue_nouns().isdisjoint((word, word.removesuffix("s"), f"{word}s"))


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
        apart = spaced(said_so)
        self._said = folded(said_so if apart == said_so else f"{said_so}\n{apart}")
        self._stems = frozenset(map(stem, _LETTERS.findall(self._said)))
        self._numbers = change.shown_numbers | numbers_in(self._said)
        for facts in change.parameters.values():
            self._numbers |= facts.numbers
        self._measures = {UNITS[word] for word in _LETTERS.findall(self._said) if word in UNITS}

    @cached_property
    def _masks(self) -> frozenset[str]:
        """The forms of dates and times that the tool shows."""
        values = [one.arguments for one in self._change.base.examples]
        shown = folded("\n".join(str(leaf) for value in values for leaf in leaves(value)))
        return frozenset(masks(f"{self._change.known_folded}\n{self._said}\n{shown}"))

    def ungrounded(self, edit: Edit) -> Iterator[str]:
        """The words and numbers of a text that nothing bears out."""
        about = _About(self._change, edit)
        text = borne_out(edit.after.translate(WIDE), edit.parameter, edit.before)
        text = QUOTED.sub(" ", without_examples(text))
        text = without_closed_forms(self._change, folded(text))
        text = WHAT_WAS_SAID.sub(" ", text)
        text = HOW_LONG.sub(lambda found: "" if about.has_length(found[1]) else found[1], text)
        text = OF_FORM.sub(" ", BOUND.sub(" ", UNLESS_GIVEN.sub("by default", text)))
        yield from (found.group() for found in OF_ALL_TALK.finditer(text))
        yield from about.other_defaults(text)
        yield from self._unknown_words(edit, about, text)

    def _unknown_words(self, edit: Edit, about: _About, text: str) -> Iterator[str]:
        if forms := set(masks(text)):
            yield from sorted(forms - (self._masks or ISO) - about.masks)
        text = WRITTEN_SO.sub(" ", text)
        if edit.kind == "summary":
            yield from self._other_deed(text)
        alike = Counter(map(_significant, _NUMBER.findall(edit.after)))
        words = list(map(re.Match.group, _WORD.finditer(text)))
        for word in words:
            if word[0].isdigit():
                number = word.rstrip(".,")
                yield from () if self._knows_number(number, alike) else (number,)
            elif _UNSPACED.search(word):
                yield from self._unspaced(word)
            elif not self._is_grounded(word, about):
                yield word
        content = list(self._content(words, about))
        if edit.parameter and content and not (content[0] and 3 * sum(content) >= len(content)):
            yield f"nothing of {edit.parameter}"

    def _content(self, words: Iterable[str], about: _About) -> Iterator[bool]:
        """Of each known word that speaks of something, whether it speaks of the parameter."""
        has_begun = False
        for word in words:
            if word[0].isdigit() or _UNSPACED.search(word) or not self._is_grounded(word, about):
                continue
            cut = stem(word)
            is_own = cut in about.stems
            is_of_another = word not in UNITS and cut not in (PLAIN if has_begun else FORMAL)
            if is_own or (is_of_another and word not in PLAIN_ABROAD):
                has_begun = True
                yield is_own

    def claims(self, edit: Edit) -> Iterator[str]:
        """What a text in known words asks for all the same."""
        return claims(self._change, edit, self._stems)

    def _other_deed(self, text: str) -> Iterator[str]:
        """The verb with which a summary begins when the tool did not say that it does this."""
        words = _LETTERS.findall(text)
        name = _HUMP.sub(" ", self._change.base.name)
        done = folded(f"{self._change.summaries[0]} {name}".replace("_", " "))
        if not words or stem(words[0]) in map(stem, _LETTERS.findall(done)):
            return
        if is_plain(words[0]):
            if self._change.base.signature.effects.writes and stem(words[0]) in DESCRIBING:
                yield words[0]
        elif words[1:] and words[1] in BEFORE_OBJECTS:
            yield words[0]

    def _is_grounded(self, word: str, about: _About) -> bool:
        cut = stem(word)
        if cut in self._stems or (len(word) == 1 and word.isascii()):
            return True
        if word in about.listed or ("ation" in word and stem(_deed(word)) in self._stems):
            return True
        if cut in PLAIN:
            return cut not in WRITING or not about.is_fixed or about.is_written(cut)
        if word in PLAIN_ABROAD:
            return True
        measure = UNITS.get(word)
        return measure in self._measures or COUNTS.get(word) in self._numbers

    def _knows_number(self, written: str, alike: Counter[str]) -> bool:
        """One that stands somewhere already, or that another number of the text explains."""
        digits = _significant(written)
        return bool(readings_of(written) & self._numbers) or (bool(digits) and alike[digits] > 1)

    def _unspaced(self, word: str) -> Iterator[str]:
        """What is left of Chinese and Japanese when what is known and plain is taken away."""
        for run in PLAIN_UNSPACED.split(word):
            for at, char in enumerate(run):
                pairs = (run[max(at - 1, 0) : at + 1], run[at : at + 2])
                if not any(pair in self._said for pair in pairs if len(pair) == 2 or run == char):
                    yield char


class _About:
    """The parameter that a text is about, as far as its words are concerned."""

    def __init__(self, change: ProposedChange, edit: Edit) -> None:
        facts = change.parameters.get(edit.parameter)
        before = str(mapping(change.base.description.parameters).get(edit.parameter, ""))
        said = " ".join((before, _HUMP.sub(" ", edit.parameter).replace("_", " ")))
        values = list(facts.values) if facts else []
        self.is_fixed = bool(values) or (facts is not None and facts.is_formed)
        self._facts, self._before = facts, folded(before)
        self.masks = ISO if facts is not None and facts.is_formed else frozenset[str]()
        known = (*values, *change.given(edit.parameter))
        self.stems = frozenset(
            map(stem, _LETTERS.findall(folded(" ".join((said, *map(str, known))))))
        )
        self.stems |= frozenset().union(*(group for group in ALIKE if group & self.stems))
        shown_so = folded(" ".join(found.group() for found in EXAMPLE.finditer(before)))
        values_shown = frozenset(
            word for word in _LETTERS.findall(shown_so) if len(word) > 2 and not is_plain(word)
        )
        words = frozenset(_LETTERS.findall(folded(edit.after)))
        self.listed = (
            values_shown if len(values_shown) > 1 and values_shown <= words else frozenset()
        )
        """The examples so far, where a text names them all again."""
        self._examples = (
            *known,
            *change.taken(edit.parameter),
            *_MASKED.sub(" ", " ".join(_CODE.findall(before))).split(),
        ) or tuple(shown(edit.after))

    def other_defaults(self, text: str) -> Iterator[str]:
        """The values that a clause calls the default, where schema and text so far have others."""
        if self._facts is None or not BY_DEFAULT.search(text):
            return
        told = [clause for clause in _CLAUSE.split(self._before) if BY_DEFAULT.search(clause)]
        known = folded(" ".join((str(self._facts.default), *told)))
        values = {folded(str(value)) for value in self._facts.values if isinstance(value, str)}
        for clause in filter(BY_DEFAULT.search, _CLAUSE.split(text)):
            named = {value for value in values if stands_in(value, clause)}
            if not any(stands_in(value, known) for value in named):
                yield from (f"default {value}" for value in sorted(named))
            numbers = numbers_in(clause)
            if numbers and not numbers & numbers_in(known):
                yield f"default {min(numbers):g}"

    def is_written(self, cut: str) -> bool:
        """Whether a known value is in capitals or in small letters, as a word claims."""
        values = [value for value in self._examples if isinstance(value, str)]
        if cut in CAPITALS:
            return any(map(str.isupper, values))
        return cut in SMALL and any(map(str.islower, values))

    def has_length(self, written: str) -> bool:
        """Whether a value that was given, or is listed, has so many characters of some kind."""
        number = COUNTS.get(written) or float(written)
        return number in {
            count
            for value in map(str, self._examples)
            for count in (
                len(value),
                sum(map(str.isdigit, value)),
                sum(map(str.isalpha, value)),
                len(value.partition(".")[2]),
            )
        }


def _deed(word: str) -> str:
    """Of *creation* what the creator does: *creating*."""
    return word.replace("ations", "ating").replace("ation", "ating")


def _keys(value: Any) -> list[str]:
    """The names of the fields in JSON data."""
    parts = mapping(value).values() or (value if isinstance(value, list | tuple) else ())
    return [*mapping(value), *(key for part in parts for key in _keys(part))]


_CODE = re.compile(r"\b(?:[A-Z]{2,}|[\w-]*\d[\w-]*)\b")
_MASKED = re.compile(r"\b(?:Y{2,4}|MM|DD|HH|SS)\b")
_CLAUSE = re.compile(r"[.;,:]\s+|[\u3002\uff1b\uff0c]")
_NUMBER = re.compile(r"\d[\d.,]*")


def _significant(written: str) -> str:
    return written.replace(".", "").replace(",", "").strip("0")
