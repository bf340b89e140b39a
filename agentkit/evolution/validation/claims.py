"""What texts in known words still ask for.

Words that a tool has already can be arranged to choose a value, to widen a call, to call a result
empty or to say what goes into an argument. So what a text says is held to what bears it out: a form
to the values that are known, a unit to the one that is stated, a further thing in an argument to
the words of that parameter. A text may describe; what it chooses waits.

The patterns and words stand in ``phrases/claims.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import pairwise

from agentkit.evolution.validation.examples import NUMERIC, KnownValues, is_code
from agentkit.evolution.validation.phrases import sections as shipped_sections
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import (
    Edit,
    folded,
    mapping,
    numbers_in,
    rules_of,
    sentences,
    stands_in,
)
from agentkit.evolution.validation.wording import (
    ALIKE,
    BOUND,
    BY_DEFAULT,
    CAPITALS,
    COUNTS,
    FORMAL,
    GRAMMAR,
    HOW_LONG,
    OF_FORM,
    QUOTED,
    SMALL,
    UNIT_NAMES,
    UNITS,
    WHAT_WAS_SAID,
    WIDE,
    WRITING,
    WRITTEN_SO,
    borne_out,
    spaced,
    stem,
    stems_of,
    without_examples,
    word_stems,
)

_WORD = re.compile(r"[^\W\d_]+")
_CLAUSE = re.compile("[.;:!?]\\s+|[\u3002\uff1b\uff1a]")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_GERUND = re.compile(r"\b[a-z]{3,}ing\b")
_NAMED_DEFAULT = re.compile(r"(?i:\b(default|maximum|minimum|max|min)(?: value)?(?: is)?): ")
_ANY_VALUE = re.compile(r"\b(?:any|all|both|either)\b")
_RATE = re.compile(r"\b(?:each|every) (?:second|minute|hour|day|week|month|year)\b")
_SIGNS = {
    "space": " ", "comma": ",", "hyphen": "-", "dash": "-", "slash": "/", "dot": ".", "colon": ":",
    "prefix": "-", "suffix": "-",
}  # fmt: skip
_WITH_SIGN = re.compile(rf"\b(?:with|and) (?:an?|one|the) ({'|'.join(_SIGNS)})\b")


@cache
def _says(name: str) -> re.Pattern[str]:
    """The pattern of a section of ``phrases/claims.txt``."""
    return re.compile("|".join(shipped_sections("claims")[name]))


def claims(change: ProposedChange, edit: Edit, words: frozenset[str]) -> Iterator[str]:
    """What a text chooses, widens, denies or moves, in few words each.

    Args:
        change: The change.
        edit: One of its texts, of which every word is known or plain.
        words: The stems of what the tool says of itself, without values.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> moved = rewrite("cars_search", {"parameters.make": "Maker, such as Tesla."})
        >>> list(claims(moved, moved.edits[0], frozenset()))
        ['example Tesla']
    """
    text = _Text(change, edit, words)
    yield from (f"example {value}" for value in text.known.foreign(words))
    if edit.parameter:
        yield from text.other_arguments()
        yield from text.other_forms()
    else:
        yield from text.about_something_else()
        yield from text.wider_calls()
        yield from text.relations()
    yield from text.chosen_values()
    yield from text.chosen_numbers()
    yield from text.denials()
    if not change.base.signature.effects.is_read_only:
        yield from text.wider_effects()


class _Text:
    """One changed text, with the parameter that it is about."""

    def __init__(self, change: ProposedChange, edit: Edit, words: frozenset[str]) -> None:
        self._change, self._edit, self._words = change, edit, words
        self._facts = change.parameters.get(edit.parameter) or ParameterFacts(path="")
        before = mapping(change.base.description.parameters).get(edit.parameter, "")
        self._before = folded(str(before) if edit.parameter else edit.before)
        self._name = folded(spaced(edit.parameter).replace("_", " "))
        self._own = stems_of(f"{self._before} {self._name}")
        self.known = KnownValues(change, edit, self._own)
        raw = borne_out(edit.after.translate(WIDE), edit.parameter, self._before)
        raw = _NAMED_DEFAULT.sub(r"\1 ", QUOTED.sub(_explained, without_examples(raw)))
        self._text = OF_FORM.sub(" ", WRITTEN_SO.sub(" ", folded(raw))).strip()
        for path in change.parameters:
            if "_" in path and path != edit.parameter:
                self._text = self._text.replace(path.casefold(), " ")
        parts = (part for sentence in sentences(raw) for part in _CLAUSE.split(sentence))
        self._clauses = [part for part in parts if part and not self._is_old(part)]
        self._sentences = [one for one in sentences(self._text) if not self._is_old(one)]

    def _is_old(self, part: str) -> bool:
        return part.rstrip(".") in self._before or part in self._change.known_folded

    def _new(self, name: str) -> Iterator[str]:
        """What a pattern finds that the text so far does not say."""
        for found in _says(name).finditer(self._text):
            if not stands_in(found.group(), self._before):
                yield found.group()

    # What goes into an argument

    def other_arguments(self) -> Iterator[str]:
        """Words of the talk, other sums, other ends and further things as the argument."""
        facts = self._facts
        own = self._own | stems_of(folded(" ".join(map(str, facts.values))))
        own |= word_stems("search") if own & word_stems("search") else frozenset()
        said = stems_of(self._text)
        if not facts.types or facts.types & {"string", "array", "object"}:
            yield from (f"talk {word}" for word in sorted(said & word_stems("talk") - own))
            yield from self._new("talk unspaced")
            yield from (found.group() for found in _says("asked").finditer(self._text))
            yield from self._everything()
        yield from (f"talk {word}" for word in sorted(said & word_stems("requests") - own))
        yield from self._further_things(own)
        highest, lowest = word_stems("highest"), word_stems("lowest")
        unbound = stems_of(BOUND.sub(" ", self._text))
        for one, other in ((highest, lowest), (lowest, highest)):
            if own & one and not own & other:
                yield from (f"other end {word}" for word in sorted(unbound & other))
        yield from (f"sum {word}" for word in sorted(said & word_stems("sums") - own))
        if not facts.types & {"array", "object"}:
            yield from self._other_kinds(own)

    def _everything(self) -> Iterator[str]:
        values = {folded(str(value)) for value in self._facts.values}
        for found in _says("all").finditer(self._text):
            clause = self._text[: found.start()].rpartition(".")[2]
            if not (_says("absent").search(clause) or found[1] in values):
                yield from () if stands_in(found[1], self._before) else (found[1],)

    def _further_things(self, own: frozenset[str]) -> Iterator[str]:
        """Another thing that is to stand in the argument as well, or instead."""
        own = own.union(*(group for group in ALIKE if group & own))
        for found in _says("joined").finditer(BOUND.sub(" ", self._text)):
            word = found[1]
            is_form = word in COUNTS or word in UNITS or word in self._facts.pattern
            if not (is_form or stem(word) in own or stem(word) in FORMAL):
                yield found.group()
        parts = [part for part in _CLAUSE.split(self._text) if part.strip(" .")]
        for part in parts[1:]:
            if _says("thing").match(part) and not _says("says").search(part):
                yield from () if self._is_old(part) else (part,)

    def _other_kinds(self, own: frozenset[str]) -> Iterator[str]:
        """A code for a name, a name for a code, several for one."""
        values = [value for value in self.known.values if any(map(str.isalnum, value))]
        coded = [value for value in values if is_code(value)]
        is_coded = bool(own & (word_stems("codes") | word_stems("coded things")) or coded)
        is_number = bool(self._facts.types) and self._facts.types <= {*NUMERIC, "boolean"}
        text = WHAT_WAS_SAID.sub(" ", self._text)  # what a customer *names* is no name
        for found in _WORD.finditer(text):
            cut, before = stem(found.group()), text[: found.start()]
            if cut in own or _says("negated before").search(before):
                continue
            named = own & word_stems("codes") or (values and len(coded) == len(values))
            if (
                (cut in word_stems("foreign codes") and not is_number and not is_coded)
                or (cut in word_stems("several") and _says("a kind").search(before))
                or (cut in word_stems("names") and named)
            ):
                yield f"kind {found.group()}"

    # How it is written

    def other_forms(self) -> Iterator[str]:
        """Forms, signs and units that no known value and no text so far has."""
        for word in _WORD.findall(self._text):
            cut = stem(word)
            if cut in WRITING and cut not in self._own and not self._is_written(cut):
                yield f"form {word}"
        if self._facts.is_formed or self._facts.values:
            yield from self._new("as words")
        yield from self._new("same as")
        values, stated = self.known.values, f"{self._before} {self._name}"
        for found in _says("without signs").finditer(self._text):
            has = str.isdigit if found[1].startswith(("dig", "num")) else str.isalpha
            if not values or any(map(has, "".join(values))):
                yield found.group()
        for found in _WITH_SIGN.finditer(self._text):
            if not any(_SIGNS[found[1]] in value for value in values):
                yield found.group()
        own = {UNIT_NAMES[word] for word in _WORD.findall(stated) if word in UNIT_NAMES}
        own |= {"years"} if "age" in self._own else set()
        for found in _says("in unit").finditer(self._text):
            unit = UNIT_NAMES.get(found[1])
            if unit and (unit not in own if own else stem(found[1]) not in self._words):
                yield found.group()

    def _is_written(self, cut: str) -> bool:
        """Whether the known values are written as a word claims."""
        types = self._facts.types
        if types and not types & {"string", "array"}:
            return cut in word_stems("number forms")
        values = [value for value in self.known.values if _WORD.search(value)]
        coded = any(map(is_code, values))
        named = [value for value in values if _LONG_WORD.search(value) and not is_code(value)]
        return (
            cut == stem("written")
            or (cut in CAPITALS and any(map(str.isupper, values)))
            or (cut in SMALL and any(map(str.islower, values)))
            or (cut in word_stems("brevity") and coded)
            or (cut == stem("english") and any(map(str.isascii, named)))
            or (cut in word_stems("length") and bool(named) and not coded)
        )

    # Values

    def chosen_values(self) -> Iterator[str]:
        """One of several values that a text puts into the call, or takes for another one."""
        own = self._edit.parameter
        for path, facts in self._change.parameters.items():
            values = ["true", "false"] if facts.types == {"boolean"} else map(str, facts.values)
            names = {folded(value): value for value in values}
            if names and path == (own or path):
                yield from self._chosen_of(names, facts)
                yield from self._exchanged(names) if facts.types != {"boolean"} else ()

    def _chosen_of(self, names: dict[str, str], facts: ParameterFacts) -> Iterator[str]:
        listed = {name for name in names if _stands(name, self._text)}
        if all(_stands(name, self._before) for name in listed):
            return
        is_own = facts.path == self._edit.parameter
        for clause in self._clauses:
            named = [name for name in names if name in listed and _stands(name, clause)]
            if not named or len(named) == len(names) or self._explains(clause, named, facts):
                continue
            is_one = len(named) == 1
            is_chosen = is_one and _says("chooses").search(clause)
            is_said = is_one and not is_own and _stands(folded(facts.path), clause)
            is_part = is_own and len(listed) < len(names) and not _says("as one").search(clause)
            if is_chosen or is_said or is_part:
                yield from (f"value {names[name]}" for name in named)

    def _explains(self, clause: str, named: list[str], facts: ParameterFacts) -> bool:
        """Whether a clause says what values mean, or which one is taken where none is given."""
        has_condition = _says("condition").search(clause) is not None
        is_default = facts.default is not None and folded(str(facts.default)) in named
        return bool(
            (is_default and (has_condition or BY_DEFAULT.search(self._text)))
            or (facts.types == {"boolean"} and has_condition)
            or _says("means").search(clause)
            or (_says("not said").search(clause) and _any_value() & {*named})
        )

    def _exchanged(self, names: Iterable[str]) -> Iterator[str]:
        for clause in (part for whole in self._clauses for part in whole.split(", ")):
            at = sorted((clause.find(name), name) for name in names if _stands(name, clause))
            at = [(start, name) for start, name in at if start >= 0 and len(name) > 1]
            for (start, one), (end, other) in pairwise(at):
                between = clause[start + len(one) : end]
                if _says("same").search(between) or _says("used when").search(clause):
                    yield f"{one} for {other}"

    def chosen_numbers(self) -> Iterator[str]:
        """A number that a text puts into the call, or a bound that it turns round."""
        facts, before = self._facts, numbers_in(self._before)
        is_number = facts.types <= NUMERIC and not facts.values
        names = [folded(path) for path in self._change.parameters]
        for clause in self._clauses:
            plain = _says("range").sub(" at most ", BOUND.sub(" at most ", clause))
            said = numbers_in(plain := HOW_LONG.sub(" ", plain))
            if not said or "at most" in plain or _says("means").search(plain):
                continue
            if self._edit.parameter:
                is_known = said & numbers_in(str(facts.default)) or (
                    said & before and _says("condition").search(plain)
                )
                is_chosen = is_number and not is_known
            else:
                is_about = any(stands_in(name, clause) for name in names)
                is_about = is_about and not said & self._defaults
                is_chosen = is_about or bool(
                    _says("chooses").search(clause) and _says("alone").search(clause)
                )
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
        told = [text for text in texts if BY_DEFAULT.search(text) or "default" in text]
        schema = [str(facts.default) for facts in self._change.parameters.values()]
        return numbers_in(" ; ".join((*told, *schema)))

    # Calls and results

    def about_something_else(self) -> Iterator[str]:
        """Sentences without a word of the tool, those that speak of the talk, and lost words."""
        for sentence in self._sentences:
            cuts = list(map(stem, _WORD.findall(sentence)))
            asks = WHAT_WAS_SAID.search(sentence) and _says("left out").match(sentence)
            is_kept = 2 * sum(cut in self._own for cut in cuts) >= len(cuts)
            if asks or not sentence.isascii() or (is_kept and self._edit.kind == "summary"):
                continue
            if not any(cut in self._words and cut not in FORMAL for cut in cuts):
                yield "nothing of the tool"
        talk = stems_of(self._text) & word_stems("requests") - self._words
        yield from (f"talk {cut}" for cut in sorted(talk))
        yield from (found.group() for found in _says("word for word").finditer(self._text))
        if self._edit.kind == "summary" and self._before.isascii():
            said = self._own - GRAMMAR
            if 3 * len(said & stems_of(folded(self._edit.after))) < len(said):
                yield "says less"

    def wider_calls(self) -> Iterator[str]:
        """A call for anything, or again and again."""
        values = {folded(str(v)) for one in self._change.parameters.values() for v in one.values}
        called = _says("used" if self._edit.kind == "summary" else "called")
        for sentence in self._sentences:
            said = _ANY_VALUE.sub(" ", sentence) if values & _any_value() else sentence
            if called.search(said) and (found := _says("anything").search(said)):
                yield found.group()

    def relations(self) -> Iterator[str]:
        """What is put into another parameter, and parameters that are to go together."""
        names = {
            path: stems_of(folded(spaced(path).replace("_", " ")))
            for path in self._change.parameters
        }
        is_ruled = any(getattr(rule, "others", ()) for rule in rules_of(self._change.candidate))
        for sentence in self._sentences:
            for path, own in names.items():
                yield from self._put_into(path, own, sentence)
            if is_ruled or (self._edit.kind == "summary" and not _says("ought").search(sentence)):
                continue
            named = [path for path, own in names.items() if own & stems_of(sentence)]
            if (named and _says("needed").search(sentence)) or (
                len(named) > 1 and _says("together").search(sentence)
            ):
                yield "relation"

    def _put_into(self, path: str, own: frozenset[str], sentence: str) -> Iterator[str]:
        text = str(mapping(self._change.base.description.parameters).get(path, ""))
        for found in _says("put into").finditer(sentence):
            if stem(found[2]) in own:
                given = stems_of(found[1]) - GRAMMAR - own - stems_of(folded(text))
                yield from (f"{cut} as {path}" for cut in sorted(given))

    def denials(self) -> Iterator[str]:
        """That something is empty, certain, not needed or left out, without a condition."""
        is_rule, facts = self._edit.kind == "usage_rule", self._facts
        for clause in self._clauses:
            has_condition = _says("condition").search(clause)
            found = _says("denies").search(BOUND.sub(" ", clause))
            if (
                found
                and not has_condition
                and not _says("relative").search(clause[: found.start()])
            ):
                yield found.group()
            praised = None if self._edit.parameter else _says("praised").search(clause)
            if praised and not has_condition and not stands_in(praised.group(), self._before):
                yield praised.group()
            if (
                is_rule
                and _says("when not known").search(clause)
                and not (
                    _says("asks").match(clause) or any(stands_in(v, clause) for v in _any_value())
                )
            ):
                yield "when not given"
            if _says("leaves").search(clause) and _says("when known").search(clause):
                yield "when given"
            if facts.types == {"boolean"} and BY_DEFAULT.search(clause):
                is_off = _says("negates").search(clause) is not None
                yield from ("default",) if is_off == bool(facts.default) else ()
            told = _says("told not to").search(clause)
            if (
                told
                and not _says("unless").search(clause[told.end() :])
                and not (self._edit.parameter and clause.startswith(("not ", "no ", "without")))
            ):
                is_verb = not re.search(r"(?:not|without|no)$", told.group().strip())
                yield from (told.group(),) if is_verb or "do not" in told.group() else ()

    def wider_effects(self) -> Iterator[str]:
        """Of a tool with effects: words that widen them, and when to act."""
        summary, name = folded(self._change.summaries[0]), self._change.base.name.replace("_", " ")
        deeds = stems_of(f"{summary.split(' ')[0]} {folded(name)}")
        deeds |= stems_of(" ".join(_GERUND.findall(summary)))
        is_replaced = self._edit.kind in {"parameter", "summary"}
        for clause in self._clauses[1 if is_replaced else 0 :]:
            said = list(map(stem, _WORD.findall(clause)))
            is_when = self._edit.kind != "parameter" and _says("once").search(clause)
            yield from (f"to {cut}" for cut in (said if is_when else said[:1]) if cut in deeds)
        text = _RATE.sub(" ", BOUND.sub(" ", self._text))
        for found in _says("many").finditer(text):
            yield from () if stands_in(found.group(), self._before) else (found.group(),)


@cache
def _any_value() -> frozenset[str]:
    return frozenset(" ".join(shipped_sections("claims")["words of any value"]).split())


def _explained(found: re.Match[str]) -> str:
    """What a saying in quotation marks becomes: it means what follows, or was an example."""
    return " means " if found.group()[0] in "`\"'“„«「『" else " "


def _stands(name: str, text: str) -> bool:
    if stands_in(name, text):
        return True
    return "_" in name and any(stands_in(name.replace("_", sign), text) for sign in " -")
