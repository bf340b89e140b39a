"""What texts in known words still ask for.

Words that a tool has already can be arranged to choose a value, to widen a call, to call a result
empty or to say what goes into an argument. So what a text says is held to what bears it out: a form
to the values that are known, a unit to the one that is stated, a further thing in an argument to
the words of that parameter, an example to the values of its own parameter. A text may describe;
what it chooses waits.

The patterns and words stand in ``phrases/claims.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import Edit, ParameterFacts, mapping, rules_of
from agentkit.evolution.validation.wording import (
    LETTERS,
    WIDE,
    WRITTEN_SO,
    alike,
    counts,
    folded,
    formal,
    masks,
    numbers_in,
    pattern,
    says,
    sections,
    sentences,
    spaced,
    stands_in,
    stem,
    stems,
    stems_of,
    units,
    without_conversions,
    without_examples,
    word_stems,
    words,
)

_CLAUSE = re.compile("[.;:!?]\\s+|[\u3002\uff1b\uff1a]")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_GERUND = re.compile(r"\b[a-z]{3,}ing\b")
_NAMED_DEFAULT = re.compile(r"(?i:\b(default|maximum|minimum|max|min)(?: value)?(?: is)?): ")
_SIGNS = {
    "space": " ", "comma": ",", "hyphen": "-", "dash": "-", "slash": "/", "dot": ".", "colon": ":",
    "prefix": "-", "suffix": "-",
}  # fmt: skip
_WITH_SIGN = re.compile(rf"\b(?:with|and) (?:an?|one|the) ({'|'.join(_SIGNS)})\b")
_NUMERIC = frozenset({"number", "integer"})


def _says(name: str) -> re.Pattern[str]:
    """The pattern of a section of ``phrases/claims.txt``."""
    return pattern("claims", name)


class Claims:
    """What one changed text, of which every word is known or plain, claims all the same.

    Args:
        change: The change.
        edit: One of its texts.
        known: The stems of what the tool says of itself, without values.
    """

    def __init__(self, change: ProposedChange, edit: Edit, known: frozenset[str]) -> None:
        self._change, self._edit, self._words = change, edit, known
        self._facts = change.parameters.get(edit.parameter) or ParameterFacts(path="")
        self._only_reads = bool(change.base.signature.effects.is_read_only)
        before = mapping(change.base.description.parameters).get(edit.parameter, "")
        self._before = folded(str(before) if edit.parameter else edit.before)
        self._own = stems_of(f"{self._before} {folded(spaced(edit.parameter))}")
        self._values = Values(change, edit, self._own)
        wide = edit.after.translate(WIDE)
        raw = without_conversions(wide, f"{edit.parameter} {self._before}")
        raw = _NAMED_DEFAULT.sub(r"\1 ", says("quoted").sub(_explained, without_examples(raw)))
        self._text = says("of form").sub(" ", WRITTEN_SO.sub(" ", folded(raw))).strip()
        self._unbound = says("bound").sub(" ", self._text)
        parts = (part for sentence in sentences(raw) for part in _CLAUSE.split(sentence))
        self._clauses = [part for part in parts if part and not self._is_old(part)]
        self._sentences = [one for one in sentences(self._text) if not self._is_old(one)]

    def found(self) -> Iterator[str]:
        """What the text chooses, widens, denies or moves, in few words each.

        Example:
            >>> from agentkit.testing.rewrites import rewrite
            >>> moved = rewrite("cars_search", {"parameters.make": "Maker, such as Tesla."})
            >>> list(Claims(moved, moved.edits[0], frozenset()).found())
            ['example Tesla']
        """
        yield from (f"example {value}" for value in self._values.foreign(self._words))
        yield from self._phrases()
        if self._edit.parameter:
            yield from self._other_arguments()
            yield from self._other_forms()
        else:
            yield from self._about_something_else()
            yield from self._relations()
        yield from self._turned_round()
        yield from self._chosen_values()
        yield from self._chosen_numbers()
        if not self._only_reads:
            yield from self._acts()

    def _is_old(self, part: str) -> bool:
        return part.rstrip(".") in self._before or part in self._change.known_folded

    def _phrases(self) -> Iterator[str]:
        """The patterns for texts of this kind, in new clauses."""
        kinds = {"any", self._edit.kind, "parameter" if self._edit.parameter else "other"}
        kinds |= set() if self._only_reads else {"writing"}
        clauses = [part for part in _CLAUSE.split(self._unbound) if not self._is_old(part)]
        for section in sections("claims"):
            kind, colon, name = section.partition(": ")
            for clause in clauses if colon and kind in kinds else ():
                found = _says(section).search(clause)
                if found and not (name.endswith("(new)") and found.group() in self._before):
                    yield found.group()

    # What goes into an argument

    def _other_arguments(self) -> Iterator[str]:
        """Words of the talk, sums, further things and other kinds of things as the argument."""
        facts = self._facts
        own = self._own | stems_of(folded(" ".join(map(str, facts.values))))
        own |= word_stems("search") if own & word_stems("search") else frozenset()
        unwanted = word_stems("talk") | word_stems("sums")
        yield from (f"talk {word}" for word in sorted(stems_of(self._text) & unwanted - own))
        yield from self._further_things(own)
        if not facts.types & {"array", "object"}:
            yield from self._other_kinds(own)

    def _further_things(self, own: frozenset[str]) -> Iterator[str]:
        """Another thing that is to stand in the argument as well, or instead."""
        own = own.union(formal(), *(group for group in alike() if group & own))
        for found in _says("joined").finditer(self._unbound):
            word = found[1]
            is_form = word in counts() or word in units() or word in self._facts.pattern
            if not is_form and stem(word) not in own:
                yield found.group()
        parts = [part for part in _CLAUSE.split(self._text) if part.strip(" .")]
        for part in parts[1:]:
            if _says("thing").match(part) and not _says("says").search(part):
                yield from () if self._is_old(part) else (part,)

    def _other_kinds(self, own: frozenset[str]) -> Iterator[str]:
        """A code for a name, a name for a code, several for one."""
        values = [value for value in self._values.known if any(map(str.isalnum, value))]
        coded = [value for value in values if is_code(value)]
        named = own & word_stems("codes") or (values and len(coded) == len(values))
        text = says("what was said").sub(" ", self._text)  # what a customer *names* is no name
        for found in LETTERS.finditer(text):
            cut, before = stem(found.group()), text[: found.start()]
            if cut in own or _says("negated before").search(before):
                continue
            if (
                (cut in word_stems("foreign codes") and not coded)
                or (cut in word_stems("several") and _says("a kind").search(before))
                or (cut in word_stems("names") and named)
            ):
                yield f"kind {found.group()}"

    # How it is written

    def _other_forms(self) -> Iterator[str]:
        """Forms, signs and units that no known value and no text so far has."""
        for word in LETTERS.findall(self._text):
            cut = stem(word)
            if cut in stems("writing") and cut not in self._own and not self._is_written(cut):
                yield f"form {word}"
        if self._facts.is_formed or self._facts.values:
            for found in _says("as words").finditer(self._text):
                yield from () if stands_in(found.group(), self._before) else (found.group(),)
        known = "".join(self._values.known)
        for found in _says("without signs").finditer(self._text):
            yield found.group()
        for found in _WITH_SIGN.finditer(self._text):
            yield from () if _SIGNS[found[1]] in known else (found.group(),)
        stated = LETTERS.findall(f"{self._before} {folded(spaced(self._edit.parameter))}")
        own = {units()[word][1] for word in stated if word in units()}
        for found in _says("in unit").finditer(self._text):
            _, unit = units().get(found[1], ("", ""))
            if unit and (unit not in own if own else stem(found[1]) not in self._words):
                yield found.group()

    def _is_written(self, cut: str) -> bool:
        """Whether the known values are written as a word claims."""
        types = self._facts.types
        if types and not types & {"string", "array"}:
            return cut in word_stems("number forms")
        values = [value for value in self._values.known if LETTERS.search(value)]
        named = [value for value in values if _LONG_WORD.search(value) and not is_code(value)]
        return (
            (cut in word_stems("capitals") and any(map(str.isupper, values)))
            or (cut in word_stems("small letters") and any(map(str.islower, values)))
            or (cut == stem("english") and any(map(str.isascii, named)))
            or (cut in word_stems("length") and bool(named))
        )

    # Meanings

    def _turned_round(self) -> Iterator[str]:
        """The opposite of what the text says so far, and a statement that is denied now."""
        if self._facts.types == {"boolean"} and not _says("inverts").search(self._before):
            yield from (found.group() for found in _says("inverts").finditer(self._text))
        said, had = stems_of(self._unbound), self._own
        for one, other in _opposites():
            for this, that in ((one, other), (other, one)):
                if had & this and not had & that and said & that and not said & this:
                    yield from (f"other end {word}" for word in sorted(said & that))
        if not self._edit.before or self._edit.after.startswith(self._edit.before):
            return
        is_form = ("not ", "no ", "without ") if self._edit.parameter else ()
        was, is_now = (_denied(text, is_form) for text in (self._before, folded(self._edit.after)))
        yield from (f"not {word}" for word in sorted((is_now - was) & had))
        yield from (f"no longer not {word}" for word in sorted((was - is_now) & said))

    # Values

    def _chosen_values(self) -> Iterator[str]:
        """One of several values that a text puts into the call, or takes for another one."""
        for path, facts in self._change.parameters.items():
            is_switch = facts.types == {"boolean"}
            found = ["true", "false"] if is_switch else list(map(str, facts.values))
            names = {folded(value): value for value in found}
            if names and path == (self._edit.parameter or path):
                yield from self._chosen_of(names, facts)
                yield from () if is_switch else self._exchanged(names)
        if self._facts.types == {"boolean"}:
            for clause in filter(says("by default").search, self._clauses):
                is_off = _says("negates").search(clause) is not None
                yield from ("default",) if is_off == bool(self._facts.default) else ()

    def _chosen_of(self, names: dict[str, str], facts: ParameterFacts) -> Iterator[str]:
        is_own = facts.path == self._edit.parameter
        listed = {name for name in names if _stands(name, self._text)}
        for clause in self._clauses:
            named = [name for name in names if name in listed and _stands(name, clause)]
            yield from () if self._only_reads else self._mapped(clause, named, facts)
            if not named or len(named) == len(names) or self._explains(clause, named, facts):
                continue
            is_one = len(named) == 1
            is_chosen = is_one and _says("chooses").search(clause)
            is_said = is_one and not is_own and _stands(folded(facts.path), clause)
            is_part = is_own and len(listed) < len(names) and not _says("as one").search(clause)
            if is_chosen or is_said or is_part:
                yield from (f"value {names[name]}" for name in named)

    def _mapped(self, clause: str, named: Iterable[str], facts: ParameterFacts) -> Iterator[str]:
        """The values that a clause ties to a condition or meaning which nothing bears out.

        Of a tool that writes, the wrong value under a condition that always holds does harm. Borne
        out is the default, and what the parameter's own name and text say in these words.
        """
        own = self._own | stems_of(folded(spaced(facts.path)))
        own |= stems("grammar") | word_stems("any value")
        for part in filter(_says("condition").search, clause.split(", ")):
            for name in (name for name in named if _stands(name, part)):
                is_default = name == folded(str(facts.default)) and says("by default").search(part)
                if not is_default and stems_of(part) - own - stems_of(spaced(name)):
                    yield f"value {name}"

    def _explains(self, clause: str, named: list[str], facts: ParameterFacts) -> bool:
        """Whether a clause says what values mean, or which one is taken where none is given."""
        has_condition = _says("condition").search(clause) is not None
        is_default = facts.default is not None and folded(str(facts.default)) in named
        return bool(
            _says("means").search(clause)
            or (is_default and (has_condition or says("by default").search(self._text)))
            or (facts.types == {"boolean"} and has_condition)
            or (
                _says("not said").search(clause)
                and words("claims", "words of any value") & {*named}
            )
        )

    def _exchanged(self, names: Iterable[str]) -> Iterator[str]:
        for clause in (part for whole in self._clauses for part in whole.split(", ")):
            at = sorted((clause.find(name), name) for name in names if _stands(name, clause))
            at = [(start, name) for start, name in at if start >= 0 and len(name) > 1]
            for (start, one), (end, other) in pairwise(at):
                between = clause[start + len(one) : end]
                if _says("same").search(between) or _says("used when").search(clause):
                    yield f"{one} for {other}"

    def _chosen_numbers(self) -> Iterator[str]:
        """A number that a text puts into the call, or a bound that it turns round."""
        facts, before = self._facts, numbers_in(self._before)
        is_number = facts.types <= _NUMERIC and not facts.values
        names = [folded(path) for path in self._change.parameters]
        for clause in self._clauses:
            plain = _says("range").sub(" at most ", says("bound").sub(" at most ", clause))
            said = numbers_in(plain := says("how long").sub(" ", plain))
            if not said or "at most" in plain or _says("means").search(plain):
                continue
            if self._edit.parameter:
                is_known = said & numbers_in(str(facts.default)) or (
                    said & before and _says("condition").search(plain)
                )
                is_chosen = is_number and not is_known
            else:
                is_about = any(stands_in(name, clause) for name in names)
                chooses = _says("chooses").search(clause) and _says("alone").search(clause)
                is_chosen = (is_about and not said & self._defaults) or bool(chooses)
            yield from (f"value {min(said):g}",) if is_chosen else ()
        ends = (("low", facts.minimum, facts.maximum), ("high", facts.maximum, facts.minimum))
        for name, right, wrong in ends:
            for found in _says(name).finditer(self._text):
                if wrong is not None and wrong != right and wrong in numbers_in(found[1]):
                    yield found.group()

    @cached_property
    def _defaults(self) -> set[float]:
        """The numbers that schema and texts call defaults."""
        texts = map(folded, map(str, mapping(self._change.base.description.parameters).values()))
        told = [text for text in texts if "default" in text or says("by default").search(text)]
        schema = [str(facts.default) for facts in self._change.parameters.values()]
        return numbers_in(" ; ".join((*told, *schema)))

    # Calls and results

    def _about_something_else(self) -> Iterator[str]:
        """Sentences without a word of the tool, those that speak of the talk, and lost words."""
        is_summary = self._edit.kind == "summary"
        for sentence in self._sentences:
            cuts = list(map(stem, LETTERS.findall(sentence)))
            is_kept = is_summary and 2 * sum(cut in self._own for cut in cuts) >= len(cuts)
            is_known = any(cut in self._words and cut not in formal() for cut in cuts)
            asks = says("what was said").search(sentence) and sentence.startswith(("ask", "leave"))
            if sentence.isascii() and not (asks or is_kept or is_known):
                yield "nothing of the tool"
        talk = stems_of(self._text) & word_stems("requests") - self._words
        yield from (f"talk {cut}" for cut in sorted(talk))
        if is_summary and self._before.isascii():
            said = self._own - stems("grammar", "describing")
            if 3 * len(said & stems_of(folded(self._edit.after))) < len(said):
                yield "says less"

    def _relations(self) -> Iterator[str]:
        """What is put into another parameter, and parameters that are to go together."""
        names = {path: stems_of(folded(spaced(path))) for path in self._change.parameters}
        is_ruled = any(getattr(rule, "others", ()) for rule in rules_of(self._change.candidate))
        for sentence in self._sentences:
            for found in _says("put into").finditer(sentence):
                yield from self._put_into(found, names)
            is_summary = self._edit.kind == "summary" and not _says("ought").search(sentence)
            named = [path for path, own in names.items() if own & stems_of(sentence)]
            is_together = len(named) > 1 and _says("together").search(sentence)
            is_needed = named and _says("needed").search(sentence)
            if not (is_ruled or is_summary) and (is_needed or is_together):
                yield "relation"

    def _put_into(self, found: re.Match[str], names: dict[str, frozenset[str]]) -> Iterator[str]:
        texts = mapping(self._change.base.description.parameters)
        for path, own in names.items():
            if stem(found[2]) in own:
                known = stems("grammar", "describing") | own
                known |= stems_of(folded(str(texts.get(path, ""))))
                yield from (f"{cut} as {path}" for cut in sorted(stems_of(found[1]) - known))

    def _acts(self) -> Iterator[str]:
        """Of a tool with effects: when to act."""
        summary, name = folded(self._change.summaries[0]), folded(spaced(self._change.base.name))
        deeds = stems_of(f"{summary.split(' ')[0]} {name} {' '.join(_GERUND.findall(summary))}")
        is_replaced = self._edit.kind in {"parameter", "summary"}
        for clause in self._clauses[1 if is_replaced else 0 :]:
            said = list(map(stem, LETTERS.findall(clause)))
            is_when = self._edit.kind != "parameter" and _says("once").search(clause)
            yield from (f"to {cut}" for cut in (said if is_when else said[:1]) if cut in deeds)


@cache
def _opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Pairs of stems that turn a meaning round."""
    lines = (line.partition(" : ") for line in sections("claims")["words of opposites"])
    return tuple((stems_of(one), stems_of(other)) for one, _, other in lines)


def _denied(text: str, passed_over: tuple[str, ...]) -> frozenset[str]:
    """The stems of what a text speaks of behind a negation, save clauses that begin so."""
    parts = (part for sentence in sentences(text) for part in _CLAUSE.split(sentence))
    parts = (part for part in parts if not part.startswith(passed_over))
    found = (part[hit.end() :] for part in parts for hit in _says("negation").finditer(part))
    return frozenset().union(*map(stems_of, found)) - stems()


def _explained(found: re.Match[str]) -> str:
    """What a saying in quotation marks becomes: it means what follows, or was an example."""
    return " means " if found.group()[0] in "`\"'“„«「『" else " "


def _stands(name: str, text: str) -> bool:
    if stands_in(name, text):
        return True
    return "_" in name and any(stands_in(name.replace("_", sign), text) for sign in " -")


# --- Which values a parameter is known to take, and whether an example is one of that kind -------
# An example steers: a model that was told no value takes the one that it has read. So an example
# must be a known value of its own parameter (enum, default, worked or accepted call, text so far),
# or have the form that the parameter declares.


_VALUE = re.compile(r"[\w.+*?@/:=#-]*[\w*?/]")
_INTRODUCED = re.compile(
    r"^(?:[Ss]uch as|e\.g\.,?|[Ff]or (?:example|instance),?|[Ll]ike|z\. ?B\.|[Zz]um Beispiel"
    r"|[Pp]ar exemple|comme|[Pp]\. ?ej\.|[Pp]or ejemplo|como|beispielsweise|[Ee]xample:"
    r"|例如|比如|例えば|例|如):?|^\((?:e\.g\.,?|z\. ?B\.|如)?"
)
_JOINING = frozenset({"or", "and", "oder", "und", "ou", "et", "y", "o", "to"})
_SHOWN = re.compile(
    r"(?:e\.g\.,?|[Ss]uch as|[Ff]or (?:example|instance),?|[Ll]ike|[Ee]xample:) ([^).;]+)"
    r"|(?<!\w)[\"'`]([^\"'`]{1,40})[\"'`](?!\w)"
)
_QUOTED = re.compile(r"[A-Za-z].*?[`\"'“„«「『]([^`\"'”“»」』]+)[`\"'”“»」』]")
_LISTED = re.compile(r",|\b(?:or|and)\b|[\"'`]")
_HAS_SIGNS = re.compile(r"[\d=*/_@-]")
_NAME = re.compile(r"[A-Z][^\W\d_]{2,20}(?: [A-Z][^\W\d_]{2,20})?")
_CODE = re.compile(r"[A-Z]{2,5}|[A-Za-z]{0,8}[-_]?\d[A-Za-z0-9_-]{0,15}")
_PATH = re.compile(r"[A-Za-z][\w-]*(?:/[A-Za-z][\w-]*){0,4}\.(?!key|pem|env|pfx|p12)[a-z]\w{0,4}")
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


def is_code(value: str) -> bool:
    """Whether a value is a code: with digits or signs, or a few capitals."""
    return bool(_HAS_SIGNS.search(value)) or (value.isupper() and len(value) <= 5)


def values_shown(text: str) -> Iterator[str]:
    """The values that a text names as examples: *two letters such as FR* is of a piece."""
    for match in says("examples").finditer(text):
        yield from _VALUE.findall(_INTRODUCED.sub("", match.group()))


class Values:
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
    def known(self) -> tuple[str, ...]:
        """Every value that schema, calls, texts so far and trusted origins show."""
        paths = [self._edit.parameter] if self._edit.parameter else list(self._change.parameters)
        return tuple(str(value) for path in paths for value in self._of(path))

    def _of(self, path: str) -> Iterator[Any]:
        if facts := self._change.parameters.get(path):
            yield from facts.values
            yield from () if facts.default is None else (facts.default,)
        yield from self._change.given(path)
        before = str(mapping(self._change.base.description.parameters).get(path, ""))
        yield from values_shown(before)
        for match in _SHOWN.finditer(before):
            yield from filter(None, map(str.strip, _LISTED.split(match[1] or match[2])))
        yield from (word for word in before.split() if re.search(r"[\d=*/]", word))
        yield from (origin.text for origin in self._change.origins if origin.is_used)

    def foreign(self, known_words: frozenset[str]) -> Iterator[str]:
        """The examples of the text that nothing bears out.

        Args:
            known_words: The stems of what the tool says of itself.
        """
        for match in says("examples").finditer(self._edit.after.translate(WIDE)):
            told = match.group()
            if self._illustrates(told):
                continue
            for value in _VALUE.findall(_INTRODUCED.sub("", told)):
                is_noted = told.startswith("(") and _is_word(value, known_words)
                if folded(value) in _JOINING or is_noted or self._knows(value):
                    continue
                if not self._has_declared_form(value.strip(".")):
                    yield value
        for value in () if self._only_reads else self._quoted(self._edit.after):
            if not self._knows(value) and not self._has_declared_form(value):
                yield value

    def _quoted(self, text: str) -> Iterator[str]:
        """Words in quotation marks that a text gives as examples."""
        for match in says("quoted").finditer(text):
            if found := _QUOTED.fullmatch(match.group()):
                yield from _VALUE.findall(found[1])

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
        if not any(stands_in(small, known) for known in map(folded, self.known)):
            return False
        is_number = self._facts is not None and self._facts.types <= _NUMERIC
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
        if facts.types and facts.types <= _NUMERIC:
            return self._is_likely(value, facts)
        if facts.pattern:
            return re.search(facts.pattern, value) is not None
        return _DATE.fullmatch(value) is not None or self._is_of_kind(value, facts)

    def _is_of_kind(self, value: str, facts: ParameterFacts) -> bool:
        """Whether a text is a code, a path or a name of the kind that its parameter takes."""
        is_path = _PATH.fullmatch(value) is not None
        known = (*self.known, *map(str, self._change.taken(self._edit.parameter)))
        shapes = {_shape(value) for value in known if is_code(value)}
        if is_code(value) and not is_path and (shapes or not self._only_reads):
            return _shape(value) in shapes
        if _CODE.fullmatch(value) and not word_stems("people") & self._own - word_stems("codes"):
            return True
        if is_path and self._only_reads and facts.required:
            return not _says("sensitive").search(value.casefold())
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
        largest = max((abs(one) for one in numbers_in(" ".join(self.known))), default=10_000.0)
        return max(map(abs, found)) <= 10 * max(largest, 100.0)


def _is_word(value: str, known_words: frozenset[str]) -> bool:
    small = folded(value)
    return bool(next(masks(small), "")) or small in units() or stems_of(small) <= known_words


def _shape(value: str) -> str:
    if value.isalpha():
        return f"{'A' if value.isupper() else 'a'}{len(value)}"
    for letters, sign in (("[A-Z]+", "A"), ("[a-z]+", "a"), (r"\d+", "9")):
        value = re.sub(letters, sign, value)
    return value
