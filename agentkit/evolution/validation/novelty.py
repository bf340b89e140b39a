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
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from agentkit.evolution.validation.folding import folded, stands_in
from agentkit.evolution.validation.numbers import numbers_in, readings_of
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.semantic.comparing import without_closed_forms
from agentkit.evolution.validation.shipped import shipped_lines, shipped_sections
from agentkit.evolution.validation.texts import Edit, leaves, mapping, rules_of

_ENDING = re.compile(
    r"(?:ations?|ings?|ions?|ers?|ors?|ies|ied|ed|es|ly|al|en|er|te?n|(?<!s)s|e|y|a|o)$"
)
_LONGEST_STEM = 7
_DOUBLED = frozenset("bdfgmnprt")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+|\d[\d.,]*|[%€£$]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")

_COUNTS = {
    word: float(number)
    for number, words in enumerate(
        (
            "two zwei deux dos", "three drei trois tres", "four vier quatre cuatro",
            "five funf cinq cinco", "six sechs seis", "seven sieben sept siete",
            "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez",
            "eleven elf onze once", "twelve zwolf douze doce",
        ),
        start=2,
    )
    for word in words.split()
} | {
    "fifteen": 15.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0,
    "hundred": 100.0, "thousand": 1000.0,
}  # fmt: skip
_HOW_LONG = re.compile(
    r"(?<![\w.,])(?<!least )(?<!most )(?<!up to )(?<!than )"
    rf"(\d{{1,3}}|{'|'.join(_COUNTS)})(?=[- ](?:[^\W\d]+[- ])?"
    r"(?:digit|letter|character|decimal|ziffer|buchstabe|zeichen|chiffre|lettre|cifra|letra))"
)
"""*three letters*, *six digits*: how many characters a value has, and no limit of that."""

_ONE = (
    r"[`\"'“„«]?(?:[A-Z0-9][\w.+@/:-]{0,30}(?:\s[A-Z][\w-]{0,20}){0,2}"
    r"|[\w.+*?-]{0,30}[\d@/_*][\w.+@/:*?-]{0,30}|[a-z]{2,3}(?<!\bor)(?<!\band))[`\"'”“»]?(?!\w)"
)
_AND = r"(?:,|/|、|\b(?:or|and|oder|und|ou|et|y|o|to)\b){1,2}"
_ONES = rf"{_ONE}(?:\s?{_AND}\s?{_ONE}){{0,5}}"
_AS = (
    r"(?:\b(?:[Ss]uch as|e\.g\.,?|[Ff]or (?:example|instance),?|[Ll]ike|z\. ?B\.|[Pp]ar exemple"
    r"|comme|[Pp]\. ?ej\.|[Pp]or ejemplo|como|beispielsweise|[Ee]xample:)\s"
    r"|(?:例如|比如|例えば|例|如):?)\s?"
)
_EXAMPLE = re.compile(rf"{_AS}{_ONES}|\((?:e\.g\.,?\s?|z\. ?B\.\s?|如)?{_ONES}\)")
"""Values as examples: names with a capital, codes, numbers. Small words are words, and are read."""

_SAYING = r"(?:[`\"“„«「『]\s?[^`\"”“»」』\n]{1,30}\s?[`\"”“»」』]|'[^'\n]{1,30}')(?!\w)"
_QUOTED = re.compile(
    rf"{_AS}{_SAYING}|\b(?:not|nicht|statt)\s{_SAYING}"
    rf"|(?<!\w){_SAYING}(?=\s*(?:is|are|means?|=|:|stands|ist|heisst|est|es|は|是|表示)(?!\w))"
)
"""What users may say: an example, or what is explained (*"under 15k" is 15000*)."""

_WIDE = str.maketrans("\uff08\uff09\uff1a\u2018\u2019", "():''")

_PEOPLE = r"(?:user|customer|caller|client|person|people|utilisateur|usuario|nutzer|kunde)"
_WHAT_WAS_SAID = re.compile(
    rf"\b{_PEOPLE}s? (?:also |did not |does not |do not |has |have |n'est |no )*"
    r"(?:ask|name|say|said|mention|give|gave|given|want|mean|meant|specif|state|need|provide|write|wrote|care|know"
    rf"|dice|pide)\w*|\b(?:none|nothing|not|was|is|were|are) mentioned\b"
    rf"|\bask(?:ing)? (?:the )?{_PEOPLE}s?\b|用户(?:只|所)?(?:说|问|提供|指定|给出)"
)
"""What was said decides over arguments; any other word about people is one that is read."""

_N = rf"(?:-?\d|(?:{'|'.join(_COUNTS)}|one)\b)"
_MORE = r"(?:more|less|fewer|greater|higher|lower|longer|shorter|larger|smaller)"
_BOUND = re.compile(
    rf"\bat (?:the )?(?:most|least)\b|\b(?:(?:no|not|never) )?(?:{_MORE} than(?: or equal to)?|above|below|over|under"
    rf"|beyond|exceed(?:s|ing)?|up to|limited to|capped at|starting at|hochstens|mindestens|bis zu|au plus|au moins"
    rf"|como (?:maximo|minimo)|no maximo|pelo menos|hasta|jusqu'a)(?= ?{_N})|\bnever(?= {_MORE} than ?{_N})"
    rf"|(?<=\d) (?:or|and|being|is the) (?:{_MORE}|above|below|up|(?:most|least|highest|lowest|largest|smallest)\b)"
    r"|(?<=\d) (?:the )?(?:highest|lowest|largest|smallest|most|least)\b"
    rf"|\b(?:highest|lowest|largest|smallest|most|least)(?= (?:\w+ )?(?:is|are|of|:) ?{_N})"
)
"""Words of a limit, whose number is asked for instead."""

_OF_FORM = re.compile(
    r"\bone or more\b|\bbetween (?:the )?two\b|\bhow (?:old|long|far|big|tall|deep|high|wide|fast|often)\b"
    r"|\bover all\b|\bin a few words\b|\b(?:come|comes|given|returned) back\b|\bnow or at\b"
    r"|\bonly (?:those|the ones|these)(?= (?:in|of|with|from|that|which|whose|since|after|before)\b)"
    r"|\b(?:into|in|to|of|for) another(?= (?:language|currency|unit|format|country|city|day|date)\b)|\bnot what is inside\b"
    r"|\b(?:upper|lower)(?:[- ]?case\w*|(?= (?:or|and) (?:upper|lower)\b))"
    r"|\biso[- ]?\d{3,5}(?:-\d)?\b|\blast(?= name\b)|\bfrom one (?:\w+ ){1,2}(?:in)?to another\b"
    r"|\bfirst(?= (?:day|week|month|year|name|letter|digit|character|word|page|line|row|item)s?\b)|(?<=est )first\b"
)
"""Words that move a value elsewhere; here they say how it is written, or which part is meant."""


_OF_ALL_TALK = re.compile(
    r"\b(?:in|on|for|with|at|to|before|after|during|from) (?:every|each|any|all)(?: of)?(?: (?:the|its|your))?(?: \w+)?"
    r" (?:request|quer|question|answer|message|response|repl|input|case|moment|turn|conversation|word|text|result|step)"
    r"|\b(?:every|each) time\b|\bat (?:all times|any time)\b|\bkeep (?:on )?(?:call|us|ask|search|fetch|read)ing\b"
)
"""A tool for whatever is talked about: plain words, but none describes a call."""

_BY_DEFAULT = re.compile(
    r"\b(?:by default|defaults? (?:to|is|value)|(?:is|as) (?:the )?default|the default|standardmassig|par defaut|por defecto"
    r"|(?:when|if) (?:it is |this is )?(?:left out|omitted|absent|missing|empty|not (?:given|set|specified|provided)))\b|默认|既定"
)
_UNLESS_GIVEN = re.compile(r"\bunless (?:another|other|something else|a different)\b(?: \w+)? (?:is |are )?(?:given|set|named)\b")
_MASK_PART = r"(?:y{4}|j{4}|a{4}|yy|jj|mm|dd|tt|hh|ss)"
_MASK = re.compile(rf"(?<![^\W_]){_MASK_PART}(?:[-/.: ]?(?:t(?=hh))?{_MASK_PART})+z?(?![^\W_])")
_WRITTEN_SO = re.compile(rf"(?:\b(?:written|given) (?:as|like|in the form(?:at)?) )?{_MASK.pattern}")
_YEARS = re.compile(r"j{4}|a{4}")
_DAYS = re.compile(r"jj|tt")
_DATE_OR_TIME = re.compile(
    r"(?<![\w./-])(?:(\d{4})([-/.])\d\d\2\d\d|\d\d([-/.])\d\d\3\d{4}|\d\d(?::\d\d){1,2})(?![\w/-])"
)
_ISO = frozenset({"yyyy-mm-dd", "yyyy-mm", "hh:mm", "hh:mm:ss"})


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
        if words and not (len(words) == 1 and _is_rewritten(edit) and _is_of_catalogues(words[0])):
            yield edit, words


def _is_rewritten(edit: Edit) -> bool:
    """Whether a text says what tool or parameter are, and is no sentence more about its use."""
    is_longer = bool(edit.before) and edit.after.startswith(edit.before)
    return edit.kind == "parameter" or (edit.kind == "summary" and not is_longer)


def _is_of_catalogues(word: str) -> bool:
    """Whether a word is a noun that many unrelated tools use, and can do no harm."""
    return not _nouns().isdisjoint((word, word.removesuffix("s"), f"{word}s"))


@cache
def _nouns() -> frozenset[str]:
    return frozenset(_words(shipped_lines("catalogue_words")))


class _Grounds:
    """What a tool says already, made ready for looking words up."""

    def __init__(self, change: ProposedChange) -> None:
        self._change = change
        base = change.base
        said: list[object] = [base.name, *change.parameters, base.signature.parameters]
        said += [base.signature.result, *([one.arguments, one.result] for one in base.examples)]
        said += [facts.values for facts in change.parameters.values()]
        said += [rule.words for rule in rules_of(change.candidate) if hasattr(rule, "words")]
        parts = [str(leaf) for part in said for leaf in leaves(part)]
        self._said = folded(_HUMP.sub(" ", "\n".join((change.known, *parts))))
        self._stems = frozenset(map(stem, _LETTERS.findall(self._said)))
        self._numbers = change.shown_numbers | numbers_in(self._said)
        for facts in change.parameters.values():
            self._numbers |= facts.numbers
        self._masks = frozenset(_masks(self._said))
        self._measures = {_UNITS[word] for word in _LETTERS.findall(self._said) if word in _UNITS}

    def ungrounded(self, edit: Edit) -> Iterator[str]:
        """The words and numbers of a text that nothing bears out."""
        about = _About(self._change, edit)
        text = _QUOTED.sub(" ", _EXAMPLE.sub(" ", edit.after.translate(_WIDE)))
        text = without_closed_forms(self._change, folded(text))
        text = _WHAT_WAS_SAID.sub(" ", text)
        text = _HOW_LONG.sub(lambda found: "" if about.has_length(found[1]) else found[1], text)
        text = _OF_FORM.sub(" ", _BOUND.sub(" ", _UNLESS_GIVEN.sub("by default", text)))
        yield from (found.group() for found in _OF_ALL_TALK.finditer(text))
        yield from about.other_defaults(text)
        yield from sorted(set(_masks(text)) - (self._masks or _ISO) - about.masks)
        text = _WRITTEN_SO.sub(" ", text)
        if edit.kind == "summary":
            yield from self._other_deed(text)
        content: list[bool] = []  # of each word that speaks of something, whether it is of this
        for match in _WORD.finditer(text):
            word = match.group()
            if word[0].isdigit():
                number = word.rstrip(".,")
                if not self._knows_number(number, edit.after):
                    yield number
            elif _UNSPACED.search(word):
                yield from self._unspaced(word)
            elif not self._is_grounded(word, about):
                yield word
            elif (cut := stem(word)) in about.stems:
                content.append(True)
            elif word not in _UNITS and cut not in (_PLAIN if content else _FORMAL):
                content += [False] if word not in _PLAIN_ABROAD else []
        if edit.parameter and content and not (content[0] and 3 * sum(content) >= len(content)):
            yield f"nothing of {edit.parameter}"

    def _other_deed(self, text: str) -> Iterator[str]:
        """The verb with which a summary begins when the tool did not say that it does this."""
        words = _LETTERS.findall(text)
        name = _HUMP.sub(" ", self._change.base.name)
        done = folded(f"{self._change.summaries[0]} {name}".replace("_", " "))
        if not words or stem(words[0]) in map(stem, _LETTERS.findall(done)):
            return
        if is_plain(words[0]):
            if self._change.base.signature.effects.writes and stem(words[0]) in _DESCRIBING:
                yield words[0]
        elif words[1:] and words[1] in _BEFORE_OBJECTS:
            yield words[0]

    def _is_grounded(self, word: str, about: _About) -> bool:
        cut = stem(word)
        if cut in self._stems or (len(word) == 1 and word.isascii()):
            return True
        if cut in _PLAIN:
            return cut not in _WRITING or not about.is_fixed or about.is_written(cut)
        if word in _PLAIN_ABROAD:
            return True
        measure = _UNITS.get(word)
        return measure in self._measures or _COUNTS.get(word) in self._numbers

    def _knows_number(self, written: str, text: str) -> bool:
        """One that stands somewhere already, or that another number of the text explains."""
        if readings_of(written) & self._numbers:
            return True
        digits = _significant(written)
        alike = [one for one in _NUMBER.findall(text) if _significant(one) == digits]
        return bool(digits) and len(alike) > 1

    def _unspaced(self, word: str) -> Iterator[str]:
        """What is left of Chinese and Japanese when what is known and plain is taken away."""
        for run in _PLAIN_UNSPACED.split(word):
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
        self.masks = _ISO if facts is not None and facts.is_formed else frozenset[str]()
        known = (*values, *_given(change, edit.parameter))
        self.stems = frozenset(
            map(stem, _LETTERS.findall(folded(" ".join((said, *map(str, known))))))
        )
        self.stems |= frozenset().union(*(group for group in _ALIKE if group & self.stems))
        self._examples = (*known, *_CODE.findall(before), *_shown(edit.after))

    def other_defaults(self, text: str) -> Iterator[str]:
        """The values that a clause calls the default, where schema and text so far have others."""
        if self._facts is None or not _BY_DEFAULT.search(text):
            return
        told = [clause for clause in _CLAUSE.split(self._before) if _BY_DEFAULT.search(clause)]
        known = folded(" ".join((str(self._facts.default), *told)))
        values = {folded(str(value)) for value in self._facts.values if isinstance(value, str)}
        for clause in filter(_BY_DEFAULT.search, _CLAUSE.split(text)):
            named = {value for value in values if stands_in(value, clause)}
            if not any(stands_in(value, known) for value in named):
                yield from (f"default {value}" for value in sorted(named))
            numbers = numbers_in(clause)
            if numbers and not numbers & numbers_in(known):
                yield f"default {min(numbers):g}"

    def is_written(self, cut: str) -> bool:
        """Whether a known value is in capitals or in small letters, as a word claims."""
        values = [value for value in self._examples if isinstance(value, str)]
        if cut in _CAPITALS:
            return any(map(str.isupper, values))
        return cut in _SMALL and any(map(str.islower, values))

    def has_length(self, written: str) -> bool:
        """Whether a value that was given, or is listed, has so many characters of some kind."""
        number = _COUNTS.get(written) or float(written)
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


def _masks(text: str) -> Iterator[str]:
    """The forms of dates and times that a folded text has, in letters or in examples."""
    for match in _MASK.finditer(text):
        mask = _DAYS.sub("dd", _YEARS.sub("yyyy", match.group().rstrip("z")))
        yield from re.split(r"t| (?=hh)", mask)
    for match in _DATE_OR_TIME.finditer(text):
        value, (year, one, other) = match.group(), match.groups()
        if year:
            yield f"yyyy{one}mm{one}dd"
        elif other:
            yield from (f"dd{other}mm{other}yyyy", f"mm{other}dd{other}yyyy")
        else:
            yield "hh:mm:ss"[: len(value)]


def _given(change: ProposedChange, path: str) -> Iterator[Any]:
    """What worked calls gave a top-level parameter."""
    for example in change.base.examples:
        given = mapping(example.arguments).get(path)
        yield from given if isinstance(given, list | tuple) else [given]


def _shown(text: str) -> Iterator[str]:
    """The examples that a text gives itself: *two letters such as FR* is of a piece."""
    for match in _EXAMPLE.finditer(text):
        yield from re.findall(r"[\w.-]+", match.group())


_CODE = re.compile(r"\b(?:[A-Z]{2,}|[\w-]*\d[\w-]*)\b")
_CLAUSE = re.compile(r"[.;,:]\s+|[。；，]")
_NUMBER = re.compile(r"\d[\d.,]*")


def _significant(written: str) -> str:
    return written.replace(".", "").replace(",", "").strip("0")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A word without its ending, roughly: only whether two words may be forms of one matters.

    Example:
        >>> stem("searching") == stem("searches"), stem("cities") == stem("city")
        (True, True)
    """
    for least in (3, 4, 4, 4):
        cut = _ENDING.sub("", word, count=1)
        if len(cut) < least or cut == word or not word.isascii():
            break
        word = cut[:-1] if cut[-1] == cut[-2] and cut[-1] in _DOUBLED else cut
    return word[:_LONGEST_STEM]


def is_plain(word: str) -> bool:
    """Whether a folded word says nothing by itself (``phrases/plain_words.txt``)."""
    return stem(word) in _PLAIN or word in _PLAIN_ABROAD


def _words(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from line.split()


_SECTIONS: Mapping[str, list[str]] = shipped_sections("plain_words")
_ENGLISH = ("grammar", "describing", "values", "writing", "subjects")
_PLAIN = frozenset(stem(word) for name in _ENGLISH for word in _words(_SECTIONS[name]))
_PLAIN_ABROAD = frozenset(
    word for name in ("de", "fr", "es", "pt") for word in _words(_SECTIONS[name])
)
"""Of other languages words alone count: French *pays* is no form of the English verb."""

_FORMAL = _PLAIN - frozenset(map(stem, _words(_SECTIONS["subjects"])))
_DESCRIBING = frozenset(map(stem, _words(_SECTIONS["describing"])))
_ALIKE = tuple(frozenset(map(stem, line.split())) for line in _SECTIONS["alike"])
_BEFORE_OBJECTS = frozenset(("the", "a", "an", "all", "any", "each", "every", "new", "old", "it", "them"))
_CAPITALS = frozenset(map(stem, ("capital", "uppercase")))
_SMALL = frozenset(map(stem, ("small", "lowercase")))
_WRITING = frozenset(map(stem, _words(_SECTIONS["writing"])))
_PLAIN_UNSPACED = re.compile(
    "|".join(sorted((*_words(_SECTIONS["zh"]), *_words(_SECTIONS["ja"])), key=len, reverse=True))
)
_UNITS = {
    word: dimension
    for dimension, lines in shipped_sections("units").items()
    for line in lines
    for word in line.partition(": ")[2].split()
}
