"""What sentences say of a tool and of its parameters, held against schema, rules and effects.

The patterns stand in ``phrases/sentences.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from itertools import islice

from agentkit.evolution.validation.report import (
    Check,
    FailedCheck,
    ProposedChange,
    Statement,
    failed,
)
from agentkit.evolution.validation.texts import (
    Edit,
    ParameterFacts,
    mapping,
    rules_of,
    sentences_of,
)
from agentkit.evolution.validation.tool_names import preferred_to
from agentkit.evolution.validation.wording import (
    folded,
    matches,
    numbers_in,
    pattern,
    patterns,
    readings_of,
    sections,
    sentences,
    stands_in,
    units,
)
from agentkit.retrieval.words import terms

Found = re.Match[str]

_MOST_MATCHES = 200
_LEAST_SHARE = 0.34
_LEAST_KEPT = 0.15


def _says(section: str) -> re.Pattern[str]:
    return pattern("sentences", section)


def _of_statements(
    look: Callable[[ProposedChange, Statement], Iterator[FailedCheck]],
) -> Check:
    """A check of each new sentence of a change."""

    @wraps(look)
    def check(change: ProposedChange) -> Iterator[FailedCheck]:
        for statement in change.statements:
            yield from look(change, statement)

    return check


def _reason(statement: Statement, reason: str, **values: str) -> FailedCheck:
    """A failed check of a sentence."""
    where, excerpt = statement.edit.field, statement.sentence
    return failed(reason, field=where, excerpt=excerpt, **values)


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
    counts: Callable[[ProposedChange, Statement, Found], bool]

    def __call__(self, change: ProposedChange) -> Iterator[FailedCheck]:
        """The first match of each sentence that counts."""
        for statement in change.statements:
            every = islice(matches(_says(self.section), statement.sentence), _MOST_MATCHES)
            for found in (one for one in every if self.counts(change, statement, one)):
                yield _reason(statement, self.reason, found=_said(found))
                break


def _said(found: Found) -> str:
    """The group that matched, or all of it."""
    return next(filter(None, found.groups()), found.group())


# --- What it does, promises and praises ------------------------------------------------------


def _is_other_effect(change: ProposedChange, statement: Statement, found: Found) -> bool:
    """A tool that is known to change nothing said to delete, pay, send or write.

    Held against declared effects alone; with effects undeclared nothing is contradicted.
    """
    return (
        change.base.signature.effects.is_read_only
        and statement.edit.kind in {"summary", "usage_rule"}
        and not _says("not done").search(statement.sentence)
        and _said(found) not in change.known_folded
    )


def _is_promised(change: ProposedChange, _: Statement, found: Found) -> bool:
    """Safety, price, certainty and availability: a model that reads *safe* stops asking.

    Whether a tool only reads is declared in its effects; where they say so, a text may say it too.
    """
    effects, claim = change.base.signature.effects, found.group()
    declared = (effects.is_read_only and _says("reads only").search(claim)) or (
        effects.idempotent and _says("idempotent").search(claim)
    )
    return not declared and claim not in change.known_folded


def _is_praised(change: ProposedChange, statement: Statement, found: Found) -> bool:
    """Praise, and comparison with other tools, save in one form (``preferred_to``)."""
    is_known = found.group() in change.known_folded
    return not is_known and not preferred_to(change, statement.sentence)


# --- Whom and what it is for -----------------------------------------------------------------


_KANA = re.compile(r"[\u3041-\u30fa]")


@cache
def _common() -> frozenset[str]:
    return frozenset(terms(" ".join(sections("common_words")[""])))


def _said_terms(text: str) -> frozenset[str]:
    """The terms of a text without numbers and without words that fit any tool."""
    return frozenset(term for term in terms(text) if term not in _common() and not term.isdigit())


def _share_supported(change: ProposedChange, text: str) -> float:
    """How much of what a text says the tool says too, from 0 to 1; 1 when it says nothing."""
    said = _said_terms(text)
    return len(said & change.vocabulary) / len(said) if said else 1.0


def _is_narrowed(change: ProposedChange, statement: Statement, found: Found) -> bool:
    """A sentence that narrows who may use the tool, for what, where or when, out of nothing.

    A restriction passes when at least a third of its words stand in the tool's own texts, schema or
    examples: then it says with emphasis what is known. So does one about what the user said. That a
    restriction is *true* can not be seen from words; what is meant to hold belongs into a rule.

    Sentences that keep a tool from being used for something else (*Do not use it for rental cars*)
    pass: they are how confused tools are told apart, and gates measure them.
    """
    sentence = statement.sentence
    if statement.edit.parameter and _says("switch").match(sentence):
        return False
    behind = _says("clause ends").split(sentence[found.end() :], maxsplit=1)[0]
    about = sentence[: found.start()] if _KANA.search(sentence) else behind
    is_of_user = _says("user_said").search(about) is not None
    return not is_of_user and _share_supported(change, about) < _LEAST_SHARE


def _is_closed(change: ProposedChange, statement: Statement, found: Found) -> bool:
    """These values said to be all there are, where nothing else says so.

    What bears it out: an enum or a rule with values, of the parameter that the text is about or
    that the sentence names, or a list that stands in the tool's words already.
    """
    facts = statement.facts
    is_one_of_several = found.group().startswith("is the ")
    if facts is not None and facts.values and not (is_one_of_several and len(facts.values) > 1):
        return False
    named = _says("between items").split(statement.sentence[found.end() :].strip(" .:。"))
    known = (item.strip(" .()\"'`") in change.known_folded for item in named if item.strip())
    return not (len(named) > 1 and all(known))


def _is_invented(change: ProposedChange, _: Statement, found: Found) -> bool:
    """A parameter that the schema lacks: a good place for what was said in confidence."""
    name = next(filter(None, found.groups()), "")
    return bool(name) and not set(terms(name)) <= change.vocabulary


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
    elif _share_supported(change, after) < _LEAST_SHARE and kept < _LEAST_KEPT:
        yield failed("purpose_changed", field="summary", excerpt=after)


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
        if warning not in folded(now) and not any(_warns(one, warning) for one in warned):
            yield failed("warning_removed", field="summary", excerpt=warning, found=warning)


def _warnings(text: str) -> Iterator[str]:
    return filter(_says("warnings").search, sentences(text))


def _warns(sentence: str, warning: str) -> bool:
    """Whether a new warning speaks of the same: lasting effects, or asking first."""
    asks = _says("asks first")
    if bool(asks.search(sentence)) == bool(asks.search(warning)):
        return True
    had = set(terms(warning))
    return len(had.intersection(terms(sentence))) >= _LEAST_SHARED * len(had)


# --- Values ----------------------------------------------------------------------------------


_QUOTED = re.compile(
    r"(?<![=\w])[`\"'\u00ab\u2039\u201e](?=\S)([^`\"'\u00bb\u203a\u201e\n]{1,40}?)"
    r"(?<=\S)[`\"'\u00bb\u203a](?!\w)|[\u300c\u300e]([^\u300d\u300f]{1,40})[\u300d\u300f]"
)
_PARENTHESES = re.compile(r"[(\uff08]([^()\uff08\uff09]*)[)\uff09]")
_BARE = re.compile(r"[^\s`\"'().]{1,29}$")


@_of_statements
def values_agree(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A text that tells a model to give a value which enum or rules refuse.

    What counts is a value in quotation marks or back-ticks, an item of a list that also holds
    values of the enum, and a number, in a sentence that demands or lists values. Case is ignored:
    prose may write *Celsius*.
    """
    facts = statement.facts
    value = _foreign_value(statement.sentence, facts, change) if facts and facts.values else None
    if facts and value is not None:
        listed = ", ".join(str(one) for one in facts.values[:8])
        path = facts.path
        yield _reason(statement, "value_contradicted", found=value, path=path, listed=listed)


def _foreign_value(sentence: str, facts: ParameterFacts, change: ProposedChange) -> str | None:
    taken = {_spoken(str(value)) for value in facts.values}
    own = {_spoken(part) for part in (*change.parameters, change.base.name)}
    is_negated = _says("negates a value").search(sentence)
    demands = _says("demands").search(sentence) and not is_negated
    quoted = map(_said, _QUOTED.finditer(sentence) if demands else ())
    for value in (*_listed(sentence, taken), *quoted):
        if _spoken(value) not in taken | own and not numbers_in(value) & facts.numbers:
            return value
    if facts.numbers and demands and not _says("explains").search(sentence):
        foreign = numbers_in(sentence) - facts.numbers - change.known_numbers
        return f"{min(foreign):g}" if foreign else None
    return None


def _spoken(value: str) -> str:
    """A value as it is said: ``trade_in`` is *trade-in* in a sentence."""
    return re.sub(r"[\s_-]+", " ", folded(value))


def _listed(sentence: str, taken: set[str]) -> Iterator[str]:
    """Single words in a list that holds values of the enum, other than words fit for any tool."""
    inside = _PARENTHESES.findall(sentence)
    for listing in (*_says("list starts").split(_PARENTHESES.sub(" ", sentence)), *inside):
        items = [item.strip(" .。)`\"'") for item in _says("between values").split(listing)]
        if len(items) > 1 and taken.intersection(map(_spoken, items)):
            yield from (
                one for one in items if _BARE.match(one) and (_said_terms(one) or one.isdigit())
            )


@_of_statements
def values_left_open(_: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A text that leaves one value of an enum where the schema and the rules leave several."""
    _edit, sentence, facts = statement
    if not facts or len(facts.values) < 2 or _says("explains").search(sentence):
        return
    named = [value for value in facts.values if stands_in(folded(str(value)), sentence)]
    if len(named) == 1 and _says("exclusive").search(sentence):
        yield _reason(statement, "unsupported_rule.value", found=named[0], path=facts.path)


# --- Presence, types, units ------------------------------------------------------------------


@_of_statements
def presence_agrees(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """An optional parameter called required, or the other way round.

    A sentence with a condition (*required when ...*) is left to the rules: a ``Requires`` rule
    holds such things.
    """
    edit, sentence, facts = statement
    if edit.kind != "parameter" or facts is None or facts.path.endswith("[]"):
        return
    required, optional = _says("required").search(sentence), _says("optional").search(sentence)
    found = optional or required
    if found is None or _says("negated").search(sentence[: found.start()]):
        return
    rules = rules_of(change.candidate)
    is_ruled = any(facts.path in getattr(rule, "others", ()) for rule in rules)
    is_free = not (facts.required or is_ruled or _says("conditions").search(sentence))
    if facts.required if optional else is_free:
        called, declared = ("optional", "required") if optional else ("required", "optional")
        code, path = "presence_contradicted", facts.path
        yield _reason(statement, code, path=path, called=called, declared=declared)


_TAKEN: Mapping[str, frozenset[str]] = {
    "list": frozenset({"array", "string"}),
    "object": frozenset({"object"}),
    "truth value": frozenset({"boolean"}),
    "whole number": frozenset({"integer"}),
    "number": frozenset({"integer", "number"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so. A list in one text, with commas, is called a list."""


@_of_statements
def types_agree(_: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A text that claims another type than the schema has.

    A text of digits may be called a number (an order number), and a list in one text may be called
    a list where the text says how it is separated.
    """
    _edit, sentence, facts = statement
    if facts is None or not facts.types or _says("about parts").search(sentence):
        return
    kinds = patterns("kinds").items()
    claimed = [what for what, looked_for in kinds if looked_for.search(sentence)]
    wrong = [what for what in claimed if not facts.types & _TAKEN[what]]
    is_strict = _says("strict type").search(sentence) and not _says("of digits").search(sentence)
    if "string" in facts.types and not is_strict:
        wrong = [what for what in wrong if what not in {"number", "whole number"}]
    if claimed and len(wrong) == len(claimed):
        code, declared = "type_contradicted", ", ".join(sorted(facts.types))
        yield _reason(statement, code, path=facts.path, called=wrong[0], declared=declared)


_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")


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
                statement, code = Statement(edit, edit.after, facts), "unit_contradicted"
                yield _reason(statement, code, path=facts.path, called=called, declared=declared)


def _about_parameters(change: ProposedChange) -> Iterator[tuple[Edit, ParameterFacts, str]]:
    """Each changed text about a parameter as a whole, and each new sentence elsewhere."""
    for edit in change.edits:
        if edit.kind == "parameter" and (facts := change.parameters.get(edit.parameter)):
            yield edit, facts, folded(edit.after)
    for edit, sentence, about in change.statements:
        if edit.kind == "parameter" or about is None or not _says("in a unit").search(sentence):
            continue
        if "_" in about.path or f"`{about.path}`" in sentence:  # no word that merely equals a name
            yield edit, about, sentence.replace(about.path.casefold(), "")


def _stated(change: ProposedChange, facts: ParameterFacts) -> str:
    text = mapping(change.base.description.parameters).get(facts.path, "")
    rules = [
        one for one in rules_of(change.candidate) if getattr(one, "parameter", 0) == facts.path
    ]
    name = facts.path.rsplit(".", 1)[-1].removesuffix("[]").replace("_", " ")
    return folded(" . ".join([str(text), name, *(str(getattr(one, "unit", "")) for one in rules)]))


def _units_in(text: str) -> dict[str, set[str]]:
    """The units that a text names, by what they measure."""
    found: dict[str, set[str]] = {}
    named = [word for word in _TOKEN.findall(text) if word in units()]
    unspaced = () if text.isascii() else (word for word in units() if not word.isascii())
    for word in sorted(unspaced, key=len, reverse=True):  # ミリ秒 is no 秒
        if word in text:
            named.append(word)
            text = text.replace(word, " ")
    for word in named:
        dimension, unit = units()[word]
        found.setdefault(dimension, set()).add(unit)
    return found


# --- Limits ----------------------------------------------------------------------------------


_LIST = re.compile(r"(?<![\w.-])\d{1,9}(?:\s?(?:[/,]|\bor\b|\band\b)\s?\d{1,9}){2,}(?![\w-])")


@_of_statements
def bounds_agree(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A limit in words that schema, rules and the text so far do not have.

    Where the schema says something else about that very parameter, the text contradicts it;
    otherwise the limit is one that nothing supports: a rule in words alone, which a model follows
    and nobody can check. With a ``Between`` or ``OneOf`` rule beside it the same sentence passes.
    A limit on characters, items or results that contradicts nothing is left to those who read what
    is new (``ValidationPolicy.new_words``).
    """
    _edit, sentence, facts = statement
    if not any(map(str.isdigit, sentence)):
        return
    stated = _says("explained").sub("", sentence)
    told = [
        (number, _is_count(stated, match, at))
        for match in islice(matches(_says("limits"), stated), _MOST_MATCHES)
        for at, number in enumerate(match.groups(), start=1)
        if number and not _says("as examples").search(stated, 0, match.start(at))
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
        reason = "bounds_contradicted" if path else "unsupported_rule.limit"
        yield _reason(statement, reason, found=wrong[0], path=path)


def _is_count(sentence: str, match: Found, at: int) -> bool:
    """Whether a limit counts characters, items or results, and is none of a value."""
    counts = _says("counted").match(sentence, match.end(at))
    return counts is not None or _says("returned").search(sentence, 0, match.start()) is not None


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
        known |= one.numbers if _says("default").search(sentence) else one.limits
        known |= {bound + step for bound in one.numbers for step in (-1, 1)} if facts else set()
    return known
