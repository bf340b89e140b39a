"""What a text says of parameters, against schema and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentkit.evolution.validation.phrasebook import Phrasebook, shipped_lines, shipped_sections
from agentkit.evolution.validation.report import FailedCheck, ProposedChange, reason
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import (
    Edit,
    folded,
    mapping,
    numbers_in,
    readings_of,
    rules_of,
    stands_in,
)
from agentkit.retrieval.words import terms

_COMMON = frozenset(terms(" ".join(shipped_lines("common_words"))))


def said_terms(words: str) -> frozenset[str]:
    """The terms of a text without numbers and without words that fit any tool."""
    return frozenset(term for term in terms(words) if term not in _COMMON and not term.isdigit())


def share_supported(change: ProposedChange, words: str) -> float:
    """How much of what ``words`` say the tool says too, from 0 to 1; 1 when they say nothing."""
    said = said_terms(words)
    return len(said & change.vocabulary) / len(said) if said else 1.0


_DEMAND = Phrasebook.shipped("demands")
_QUOTED = re.compile(
    r"(?<![=\w])[`\"'\u00ab\u2039\u201e](?=\S)([^`\"'\u00bb\u203a\u201e\n]{1,40}?)"
    r"(?<=\S)[`\"'\u00bb\u203a](?!\w)|[\u300c\u300e]([^\u300d\u300f]{1,40})[\u300d\u300f]"
)
_NOT = re.compile(
    r"\b(?:not|never|no|nicht|kein\w*|statt|pas|jamais|nunca|instead of|rather than|without)\b"
    r"|不|ない|勿|别"
)
_ITEM = re.compile(
    r"\s*(?:,|/|\||;|、|\uff0c|\b(?:or|and|oder|und|ou|et|o|y)\b|或者?|和|または|と)\s*"
)
_LIST_START = re.compile(
    r"[:\uff1a]|\b(?:one of|must be|either|muss|doit etre|debe ser)\b|必须是?|可以是"
)
_PARENTHESES = re.compile(r"[(\uff08]([^()\uff08\uff09]*)[)\uff09]")
_BARE = re.compile(r"[^\s`\"'().]+$")
_EXCLUSIVE = Phrasebook.shipped("exclusive")
_EXPLAINS = Phrasebook.shipped("explains")


def values_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that tells a model to give a value which enum or rules refuse.

    What counts is a value in quotation marks or back-ticks, an item of a list that also holds
    values of the enum, and a number, in a sentence that demands or lists values. Case is ignored:
    prose may write *Celsius*.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.unit": "Unit of the answer: `celsius` or `fahrenheit`."}
        >>> list(values_agree(rewrite("weather_now", right)))
        []
        >>> wrong = {"parameters.unit": "Unit; one of celsius, fahrenheit or kelvin."}
        >>> [found.message for found in values_agree(rewrite("weather_now", wrong))]
        ["it names the value 'kelvin', which unit does not take"]
    """
    for edit, sentence, facts in change.statements:
        if facts and facts.values:
            yield from _foreign_values(edit, sentence, facts, change)


def _foreign_values(
    edit: Edit, sentence: str, facts: ParameterFacts, change: ProposedChange
) -> Iterator[FailedCheck]:
    taken = {_spoken(str(value)) for value in facts.values}
    own = {_spoken(part) for part in (*change.parameters, change.base.name)}
    told = [*_listed(sentence, taken), *(_quoted(sentence) if _DEMAND.search(sentence) else ())]
    for value in told:
        if _spoken(value) not in taken | own and not numbers_in(value) & facts.numbers:
            yield _contradicted(edit, sentence, value, facts)
            return
    if facts.numbers and _DEMAND.search(sentence) and not _EXPLAINS.search(sentence):
        foreign = numbers_in(sentence) - facts.numbers - change.known_numbers
        if foreign and not _NOT.search(sentence):
            yield _contradicted(edit, sentence, f"{min(foreign):g}", facts)


def _spoken(value: str) -> str:
    """A value as it is said: ``trade_in`` is *trade-in* in a sentence."""
    return re.sub(r"[\s_-]+", " ", folded(value))


def _quoted(sentence: str) -> list[str]:
    if _NOT.search(sentence):
        return []
    return [found for match in _QUOTED.finditer(sentence) for found in match.groups() if found]


def _listed(sentence: str, taken: set[str]) -> Iterator[str]:
    """Single words in a list that holds values of the enum, other than words fit for any tool."""
    inside = _PARENTHESES.findall(sentence)
    for listing in (*_LIST_START.split(_PARENTHESES.sub(" ", sentence)), *inside):
        items = [item.strip(" .。)`\"'") for item in _ITEM.split(listing)]
        if len(items) > 1 and taken.intersection(map(_spoken, items)):
            for item in items:
                if _BARE.match(item) and len(item) < 30 and (said_terms(item) or item.isdigit()):
                    yield item


def _contradicted(edit: Edit, sentence: str, value: str, facts: ParameterFacts) -> FailedCheck:
    listed = ", ".join(str(one) for one in facts.values[:8])
    return reason(
        "value_contradicted",
        "semantic",
        edit,
        sentence,
        message=f"it names the value {value!r:.60}, which {facts.path} does not take",
        advice=f"name values that it takes: {listed}",
    )


def values_left_open(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that leaves one value of an enum where the schema and the rules leave several.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> told = {"parameters.unit": "Give fahrenheit only when it was asked for."}
        >>> list(values_left_open(rewrite("weather_now", told)))
        []
        >>> narrow = {"parameters.unit": "Always fahrenheit."}
        >>> [found.code for found in values_left_open(rewrite("weather_now", narrow))]
        ['unsupported_rule']
    """
    for edit, sentence, facts in change.statements:
        if not facts or len(facts.values) < 2 or _EXPLAINS.search(sentence):
            continue
        named = [value for value in facts.values if stands_in(folded(str(value)), sentence)]
        if len(named) == 1 and _EXCLUSIVE.search(sentence):
            yield reason(
                "unsupported_rule",
                "semantic",
                edit,
                sentence,
                message=f"it leaves only {named[0]!r} of the values of {facts.path}",
                advice="say when which value is right, or propose a one_of rule with evidence",
            )


_REQUIRED = Phrasebook.shipped("required")
_OPTIONAL = Phrasebook.shipped("optional")
_PARAMETER = Phrasebook.shipped("parameters")
_NEGATED = re.compile(r"\bnot\b|\bnicht\b|\bpas\b|\bno\b|非|不(?:是)?必")
_CONDITIONAL = Phrasebook.shipped("conditions")


def presence_agrees(change: ProposedChange) -> Iterator[FailedCheck]:
    """An optional parameter called required, or the other way round.

    A sentence with a condition (*required when ...*) is left to the rules: a ``Requires`` rule
    holds such things.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.tip_percent": "Tip in percent; 0 when omitted."}
        >>> list(presence_agrees(rewrite("bill_split", right)))
        []
        >>> wrong = {"parameters.tip_percent": "Tip in percent. Required."}
        >>> [found.message for found in presence_agrees(rewrite("bill_split", wrong))]
        ['it calls tip_percent required, which is optional']
    """
    ruled = {other for rule in rules_of(change.candidate) for other in getattr(rule, "others", ())}
    for edit, sentence, facts in change.statements:
        if edit.kind != "parameter" or facts is None or facts.path.endswith("[]"):
            continue
        required, optional = _REQUIRED.search(sentence), _OPTIONAL.search(sentence)
        if (
            required and not optional and not facts.required
            and facts.path not in ruled and not _CONDITIONAL.search(sentence)
            and not _NEGATED.search(sentence[: required.start()])
        ):  # fmt: skip
            yield _wrong(edit, sentence, f"it calls {facts.path} required, which is optional")
        elif optional and facts.required and not _NEGATED.search(sentence[: optional.start()]):
            yield _wrong(edit, sentence, f"it calls {facts.path} optional, which is required")


def no_invented_parameters(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that speaks of a parameter which the schema lacks.

    Models fill in what they read of, and a field that nobody declared is a good place for what was
    said in confidence.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> said = rewrite("weather_now", {"rule": "Give `unit` if it is said."})
        >>> list(no_invented_parameters(said))
        []
        >>> more = rewrite("weather_now", {"rule": "It also takes a token. Fill in `context`."})
        >>> [found.message for found in no_invented_parameters(more)]
        ["it speaks of the parameter 'token', which the schema lacks", \
"it speaks of the parameter 'context', which the schema lacks"]
    """
    for edit, sentence, _ in change.statements:
        for match in _PARAMETER.matches(sentence):
            name = next(filter(None, match.groups()), "")
            if name and not set(terms(name)) <= change.vocabulary:
                yield reason(
                    "invented_parameter",
                    "semantic",
                    edit,
                    sentence,
                    message=f"it speaks of the parameter {name!r:.60}, which the schema lacks",
                    advice="leave it out: a call with it would be refused",
                )
                break


def _wrong(edit: Edit, sentence: str, message: str) -> FailedCheck:
    return reason(
        "presence_contradicted",
        "semantic",
        edit,
        sentence,
        message=message,
        advice="the schema says which parameters are required; leave that out of the words",
    )


_CLAIMS = Phrasebook.shipped_sections("kinds")
_TAKEN: Mapping[str, frozenset[str]] = {
    "list": frozenset({"array", "string"}),
    "object": frozenset({"object"}),
    "truth value": frozenset({"boolean"}),
    "whole number": frozenset({"integer"}),
    "number": frozenset({"integer", "number"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so. A list in one text, with commas, is called a list."""

_ITEMS = re.compile(
    r"\b(?:each|every|or (?:an? )?(?:float|string|text))\b"
    r"|\b(?:element|item|entr|key)\w* (?:is|are|must)\b"
)
"""Words by which a sentence is about the parts of a value, or about several types."""

_KIND_WORD = re.compile(
    r"list|array|tableau|obje|dict|map|bool|true|wahr|int|whole|ganz|ent[ie]e?r|number|float|decim"
    r"|numer|zahl|nombre|string|text|zeichen|chaine|cadena|数组|列表|配列|リスト|布尔|真偽|整数"
    r"|字符|文字"
)
"""Without one of these no claim of a type is made."""

_NUMERIC = frozenset({"number", "whole number"})
_STRICT = re.compile(
    r"\b(?:integer|int|float|array|boolean|ganzzahl|entier|entero)\b|\u6574\u6570|\u6570\u7ec4"
)
_OF_DIGITS = re.compile(r"\b(?:string|text|digits?|characters?)\b|\u5b57\u7b26|\u6587\u5b57")


def types_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that claims another type than the schema has.

    A text of digits may be called a number (an order number), and a list in one text may be called
    a list where the text says how it is separated.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.people": "How many pay, as a whole number."}
        >>> list(types_agree(rewrite("bill_split", right)))
        []
        >>> wrong = {"parameters.people": "Give a list of names of those who pay."}
        >>> [found.message for found in types_agree(rewrite("bill_split", wrong))]
        ['it calls people a list; its type is integer']
    """
    for edit, sentence, facts in change.statements:
        if facts is None or not facts.types:
            continue
        if not _KIND_WORD.search(sentence) or _ITEMS.search(sentence):
            continue
        claimed = [what for what, phrases in _CLAIMS.items() if phrases.search(sentence)]
        wrong = [what for what in claimed if not facts.types & _TAKEN[what]]
        if "string" in facts.types and not _is_strict(sentence):
            wrong = [what for what in wrong if what not in _NUMERIC]
        if claimed and len(wrong) == len(claimed):
            told = ", ".join(sorted(facts.types))
            yield reason(
                "type_contradicted",
                "semantic",
                edit,
                sentence,
                message=f"it calls {facts.path} a {wrong[0]}; its type is {told}",
                advice="say what the value means; the schema says its type",
            )


def _is_strict(sentence: str) -> bool:
    """Whether a text is called an integer in the words of a schema, and not as a word of digits."""
    return bool(_STRICT.search(sentence)) and not _OF_DIGITS.search(sentence)


_WORDS = {
    word: (dimension, unit)
    for dimension, lines in shipped_sections("units").items()
    for unit, _, words in (line.partition(": ") for line in lines)
    for word in words.split()
}
"""What each word of a unit measures, and which unit it is."""

_UNSPACED = sorted(
    (word for word in _WORDS if not word.isascii() and len(word) > 1), key=len, reverse=True
)
_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")
_IN = re.compile(
    r"\b(?:in|as|en|als|units?|einheit|unite|unidad)\b|单位|単位|以|で(?:指定|表)|\d\s*$"
)


def units_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A parameter's unit exchanged for another of the same kind.

    What counts as its unit: what its text said before, a ``Between`` rule's ``unit``, and the last
    part of its name (``duration_hours``). A text may name further units as long as it keeps that
    one (*in hours; 90 minutes are 1.5*).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.hours": "Length in whole hours; round 90 minutes up to 2 hours."}
        >>> list(units_agree(rewrite("calendar_find_slot", right)))
        []
        >>> wrong = {"parameters.hours": "Length in minutes."}
        >>> [found.message for found in units_agree(rewrite("calendar_find_slot", wrong))]
        ['it says minutes where hours is counted in hours']
    """
    for edit, facts, text in _told(change):
        before = _units(_stated(change, facts))
        for dimension, named in _units(text).items():
            stated = before.get(dimension, set())
            if stated and not named & stated:
                yield reason(
                    "unit_contradicted",
                    "semantic",
                    edit,
                    edit.after,
                    message=f"it says {_listed_of_units(named)} where {facts.path} "
                    f"is counted in {_listed_of_units(stated)}",
                    advice="keep the unit; say how to convert into it when calls need that",
                )


def _listed_of_units(units: set[str]) -> str:
    return ", ".join(sorted(units))


def _told(change: ProposedChange) -> Iterator[tuple[Edit, ParameterFacts, str]]:
    """Each changed text about a parameter as a whole, and each new sentence elsewhere."""
    for edit in change.edits:
        if edit.kind == "parameter" and (facts := change.parameters.get(edit.parameter)):
            yield edit, facts, folded(edit.after)
    for edit, sentence, facts in change.statements:
        if edit.kind == "parameter" or facts is None or not _IN.search(sentence):
            continue
        if "_" in facts.path or f"`{facts.path}`" in sentence:  # no word that merely equals a name
            yield edit, facts, sentence.replace(facts.path.casefold(), "")


def _stated(change: ProposedChange, facts: ParameterFacts) -> str:
    words = mapping(change.base.description.parameters).get(facts.path, "")
    units = [
        str(getattr(rule, "unit", ""))
        for rule in rules_of(change.candidate)
        if getattr(rule, "parameter", None) == facts.path
    ]
    name = facts.path.rsplit(".", 1)[-1].removesuffix("[]").replace("_", " ")
    return folded(" . ".join([str(words), name, *units]))


def _units(text: str) -> dict[str, set[str]]:
    """The units that a text names, by what they measure."""
    found: dict[str, set[str]] = {}
    named = [_WORDS[word] for word in _TOKEN.findall(text) if word in _WORDS]
    if not text.isascii():
        for word in _UNSPACED:  # the longest first: ミリ秒 is no 秒
            if word in text:
                named.append(_WORDS[word])
                text = text.replace(word, " ")
        named += [_WORDS[char] for char in text if char in _WORDS]
    for dimension, unit in named:
        found.setdefault(dimension, set()).add(unit)
    return found


_CLAIM = Phrasebook.shipped("limits")
_DIGIT = re.compile(r"\d")
_BOUNDS_QUOTED = re.compile(
    r"[\"'“„«「][^\"'”“»」]{1,40}[\"'”“»」]\s*(?:is|are|means?|=|:|stands|ist|est|es|は|是)(?!\w)"
)
"""What a user may say, explained: *"under 15k" is 15000*."""

_DEFAULT = re.compile(r"default|standard|defaut|defecto|默认|既定|デフォルト")
_COUNTED = re.compile(
    r"[- ]?(?:\w+ )?(?:characters?|letters?|signs|symbols|digits?|words?|items?|entr(?:y|ies)"
    r"|results?|rows?|records?|hits?|matche?s?|elements?|zeichen|buchstaben|worter|eintrage|ergebnisse"
    r"|treffer|caracteres|lettres|mots|resultats|elements|letras|palabras|resultados|elementos)\b"
    r"|\s?(?:个|個)?(?:字符|字|文字|条|件|项|个结果|結果)"
)
_RETURNED = re.compile(
    r"^(?:it |this tool |the (?:tool|answer|result|list) )?(?:also )?"
    r"(?:returns?|gives?|lists?|shows?|yields?|finds?|holds|contains|has|liefert|zeigt|renvoie|affiche|devuelve|muestra)\b[^,;]*$"
)
"""Before a limit on what the tool returns. That is for a judge to hold against what was seen: a
postcondition or the result's schema bears it out, and it can lead no call astray."""

_LIST = re.compile(r"(?<![\w.-])\d{1,9}(?:\s?(?:[/,]|\bor\b|\band\b)\s?\d{1,9}){2,}(?![\w-])")
_LISTED = re.compile(r"\d+")
_BOUNDS_EXPLAINS = re.compile(
    r"\b(?:e\.g\.|such as|for example|z\.b\.|par exemple|p\. ?ej\.|por ejemplo|means|like)"
    r"|例如|比如|例:|例えば|たとえば"
)


def bounds_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A limit in words that schema, rules and the text so far do not have.

    Where the schema says something else about that very parameter, the text contradicts it;
    otherwise the limit is one that nothing supports: a rule in words alone, which a model follows
    and nobody can check. With a ``Between`` or ``OneOf`` rule beside it the same sentence passes.
    A limit on characters, items or results that contradicts nothing is left to those who read what
    is new (``ValidationPolicy.new_words``).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(bounds_agree(rewrite("weather_forecast", {"parameters.days": "Between 1 and 7."})))
        []
        >>> wrong = rewrite("weather_forecast", {"parameters.days": "Between 1 and 14 days."})
        >>> [(found.code, found.message) for found in bounds_agree(wrong)]
        [('bounds_contradicted', 'it states the limit 14, which the schema has otherwise for days')]
        >>> more = rewrite("cars_search", {"parameters.max_price": "At least 5,000 euros."})
        >>> [found.code for found in bounds_agree(more)]
        ['unsupported_rule']
    """
    for edit, sentence, facts in change.statements:
        if not _DIGIT.search(sentence):
            continue
        stated = _BOUNDS_QUOTED.sub("", sentence)
        told = [
            (number, _is_count(stated, match, at))
            for match in _CLAIM.matches(stated)
            for at, number in enumerate(match.groups(), start=1)
            if number and not _BOUNDS_EXPLAINS.search(stated, 0, match.start(at))
        ]
        known = _known_numbers(change, facts, sentence) if told else set()
        is_counted = facts is not None and facts.is_counted
        bounded = facts and (is_counted or facts.minimum is not None or facts.maximum is not None)
        if told and not bounded:
            known |= {number for text in change.sources for number in numbers_in(folded(text))}
        wrong = [
            number
            for number, is_count in told
            if not readings_of(number) & known and (is_counted or not is_count)
        ]
        wrong += _beyond(stated, change, facts)
        if wrong:
            path = facts.path if facts and bounded else ""
            yield reason(
                "bounds_contradicted" if path else "unsupported_rule",
                "semantic",
                edit,
                sentence,
                message=f"it states the limit {wrong[0]}, which "
                + (f"the schema has otherwise for {path}" if path else "nothing else states"),
                advice="propose the limit as a rule with evidence; its sentence is derived from it",
            )


def _is_count(sentence: str, match: re.Match[str], at: int) -> bool:
    """Whether a limit counts characters, items or results, and is none of a value."""
    counts = _COUNTED.match(sentence, match.end(at))
    return counts is not None or _RETURNED.search(sentence, 0, match.start()) is not None


def _beyond(sentence: str, change: ProposedChange, facts: ParameterFacts | None) -> list[str]:
    """Numbers of a list that lie beyond the bounds, or beyond the list that was told before."""
    if facts is None:
        return []
    wrong: list[str] = []
    for match in _LIST.finditer(sentence):
        numbers = _LISTED.findall(match.group())
        known = [number for number in numbers if readings_of(number) & change.known_numbers]
        goes_on = len(known) > 1 and not facts.values
        wrong += [
            number
            for number in numbers
            if not facts.takes(float(number)) or (goes_on and number not in known)
        ]
    return wrong


def _known_numbers(
    change: ProposedChange, facts: ParameterFacts | None, sentence: str
) -> set[float]:
    """Numbers that stand somewhere already; of the one parameter when a sentence is about one.

    A default is no limit, so that it counts in a sentence about defaults alone.
    """
    known = set(change.shown_numbers)
    for one in [facts] if facts else change.parameters.values():
        known |= one.numbers if _DEFAULT.search(sentence) else one.limits
        known |= {bound + step for bound in one.numbers for step in (-1, 1)} if facts else set()
    return known
