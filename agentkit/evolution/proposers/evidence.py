"""The evidence proposer: rules from what tools refused and from what verifiers found. No model.

It writes what the tool itself states, in words that hold for every call: which values a parameter
takes, its range and form, which call must come first, which tool is meant. What it is not told it
does not guess: that a value was never seen is no reason to forbid it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from agentkit.episodes import Episode
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.proposer import Observations, PassedOver, PassedOverReason
from agentkit.evolution.proposers.constraints import (
    StatedNeed,
    StatedOrder,
    Statement,
    stated_in_error,
)
from agentkit.evolution.proposers.observed import (
    EvidenceConfig,
    ObservedCall,
    RuleBacktest,
    RuleSuggestion,
    ToolRecord,
    allows_more,
    applied,
    confidence,
    described_rules,
    given_paths,
    is_enough,
    is_sound,
    may_be,
    observed,
    rejects_known,
    rule_key,
    rule_of,
    structured,
    subject,
    value_paths,
    values_of,
)
from agentkit.evolution.proposers.origins import (
    is_constant,
    is_vouched_for,
    origins_of_rule,
)
from agentkit.evolution.trajectories import RouteEvidence, trajectories_of
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.messages import ToolFailure
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Between, CallBefore, Requires, Rule, rule_sentence
from agentkit.tools.validation import validate_arguments

# --- Which parameter a refusal speaks of, when it does not point at one --------------------------
# Names of parameters are ordinary words (``time``, ``format``, ``date``), and refusals are full of
# ordinary words. "time data 'tomorrow' does not match format '%Y-%m-%d'" is about neither ``time``
# nor ``format``, but about the parameter whose value it quotes. Where a text leaves it open,
# nothing
# is learned.


_QUOTES = "['\"`\u2018\u2019\u201c\u201d]"
_SHORTEST = 3
_LONGEST = 60


def meant(
    broken: Sequence[Rule],
    statement: Statement,
    call: ObservedCall,
    failure: ToolFailure,
    definition: ToolDefinition,
) -> Rule | None:
    """The one rule that is meant, among those that a refused call breaks; None if it is not clear.

    It is the one about the parameter that the failure points at, else about the only parameter
    whose value the text quotes, else about the one whose name stands nearest to the statement in
    the way in which texts name parameters. That a call breaks a single rule is not enough, unless
    it gives nothing else: the text may speak of something that the call left out.
    """
    if failure.path or isinstance(statement, StatedOrder | StatedNeed):
        return broken[0] if len(broken) == 1 else None
    quoted = [rule for rule in broken if _is_quoted(rule, call, failure.rule, definition)]
    if len(quoted) == 1:
        return quoted[0]
    nearest = _nearest(quoted or broken, statement, failure.rule)
    if len(nearest) == 1:
        return nearest[0]
    return broken[0] if len(broken) == 1 and len(given_paths(call.arguments)) == 1 else None


def _is_quoted(rule: Rule, call: ObservedCall, text: str, definition: ToolDefinition) -> bool:
    values = values_of(_parameter_of(rule), call.arguments, definition)
    return any(_quotes(text, value) for value in values)


def _quotes(text: str, value: Any) -> bool:
    """Whether a text repeats a value: an ordinary or short word only in quotation marks."""
    written = str(value)[:_LONGEST]
    is_usual = isinstance(value, str) and (
        len(value) < _SHORTEST or (value.isalpha() and value.islower())
    )
    wanted = re.escape(written)
    pattern = f"{_QUOTES}{wanted}{_QUOTES}" if is_usual else rf"(?<![\w.]){wanted}(?!\w|\.\d)"
    return bool(written) and re.search(pattern, text) is not None


def _nearest(rules: Sequence[Rule], statement: Statement, text: str) -> list[Rule]:
    """The rules about parameters that the text names, those named nearest to the statement."""
    named = [
        (abs(start - statement.start), rule)
        for rule in rules
        for start in _mentions(_parameter_of(rule), text)
    ]
    least = min((distance for distance, _ in named), default=0)
    return [rule for distance, rule in named if distance == least]


def _mentions(parameter: str, text: str) -> Iterator[int]:
    """Where a text names a parameter: in marks, alone in a line, or as what a sentence is about."""
    bare = parameter.rpartition(".")[2].rstrip("[]")
    name = re.escape(bare)
    if not name:
        return
    is_plain_word = bare.isalpha() and (bare.islower() or bare.istitle())
    if not is_plain_word:
        yield from (found.start() for found in re.finditer(rf"(?<!\w){name}(?!\w)", text))
        return
    pattern = rf"""
        {_QUOTES}{name}{_QUOTES}
      | ^\s*{name}\s*$
      | (?<!\w){name}
        (?=\s*[:=]|\s+(?:must|should|shall|is|are|was|has|have|can|cannot|may|needs?)\b)
      | \b(?:invalid|for|parameter|argument|field|of|bad|wrong|unsupported|unknown|illegal)\s+
        {name}(?!\w)
    """
    found = re.finditer(pattern, text, re.VERBOSE | re.MULTILINE | re.IGNORECASE)
    yield from (match.start() for match in found)


def _parameter_of(rule: Rule) -> str:
    parameter: str = getattr(rule, "parameter", "")
    return parameter


# --- Rules that a tool states itself when it refuses a call, or in its own description -----------
# A statement becomes a rule only when it explains what happened: the refused calls break it, the
# calls that the tool took keep it, and the refusals agree with each other.
#
# Where the definition has such a rule already, what it says stays unless it is stated anew: a
# second
# bound joins the first. And a list or bound that allows more than the learned one needs agreement
# among those that say so only, since the others are what was learned from before.


_INDEX = re.compile(r"\[\d+\]")
_PARTS = (
    ("minimum", "exclusive_minimum"),
    ("maximum", "exclusive_maximum"),
    ("multiple_of",),
    ("unit",),
)
"""What a range says, part by part: a bound is one part, whether it is itself allowed or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEvidence:
    """One tool with what was observed of it.

    Attributes:
        definition: The tool as it is.
        record: Its calls.
        library: The tools that there are.
        knobs: How much must have happened.
        pass_over: Takes what was seen and taught nothing.
    """

    definition: ToolDefinition
    record: ToolRecord
    library: Library
    knobs: EvidenceConfig
    pass_over: Callable[[PassedOver], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claim:
    """A rule that one call supports.

    Attributes:
        rule: The rule.
        call: The call that breaks it.
        statement: What the refusal says; None for what the definition says itself.
    """

    rule: Rule
    call: ObservedCall
    statement: Statement | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Agreed:
    """A rule that enough calls support.

    Attributes:
        rule: The rule.
        calls: The calls behind it.
        against: Refusals that say otherwise.
        is_constant: Whether the tool says it whatever it is given.
    """

    rule: Rule
    calls: list[ObservedCall]
    against: int
    is_constant: bool


def stated_lessons(seen: ToolEvidence) -> Iterator[RuleSuggestion]:
    """What the tool says itself about its arguments, as far as calls bear it out."""
    claims = [claim for call in seen.record.refused for claim in _claimed(call, call.refusal, seen)]
    stated = list(_agreed(claims, seen, basis="The tool says so when it refuses a call"))
    yield from stated
    told = {_parameter_of(lesson.rule) for lesson in stated}
    described = [claim for claim in _described(seen) if _parameter_of(claim.rule) not in told]
    yield from _agreed(described, seen, basis="The description says so, and calls broke it")


def _claimed(
    call: ObservedCall, failure: ToolFailure | None, seen: ToolEvidence
) -> Iterator[_Claim]:
    """The rules that one refusal states and that the refused call breaks."""
    if failure is None or failure.kind == "contract_violated":
        return
    names = seen.definition.signature.properties
    paths = _paths(call, failure, seen)
    of_schema = structured(failure)
    for statement in of_schema or stated_in_error(failure.rule, names):
        broken = [
            rule
            for rule in _possible(statement, paths, seen)
            if RuleBacktest(rule, seen.definition).refuses(call)
        ]
        chosen = meant(broken, statement, call, failure, seen.definition)
        if chosen is not None:
            yield _Claim(rule=chosen, call=call, statement=None if of_schema else statement)


def _paths(call: ObservedCall, failure: ToolFailure, seen: ToolEvidence) -> list[str]:
    """The parameters that a refusal may be about: the one it points at, or all that were given."""
    if failure.path:
        return [*value_paths(_INDEX.sub("[]", failure.path), seen.definition)]
    given = given_paths(call.arguments)
    return [path for path in given if path in value_paths(path, seen.definition)]


def _possible(statement: Statement, paths: Iterable[str], seen: ToolEvidence) -> Iterator[Rule]:
    """The rules that a statement makes, one for each parameter that it may be about."""
    is_about_two = isinstance(statement, StatedOrder | StatedNeed)
    for path in ("",) if is_about_two else paths:
        rule = rule_of(statement, path, seen.definition)
        if rule is not None and is_sound(rule, seen.definition, seen.library):
            yield rule


def _agreed(
    claims: Iterable[_Claim], seen: ToolEvidence, *, basis: str
) -> Iterator[RuleSuggestion]:
    """The rules that enough refusals agree on and that no known call or value breaks."""
    about: dict[tuple[str, str], list[_Claim]] = defaultdict(list)
    for claim in claims:
        about[claim.rule.kind, _parameter_of(claim.rule) or rule_key(claim.rule)].append(claim)
    for found in about.values():
        is_range = isinstance(found[0].rule, Between)
        had = _had(found[0].rule, seen.definition)
        made = _together(found, seen, had) if is_range else _majority(found, seen, had)
        if made is None:
            seen.pass_over(_unsupported(found, seen))
            continue
        rule, calls = made.rule, made.calls
        if not _is_news(rule, calls, seen):
            seen.pass_over(_nothing_new(rule, calls, seen))
        elif rejects_known(rule, seen.definition, seen.record):
            seen.pass_over(_contradicted(rule, calls, seen))
        else:
            origins = origins_of_rule(
                rule, seen.record, seen.definition, seen.library, is_constant=made.is_constant
            )
            yield RuleSuggestion.from_calls(
                calls, seen.record, basis=basis, against=made.against, rule=rule, origins=origins
            )


def _unsupported(found: list[_Claim], seen: ToolEvidence) -> PassedOver:
    """Refusals that state something, and that are too few or do not agree."""
    rules = Counter(rule_key(claim.rule) for claim in found)
    [(_, most)] = rules.most_common(1)
    count = _counted(len(found), "refused call")
    if most < seen.knobs.min_agreement * len(found):
        why = f"{count} state {len(rules)} different rules, so none of them holds for every call"
        return _passed_over("disagreement", why, found[0].rule, len(found), seen)
    episodes = len({claim.call.episode_id for claim in found})
    needed = f"{seen.knobs.min_failures} from {seen.knobs.min_episodes} episodes are needed"
    why = f"{count} in {_counted(episodes, 'episode')}; {needed}"
    return _passed_over("too_few", why, found[0].rule, len(found), seen)


def _nothing_new(rule: Rule, calls: Collection[ObservedCall], seen: ToolEvidence) -> PassedOver:
    count = _counted(len(calls), "refused call")
    why = f"the definition says it by now; {count} broke it, before that or since"
    return _passed_over("already_said", why, rule, len(calls), seen)


def _contradicted(rule: Rule, calls: Collection[ObservedCall], seen: ToolEvidence) -> PassedOver:
    refused = _counted(len(calls), "refused call")
    why = (
        f"{refused} state: {rule_sentence(rule)} But the tool took calls, or a verifier expected "
        "values, that this would refuse"
    )
    return _passed_over("contradicts_accepted", why, rule, len(calls), seen)


def _passed_over(
    reason: PassedOverReason, why: str, rule: Rule, failures: int, seen: ToolEvidence
) -> PassedOver:
    return PassedOver(
        tool=seen.definition.name,
        parameter=_parameter_of(rule),
        reason=reason,
        why=why,
        failures=failures,
    )


def _is_news(rule: Rule, calls: Collection[ObservedCall], seen: ToolEvidence) -> bool:
    """Whether the definition does not say it yet, as a rule or in its contract."""
    if rule_key(rule) in map(rule_key, seen.definition.specification.rules):
        return False
    return not all(_contract_refuses(_parameter_of(rule), call, seen) for call in calls)


def _contract_refuses(parameter: str, call: ObservedCall, seen: ToolEvidence) -> bool:
    problems = validate_arguments(seen.definition, dict(call.arguments))
    return any(_INDEX.sub("[]", problem.path_text) == parameter for problem in problems)


def _had(rule: Rule, definition: ToolDefinition) -> Rule | None:
    """What was learned about the same thing before."""
    rules = definition.specification.rules
    return next((one for one in rules if subject(one) == subject(rule)), None)


def _majority(claims: list[_Claim], seen: ToolEvidence, had: Rule | None) -> _Agreed | None:
    """The rule that enough claims agree on."""
    wider = [one for one in claims if had is not None and allows_more(one.rule, had)]
    made = _agreement(wider, seen) if wider else None
    if made is None:
        return _agreement(claims, seen)
    return replace(made, against=len(claims) - len(made.calls))


def _agreement(claims: list[_Claim], seen: ToolEvidence) -> _Agreed | None:
    by_rule: dict[str, list[_Claim]] = defaultdict(list)
    for claim in claims:
        by_rule[rule_key(claim.rule)].append(claim)
    most = max(by_rule.values(), key=len)
    calls = [claim.call for claim in most]
    is_agreed = len(most) >= seen.knobs.min_agreement * len(claims)
    if not is_agreed or not is_enough(calls, seen.record, seen.knobs):
        return None
    rule = most[0].rule
    said = [(claim.statement, claim.call) for claim in most if claim.statement is not None]
    return _Agreed(
        rule=rule,
        calls=calls,
        against=len(claims) - len(most),
        is_constant=len(said) < len(most)
        or is_constant(said, _parameter_of(rule), seen.definition),
    )


def _together(claims: list[_Claim], seen: ToolEvidence, had: Rule | None) -> _Agreed | None:
    """A range of which some claims state the one end and some the other, or one was known.

    Each part needs agreement and enough calls of its own, so that no bound rests on one call.
    """
    parameter = _parameter_of(claims[0].rule)
    parts: dict[str, Any] = {}
    agreed: list[_Agreed] = []
    for part in _PARTS:
        known = {} if had is None else _said(had, part)
        bare = [
            replace(claim, rule=Between(parameter=parameter, **said))
            for claim in claims
            if (said := _said(claim.rule, part))
        ]
        made = _majority(bare, seen, Between(parameter=parameter, **known)) if bare else None
        parts |= known if made is None else _said(made.rule, part)
        agreed += [] if made is None else [made]
    if not agreed or not set(parts) - {"unit"}:
        return None
    rule = Between(parameter=parameter, **parts)
    if not is_sound(rule, seen.definition, seen.library):
        return None
    return _Agreed(
        rule=rule,
        calls=list({id(call): call for made in agreed for call in made.calls}.values()),
        against=max(made.against for made in agreed),
        is_constant=all(made.is_constant for made in agreed),
    )


def _said(rule: Rule, names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names that say something."""
    given = {name: getattr(rule, name) for name in names}
    return {name: value for name, value in given.items() if value not in (None, "")}


def _described(seen: ToolEvidence) -> Iterator[_Claim]:
    """Rules that the description states in passing, and that calls were blamed for breaking.

    The second of ToolDNA's case studies: the text says ``Loan term (36/48/60)`` and the model calls
    with 31 (appendix D).
    """
    blamed = {name for call in seen.record.calls for name in call.blamed}
    for name in sorted(blamed & set(seen.definition.description.parameters)):
        calls = [c for c in seen.record.calls if name in c.blamed and not c.is_accepted]
        for rule in described_rules(seen.definition, name):
            if is_sound(rule, seen.definition, seen.library):
                trial = RuleBacktest(rule, seen.definition)
                yield from (_Claim(rule=rule, call=c) for c in calls if trial.refuses(c))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- Learned rules that turned out too strict: they refuse what is right, or what the tool ta ----
# Learned rules that turned out too strict: they refuse what is right, or what the tool takes.


def relaxed_lessons(
    seen: ToolEvidence, stated: Collection[RuleSuggestion] = ()
) -> Iterator[RuleSuggestion]:
    """Rules to take away, since calls that went well break them in enough episodes.

    These are values that a verifier held for right, and calls that the tool took: from before there
    was the rule, or in a run without it, such as the other side of a canary. Only rules about
    values can be judged by one value.

    Args:
        seen: The tool with its calls.
        stated: What the tool states anew. A rule that this replaces is not taken away.
    """
    replaced = {subject(lesson.rule) for lesson in stated}
    for rule in seen.definition.specification.rules:
        if subject(rule) in replaced:
            continue
        taken = list(_taken(rule, seen))
        distinct = tuple(dict.fromkeys(chain(_right(rule, seen), taken)))
        if len(distinct) >= max(seen.knobs.min_failures, seen.knobs.min_episodes):
            yield RuleSuggestion(
                rule=rule,
                drops=True,
                basis=f"The rule refuses what {'the tool accepts' if taken else 'is right'}",
                failures=len(distinct),
                episodes=distinct,
                kept=len(seen.record.accepted),
                confidence=confidence(len(distinct)),
            )


def _right(rule: Rule, seen: ToolEvidence) -> Iterator[str]:
    """Episodes in which a value was right that the rule refuses."""
    if isinstance(rule, CallBefore | Requires):
        return
    trial = RuleBacktest(rule, seen.definition)
    for name, values in seen.record.right.items():
        for episode_id, value in values:
            if may_be(value, name, seen.definition) and trial.stops({name: value}):
                yield episode_id


def _taken(rule: Rule, seen: ToolEvidence) -> Iterator[str]:
    """Episodes in which the tool took a call that the rule refuses."""
    trial = RuleBacktest(rule, seen.definition)
    for call in seen.record.accepted:
        if trial.stops(call.arguments, call.earlier):
            yield call.episode_id


# --- Required look-ups: a value that has always come from another tool's result, and once did ----
# Required look-ups: a value that has always come from another tool's result, and once did not.


def lookup_lessons(
    seen: ToolEvidence, routes: Collection[RouteEvidence]
) -> Iterator[RuleSuggestion]:
    """Tools that must be called first, because a parameter is to come from their results.

    Learned when the parameter's values came from the other tool in enough successful episodes, when
    no accepted call got one from elsewhere (the user may know it), and when calls failed whose
    value came from nowhere.

    Args:
        seen: The tool with its calls.
        routes: Ways that data take between tools, found over successful episodes.
    """
    name = seen.definition.name
    for (producer, argument), support in sorted(_supports(name, routes).items()):
        rule = CallBefore(tool=producer, parameter=argument)
        if producer == name or support < seen.knobs.min_lookups:
            continue
        if rule in seen.definition.specification.rules:
            continue
        if not is_sound(rule, seen.definition, seen.library):
            continue
        trial = RuleBacktest(rule, seen.definition)
        if any(argument in c.arguments and trial.refuses(c) for c in seen.record.accepted):
            continue
        failed = [c for c in seen.record.calls if _failed_at(c, argument) and trial.refuses(c)]
        if is_enough(failed, seen.record, seen.knobs):
            basis = f"In {support:,} conversations that went well {argument} came from that result"
            yield RuleSuggestion.from_calls(failed, seen.record, basis=basis, rule=rule)


def _supports(consumer: str, routes: Collection[RouteEvidence]) -> Mapping[tuple[str, str], int]:
    """Episodes in which an argument came from a tool, the best route of each pair."""
    found: dict[tuple[str, str], int] = {}
    for one in routes:
        if one.route.consumer == consumer:
            pair = one.route.producer, one.route.argument
            found[pair] = max(found.get(pair, 0), one.support)
    return found


def _failed_at(call: ObservedCall, argument: str) -> bool:
    return not call.is_accepted and argument in call.blamed and argument in call.arguments


# --- The evidence proposer: rules from what tools refused and from what verifiers found. No m ----
# The evidence proposer: rules from what tools refused and from what verifiers found. No model.
#
# It writes what the tool itself states, in words that hold for every call: which values a
# parameter
# takes, its range and form, which call must come first, which tool is meant. What it is not told
# it
# does not guess: that a value was never seen is no reason to forbid it.


_AUTHOR = Author(kind="program", name="evidence")


class EvidenceProposer:
    """Suggests what the evidence bears out, and says with which numbers.

    What a tool states itself comes together in one proposal a tool. Words of an untrusted origin,
    which wait for somebody to agree, come in a second one, so that nothing else waits with them.
    What is inferred (a look-up, a confusion, when to abstain) comes as a proposal of its own, so
    that it can fail alone.

    Args:
        knobs: How much must have happened.

    Example:
        >>> import asyncio
        >>> from agentkit import Episode, Library
        >>> from agentkit.episodes import Turn
        >>> from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
        >>> loan = ToolDefinition.from_schema("loan", "What a loan costs a month.", {
        ...     "properties": {"periods": {"type": "integer", "description": "Loan term."}}})
        >>> def refused(number, periods):
        ...     call = ToolCall(call_id="1", name="loan", arguments={"periods": periods})
        ...     failure = ToolFailure(
        ...         kind="retry_requested", rule=f"must be one of 36, 48, 60, got {periods}")
        ...     result = ToolResult(call_id="1", name="loan", status="failed", failure=failure)
        ...     turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
        ...     return Episode(episode_id=f"e{number}", request="", turns=(turn,))
        >>> seen = Observations(
        ...     library=Library([loan]), episodes=(refused(1, 31), refused(2, 50)))
        >>> [proposal] = asyncio.run(EvidenceProposer().propose(seen))
        >>> proposal.candidate.specification.rules
        (OneOf(parameter='periods', values=(36, 48, 60), kind='one_of'),)
    """

    name = "evidence"

    def __init__(self, knobs: EvidenceConfig = EvidenceConfig()) -> None:  # noqa: B008 - frozen
        self._knobs = knobs

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """What should change, the tools in the order wanted or with most failures first."""
        library, episodes = observations.library, observations.episodes
        records = observed(episodes, library)
        routes = trajectories_of(filter(_is_data, episodes)).routes
        found: dict[str, tuple[list[RuleSuggestion], list[RuleSuggestion]]] = {}
        noted: set[str] = set()

        def pass_over(one: PassedOver) -> None:
            noted.add(one.tool)
            observations.pass_over(one)

        for name in sorted(name for name in records if name in library):
            seen = ToolEvidence(
                definition=library[name].definition,
                record=records[name],
                library=library,
                knobs=self._knobs,
                pass_over=pass_over,
            )
            stated = list(stated_lessons(seen))
            relaxed = relaxed_lessons(seen, stated)
            found[name] = [*stated, *relaxed], list(lookup_lessons(seen, routes))
            refused = len(records[name].refused)
            if refused and name not in noted and not any(found[name]):
                why = f"its refusals ({refused:,}) name no value, range, form or order to hold to"
                pass_over(PassedOver(tool=name, reason="says_nothing", why=why, failures=refused))
        return [
            proposal
            for name in _order(found, observations)
            for proposal in self._proposals(library[name].definition, *found[name])
        ]

    def _proposals(
        self, base: ToolDefinition, stated: list[RuleSuggestion], inferred: list[RuleSuggestion]
    ) -> Iterator[Proposal]:
        best = sorted(stated, key=lambda lesson: -lesson.failures)[: self._knobs.max_lessons]
        together = [lesson for lesson in best if all(map(is_vouched_for, lesson.origins))]
        waiting = [lesson for lesson in best if lesson not in together]
        for lessons in [together, waiting, *([lesson] for lesson in inferred)]:
            candidate = applied(base, lessons)
            if candidate.digest != base.digest:
                yield Proposal.of(
                    base,
                    candidate,
                    stream="evidence",
                    author=_AUTHOR,
                    reason="\n".join(map(str, lessons)),
                    evidence=dict.fromkeys(chain.from_iterable(one.episodes for one in lessons)),
                    origins=chain.from_iterable(one.origins for one in lessons),
                )


def _is_data(episode: Episode) -> bool:
    """Whether calls and results are JSON data, so that values in them can be compared.

    Episodes that ran or were read from a file are; those that somebody made by hand may hold
    integers of thousands of digits, or nesting without end.
    """
    try:
        parts = [[dict(call.arguments) for call in episode.calls], episode.output]
        return is_json([*parts, [result.value for result in episode.results]])
    except RecursionError:
        return False


def _order(
    found: dict[str, tuple[list[RuleSuggestion], list[RuleSuggestion]]], observations: Observations
) -> Iterable[str]:
    """The tools asked for, in that order; else the worst of the profile, then by failures."""
    if observations.tools:
        return [name for name in observations.tools if name in found]
    worst = [rate.tool for rate in observations.profile.worst_tools(len(found) or 1)]
    rank = {name: at for at, name in enumerate(worst)}
    failures = {name: sum(one.failures for one in chain(*both)) for name, both in found.items()}
    return sorted(found, key=lambda name: (rank.get(name, len(rank)), -failures[name], name))
