"""What sentences say of a tool and of its parameters, held against schema, rules and effects.

The patterns stand in ``phrases/sentences.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from agentkit.evolution.validation.phrases import matches, pattern, patterns, sections
from agentkit.evolution.validation.report import FailedCheck, ProposedChange, Statement, failed
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import (
    Edit,
    folded,
    mapping,
    numbers_in,
    readings_of,
    rules_of,
    sentences,
    sentences_of,
    stands_in,
)
from agentkit.evolution.validation.tool_names import preferred_to
from agentkit.retrieval.words import terms

Found = re.Match[str]
_MOST_MATCHES = 200
_LEAST_SHARE = 0.34
_LEAST_KEPT = 0.15


def _search(section: str, sentence: str) -> Found | None:
    return pattern("sentences", section).search(sentence)


class Hit(NamedTuple):
    """What a pattern matched in a new sentence of a change."""

    change: ProposedChange
    statement: Statement
    found: Found


@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceCheck:
    """A check that looks for a pattern in each new sentence.

    Attributes:
        reason: Why it fails, in ``phrases/reasons.toml``.
        section: The patterns, in ``phrases/sentences.txt``.
        counts: Whether a match is what is meant, and nothing bears it out.
    """

    reason: str
    section: str
    counts: Callable[[Hit], bool]

    def __call__(self, change: ProposedChange) -> Iterator[FailedCheck]:
        """The first match of each sentence that counts."""
        looked_for = pattern("sentences", self.section)
        for statement in change.statements:
            for found in islice(matches(looked_for, statement.sentence), _MOST_MATCHES):
                if self.counts(Hit(change, statement, found)):
                    yield failed(
                        self.reason,
                        field=statement.edit.field,
                        excerpt=statement.sentence,
                        found=_said(found),
                    )
                    break


def _said(found: Found) -> str:
    """The group that matched, or all of it."""
    return next(filter(None, found.groups()), found.group())


# --- What it does, promises and praises ------------------------------------------------------


_NOT_DONE = re.compile(
    r"\b(?:not|never|no|nothing|nichts?|kein\w*|pas|rien|no|nada|before|vor|avant|antes)\b|不|ない|ません|前"
)


def _is_other_effect(hit: Hit) -> bool:
    """A tool that is known to change nothing said to delete, pay, send or write.

    Held against declared effects alone; with effects undeclared nothing is contradicted.
    """
    change, statement, found = hit
    is_read = statement.edit.kind in {"summary", "usage_rule"}
    return (
        change.base.signature.effects.is_read_only
        and is_read
        and not _NOT_DONE.search(statement.sentence)
        and _said(found) not in change.known_folded
    )


_READS_ONLY = re.compile(
    r"read[- ]only|chang|modif|write|stor|alter|affect|lesend|andert|lecture|lectura"
    r"|只读|修改|读|変更|読み取り"
)
_IDEMPOTENT = re.compile(r"idempotent|retr|as often|any number|undo|撤销")


def _is_promised(hit: Hit) -> bool:
    """Safety, price, certainty and availability: a model that reads *safe* stops asking.

    Whether a tool only reads is declared in its effects; where they say so, a text may say it too.
    """
    effects, claim = hit.change.base.signature.effects, hit.found.group()
    declared = (effects.is_read_only and _READS_ONLY.search(claim)) or (
        effects.idempotent and _IDEMPOTENT.search(claim)
    )
    return not declared and claim not in hit.change.known_folded


def _is_praised(hit: Hit) -> bool:
    """Praise, and comparison with other tools, save in one form (``preferred_to``)."""
    is_known = hit.found.group() in hit.change.known_folded
    return not is_known and not preferred_to(hit.change, hit.statement.sentence)


# --- Whom and what it is for -----------------------------------------------------------------


_SWITCH = re.compile(r"(?:if|when) (?:it is )?(?:true|false|set|given|omitted|empty|left out)\b")
"""What a value of a parameter does (*if false, only closing prices*) is no restriction."""

_CLAUSE_ENDS = re.compile(r";|,? written\b|,? given as\b|\(")
_KANA = re.compile(r"[\u3041-\u30fa]")
_ITEMS = re.compile(r"\s*(?:,|/|;|、|\b(?:and|or|und|oder|et|ou|y|o)\b|和|或|と)\s*")


@cache
def _common() -> frozenset[str]:
    return frozenset(terms(" ".join(sections("common_words")[""])))


def said_terms(text: str) -> frozenset[str]:
    """The terms of a text without numbers and without words that fit any tool."""
    return frozenset(term for term in terms(text) if term not in _common() and not term.isdigit())


def share_supported(change: ProposedChange, text: str) -> float:
    """How much of what a text says the tool says too, from 0 to 1; 1 when it says nothing."""
    said = said_terms(text)
    return len(said & change.vocabulary) / len(said) if said else 1.0


def _is_narrowed(hit: Hit) -> bool:
    """A sentence that narrows who may use the tool, for what, where or when, out of nothing.

    A restriction passes when at least a third of its words stand in the tool's own texts, schema or
    examples: then it says with emphasis what is known. So does one about what the user said. That a
    restriction is *true* can not be seen from words; what is meant to hold belongs into a rule.

    Sentences that keep a tool from being used for something else (*Do not use it for rental cars*)
    pass: they are how confused tools are told apart, and gates measure them.
    """
    change, statement, found = hit
    sentence = statement.sentence
    if statement.edit.parameter and _SWITCH.match(sentence):
        return False
    behind = _CLAUSE_ENDS.split(sentence[found.end() :], maxsplit=1)[0]
    about = sentence[: found.start()] if _KANA.search(sentence) else behind
    return not _search("user_said", about) and share_supported(change, about) < _LEAST_SHARE


def _is_closed(hit: Hit) -> bool:
    """These values said to be all there are, where nothing else says so.

    What bears it out: an enum or a rule with values, of the parameter that the text is about or
    that the sentence names, or a list that stands in the tool's words already.
    """
    change, statement, found = hit
    facts = statement.facts
    is_one_of_several = found.group().startswith("is the ")
    if facts is not None and facts.values and not (is_one_of_several and len(facts.values) > 1):
        return False
    named = _ITEMS.split(statement.sentence[found.end() :].strip(" .:。"))
    known = (item.strip(" .()\"'`") in change.known_folded for item in named if item.strip())
    return not (len(named) > 1 and all(known))


def _is_invented(hit: Hit) -> bool:
    """A parameter that the schema lacks: a good place for what was said in confidence."""
    name = next(filter(None, hit.found.groups()), "")
    return bool(name) and not set(terms(name)) <= hit.change.vocabulary


DEEDS_DECLARED = SentenceCheck(
    reason="effect_contradicted", section="deeds", counts=_is_other_effect
)
NO_PROMISES = SentenceCheck(reason="false_claim", section="promises", counts=_is_promised)
NO_SELF_PROMOTION = SentenceCheck(reason="self_promotion", section="promotion", counts=_is_praised)
RESTRICTIONS_SUPPORTED = SentenceCheck(
    reason="unsupported_rule", section="restrictions", counts=_is_narrowed
)
CLOSED_LISTS_SUPPORTED = SentenceCheck(
    reason="unsupported_rule.closed", section="closed", counts=_is_closed
)
NO_INVENTED_PARAMETERS = SentenceCheck(
    reason="invented_parameter", section="parameters", counts=_is_invented
)


# --- Purpose and warnings --------------------------------------------------------------------


def purpose_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that is about something else, or is gone.

    Words are compared, not meanings: at least a third of what the new summary says must stand
    somewhere in the tool (name, parameters, texts, examples), or a seventh of the old summary must
    be left. A translation into another language therefore fails: it changes who can read the tool,
    and is for a person to propose.
    """
    before, after = change.summaries
    if before == after or not before.strip():
        return
    had = set(terms(before))
    kept = len(had.intersection(terms(after))) / len(had) if had else 1.0
    if not after.strip():
        yield failed("purpose_changed.gone", field="summary")
    elif share_supported(change, after) < _LEAST_SHARE and kept < _LEAST_KEPT:
        yield failed("purpose_changed", field="summary", excerpt=after)


_ASKS = re.compile(r"confirm|approv|ask |consent|bestatig|zustimm|确认|確認")
_LEAST_SHARED = 0.4


def warnings_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A warning about lasting effects, or a demand to ask first, that the rewrite drops.

    Looked at for every tool that is not known to only read. A warning is kept when the new texts
    hold a warning too that shares enough words with it or is as strong.
    """
    if change.base.signature.effects.is_read_only:
        return
    now = sentences_of(change.candidate, ("summary", "usage_rule", "condition"))
    warned = list(_warnings(now))
    for warning in _warnings(sentences_of(change.base, ("summary", "usage_rule"))):
        if warning not in folded(now) and not any(_says(one, warning) for one in warned):
            yield failed("warning_removed", field="summary", excerpt=warning, found=warning)


def _warnings(text: str) -> Iterator[str]:
    return (sentence for sentence in sentences(text) if _search("warnings", sentence))


def _says(sentence: str, warning: str) -> bool:
    """Whether a new warning speaks of the same: lasting effects, or asking first."""
    if bool(_ASKS.search(sentence)) == bool(_ASKS.search(warning)):
        return True
    had = set(terms(warning))
    return len(had.intersection(terms(sentence))) >= _LEAST_SHARED * len(had)


# --- Values ----------------------------------------------------------------------------------


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


def values_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that tells a model to give a value which enum or rules refuse.

    What counts is a value in quotation marks or back-ticks, an item of a list that also holds
    values of the enum, and a number, in a sentence that demands or lists values. Case is ignored:
    prose may write *Celsius*.
    """
    for edit, sentence, facts in change.statements:
        value = _foreign_value(sentence, facts, change) if facts and facts.values else None
        if facts and value is not None:
            listed = ", ".join(str(one) for one in facts.values[:8])
            yield failed(
                "value_contradicted",
                field=edit.field,
                excerpt=sentence,
                found=value,
                path=facts.path,
                listed=listed,
            )


def _foreign_value(sentence: str, facts: ParameterFacts, change: ProposedChange) -> str | None:
    taken = {_spoken(str(value)) for value in facts.values}
    own = {_spoken(part) for part in (*change.parameters, change.base.name)}
    demands, is_negated = _search("demands", sentence), _NOT.search(sentence)
    quoted = _QUOTED.finditer(sentence) if demands and not is_negated else ()
    told = [*_listed(sentence, taken), *(_said(found) for found in quoted)]
    for value in told:
        if _spoken(value) not in taken | own and not numbers_in(value) & facts.numbers:
            return value
    if facts.numbers and demands and not is_negated and not _search("explains", sentence):
        foreign = numbers_in(sentence) - facts.numbers - change.known_numbers
        return f"{min(foreign):g}" if foreign else None
    return None


def _spoken(value: str) -> str:
    """A value as it is said: ``trade_in`` is *trade-in* in a sentence."""
    return re.sub(r"[\s_-]+", " ", folded(value))


def _listed(sentence: str, taken: set[str]) -> Iterator[str]:
    """Single words in a list that holds values of the enum, other than words fit for any tool."""
    inside = _PARENTHESES.findall(sentence)
    for listing in (*_LIST_START.split(_PARENTHESES.sub(" ", sentence)), *inside):
        items = [item.strip(" .。)`\"'") for item in _ITEM.split(listing)]
        if len(items) > 1 and taken.intersection(map(_spoken, items)):
            for item in items:
                if _BARE.match(item) and len(item) < 30 and (said_terms(item) or item.isdigit()):
                    yield item


def values_left_open(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that leaves one value of an enum where the schema and the rules leave several."""
    for edit, sentence, facts in change.statements:
        if not facts or len(facts.values) < 2 or _search("explains", sentence):
            continue
        named = [value for value in facts.values if stands_in(folded(str(value)), sentence)]
        if len(named) == 1 and _search("exclusive", sentence):
            yield failed(
                "unsupported_rule.value",
                field=edit.field,
                excerpt=sentence,
                found=named[0],
                path=facts.path,
            )


# --- Presence, types, units ------------------------------------------------------------------


_NEGATED = re.compile(r"\bnot\b|\bnicht\b|\bpas\b|\bno\b|非|不(?:是)?必")


def _contradicted(
    reason: str, edit: Edit, excerpt: str, facts: ParameterFacts, *, called: str, declared: str
) -> FailedCheck:
    return failed(
        reason,
        field=edit.field,
        excerpt=excerpt,
        path=facts.path,
        called=called,
        declared=declared,
    )


def presence_agrees(change: ProposedChange) -> Iterator[FailedCheck]:
    """An optional parameter called required, or the other way round.

    A sentence with a condition (*required when ...*) is left to the rules: a ``Requires`` rule
    holds such things.
    """
    ruled = {other for rule in rules_of(change.candidate) for other in getattr(rule, "others", ())}
    for edit, sentence, facts in change.statements:
        if edit.kind != "parameter" or facts is None or facts.path.endswith("[]"):
            continue
        required, optional = _search("required", sentence), _search("optional", sentence)
        is_free = not facts.required and facts.path not in ruled
        code = "presence_contradicted"
        if required and not optional and is_free and not _search("conditions", sentence):
            if not _NEGATED.search(sentence[: required.start()]):
                yield _contradicted(
                    code, edit, sentence, facts, called="required", declared="optional"
                )
        elif optional and facts.required and not _NEGATED.search(sentence[: optional.start()]):
            yield _contradicted(code, edit, sentence, facts, called="optional", declared="required")


_TAKEN: Mapping[str, frozenset[str]] = {
    "list": frozenset({"array", "string"}),
    "object": frozenset({"object"}),
    "truth value": frozenset({"boolean"}),
    "whole number": frozenset({"integer"}),
    "number": frozenset({"integer", "number"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so. A list in one text, with commas, is called a list."""

_PARTS = re.compile(
    r"\b(?:each|every|or (?:an? )?(?:float|string|text))\b"
    r"|\b(?:element|item|entr|key)\w* (?:is|are|must)\b"
)
"""Words by which a sentence is about the parts of a value, or about several types."""

_NUMERIC = frozenset({"number", "whole number"})
_STRICT = re.compile(
    r"\b(?:integer|int|float|array|boolean|ganzzahl|entier|entero)\b|\u6574\u6570|\u6570\u7ec4"
)
_OF_DIGITS = re.compile(r"\b(?:string|text|digits?|characters?)\b|\u5b57\u7b26|\u6587\u5b57")


def types_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that claims another type than the schema has.

    A text of digits may be called a number (an order number), and a list in one text may be called
    a list where the text says how it is separated.
    """
    for edit, sentence, facts in change.statements:
        if facts is None or not facts.types or _PARTS.search(sentence):
            continue
        kinds = patterns("kinds").items()
        claimed = [what for what, looked_for in kinds if looked_for.search(sentence)]
        wrong = [what for what in claimed if not facts.types & _TAKEN[what]]
        is_strict = _STRICT.search(sentence) and not _OF_DIGITS.search(sentence)
        if "string" in facts.types and not is_strict:
            wrong = [what for what in wrong if what not in _NUMERIC]
        if claimed and len(wrong) == len(claimed):
            declared = ", ".join(sorted(facts.types))
            yield _contradicted(
                "type_contradicted", edit, sentence, facts, called=wrong[0], declared=declared
            )


_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")
_IN = re.compile(
    r"\b(?:in|as|en|als|units?|einheit|unite|unidad)\b|单位|単位|以|で(?:指定|表)|\d\s*$"
)


@cache
def units() -> Mapping[str, tuple[str, str]]:
    """What each word of a unit measures, and which unit it is."""
    return {
        word: (dimension, line.partition(": ")[0])
        for dimension, lines in sections("units").items()
        for line in lines
        for word in line.partition(": ")[2].split()
    }


@cache
def _unspaced_units() -> list[str]:
    """The longest first: ミリ秒 is no 秒."""
    found = [word for word in units() if not word.isascii()]
    return sorted(found, key=len, reverse=True)


def units_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A parameter's unit exchanged for another of the same kind.

    What counts as its unit: what its text said before, a ``Between`` rule's ``unit``, and the last
    part of its name (``duration_hours``). A text may name further units as long as it keeps that
    one (*in hours; 90 minutes are 1.5*).
    """
    for edit, facts, text in _about_parameters(change):
        before = _units_in(_stated(change, facts))
        for dimension, named in _units_in(text).items():
            stated = before.get(dimension, set())
            if stated and not named & stated:
                called, declared = (", ".join(sorted(each)) for each in (named, stated))
                yield _contradicted(
                    "unit_contradicted", edit, edit.after, facts, called=called, declared=declared
                )


def _about_parameters(change: ProposedChange) -> Iterator[tuple[Edit, ParameterFacts, str]]:
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
    text = mapping(change.base.description.parameters).get(facts.path, "")
    rules = (
        one for one in rules_of(change.candidate) if getattr(one, "parameter", 0) == facts.path
    )
    name = facts.path.rsplit(".", 1)[-1].removesuffix("[]").replace("_", " ")
    return folded(" . ".join([str(text), name, *(str(getattr(one, "unit", "")) for one in rules)]))


def _units_in(text: str) -> dict[str, set[str]]:
    """The units that a text names, by what they measure."""
    found: dict[str, set[str]] = {}
    named = [word for word in _TOKEN.findall(text) if word in units()]
    for word in () if text.isascii() else _unspaced_units():
        if word in text:
            named.append(word)
            text = text.replace(word, " ")
    for word in named:
        dimension, unit = units()[word]
        found.setdefault(dimension, set()).add(unit)
    return found


# --- Limits ----------------------------------------------------------------------------------


_DIGIT = re.compile(r"\d")
_EXPLAINED = re.compile(
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
    r"(?:returns?|gives?|lists?|shows?|yields?|finds?|holds|contains?|has|liefert|zeigt|renvoie|affiche|devuelve|muestra)\b[^,;]*$"
)
"""Before a limit on what the tool returns. That is for a judge to hold against what was seen: a
postcondition or the result's schema bears it out, and it can lead no call astray."""

_LIST = re.compile(r"(?<![\w.-])\d{1,9}(?:\s?(?:[/,]|\bor\b|\band\b)\s?\d{1,9}){2,}(?![\w-])")
_EXAMPLES = re.compile(
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
    """
    for edit, sentence, facts in change.statements:
        if not _DIGIT.search(sentence):
            continue
        stated = _EXPLAINED.sub("", sentence)
        told = [
            (number, _is_count(stated, match, at))
            for match in islice(matches(pattern("sentences", "limits"), stated), _MOST_MATCHES)
            for at, number in enumerate(match.groups(), start=1)
            if number and not _EXAMPLES.search(stated, 0, match.start(at))
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
            yield failed(
                "bounds_contradicted" if path else "unsupported_rule.limit",
                field=edit.field,
                excerpt=sentence,
                found=wrong[0],
                path=path,
            )


def _is_count(sentence: str, match: Found, at: int) -> bool:
    """Whether a limit counts characters, items or results, and is none of a value."""
    counts = _COUNTED.match(sentence, match.end(at))
    return counts is not None or _RETURNED.search(sentence, 0, match.start()) is not None


def _beyond(sentence: str, change: ProposedChange, facts: ParameterFacts | None) -> list[str]:
    """Numbers of a list that lie beyond the bounds, or beyond the list that was told before."""
    wrong: list[str] = []
    for match in _LIST.finditer(sentence) if facts else ():
        numbers = re.findall(r"\d+", match.group())
        known = [number for number in numbers if readings_of(number) & change.known_numbers]
        goes_on = facts and len(known) > 1 and not facts.values
        wrong += [
            number
            for number in numbers
            if facts and (not facts.takes(float(number)) or (goes_on and number not in known))
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
