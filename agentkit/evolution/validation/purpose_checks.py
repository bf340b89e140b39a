"""What a text says of the tool: its purpose, effects, warnings, promises and limits of use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.report import FailedCheck, ProposedChange, reason
from agentkit.evolution.validation.schema_checks import share_supported
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import Edit, folded, sentences, sentences_of
from agentkit.evolution.validation.tool_names import preferred_to
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

_LEAST_SHARE = 0.34
_LEAST_KEPT = 0.15

_DOES = Phrasebook.shipped("deeds")
_NOT = re.compile(
    r"\b(?:not|never|no|nothing|nichts?|kein\w*|pas|rien|no|nada|before|vor|avant|antes)\b|不|ない|ません|前"
)


def purpose_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that is about something else, or is gone.

    Words are compared, not meanings: at least a third of what the new summary says must stand
    somewhere in the tool (name, parameters, texts, examples), or a seventh of the old summary must
    be left. A translation into another language therefore fails: it changes who can read the tool,
    and is for a person to propose.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> same = rewrite("weather_now", {"summary": "Tells how warm it is in a city right now."})
        >>> list(purpose_kept(same))
        []
        >>> other = rewrite("weather_now", {"summary": "Manages invoices of suppliers."})
        >>> [found.code for found in purpose_kept(other)]
        ['purpose_changed']
    """
    before, after = change.summaries
    if before == after or not before.strip():
        return
    if not after.strip():
        yield _changed("", "the summary is gone")
    elif share_supported(change, after) < _LEAST_SHARE and _kept(before, after) < _LEAST_KEPT:
        yield _changed(after, "it shares hardly a word with what the tool says about itself")


def _kept(before: str, after: str) -> float:
    had = set(terms(before))
    return len(had.intersection(terms(after))) / len(had) if had else 1.0


def _changed(after: str, message: str) -> FailedCheck:
    return reason(
        "purpose_changed",
        "semantic",
        Edit(field="summary", kind="summary", before="", after=after),
        after,
        message=message,
        advice="say the same in clearer words; another purpose is another tool",
    )


def deeds_declared(change: ProposedChange) -> Iterator[FailedCheck]:
    """A tool that is known to change nothing said to delete, pay, send or write.

    Held against declared effects alone; with effects undeclared nothing is contradicted.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> usual = rewrite("cars_search", {"rule": "Run it before booking a test drive."})
        >>> list(deeds_declared(usual))
        []
        >>> doing = rewrite("cars_search", {"sentence": "It also deletes old entries."})
        >>> [found.code for found in deeds_declared(doing)]
        ['effect_contradicted']
    """
    if not change.base.signature.effects.is_read_only:
        return
    for edit, sentence, _ in change.statements:
        if edit.kind not in {"summary", "usage_rule"} or _NOT.search(sentence):
            continue
        match = _DOES.search(sentence)
        word = next(filter(None, match.groups()), "") if match else ""
        if word and word not in change.known_folded:
            yield reason(
                "effect_contradicted",
                "semantic",
                edit,
                sentence,
                message=f"it says that the tool changes something ({word!r}), against its effects",
                advice="say what the tool does; its effects are part of the contract",
            )


_WARNING = Phrasebook.shipped("warnings")
_LEAST_SHARED = 0.4


def warnings_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A warning about lasting effects, or a demand to ask first, that the rewrite drops.

    Looked at for every tool that is not known to only read. A warning is kept when the new texts
    hold a warning too that shares enough words with it or is as strong.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> kept = {"summary": "Remove an event for good; nobody can restore it. Permanent."}
        >>> list(warnings_kept(rewrite("calendar_cancel_event", kept)))
        []
        >>> dropped = rewrite("calendar_cancel_event", {"summary": "Delete one event."})
        >>> [found.code for found in warnings_kept(dropped)]
        ['warning_removed']
    """
    if change.base.signature.effects.is_read_only:
        return
    now = sentences_of(change.candidate, ("summary", "usage_rule", "condition"))
    warned = [sentence for sentence in sentences(now) if _warns(sentence)]
    for warning in _warnings(change.base):
        if warning not in folded(now) and not any(_says(sentence, warning) for sentence in warned):
            yield FailedCheck(
                code="warning_removed",
                layer="semantic",
                field="summary",
                message=f"the warning {warning!r:.100} is gone",
                advice="keep what warns of lasting effects and what asks for consent",
                excerpt=warning[:120],
            )


def _warnings(base: ToolDefinition) -> list[str]:
    text = sentences_of(base, ("summary", "usage_rule"))
    return [sentence for sentence in sentences(text) if _warns(sentence)]


def _warns(sentence: str) -> bool:
    return _WARNING.search(sentence) is not None


def _says(sentence: str, warning: str) -> bool:
    """Whether a new warning speaks of the same: lasting effects, or asking first."""
    asks = [
        re.search(r"confirm|approv|ask |consent|bestatig|zustimm|确认|確認", text)
        for text in (sentence, warning)
    ]
    if all(asks) or not any(asks):
        return True
    had = set(terms(warning))
    return len(had.intersection(terms(sentence))) >= _LEAST_SHARED * len(had)


_PROMISE = Phrasebook.shipped("promises")
_READS_ONLY = re.compile(
    r"read[- ]only|chang|modif|write|stor|alter|affect|lesend|andert|lecture|lectura"
    r"|只读|修改|读|変更|読み取り"
)
_IDEMPOTENT = re.compile(r"idempotent|retr|as often|any number|undo|撤销")

_PROMOTION = Phrasebook.shipped("promotion")


def no_promises(change: ProposedChange) -> Iterator[FailedCheck]:
    """Claims of safety, price, certainty and availability.

    A model that reads *safe* stops asking. Whether a tool only reads is declared in its effects;
    where they say so, a text may say it too. What the base says may stay.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_promises(rewrite("calendar_find_slot", {"rule": "Gives the first free slot."})))
        []
        >>> list(no_promises(rewrite("cars_details", {"rule": "Read-only."})))
        []
        >>> claim = rewrite("calendar_cancel_event", {"rule": "It is safe and can be undone."})
        >>> [(found.code, found.message) for found in no_promises(claim)]
        [('false_claim', "it promises what the definition does not bear out ('is safe')")]
    """
    effects = change.base.signature.effects
    for edit, sentence, _ in change.statements:
        for match in _PROMISE.matches(sentence):
            claim = match.group()
            declared = (effects.is_read_only and _READS_ONLY.search(claim)) or (
                effects.idempotent and _IDEMPOTENT.search(claim)
            )
            if not declared and claim not in change.known_folded:
                yield reason(
                    "false_claim",
                    "semantic",
                    edit,
                    sentence,
                    message=f"it promises what the definition does not bear out ({claim!r:.60})",
                    advice="leave promises out; its effects say what a tool does to the world",
                )
                break


def no_self_promotion(change: ProposedChange) -> Iterator[FailedCheck]:
    """Praise, and comparison with other tools.

    One form of comparison passes and needs others to agree: ``comparing.preferred_to``.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> order = rewrite("cars_search", {"rule": "The cheapest car comes first."})
        >>> list(no_self_promotion(order))
        []
        >>> praise = rewrite("cars_search", {"rule": "The most reliable source of car prices."})
        >>> [found.code for found in no_self_promotion(praise)]
        ['self_promotion']
    """
    for edit, sentence, _ in change.statements:
        match = _PROMOTION.search(sentence)
        if match is None or preferred_to(change, sentence):
            continue
        if match.group() not in change.known_folded:
            yield reason(
                "self_promotion",
                "semantic",
                edit,
                sentence,
                message=f"it praises the tool or compares it with others ({match.group()!r:.60})",
                advice="say what the tool does; which one fits is for the model to find",
            )


_RESTRICTION = Phrasebook.shipped("restrictions")
_CLOSED = Phrasebook.shipped("closed")
_ITEMS = re.compile(r"\s*(?:,|/|;|、|\b(?:and|or|und|oder|et|ou|y|o)\b|和|或|と)\s*")
_SAID = Phrasebook.shipped("user_said")
"""A condition about what was said, such as *only when the user names a maker*, restricts nobody."""

_SWITCH = re.compile(r"(?:if|when) (?:it is )?(?:true|false|set|given|omitted|empty|left out)\b")
"""What a value of a parameter does (*if false, only closing prices*) is no restriction."""

_CLAUSE_ENDS = re.compile(r";|,? written\b|,? given as\b|\(")
_KANA = re.compile(r"[\u3041-\u30fa]")
_MOST_MATCHES = 16


def restrictions_supported(change: ProposedChange) -> Iterator[FailedCheck]:
    """A sentence that narrows who may use the tool, for what, where or when, out of nothing.

    A restriction passes when at least a third of its words stand in the tool's own texts, schema or
    examples: then it says with emphasis what is known. So does one about what the user said. That a
    restriction is *true* can not be seen from words; what is meant to hold belongs into a rule.

    Sentences that keep a tool from being used for something else (*Do not use it for rental cars*)
    pass: they are how confused tools are told apart, and gates measure them.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> known = rewrite("cars_search", {"rule": "It finds only used cars in stock."})
        >>> list(restrictions_supported(known))
        []
        >>> new = rewrite("cars_search", {"rule": "Use it only for customers in Germany."})
        >>> [found.code for found in restrictions_supported(new)]
        ['unsupported_rule']
    """
    for edit, sentence, _ in change.statements:
        for match in islice(_RESTRICTION.matches(sentence), _MOST_MATCHES):
            words = _about(sentence, match)
            if _SWITCH.match(sentence) and edit.parameter:
                continue
            if not _SAID.search(words) and share_supported(change, words) < _LEAST_SHARE:
                yield reason(
                    "unsupported_rule",
                    "semantic",
                    edit,
                    sentence,
                    message="it narrows the use of the tool by what the definition does not have",
                    advice="leave it out, or propose a rule over the parameters with evidence",
                )
                break


def closed_lists_supported(change: ProposedChange) -> Iterator[FailedCheck]:
    """A sentence that says that these values are all there are, where nothing else says so.

    What bears it out: an enum or a rule with values, of the parameter that the text is about or
    that the sentence names, or a list that stands in the tool's words already.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> known = "Only these units exist: celsius, fahrenheit."
        >>> list(closed_lists_supported(rewrite("weather_now", {"parameters.unit": known})))
        []
        >>> new = rewrite("weather_now", {"rule": "Only these cities exist: Paris and Rome."})
        >>> [found.code for found in closed_lists_supported(new)]
        ['unsupported_rule']
    """
    for edit, sentence, facts in change.statements:
        match = _CLOSED.search(sentence)
        if match is None:
            continue
        if facts is not None and facts.values and not _says_one_of_several(match, facts):
            continue
        named = _ITEMS.split(sentence[match.end() :].strip(" .:。"))
        if len(named) > 1 and all(_is_known(item, change) for item in named if item.strip()):
            continue
        yield reason(
            "unsupported_rule",
            "semantic",
            edit,
            sentence,
            message=f"it says that there is nothing else ({match.group()!r:.60}), which no enum "
            "and no rule bears out",
            advice="propose a one_of rule with evidence; its sentence is derived from it",
        )


def _says_one_of_several(match: re.Match[str], facts: ParameterFacts) -> bool:
    """Whether one value is said to be all there is, though enum or rule has more."""
    return match.group().startswith("is the ") and len(facts.values) > 1


def _is_known(item: str, change: ProposedChange) -> bool:
    return item.strip(" .()\"'`") in change.known_folded


def _about(sentence: str, match: re.Match[str]) -> str:
    """What a restriction is to: the words behind it, in Japanese those before it."""
    if _KANA.search(sentence):
        return sentence[: match.start()]
    return _CLAUSE_ENDS.split(sentence[match.end() :], maxsplit=1)[0]
