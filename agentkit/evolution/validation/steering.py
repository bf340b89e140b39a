"""What a text in known words asks for all the same: the second measure for who must read it.

Words that a tool has already can still be arranged to choose a value, to widen a call, to call a
result empty or to say what goes into an argument. So statements are held to what bears them out:
an example to the values and the declared form of its own parameter, a form to the values that are
known, a unit to the unit that is stated. A text may describe; what it chooses waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from agentkit.evolution.validation.folding import folded, sentences, stands_in
from agentkit.evolution.validation.forms import (
    BOUND,
    BY_DEFAULT,
    COUNTS,
    EXAMPLE,
    HOW_LONG,
    OF_FORM,
    QUOTED,
    WHAT_WAS_SAID,
    WIDE,
    WRITTEN_SO,
    borne_out,
    masks,
    without_examples,
)
from agentkit.evolution.validation.numbers import numbers_in
from agentkit.evolution.validation.plain import (
    ALIKE,
    FORMAL,
    GRAMMAR,
    UNIT_NAMES,
    UNITS,
    WRITING,
    stem,
)
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import Edit, mapping, rules_of

_LETTERS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CLAUSE = re.compile(r"[.;:!?]\s+|[。；：]")
_VALUE = re.compile(r"[\w.+*?@/:=#-]*[\w*?/]")
_NAME = re.compile(r"[^\W\d_]{4,}")


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


_CONDITION = re.compile(
    r"\b(?:when|if|unless|where|whether|until|otherwise|means?|meaning|stands? for|indicates?|is for"
    r"|by default|defaults?|without|wenn|falls|si|sinon|cuando|quando|se|sonst)\b|="
    r"|[若当時则即为]|如果|场合|場合"
)
_RELATIVE = re.compile(r"\b(?:which|that|who|or|and)\b")
_MEANS = re.compile(
    r"\b(?:means?|meaning|stands? for|indicates?|by default|defaults?|bedeutet|signifi\w+)\b|="
)
_NOT_SAID = re.compile(r"\b(?:when|if|to)\b")
_NEUTRAL = frozenset(
    (
        "any",
        "all",
        "none",
        "unknown",
        "dontcare",
        "default",
        "auto",
        "unspecified",
        "either",
        "both",
    )
)
_CHOOSES = re.compile(
    r"\b(?:give|use|set|take|pass|enter|put|provide|specify|write|apply|prefer|ask for|query|search for"
    r"|nimm|gib|verwende|donne[rz]?|utilise[rz]?|usa|usar|use|da|dar|indica)\b"
)
_TALK = _stems(
    "request requests query question prompt input output text word phrase sentence anfrage frage"
    " eingabe ausgabe wort worte worter suchwort suchworter suchbegriff suchbegriffe demande saisie mot mots texte"
    " consulta pregunta entrada salida texto textos palabra palabras pergunta pedido saida palavra palavras"
    " testo parola parole richiesta domanda"
)
_TALK_UNSPACED = re.compile(
    r"文本|文字(?!列|コード|数)|内容|询问|問い|質問|请求|リクエスト|会话|会話|テキスト"
)
_ASKED = re.compile(
    r"\b(?:what|all|everything|anything|that|which|as|whatever|how)\b[^.;:]{0,24}"
    r"\b(?:asked|said|told|wanted|requested|written|read|called)\b|\bword (?:for|by) word\b"
    r"|\bin (?:full|whole)\b|\bas (?:it|they) (?:is|was|are|were|come)\b"
)
_WORD_FOR_WORD = re.compile(
    r"\bword (?:for|by) word\b|\b(?:full|whole|entire|complete|all|every|each) (?:of )?(?:the )?"
    r"(?:texts?|words?|sentences?|requests?|queries|input|output)\b"
    r"|\b(?:take|use|give|get|copy)\b.* from (?:the |an? )?(?:results?|answers?|output|text|response)\b"
)
_MANY = re.compile(
    r"\b(?:all|any|anything|each|every|everything|whole|entire|full|complete|several|multiple|many|both"
    r"|alle[mnrs]?|jede[mnrs]?|ganz\w*|sowie alles|tous|toute?s?|tout|chaque|entier\w*|todos?|todas?"
    r"|cada|varios|qualquer|cualquier\w*)\b|[每各全]|所有|一切|すべて"
)
_CALLED = re.compile(
    r"\b(?:call(?:ed|s|ing)?|us(?:e|ed|ing)|run|ask|query|request|search|look|fetch|read|get|repeat)\b"
)
_USED = re.compile(r"\b(?:call(?:ed|s|ing)?|us(?:e|ed|ing)|ask|repeat)\b")
_ANYTHING = re.compile(
    r"\b(?:all|any|anything|every|everything|something|whatever|again|twice"
    r"|(?:a number of|several|many) times|one (?:by|after) (?:one|another|the other)|in turn|each \w+ (?:of|in)|each \w+ and|per \w+ (?:of|in|and|from)|once more)\b"
)
_DENIES = re.compile(
    r"\b(?:is|are|was|were|be|been|returns?|gives?|finds?|shows?|contains?|has|have|lists?|holds?)"
    r" (?:an? |the |always )*(?:empty|nothing|null|none|no|false|missing|unknown|absent|incorrect|invalid"
    r"|unrelated|irrelevant|not (?:found|given|returned|shown|known|supported|used|needed|kept|there"
    r"|taken|read|right|correct|valid|available|possible|required|related|relevant|listed|included"
    r"|expected|allowed|necessary|applied|considered|counted|covered|accepted|the))\b"
    r"|^(?:no|nothing|none)\b|\bleer\b|\bvide\b|\bvaci[oa]\b|\bvazi[oa]\b|为空|返回空|返回无|不返回"
)
_IMPERATIVE_NOT = re.compile(
    r"(?:^|\bplease |\balso |\bjust |\band )(?:ignore|skip|omit|leave|do not|don't|not|without|no)\b"
)
_UNLESS = re.compile(r"\b(?:when|if|unless|where|to|for|until|what|that|wenn|si|cuando)\b")
_DIRECTIONS = (
    (
        _stems("maximum max highest largest most latest upper ending end until"),
        _stems("minimum min lowest smallest least earliest starting start begin since"),
    ),
)
_AGGREGATE = frozenset("average averages sum sums total totals".split())
_CODES = _stems("code id identifier key number index symbol sku isbn ticker abbreviation")
_FOREIGN_CODES = _stems("code id identifier key")
_NAMES = _stems("name title term nome nombre nom")
_NEGATED = re.compile(r"\b(?:not|no|without|nor|nicht|ohne|pas|sans|sin|sem)\b[^.;:]{0,24}$")
_AS_WORDS = re.compile(
    r"\b(?:in|as|by|with|like|given as|written as) (?:an? |the |plain |free |one )*"
    r"(?:words?|texts?|letters?|sentences?|names?|phrases?|strings?|months?|numbers?|list|array)\b"
)
_IN_UNIT = re.compile(r"\b(?:in|as|en|em) (?:whole |full |plain )?([^\W\d_]+|°c|°f|%)")
_LANGUAGES = _stems(
    "english german french spanish italian portuguese chinese japanese latin ascii unicode roman"
)
_WRITTEN = stem("written")
_ALWAYS_FINE = _stems("whole plain full complete short long small")
_CODED = _stems("currency country language")
_STANDARDS = {
    "4217": ("currency", re.compile(r"[A-Z]{3}")),
    "3166": ("country", re.compile(r"[A-Z]{2,3}")),
    "639": ("language", re.compile(r"[a-z]{2,3}")),
}
_PATTERNS = {
    "glob": re.compile(r"(?:\w+/)*\*\.(?!key|pem|env|pfx|p12)\w{1,4}"),
    "year": re.compile(r"(?:19|20)\d\d"),
}
_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)?|\d\d?[./-]\d\d?[./-]\d{4}|\d\d:\d\d(?::\d\d)?"
)
_SHAPE = ((re.compile(r"[A-Z]+"), "A"), (re.compile(r"[a-z]+"), "a"), (re.compile(r"\d+"), "9"))


def steering(change: ProposedChange, edit: Edit, words: frozenset[str]) -> Iterator[str]:
    """What a text chooses, widens, denies or moves, in few words each.

    Args:
        change: The change.
        edit: One of its texts, of which every word is known or plain.
        words: The stems of what the tool says of itself, without values.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> moved = rewrite("cars_search", {"parameters.make": "Maker, such as Tesla."})
        >>> list(steering(moved, moved.edits[0], frozenset()))
        ['example Tesla']
    """
    text = _Text(change, edit, words)
    yield from text.foreign_examples()
    if edit.parameter:
        yield from text.moved_argument()
        yield from text.other_form()
    else:
        yield from text.about_nothing()
        yield from text.widened_call()
        yield from text.dropped()
    yield from text.chosen_values()
    yield from text.denials()
    if not change.base.signature.effects.is_read_only:
        yield from text.quantifiers()


class _Text:
    """One text, with the parameter that it is about."""

    def __init__(self, change: ProposedChange, edit: Edit, words: frozenset[str]) -> None:
        self._change, self._edit, self._words = change, edit, words
        self._facts = change.parameters.get(edit.parameter)
        before = mapping(change.base.description.parameters).get(edit.parameter, "")
        self._before = str(before) if edit.parameter else edit.before
        name = _HUMP.sub(" ", edit.parameter).replace("_", " ")
        self._own = frozenset(map(stem, _LETTERS.findall(folded(f"{self._before} {name}"))))
        raw = QUOTED.sub(_explained, without_examples(edit.after.translate(WIDE)))
        raw = borne_out(raw, edit.parameter, self._before)
        raw = _DEFAULT.sub(r"\1 ", raw)
        self._text = OF_FORM.sub(" ", WRITTEN_SO.sub(" ", folded(raw))).strip()
        for path in change.parameters:
            if "_" in path and path != edit.parameter:
                self._text = self._text.replace(path.casefold(), " ")
        known = f"{folded(self._before)} "
        self._clauses = [
            part
            for sentence in sentences(raw)
            for part in _CLAUSE.split(sentence)
            if part and f"{part.rstrip('.')}" not in known
        ]

    @cached_property
    def _values(self) -> tuple[str, ...]:
        """What is known of the values of the parameter, or of all where the text is about none."""
        paths = [self._edit.parameter] if self._edit.parameter else list(self._change.parameters)
        return tuple(str(value) for path in paths for value in self._known_values(path))

    def _known_values(self, path: str) -> Iterator[Any]:
        facts = self._change.parameters.get(path)
        if facts is not None:
            yield from facts.values
            if facts.default is not None:
                yield facts.default
        yield from self._change.given(path)
        before = str(mapping(self._change.base.description.parameters).get(path, ""))
        for match in EXAMPLE.finditer(before):
            yield from _VALUE.findall(_AS_EXAMPLE.sub("", match.group()))
        for match in _SHOWN.finditer(before):
            yield from filter(None, map(str.strip, _COMMA.split(match.group(1) or match.group(2))))
        yield from (word for word in before.split() if re.search(r"[\d=*/]", word))
        for origin in self._change.origins:
            if origin.is_used:
                yield origin.text

    # -- examples ---------------------------------------------------------------------------------

    def foreign_examples(self) -> Iterator[str]:
        """Values named as examples that neither known values nor the declared form bear out."""
        for match in EXAMPLE.finditer(self._edit.after.translate(WIDE)):
            told = match.group()
            is_note = told.startswith("(")
            if self._edit.parameter and self._reads_only and self._illustrates(told):
                continue
            for value in _VALUE.findall(_AS_EXAMPLE.sub("", told)):
                if folded(value) in _JOINING:
                    continue
                if self._is_known(value) and not self._moves(value):
                    continue
                if is_note and self._is_word(value):
                    continue
                if not self._fits(value.strip(".")):
                    yield f"example {value}"

    def _illustrates(self, told: str) -> bool:
        """Whether names only show what a text looks like.

        One name alone suggests a value where a call may leave the parameter out; where each call
        must give it, what the user asked for decides, and so it does beside several names.
        """
        facts = self._facts
        if facts is None or facts.values or facts.is_formed or _ABOUT_PEOPLE & self._own:
            return False
        parts = [part.strip(" .()'\"`") for part in _COMMA.split(_AS_EXAMPLE.sub("", told))]
        parts = [part for part in parts if part]
        if not any(map(_PROPER.fullmatch, parts)) or not (len(parts) > 1 or facts.required):
            return False
        return all(_PROPER.fullmatch(part) or _PLAIN_CODE.fullmatch(part) for part in parts)

    def _moves(self, value: str) -> bool:
        """Whether a number is one that a tool with effects did not get yet."""
        is_number = self._facts is not None and self._facts.types <= {"number", "integer"}
        if self._reads_only or not is_number or not self._edit.parameter:
            return False
        given = " ".join(map(str, self._change.given(self._edit.parameter)))
        return not numbers_in(value) & numbers_in(given)

    def _is_known(self, value: str) -> bool:
        small = folded(value).rstrip(".,")
        return any(small == known or stands_in(small, known) for known in map(folded, self._values))

    def _is_word(self, value: str) -> bool:
        small = folded(value)
        if next(masks(small), "") or small in UNITS:
            return True
        return all(stem(word) in self._words for word in _LETTERS.findall(small))

    def _fits(self, value: str) -> bool:
        """Whether a value has the form that its parameter declares."""
        facts = self._facts
        if not self._edit.parameter or facts is None or facts.values:
            return False
        if facts.types == {"boolean"}:
            return value.casefold() in {"true/false", "true", "false", "yes/no"}
        if facts.types and facts.types <= {"number", "integer"}:
            return self._is_likely(value, facts)
        if facts.pattern and not re.search(facts.pattern, value):
            return False
        if facts.pattern or _DATE.fullmatch(value):
            return True
        shapes = {_shape(known) for known in self._values if _is_code(known)}
        is_path = _PATH.fullmatch(value) is not None
        if _is_code(value) and not is_path and (shapes or not self._reads_only):
            return _shape(value) in shapes
        if _PLAIN_CODE.fullmatch(value) and not _ABOUT_PEOPLE & self._own - _CODES:
            return True
        if (
            self._reads_only
            and facts.required
            and is_path
            and not _SENSITIVE.search(value.casefold())
        ):
            return True
        return any(
            stem(name) in self._own and form.fullmatch(value) is not None
            for name, form in self._forms()
        )

    def _forms(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        yield from _PATTERNS.items()
        for number, (subject, form) in _STANDARDS.items():
            if number in self._text or "code" in self._text:
                yield subject, form

    def _is_likely(self, value: str, facts: ParameterFacts) -> bool:
        """Whether a number lies within the bounds, and near those that are known."""
        found = numbers_in(value)
        if not self._reads_only or not found or not all(map(facts.takes, found)):
            return False
        largest = max((abs(one) for one in numbers_in(" ".join(self._values))), default=10_000.0)
        return max(map(abs, found)) <= 10 * max(largest, 100.0)

    @property
    def _reads_only(self) -> bool:
        return bool(self._change.base.signature.effects.is_read_only)

    # -- what goes into an argument ---------------------------------------------------------------

    def moved_argument(self) -> Iterator[str]:
        """Words of the talk, other sums, other ends and other things as the argument."""
        facts = self._facts
        own = self._own | _alike_talk(self._own)
        if facts is not None:
            own |= frozenset(map(stem, _LETTERS.findall(folded(" ".join(map(str, facts.values))))))
        said = [(word.group(), word.start()) for word in _LETTERS.finditer(self._text)]
        cuts = {stem(word) for word, _ in said}
        if facts is None or not facts.types or facts.types & {"string", "array", "object"}:
            yield from sorted(f"talk {word}" for word in (cuts & _TALK) - own)
            yield from self._all_of_it()
            if (found := _TALK_UNSPACED.search(self._text)) and found.group() not in self._before:
                yield found.group()
            if found := _ASKED.search(self._text):
                yield found.group()
        yield from sorted(f"talk {word}" for word in (cuts & _TALK_OF_RULES) - own)
        yield from self._joined_things(own)
        yield from self._named_anew()
        for one, other in (*_DIRECTIONS, *((b, a) for a, b in _DIRECTIONS)):
            plain = frozenset(map(stem, _LETTERS.findall(BOUND.sub(" ", self._text))))
            if own & one and not own & other and plain & other:
                yield from sorted(f"other end {word}" for word in plain & other)
        yield from (f"sum {w}" for w, _ in said if w in _AGGREGATE and stem(w) not in own)
        yield from self._other_kind(said, own)

    def _all_of_it(self) -> Iterator[str]:
        before = folded(self._before)
        for found in _ALL.finditer(self._text):
            if _ABSENT.search(self._text[: found.start()].rpartition(".")[2]):
                continue
            is_value = self._facts is not None and found[1] in map(
                folded, map(str, self._facts.values)
            )
            if not is_value and not stands_in(found[1], before):
                yield found[1]

    def _joined_things(self, own: frozenset[str]) -> Iterator[str]:
        """Another thing that is to stand in the argument as well, or instead."""
        own = own.union(*(group for group in ALIKE if group & own))
        before = frozenset(map(stem, _LETTERS.findall(folded(self._before))))
        pattern = self._facts.pattern if self._facts else ""
        for found in _JOINED.finditer(BOUND.sub(" ", self._text)):
            cut = stem(found[1])
            if found[1] in COUNTS or found[1] in UNITS or found[1] in pattern:
                continue
            if not (cut in own or cut in before or cut in FORMAL):
                yield found.group()

    def _named_anew(self) -> Iterator[str]:
        """A thing behind the first clause that says what the argument is, once more."""
        parts = [part for part in _CLAUSE.split(self._text) if part.strip(" .")]
        for part in parts[1:]:
            if (
                _THING.match(part)
                and not _SAYS.search(part)
                and part.rstrip(".") not in folded(self._before)
            ):
                yield part

    def _other_kind(self, said: list[tuple[str, int]], own: frozenset[str]) -> Iterator[str]:
        facts = self._facts
        if facts is not None and facts.types & {"array", "object"}:
            return
        values = [value for value in self._values if _LETTERS.search(value) or value.isdigit()]
        coded = [value for value in values if _is_code(value)]
        for word, at in said:
            cut = stem(word)
            if cut in own or _NEGATED.search(self._text[:at]):
                continue
            is_number = facts is not None and facts.types <= {"number", "integer", "boolean"}
            if (
                cut in _FOREIGN_CODES
                and not is_number
                and not own & (_CODES | _CODED)
                and not coded
            ):
                yield f"kind {word}"
            if cut in _SEVERAL and _A_KIND.search(self._text[:at]):
                yield f"kind {word}"
            if cut in _NAMES and (own & _CODES or (values and len(coded) == len(values))):
                yield f"kind {word}"

    # -- how it is written ------------------------------------------------------------------------

    def other_form(self) -> Iterator[str]:
        """Forms and units that no known value and no text so far has."""
        facts = self._facts
        is_text = facts is None or not facts.types or bool(facts.types & {"string", "array"})
        for word in _LETTERS.findall(self._text):
            cut = stem(word)
            if cut == _WRITTEN:
                continue
            if cut in WRITING and cut not in self._own and not self._is_written(cut, is_text):
                yield f"form {word}"
        if facts is not None and (facts.is_formed or facts.values):
            if (found := _AS_WORDS.search(self._text)) and found.group() not in self._before:
                yield found.group()
        yield from self._other_signs()
        own = {UNIT_NAMES.get(word) for word in _LETTERS.findall(folded(self._before))}
        name = _HUMP.sub(" ", self._edit.parameter).replace("_", " ")
        own |= {UNIT_NAMES.get(word) for word in folded(name).split()}
        if stem("age") in self._own:
            own.add("years")
        for found in _IN_UNIT.finditer(self._text):
            unit = UNIT_NAMES.get(found[1])
            if unit is not None and unit not in own and found.group() not in folded(self._before):
                yield found.group()

    def _other_signs(self) -> Iterator[str]:
        """Digits, letters or signs that a value is to have, or not, unlike all that is known."""
        for found in _WITHOUT_SIGNS.finditer(self._text):
            has = str.isdigit if found[1].startswith(("dig", "num")) else str.isalpha
            if not self._values or any(map(has, "".join(self._values))):
                yield found.group()
        for found in _WITH_SIGN.finditer(self._text):
            if not any(_SIGNS[found[1]] in value for value in self._values):
                yield found.group()
        if (found := _SAME_AS.search(self._text)) and found.group() not in folded(self._before):
            yield found.group()

    def _is_written(self, cut: str, is_text: bool) -> bool:
        if not is_text:
            return cut in _ALWAYS_FINE
        values = [value for value in self._values if _LETTERS.search(value)]
        if cut in _CAPITAL:
            return any(map(str.isupper, values))
        if cut in _SMALL:
            return any(map(str.islower, values))
        named = [value for value in values if _NAME.search(value) and not _is_code(value)]
        if cut in _BRIEF:
            return any(map(_is_code, values))
        if cut == stem("english"):
            return any(map(str.isascii, named))
        return cut in _LONG and bool(named) and not any(map(_is_code, values))

    # -- values -----------------------------------------------------------------------------------

    def chosen_values(self) -> Iterator[str]:
        """One of several values, or a number, that a text puts into the call."""
        for path, facts in self._change.parameters.items():
            is_own = path == self._edit.parameter
            if self._edit.parameter and not is_own:
                continue
            values = [*map(str, facts.values)]
            if facts.types == {"boolean"}:
                values = ["true", "false"]
            names = {value: folded(value) for value in values}
            default = str(facts.default) if facts.default is not None else ""
            listed = {value for value, name in names.items() if _stands(name, self._text)}
            before = folded(self._before)
            if all(_stands(names[value], before) for value in listed):
                listed = set()
            for clause in self._clauses:
                named = [value for value, name in names.items() if _stands(name, clause)]
                named = [value for value in named if value in listed]
                if not named or len(named) == len(values):
                    continue
                is_default = folded(default) in map(folded, named)
                if is_default and (BY_DEFAULT.search(self._text) or _CONDITION.search(clause)):
                    continue
                chooses = _CHOOSES.search(clause) and len(named) == 1
                is_partial = is_own and len(listed) < len(values) and not _AS_ONE.search(clause)
                if facts.types == {"boolean"} and _CONDITION.search(clause):
                    continue
                if _MEANS.search(clause) or (
                    _NOT_SAID.search(clause) and _NEUTRAL & {*map(folded, named)}
                ):
                    continue
                chooses = chooses or (
                    len(named) == 1 and not is_own and _stands(folded(path), clause)
                )
                if chooses or is_partial:
                    yield from (f"value {value}" for value in named)
            if facts.types != {"boolean"}:
                yield from self._joined_values(list(names.values()), before)
        yield from self._chosen_numbers()
        yield from self._turned_bounds()

    def _joined_values(self, names: list[str], before: str) -> Iterator[str]:
        """One allowed value that is said to be another one, or to stand for it."""
        for clause in (part for whole in self._clauses for part in whole.split(", ")):
            at = [
                (clause.find(name), name)
                for name in names
                if len(name) > 1 and _stands(name, clause)
            ]
            at = sorted((place, name) for place, name in at if place >= 0)
            for (start, one), (end, other) in zip(at, at[1:], strict=False):
                if _SAME.search(clause[start + len(one) : end]) or _USED_WHEN.search(clause):
                    yield f"{one} for {other}"

    def _turned_bounds(self) -> Iterator[str]:
        """A highest value that is called the lowest one, or the other way round."""
        facts = self._facts
        for pattern, wrong in ((_LOW, facts and facts.maximum), (_HIGH, facts and facts.minimum)):
            for found in pattern.finditer(self._text):
                right = (
                    facts.minimum if facts and pattern is _LOW else facts.maximum if facts else None
                )
                if wrong is not None and wrong != right and wrong in numbers_in(found[1]):
                    yield found.group()

    def _chosen_numbers(self) -> Iterator[str]:
        facts, before = self._facts, numbers_in(folded(self._before))
        is_number = facts is not None and facts.types <= {"number", "integer"} and not facts.values
        default = numbers_in(str(facts.default)) if facts is not None else set()
        names = [folded(path) for path in self._change.parameters]
        for clause in self._clauses:
            plain = HOW_LONG.sub(" ", _RANGE.sub(" at most ", BOUND.sub(" at most ", clause)))
            if "at most" in plain or _MEANS.search(plain) or not (said := numbers_in(plain)):
                continue
            if self._edit.parameter:
                is_chosen = is_number and not said & default
                is_chosen = is_chosen and not (said & before and _CONDITION.search(plain))
            else:
                about = any(stands_in(name, clause) for name in names)
                about = about and not said & self._defaults
                is_chosen = bool(_CHOOSES.search(clause) and _ALONE.search(clause)) or about
            if is_chosen:
                yield f"value {min(said):g}"

    @cached_property
    def _defaults(self) -> set[float]:
        """The numbers that schema and texts call defaults."""
        texts = mapping(self._change.base.description.parameters).values()
        told = [
            text
            for text in map(folded, map(str, texts))
            if BY_DEFAULT.search(text) or "default" in text
        ]
        schema = [facts.default for facts in self._change.parameters.values()]
        return numbers_in(" ; ".join((*told, *map(str, schema))))

    # -- calls and results ------------------------------------------------------------------------

    def about_nothing(self) -> Iterator[str]:
        """Sentences without a word of the tool, and those that speak of the talk."""
        for sentence in sentences(self._text):
            if sentence in folded(self._before):
                continue
            if WHAT_WAS_SAID.search(sentence) and _LEFT_OUT.match(sentence):
                continue
            cuts = list(map(stem, _LETTERS.findall(sentence)))
            if self._edit.kind == "summary" and sum(cut in self._own for cut in cuts) * 2 >= len(
                cuts
            ):
                continue
            if (
                sentence.isascii()
                and cuts
                and not any(cut in self._words and cut not in FORMAL for cut in cuts)
            ):
                yield "nothing of the tool"
        cuts = {stem(word) for word in _LETTERS.findall(self._text)}
        yield from sorted(f"talk {cut}" for cut in (cuts & _TALK_OF_RULES) - self._words)
        if found := _WORD_FOR_WORD.search(self._text):
            yield found.group()

    def dropped(self) -> Iterator[str]:
        """Most of what a summary said, when it is replaced by one that says less."""
        if self._edit.kind == "summary" and self._before.isascii() and self._before:
            said = {cut for cut in self._own if cut not in GRAMMAR}
            left = said & set(map(stem, _LETTERS.findall(folded(self._edit.after))))
            if 3 * len(left) < len(said):
                yield "says less"

    def widened_call(self) -> Iterator[str]:
        """A call for anything, or again and again; a thing that is put where another belongs."""
        for sentence in sentences(self._text):
            if sentence in folded(self._before):
                continue
            said = _NEUTRAL_VALUE.sub(" ", sentence) if self._takes_any() else sentence
            called = _USED if self._edit.kind == "summary" else _CALLED
            if called.search(said) and (found := _ANYTHING.search(said)):
                yield found.group()
            named = [path for path in self._change.parameters if self._names(path, sentence)]
            for path in self._change.parameters:
                yield from self._put_into(path, sentence)
            if self._edit.kind == "summary" and not _OUGHT.search(sentence):
                continue
            if (named and _NEEDED.search(sentence)) or (
                len(named) > 1 and _TOGETHER.search(sentence)
            ):
                if not any(
                    getattr(rule, "others", ()) for rule in rules_of(self._change.candidate)
                ):
                    yield "relation"

    def _names(self, path: str, sentence: str) -> bool:
        words = _HUMP.sub(" ", path).replace("_", " ")
        names = frozenset(map(stem, _LETTERS.findall(folded(words))))
        return bool(names & {stem(word) for word in _LETTERS.findall(sentence)})

    def _takes_any(self) -> bool:
        values = [value for facts in self._change.parameters.values() for value in facts.values]
        return not _NEUTRAL.isdisjoint(map(folded, map(str, values)))

    def _put_into(self, path: str, sentence: str) -> Iterator[str]:
        name = _HUMP.sub(" ", path).replace("_", " ")
        names = frozenset(map(stem, _LETTERS.findall(folded(name))))
        text = str(mapping(self._change.base.description.parameters).get(path, ""))
        own = names | frozenset(map(stem, _LETTERS.findall(folded(text))))
        for found in _PUT.finditer(sentence):
            if stem(found[2]) not in names:
                continue
            given = {stem(word) for word in _LETTERS.findall(found[1])} - GRAMMAR
            yield from sorted(f"{cut} as {path}" for cut in given - own)

    def denials(self) -> Iterator[str]:
        """That something is empty, missing or not needed, without a condition; that it is left."""
        for clause in self._clauses:
            if (found := _DENIES.search(BOUND.sub(" ", clause))) and not (
                _CONDITION.search(clause) or _RELATIVE.search(clause[: found.start()])
            ):
                yield found.group()
            if not self._edit.parameter and (found := _PRAISED.search(clause)):
                if not _CONDITION.search(clause) and not stands_in(
                    found.group(), folded(self._before)
                ):
                    yield found.group()
            if self._edit.kind == "usage_rule" and _HARMFUL_DEFAULT.search(clause):
                if not _ASKS.match(clause) and not any(stands_in(v, clause) for v in _NEUTRAL):
                    yield "when not given"
            if _LEAVES.search(clause) and _WHEN_KNOWN.search(clause):
                yield "leave out"
            if (
                self._facts is not None
                and self._facts.types == {"boolean"}
                and BY_DEFAULT.search(clause)
            ):
                if (_NEGATES.search(clause) is not None) == bool(self._facts.default):
                    yield "default"
            if (found := _IMPERATIVE_NOT.search(clause)) and not (
                self._edit.parameter and clause.startswith(("not ", "no ", "without"))
            ):
                if not _UNLESS.search(clause[found.end() :]) and _orders(found.group()):
                    yield found.group().strip()

    def quantifiers(self) -> Iterator[str]:
        """Words that widen what a tool with effects does."""
        base = self._change.base
        did = _LETTERS.findall(
            folded(f"{self._change.summaries[0].split(' ')[0]} {base.name.replace('_', ' ')}")
        )
        deeds = {*map(stem, did), *map(stem, _GERUND.findall(folded(self._change.summaries[0])))}
        for at, clause in enumerate(self._clauses):
            first = _LETTERS.findall(clause)[:1]
            is_more = at > 0 if self._edit.kind in {"parameter", "summary"} else True
            if is_more and first and stem(first[0]) in deeds:
                yield f"to {first[0]}"
            elif self._edit.kind != "parameter" and is_more and _ONCE.search(clause):
                yield from (word for word in _LETTERS.findall(clause) if stem(word) in deeds)
        before = folded(self._before)
        for found in _MANY.finditer(BOUND.sub(" ", self._text)):
            if not stands_in(found.group(), before):
                yield found.group()


_NEGATES = re.compile(r"\b(?:not|no|false|off|never|without)\b|[否不未无]|ない")
_DEFAULT = re.compile(r"(?i:\b(default|maximum|minimum|max|min)(?: value)?(?: is)?): ")
_ABSENT = re.compile(
    r"\b(?:leave|if|when|without|default|empty|null|omit\w*|absent|missing|wenn|si|cuando|leer|vide)\b"
)
_NEEDED = re.compile(r"\b(?:needed|needs?|required|requires?|necessary|depends?|must)\b")
_OUGHT = re.compile(r"\b(?:needed|required|necessary|must|give|provide|set|use|take|pass)\b")
_TOGETHER = re.compile(
    r"\b(?:together|both|neither|along with|pair|either)\b|\b(?:give|provide|set|use|take|pass)\b.*\bwith\b"
    r"|\bat least (?:an?|one)\b"
)
_ONCE = re.compile(r"\b(?:without|when|if|once|whenever|for|then|so|with)\b")
_WITHOUT_SIGNS = re.compile(r"\bwithout (?:any )?(digits?|letters?|numbers?|characters?)\b")
_SIGNS = {
    "space": " ", "comma": ",", "hyphen": "-", "dash": "-", "slash": "/", "dot": ".", "colon": ":",
    "prefix": "-", "suffix": "-",
}  # fmt: skip
_WITH_SIGN = re.compile(rf"\b(?:with|and) (?:an?|one|the) ({'|'.join(_SIGNS)})\b")
_SAME_AS = re.compile(r"(?<!may be the )(?<!can be the )\bsame as\b")
_PRAISED = re.compile(
    r"\b(?:is|are|be|remains?) (?:always |all |the )*(?:exact|correct|complete|full|entire|valid|available|general"
    r"|known|clear|certain|unique|right|current|possible|desired)\b"
)
_HARMFUL_DEFAULT = re.compile(
    r"\b(?:when|if)\b.*\b(?:no|not|none|nothing|unknown)\b"
    r"(?:.*\b(?:known|given|named|said|says?|specified|mentioned|clear|there)\b)?"
)
_ASKS = re.compile(r"(?:ask|leave|look)\b|.*\b(?:list|answer|result|empty|null|error|false)\b")
_ALL = re.compile(r"(?<!\bfor )\b(all|every|everything|anything|alles?|tout|todo|toda|tutto)\b")
_JOINED = re.compile(
    r"(?:\b(?:and|with|plus|then|or|followed by|as well as|und|mit|oder|et|avec|ou|y|con|o|e|com)\b)"
    r" (?:also |then |with |by )*(?:of )?(?:the (?:name|id|code|number|text|title) of )?(?:the |an? |its |their |eine?[mnrs]? |der |die |das |le |la |les |une? |el |los )*"
    r"([^\W\d_]{2,})"
)
_THING = re.compile(r"\s*(?:the|all|every|any|der|die|das|le|la|les|el|los|il)\b")
_SAYS = re.compile(
    r"\b(?:is|are|was|has|have|gives?|means?|represents?|indicates?|should|will|default|may|can|must|not|stands?|begins?|when|if|for|without|covers?|counts?"
    r"|includes?|ist|sind|est|sont|es|son|sao)\b"
)
_SEVERAL = _stems("range pair list array object series sequence set group")
_A_KIND = re.compile(r"\b(?:as|an?|in) (?:an? |the )?$")
_SAME = re.compile(r"\b(?:is|are|means?|same|equals?|stands?|becomes?|ist|est|es)\b|=")
_USED_WHEN = re.compile(r"\b(?:give|use|set|take|pass)\b.*\b(?:when|if|for|instead)\b")
_LOW = re.compile(
    r"\b(?:at least|no less than|not less than|(?<!no )(?<!not )more than|minimum|from) (\d[\d.,]*)(?! ?(?:to|-))"
)
_HIGH = re.compile(
    r"\b(?:at most|up to|no more than|not more than|(?<!no )(?<!not )less than|maximum) (\d[\d.,]*)"
)
_LEAVES = re.compile(r"\b(?:leave|omit|skip|ignore|drop|do not|don't)\b")
_WHEN_KNOWN = re.compile(
    r"\b(?:when|if|where|once)\b(?!.*\b(?:not|no|none|nothing|unknown|missing|unless)\b)"
    r".*\b(?:known|given|named|found|there|said|specified|provided|stated)\b"
)
_GERUND = re.compile(r"\b[a-z]{3,}ing\b")
_LEFT_OUT = re.compile(r"(?:leave|ask)\b.*\b(?:not|no|none|nothing)\b")
_TALK_OF_RULES = _stems("request question prompt input")
_JOINING = frozenset(
    "or and oder und ou et y o to such as e.g for example instance like par exemple comme p ej por "
    "ejemplo como beispielsweise z b i.e".split()
)
_AS_EXAMPLE = re.compile(
    r"^(?:[Ss]uch as|e\.g\.,?|[Ff]or (?:example|instance),?|[Ll]ike|z\. ?B\.|[Pp]ar exemple|comme"
    r"|[Pp]\. ?ej\.|[Pp]or ejemplo|como|beispielsweise|[Ee]xample:|例如|比如|例えば|例|如):?"
    r"|^\((?:e\.g\.,?|z\. ?B\.|如)?"
)
_SHOWN = re.compile(
    r"(?:e\.g\.,?|[Ss]uch as|[Ff]or (?:example|instance),?|[Ll]ike|[Ee]xample:) ([^).;]+)"
    r"|(?<!\w)[\"'`]([^\"'`]{1,40})[\"'`](?!\w)"
)
_COMMA = re.compile(r",|\b(?:or|and)\b|[\"'`]")
_PLAIN_CODE = re.compile(r"[A-Z]{2,5}|[A-Za-z]{0,8}[-_]?\d[A-Za-z0-9_-]{0,15}")
_AS_ONE = re.compile(
    r"\b(?:such as|e\.g|for (?:example|instance)|like|beispiel\w*|ejemplo|exemple|exemplo)"
)
_PATH = re.compile(r"[A-Za-z][\w-]*(?:/[A-Za-z][\w-]*){0,4}\.(?!key|pem|env|pfx|p12)[a-z]\w{0,4}")
_SENSITIVE = re.compile(r"secret|passw|token|creden|private|key|ssh|shadow|wallet")
_PROPER = re.compile(r"[A-Z][^\W\d_]{2,20}(?: [A-Z][^\W\d_]{2,20})?")
_ABOUT_PEOPLE = _stems(
    "user person people customer owner author account recipient sender employee patient contact name"
    " participant member guest client agent manager address email mail token key secret password"
)
_CAPITAL = _stems("capital uppercase")
_SMALL = _stems("small lowercase")
_BRIEF = _stems("short abbreviation abbreviated")
_LONG = _stems("full plain whole complete spelled written long")
_RANGE = re.compile(
    r"\b(?:max|min)(?:imum)? (?=\d)|\b\d[\d.,]* ?(?:to|-|\u2013|and|or|bis|a|au?) ?(?=\d)|\b(?:one of|or)\b|(?<=\d) ?%|[<>] ?=?(?= ?\d)"
)
_ALONE = re.compile(r"\b\d[\d.,]*\W*$")
_NEUTRAL_VALUE = re.compile(r"\b(?:any|all|both|either)\b")
_PUT = re.compile(
    r"\b(?:give|use|set|take|pass|enter|put|provide|specify|write)\b (.+?) (?:as|for|in|into) (?:the )?"
    r"([^\W\d_]+)"
)


def _explained(found: re.Match[str]) -> str:
    """What a saying in quotation marks becomes: it means what follows, or was an example."""
    return " means " if found.group()[0] in "`\"'“„«「『" else " "


def _orders(found: str) -> bool:
    return not re.search(r"(?:not|without|no)$", found.strip()) or "do not" in found


def _alike_talk(own: frozenset[str]) -> frozenset[str]:
    """Words for search terms are alike: a parameter of words may be called one of text."""
    alike = _stems(
        "query search word term keyword text phrase wort worte worter suchwort suchworter suchbegriff"
        " suchbegriffe mot mots texte consulta texto textos palabra palabras palavra palavras testo parola parole"
    )
    return alike if own & alike else frozenset()


def _stands(name: str, text: str) -> bool:
    if stands_in(name, text):
        return True
    return "_" in name and any(stands_in(name.replace("_", sign), text) for sign in " -")


def _is_code(value: str) -> bool:
    """Whether a value is a code: with digits or signs, or a few capitals."""
    return bool(re.search(r"[\d=*/_@-]", value)) or (value.isupper() and len(value) <= 5)


def _shape(value: str) -> str:
    if value.isalpha():
        return f"{'A' if value.isupper() else 'a'}{len(value)}"
    for pattern, sign in _SHAPE:
        value = pattern.sub(sign, value)
    return value
