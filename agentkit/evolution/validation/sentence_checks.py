"""What sentences say of a tool and of its parameters, held against schema, rules and effects.

Whoever must agree reads the rest: these checks reject what is overt, and what the definition
contradicts. The patterns stand in ``phrases/sentences.txt``.
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
    ParameterFacts,
    mapping,
    rules_of,
    sentences_of,
)
from agentkit.evolution.validation.wording import (
    folded,
    matches,
    numbers_in,
    pattern,
    patterns,
    readings_of,
    sections,
    sentences,
    units,
)
from agentkit.retrieval.words import terms

Found = re.Match[str]

_MOST_MATCHES = 200


def _says(section: str) -> re.Pattern[str]:
    return pattern("sentences", section)


def _said(found: Found) -> str:
    """The group that matched, or all of it."""
    return next(filter(None, found.groups()), found.group())


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


# --- Phrases that no honest description needs ------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class PhraseCheck:
    """A check that looks for phrases in each new sentence.

    Attributes:
        reason: Why it fails, in ``phrases/reasons.toml``.
        section: The patterns, in ``phrases/sentences.txt``.
        is_excused: Whether the definition bears a match out.
    """

    reason: str
    section: str
    is_excused: Callable[[ProposedChange, Statement, Found], bool]

    def __call__(self, change: ProposedChange) -> Iterator[FailedCheck]:
        """The first match of each sentence that the tool did not say before."""
        for statement in change.statements:
            for found in islice(matches(_says(self.section), statement.sentence), _MOST_MATCHES):
                said = _said(found)
                if said not in change.known_folded and not self.is_excused(
                    change, statement, found
                ):
                    yield _reason(statement, self.reason, found=said)
                    break


def _may_act(change: ProposedChange, statement: Statement, _: Found) -> bool:
    """Only a tool that declares to read alone contradicts a text that it deletes, pays or sends."""
    is_about_it = statement.edit.kind in {"summary", "usage_rule"}
    return not (is_about_it and change.base.signature.effects.is_read_only)


def _is_declared(change: ProposedChange, _: Statement, found: Found) -> bool:
    """A text may say that a tool only reads where its effects do."""
    is_read_only = change.base.signature.effects.is_read_only
    return is_read_only and _says("reads only").search(found.group()) is not None


def _has_values(_change: ProposedChange, statement: Statement, _: Found) -> bool:
    """An enum or a rule with values closes a list."""
    return statement.facts is not None and bool(statement.facts.values)


def _has_parameter(change: ProposedChange, _: Statement, found: Found) -> bool:
    """The name stands in the schema or in the words of the tool."""
    return set(terms(_said(found))) <= change.vocabulary


DEEDS_DECLARED = PhraseCheck(reason="effect_contradicted", section="deeds", is_excused=_may_act)
NO_PROMISES = PhraseCheck(reason="false_claim", section="promises", is_excused=_is_declared)
NO_SELF_PROMOTION = PhraseCheck(
    reason="self_promotion", section="promotion", is_excused=lambda *_: False
)
CLOSED_LISTS_SUPPORTED = PhraseCheck(
    reason="unsupported_rule", section="closed", is_excused=_has_values
)
NO_INVENTED_PARAMETERS = PhraseCheck(
    reason="invented_parameter", section="parameters", is_excused=_has_parameter
)


# --- Purpose and warnings --------------------------------------------------------------------


_LEAST_SHARE = 0.34
_LEAST_KEPT = 0.15


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
    said = {term for term in terms(after) if term not in _common() and not term.isdigit()}
    is_supported = not said or len(said & change.vocabulary) >= _LEAST_SHARE * len(said)
    if not after.strip():
        yield failed("purpose_changed.gone", field="summary")
    elif not is_supported and kept < _LEAST_KEPT:
        yield failed("purpose_changed", field="summary", excerpt=after)


@cache
def _common() -> frozenset[str]:
    return frozenset(terms(" ".join(sections("common_words")[""])))


def warnings_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A warning about lasting effects, or a demand to ask first, that the rewrite drops.

    Looked at for every tool that is not known to only read. A warning is kept when the new texts
    hold one of the same sort.
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
    return bool(asks.search(sentence)) == bool(asks.search(warning))


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

    What counts is a value in quotation marks or back-ticks in a sentence that demands values, and
    an item of a list that also holds values of the enum, whatever the case.
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
                one
                for one in items
                if _BARE.match(one) and (one.isdigit() or not _common().issuperset(terms(one)))
            )


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
    "whole number": frozenset({"integer", "string"}),
    "number": frozenset({"integer", "number", "string"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so: texts hold lists with commas, and order numbers."""


@_of_statements
def types_agree(_: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A text that claims another type than the schema has."""
    _edit, sentence, facts = statement
    if facts is None or not facts.types or _says("about parts").search(sentence):
        return
    kinds = patterns("kinds").items()
    claimed = [what for what, looked_for in kinds if looked_for.search(sentence)]
    if claimed and not any(facts.types & _TAKEN[what] for what in claimed):
        code, declared = "type_contradicted", ", ".join(sorted(facts.types))
        yield _reason(statement, code, path=facts.path, called=claimed[0], declared=declared)


_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")


def units_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A parameter's unit exchanged for another of the same kind.

    What counts as its unit: what its text said before, a ``Between`` rule's ``unit``, and the last
    part of its name (``duration_hours``). A text may name further units as long as it keeps that
    one (*in hours; 90 minutes are 1.5*).
    """
    for edit in change.edits:
        facts = change.parameters.get(edit.parameter)
        if edit.kind != "parameter" or facts is None:
            continue
        before, now = _units_in(_stated(change, facts)), _units_in(folded(edit.after))
        for dimension, named in now.items():
            stated = before.get(dimension, set())
            if stated and not named & stated:
                called, declared = (", ".join(sorted(each)) for each in (named, stated))
                statement, code = Statement(edit, edit.after, facts), "unit_contradicted"
                yield _reason(statement, code, path=facts.path, called=called, declared=declared)


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


@_of_statements
def bounds_agree(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A limit of a parameter that schema and rules have otherwise.

    A limit where schema and rules have none is for whoever must agree; with a ``Between`` or
    ``OneOf`` rule beside it, calls are held to it.
    """
    _edit, sentence, facts = statement
    if facts is None or not facts.limits or not any(map(str.isdigit, sentence)):
        return
    known = change.known_numbers | facts.numbers
    known |= {limit + step for limit in facts.limits for step in (-1, 1)}
    stated = _says("explained").sub("", sentence)
    for match in islice(matches(_says("limits"), stated), _MOST_MATCHES):
        wrong = [number for number in match.groups() if number and not readings_of(number) & known]
        if wrong:
            yield _reason(statement, "bounds_contradicted", found=wrong[0], path=facts.path)
            return
