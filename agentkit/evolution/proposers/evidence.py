"""The evidence proposer: rules from what tools refused and from what verifiers found. No model.

It writes what the tool itself states, in words that hold for every call: which values a parameter
takes, its range and form, which call must come first. What it is not told it does not guess: that
a value was never seen is no reason to forbid it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from agentkit.episodes import Episode
from agentkit.evolution.proposal import Observations, PassedOver, Proposal
from agentkit.evolution.proposers.constraints import Statement, numbers_of, stated_in_error
from agentkit.evolution.proposers.discovery import discovered_lessons
from agentkit.evolution.proposers.observed import (
    EVIDENCE,
    EvidenceConfig,
    ObservedCall,
    RuleBacktest,
    RuleSuggestion,
    ToolEvidence,
    ToolRecord,
    allows_more,
    applied,
    described_rules,
    given_paths,
    has_witnesses,
    is_enough,
    is_sound,
    observed,
    parameter_of_rule,
    rejects_known,
    rule_key,
    rule_of,
    subject,
    value_paths,
    values_of,
)
from agentkit.evolution.proposers.origins import (
    is_constant,
    is_vouched_for,
    origins_of_rule,
)
from agentkit.evolution.trajectories import Route, trajectories_of
from agentkit.evolution.validation.report import TextOrigin
from agentkit.library.library import Library
from agentkit.messages import ToolFailure
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Requires,
    Rule,
    Takes,
    rule_sentence,
)
from agentkit.tools.validation import validate_arguments

_MOST_LESSONS = 12  # in one proposal; those with most failures come first
_LOOKUPS = 3  # episodes in which a value must have come from another tool's result


class EvidenceProposer:
    """Suggests what the evidence bears out, and says with which numbers.

    What a tool states itself comes together in one proposal a tool. Words of an untrusted origin,
    which wait for somebody to agree, come in another one, and so do changes of rules that the tool
    has, which may be a person's: nothing else waits with them.
    What is inferred (a look-up) comes as a proposal of its own, so that it can fail alone.

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
        bounded = observations.by_tool
        records = observed(episodes, library) if bounded is None else _records(bounded, library)
        routes = _routes(episodes) if bounded is None else {}
        found: dict[str, tuple[list[RuleSuggestion], list[RuleSuggestion]]] = {}
        for name, record in sorted(records.items()):
            if name not in library:
                continue
            if bounded is not None:
                is_looked_up = any(one.blamed and not one.is_accepted for one in record.calls)
                routes = _routes(bounded[name]) if is_looked_up else {}
            passed_over: list[PassedOver] = []
            seen = ToolEvidence(
                definition=library[name].definition,
                record=record,
                library=library,
                knobs=self._knobs,
                pass_over=passed_over.append,
            )
            discovered = list(discovered_lessons(seen))
            seen = replace(seen, definition=applied(seen.definition, discovered))
            stated = [*discovered, *stated_lessons(seen)]
            inferred = list(lookup_lessons(seen, routes))
            found[name] = [*stated, *relaxed_lessons(seen, stated)], inferred
            refused = len(record.refused)
            if refused and not passed_over and not any(found[name]):
                why = f"its refusals ({refused:,}) name no value, range, form or order to hold to"
                seen.notes("says_nothing", why, "", refused)
            for one in passed_over:
                observations.pass_over(one)
        return [
            proposal
            for name in _order(found, observations)
            for proposal in self._proposals(library[name].definition, *found[name])
        ]

    def _proposals(
        self, base: ToolDefinition, stated: list[RuleSuggestion], inferred: list[RuleSuggestion]
    ) -> Iterator[Proposal]:
        names = [one for one in stated if isinstance(one.rule, Takes)]
        rest = sorted((one for one in stated if one not in names), key=lambda one: -one.failures)
        best = [*names, *rest[:_MOST_LESSONS]]
        waiting = [lesson for lesson in best if not all(map(is_vouched_for, lesson.origins))]
        held = {one.rule.parameter for one in waiting if isinstance(one.rule, Takes)}
        waiting = [one for one in best if one in waiting or held & set(_needs(one.rule))]
        together = [lesson for lesson in best if lesson not in waiting]
        needed = {name for lesson in waiting for name in _needs(lesson.rule)}
        waiting += [
            one for one in together if isinstance(one.rule, Takes) and one.rule.parameter in needed
        ]
        had = {subject(rule) for rule in base.specification.rules}
        loosened = [one for one in together if one.drops or subject(one.rule) in had]
        together = [one for one in together if one not in loosened]
        for lessons in [together, loosened, waiting, *([lesson] for lesson in inferred)]:
            candidate = applied(base, lessons)
            if candidate.digest != base.digest:
                yield Proposal.of(
                    base,
                    candidate,
                    stream="evidence",
                    author=EVIDENCE,
                    reason="\n".join(map(str, lessons)),
                    evidence=dict.fromkeys(chain.from_iterable(one.episodes for one in lessons)),
                    origins=chain.from_iterable(one.origins for one in lessons),
                )


def _records(
    by_tool: Mapping[str, Iterable[Episode]], library: Library
) -> Mapping[str, ToolRecord]:
    """What the episodes of each tool show of it."""
    seen = ((name, observed(episodes, library)) for name, episodes in by_tool.items())
    return {name: records[name] for name, records in seen if name in records}


def _routes(episodes: Iterable[Episode]) -> Mapping[Route, int]:
    return trajectories_of(filter(_is_data, episodes)).routes


def _needs(rule: Rule) -> Iterator[str]:
    """The top-level parameters that a rule speaks of, and that must be known before it."""
    if isinstance(rule, Condition):
        yield from _WORD.findall(rule.expression)
    elif not isinstance(rule, Takes):
        yield re.split(r"[.\[]", parameter_of_rule(rule))[0]
        yield from rule.others if isinstance(rule, Requires) else ()


_WORD = re.compile(r"\w+")


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
    found: Mapping[str, tuple[list[RuleSuggestion], list[RuleSuggestion]]],
    observations: Observations,
) -> Iterable[str]:
    """The tools asked for, in that order; else the worst of the profile, then by failures."""
    if observations.tools:
        return [name for name in observations.tools if name in found]
    worst = [rate.tool for rate in observations.profile.worst_tools(len(found) or 1)]
    rank = {name: at for at, name in enumerate(worst)}
    failures = {name: sum(one.failures for one in chain(*both)) for name, both in found.items()}
    return sorted(found, key=lambda name: (rank.get(name, len(rank)), -failures[name], name))


# --- Rules that a tool states itself when it refuses a call, or in its own description -----------
# A statement becomes a rule only when it explains what happened: the refused calls break it, the
# calls that the tool took keep it, and the refusals agree with each other.
#
# Where the definition has such a rule already, what it says stays unless it is stated anew: a
# second bound joins the first. And a list or bound that allows more than the learned one needs
# agreement among those that say so only, since the others are what was learned from before.


_INDEX = re.compile(r"\[\d+\]")
_PARTS = (
    ("minimum", "exclusive_minimum"),
    ("maximum", "exclusive_maximum"),
    ("multiple_of",),
    ("unit",),
)
"""What a range says, part by part: a bound is one part, whether it is itself allowed or not."""


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
        is_constant: Whether the tool says it whatever it is given.
    """

    rule: Rule
    calls: list[ObservedCall]
    is_constant: bool


def stated_lessons(seen: ToolEvidence) -> Iterator[RuleSuggestion]:
    """What the tool says itself about its arguments, as far as calls bear it out."""
    trials: dict[str, RuleBacktest | None] = {}  # many refusals state the same
    claims = [
        claim
        for call in seen.record.refused
        for claim in _claimed(call, call.refusal, seen, trials)
    ]
    stated = list(_agreed(claims, seen, basis="The tool says so when it refuses a call"))
    yield from stated
    told = {parameter_of_rule(lesson.rule) for lesson in stated}
    said = [
        claim for claim in _said_by_hand(seen, trials) if parameter_of_rule(claim.rule) not in told
    ]
    by_hand = list(
        _agreed(said, seen, basis="People say so of calls that went wrong", by_person=True)
    )
    yield from by_hand
    told |= {parameter_of_rule(lesson.rule) for lesson in by_hand}
    described = [claim for claim in _described(seen) if parameter_of_rule(claim.rule) not in told]
    yield from _agreed(described, seen, basis="The description says so, and calls broke it")


def _claimed(
    call: ObservedCall,
    failure: ToolFailure | None,
    seen: ToolEvidence,
    trials: dict[str, RuleBacktest | None],
) -> Iterator[_Claim]:
    """The rules that one refusal states and that the refused call breaks."""
    if failure is None or failure.kind == "contract_violated":
        return
    definition = seen.definition
    for statement in stated_in_error(failure.rule, definition.known_signature.properties):
        broken = [
            rule
            for rule in _possible(statement, call, failure, seen)
            if (trial := _trial(rule, seen, trials)) is not None and trial.refuses(call)
        ]
        if (chosen := _meant(broken, statement, call, failure, definition)) is not None:
            yield _Claim(rule=chosen, call=call, statement=statement)


def _said_by_hand(seen: ToolEvidence, trials: dict[str, RuleBacktest | None]) -> Iterator[_Claim]:
    """The rules that people stated when they corrected calls, each about the argument they name."""
    for call in seen.record.calls:
        for one in call.corrections:
            failure = ToolFailure(kind="retry_requested", rule=one.words, path=one.parameter)
            yield from _claimed(call, failure, seen, trials)


def _trial(
    rule: Rule, seen: ToolEvidence, known: dict[str, RuleBacktest | None]
) -> RuleBacktest | None:
    """The backtest of a rule; None where the rule does not fit its tool."""
    if (key := repr(rule)) not in known:
        is_fit = is_sound(rule, seen.definition, seen.library)
        known[key] = RuleBacktest(rule, seen.definition) if is_fit else None
    return known[key]


def _possible(
    statement: Statement, call: ObservedCall, failure: ToolFailure, seen: ToolEvidence
) -> Iterator[Rule]:
    """The rules that a statement makes, one for each parameter that it may be about.

    It may be about the parameter that the refusal points at, or else about any that was given.
    """
    if failure.path:
        paths = [*value_paths(_INDEX.sub("[]", failure.path), seen.definition)]
    else:
        given = given_paths(call.arguments)
        paths = [path for path in given if path in value_paths(path, seen.definition)]
    if isinstance(statement.rule, Condition | Requires):
        paths = [""]  # it names its parameters itself
    rules = (rule_of(statement, path, seen.definition) for path in paths)
    yield from (rule for rule in rules if rule is not None)


def _meant(
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
    if failure.path or isinstance(statement.rule, Condition | Requires):
        return broken[0] if len(broken) == 1 else None
    given = [values_of(parameter_of_rule(rule), call.arguments, definition) for rule in broken]
    quoted = [
        rule
        for rule, values in zip(broken, given, strict=True)
        if any(_quotes(failure.rule, value) for value in values)
    ]
    if len(quoted) == 1:
        return quoted[0]
    named = [
        (abs(start - statement.start), rule)
        for rule in quoted or broken
        for start in _mentions(parameter_of_rule(rule), failure.rule)
    ]
    least = min((distance for distance, _ in named), default=0)
    nearest = [rule for distance, rule in named if distance == least]
    if len(nearest) == 1:
        return nearest[0]
    return broken[0] if len(broken) == 1 and len(given_paths(call.arguments)) == 1 else None


# Names of parameters are ordinary words (``time``, ``format``, ``date``), and refusals are full of
# ordinary words. "time data 'tomorrow' does not match format '%Y-%m-%d'" is about neither ``time``
# nor ``format``, but about the parameter whose value it quotes. Where a text leaves it open,
# nothing is learned.

_QUOTES = "['\"`\u2018\u2019\u201c\u201d]"
_SHORTEST = 3
_LONGEST = 60


def _quotes(text: str, value: Any) -> bool:
    """Whether a text repeats a value: an ordinary or short word only in quotation marks."""
    written = str(value)[:_LONGEST]
    is_usual = isinstance(value, str) and (
        len(value) < _SHORTEST or (value.isalpha() and value.islower())
    )
    wanted = re.escape(written)
    pattern = f"{_QUOTES}{wanted}{_QUOTES}" if is_usual else rf"(?<![\w.]){wanted}(?!\w|\.\d)"
    return bool(written) and re.search(pattern, text) is not None


def _mentions(parameter: str, text: str) -> Iterator[int]:
    """Where a text names a parameter: in marks, alone in a line, or as what a sentence is about."""
    bare = parameter.rpartition(".")[2].rstrip("[]")
    name = re.escape(bare)
    if not name:
        return
    pattern = rf"(?<!\w){name}(?!\w)"
    if bare.isalpha() and (bare.islower() or bare.istitle()):  # an ordinary word
        pattern = rf"""(?xmi:
            {_QUOTES}{name}{_QUOTES}
          | ^\s*{name}\s*$
          | (?<!\w){name}
            (?=\s*[:=]|\s+(?:must|should|shall|is|are|was|has|have|can|cannot|may|needs?)\b)
          | \b(?:invalid|for|parameter|argument|field|of|bad|wrong|unsupported|unknown|illegal)\s+
            {name}(?!\w))
        """.strip()
    yield from (found.start() for found in re.finditer(pattern, text))


def _described(seen: ToolEvidence) -> Iterator[_Claim]:
    """Rules that the description states in passing, and that calls were blamed for breaking.

    The second of ToolDNA's case studies: the text says ``Loan term (36/48/60)`` and the model calls
    with 31 (appendix D).
    """
    blamed = {name for call in seen.record.calls for name in call.blamed}
    for name in sorted(blamed & set(seen.definition.description.parameters)):
        calls = [
            one
            for one in seen.record.calls
            if name in one.blamed and (one.corrections or not one.is_accepted)
        ]
        for rule in described_rules(seen.definition, name):
            if is_sound(rule, seen.definition, seen.library):
                trial = RuleBacktest(rule, seen.definition)
                yield from (_Claim(rule=rule, call=c) for c in calls if trial.refuses(c))


# --- Whether enough refusals agree ---------------------------------------------------------------


def _agreed(
    claims: Iterable[_Claim], seen: ToolEvidence, *, basis: str, by_person: bool = False
) -> Iterator[RuleSuggestion]:
    """The rules that enough refusals agree on and that no known call or value breaks."""
    about: dict[tuple[str, str], list[_Claim]] = defaultdict(list)
    for claim in claims:
        about[claim.rule.kind, parameter_of_rule(claim.rule) or rule_key(claim.rule)].append(claim)
    calls_that = "corrected call" if by_person else "refused call"
    for found in about.values():
        first = found[0].rule
        rules = seen.definition.specification.rules
        had = next((one for one in rules if subject(one) == subject(first)), None)
        is_range = isinstance(first, Between)
        made = _together(found, seen, had) if is_range else _agreement(found, seen, had)
        if made is None:
            _note_unsupported(found, seen, calls_that)
            continue
        rule, calls = made.rule, made.calls
        if not _is_news(rule, calls, seen):
            why = "the definition says it by now; {} broke it, before that or since"
            why = why.format(plural(len(calls), calls_that))
            seen.notes("already_said", why, parameter_of_rule(rule), len(calls))
        elif rejects_known(rule, seen.definition, seen.record):
            why = (
                f"{plural(len(calls), 'refused call')} state: {rule_sentence(rule)} But the tool "
                "took calls, or a verifier expected values, that this would refuse"
            )
            seen.notes("contradicts_accepted", why, parameter_of_rule(rule), len(calls))
        else:
            origins = origins_of_rule(
                rule,
                seen.record,
                seen.definition,
                seen.library,
                is_constant=made.is_constant or by_person,
                by_person=by_person,
            )
            yield RuleSuggestion.from_calls(
                calls, seen.record, basis=basis, rule=rule, origins=origins
            )


def _note_unsupported(found: list[_Claim], seen: ToolEvidence, calls_that: str) -> None:
    """Calls that state something, and that are too few or do not agree."""
    rules = {rule_key(claim.rule) for claim in found}
    count, parameter = plural(len(found), calls_that), parameter_of_rule(found[0].rule)
    if len(rules) > 1:
        why = f"{count} state {len(rules)} different rules, so none of them holds for every call"
        seen.notes("disagreement", why, parameter, len(found))
        return
    episodes = plural(len({claim.call.episode_id for claim in found}), "episode")
    needed = f"{seen.knobs.min_failures} from {seen.knobs.min_episodes} episodes are needed"
    seen.notes("too_few", f"{count} in {episodes}; {needed}", parameter, len(found))


def _is_news(rule: Rule, calls: Collection[ObservedCall], seen: ToolEvidence) -> bool:
    """Whether the definition does not say it yet, as a rule or in its contract."""
    if rule_key(rule) in map(rule_key, seen.definition.specification.rules):
        return False
    for call in calls:
        problems = validate_arguments(seen.definition, dict(call.arguments))
        if not any(_INDEX.sub("[]", one.path) == parameter_of_rule(rule) for one in problems):
            return True
    return False


def _agreement(claims: list[_Claim], seen: ToolEvidence, had: Rule | None) -> _Agreed | None:
    """The rule that all claims state, or all of those that allow more than what was learned.

    A list that differs from call to call depends on the other arguments: no rule can hold it.
    """
    wider = [one for one in claims if had is not None and allows_more(one.rule, had)]
    for some in (wider, claims):
        calls = [claim.call for claim in some]
        if len({rule_key(one.rule) for one in some}) != 1 or not is_enough(calls, seen.knobs):
            continue
        rule = some[0].rule
        said = [(one.statement, one.call) for one in some if one.statement is not None]
        is_described = len(said) < len(some)
        return _Agreed(
            rule=rule,
            calls=calls,
            is_constant=is_described or is_constant(said, parameter_of_rule(rule), seen.definition),
        )
    return None


def _together(claims: list[_Claim], seen: ToolEvidence, had: Rule | None) -> _Agreed | None:
    """A range of which some claims state the one end and some the other, or one was known.

    Each part needs agreement and enough calls of its own, so that no bound rests on one call.
    """
    parameter = parameter_of_rule(claims[0].rule)
    parts: dict[str, Any] = {}
    agreed: list[_Agreed] = []
    for part in _PARTS:
        known = {} if had is None else _said(had, part)
        bare = [
            replace(claim, rule=Between(parameter=parameter, **said))
            for claim in claims
            if (said := _said(claim.rule, part))
        ]
        made = _agreement(bare, seen, Between(parameter=parameter, **known)) if bare else None
        parts |= known if made is None else _said(made.rule, part)
        agreed += [] if made is None else [made]
    rule = Between(parameter=parameter, **parts)
    if not agreed or not set(parts) - {"unit"} or not is_sound(rule, seen.definition, seen.library):
        return None
    return _Agreed(
        rule=rule,
        calls=list({id(call): call for made in agreed for call in made.calls}.values()),
        is_constant=all(made.is_constant for made in agreed),
    )


def _said(rule: Rule, names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names that say something."""
    given = {name: getattr(rule, name) for name in names}
    return {name: value for name, value in given.items() if value not in (None, "")}


# --- Learned rules that turned out too strict, and required look-ups -----------------------------


def relaxed_lessons(
    seen: ToolEvidence, stated: Collection[RuleSuggestion] = ()
) -> Iterator[RuleSuggestion]:
    """Rules to take away, since calls that went well break them in enough episodes.

    These are values that a verifier expected, and calls that the tool took: from before there was
    the rule, or in a run without it, such as the other side of a canary. Only rules about values
    can be judged by one value.

    Args:
        seen: The tool with its calls.
        stated: What the tool states anew. A rule that this replaces is not taken away.
    """
    replaced = {subject(lesson.rule) for lesson in stated}
    for rule in seen.definition.specification.rules:
        if subject(rule) in replaced:
            continue
        trial = RuleBacktest(rule, seen.definition)
        accepted = seen.record.accepted
        taken = [call for call in accepted if trial.stops(call.arguments, call.earlier)]
        is_of_values = not isinstance(rule, CallBefore | Requires)
        right = dict.fromkeys(trial.refused_values(seen.record) if is_of_values else ())
        distinct = tuple(dict.fromkeys((*right, *(call.episode_id for call in taken))))
        least = max(seen.knobs.min_failures, seen.knobs.min_episodes)
        is_shown = len(right) >= least or has_witnesses(taken, 3 if numbers_of(rule) else 2)
        if len(distinct) >= least:
            yield RuleSuggestion(
                rule=rule,
                drops=True,
                basis=f"The rule refuses what {'the tool accepts' if taken else 'is right'}",
                failures=len(distinct),
                episodes=distinct,
                kept=len(accepted),
                origins=() if is_shown else _of_too_few(rule),
            )


def _of_too_few(rule: Rule) -> tuple[TextOrigin, ...]:
    """The origin of what one person's calls may show."""
    return (TextOrigin(text=rule_sentence(rule), kind="user", where="calls of too few people"),)


def lookup_lessons(seen: ToolEvidence, routes: Mapping[Route, int]) -> Iterator[RuleSuggestion]:
    """Tools that must be called first, because a parameter is to come from their results.

    Learned when the parameter's values came from the other tool in enough successful episodes, when
    no accepted call got one from elsewhere (the user may know it), and when calls failed whose
    value came from nowhere.

    Args:
        seen: The tool with its calls.
        routes: Ways that data take between tools, found over successful episodes, with support.
    """
    definition, record = seen.definition, seen.record
    supports: Counter[tuple[str, str]] = Counter()  # the best route of each pair
    for route, support in routes.items():
        if route.consumer == definition.name != route.producer:
            supports |= Counter({(route.producer, route.argument): support})
    for (producer, argument), support in sorted(supports.items()):
        rule = CallBefore(tool=producer, parameter=argument)
        is_known = rule in definition.specification.rules
        if support < _LOOKUPS or is_known:
            continue
        trial = RuleBacktest(rule, definition)
        good = [call for call in record.accepted if argument in call.arguments]
        if not is_sound(rule, definition, seen.library) or any(map(trial.refuses, good)):
            continue
        failed = [
            call
            for call in record.calls
            if not call.is_accepted
            and argument in call.blamed
            and argument in call.arguments
            and trial.refuses(call)
        ]
        if is_enough(failed, seen.knobs):
            basis = f"In {support:,} conversations that went well {argument} came from that result"
            is_shown = has_witnesses(good) and has_witnesses(failed)
            origins = () if is_shown else _of_too_few(rule)
            yield RuleSuggestion.from_calls(failed, record, basis=basis, rule=rule, origins=origins)
