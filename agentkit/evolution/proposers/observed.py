"""Calls as evidence: what tools took and refused, rules as suggestions, and what speaks against."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import ceil, floor, inf, isfinite
from typing import Any

from agentkit.composites import rule_problems
from agentkit.composites.contracts import RuleChecker, with_rules_alone
from agentkit.diagnosis.findings import Step, parameter_of, steps_of
from agentkit.diagnosis.labels import blamed_argument, breaks_learned_rule
from agentkit.episodes import Episode
from agentkit.episodes.labels import (
    CONVERSATION,
    PROBE_OF,
    begins_a_conversation,
    witness,
    words_of_callers,
)
from agentkit.errors import UsageError
from agentkit.evolution.learning import PERSON, is_by_user
from agentkit.evolution.proposal import PassedOver, PassedOverReason
from agentkit.evolution.proposers.constraints import (
    Statement,
    stated_in_description,
)
from agentkit.evolution.trajectories import parts_of
from agentkit.evolution.validation.report import TextOrigin
from agentkit.evolution.validation.texts import name_key
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.messages import FailureKind, JsonObject, ToolFailure
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
    Takes,
    rule_sentence,
    rule_to_json,
)
from agentkit.tools.rules.records import EarlierCall
from agentkit.tools.schema import allowed_types, parts_at, path_steps, values_at
from agentkit.tools.schema_validator import fits
from agentkit.tools.validation import coerce

EVIDENCE = Author(kind="program", name="evidence")
"""Who suggests what calls show."""


# --- The calls of a tool as evidence: which were taken, which were refused, and in what words ----


OF_THE_TOOL: frozenset[FailureKind] = frozenset(
    {"invalid_arguments", "contract_violated", "retry_requested", "tool_error", "tool_failed"}
)
"""Failures whose words are those of the tool or of its contract."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """What a person wrote by hand of an argument of a call."""

    parameter: str
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedCall:
    """One call of a tool.

    Attributes:
        episode_id: The episode that it was made in.
        arguments: What it gave.
        is_accepted: Whether the tool took it, whatever a verifier said of it later.
        refusal: How the tool refused it; None when it did not, or when its failure says nothing
            about the call.
        blamed: Names of parameters that the refusal or the verifier points at.
        earlier: Calls that succeeded before it; None when the conversation began before the
            episode, so that nobody knows.
        refusals: What tools said when they refused calls before it.
        request: What the user asked.
        told: What else the caller chose that tools can read: labels, ids, attached files.
        is_from_start: Whether all that was said before it is known: the run began the conversation,
            and no program of the model made the call.
        party: Who asked, as far as the episode says: its own id, conversation, user, and the key
            that a server was shown. A client chooses its ``user``, and not its key.
        corrections: What persons said of its arguments.
        is_answered: Whether somebody outside gave its result, which are then the words of a user.
    """

    episode_id: str
    arguments: JsonObject
    is_accepted: bool
    refusal: ToolFailure | None = None
    blamed: frozenset[str] = frozenset()
    earlier: tuple[EarlierCall, ...] | None = None
    refusals: tuple[str, ...] = ()
    request: str = ""
    told: tuple[str, ...] = ()
    is_from_start: bool = False
    party: frozenset[tuple[str, str]] = frozenset()
    corrections: tuple[Correction, ...] = ()
    is_answered: bool = False


def has_witnesses(calls: Iterable[ObservedCall], count: int = 2) -> bool:
    """Whether calls are of so many people; those of one conversation, user or key are of one.

    What somebody outside answered tells of nobody's tool.
    """
    found: list[frozenset[tuple[str, str]]] = []
    for party in dict.fromkeys(call.party for call in calls if not call.is_answered):
        if len(found) < count and all(party.isdisjoint(other) for other in found):
            found.append(party)
    return len(found) >= count


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRecord:
    """All that was observed of one tool.

    Attributes:
        calls: Its calls, in the order of the episodes. A call that was refused for a learned rule
            is none: it never came to the tool, and what was learned is no evidence for itself.
        right: Values that verifiers expected, each with the id of the episode, by parameter.
    """

    calls: list[ObservedCall] = field(default_factory=list)
    right: dict[str, list[tuple[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def accepted(self) -> tuple[ObservedCall, ...]:
        """The calls that the tool took, and that no person corrected."""
        return tuple(call for call in self.calls if call.is_accepted and not call.corrections)

    @property
    def refused(self) -> tuple[ObservedCall, ...]:
        """The calls that the tool refused in its own words."""
        return tuple(call for call in self.calls if call.refusal is not None)


def observed(episodes: Iterable[Episode], library: Library) -> Mapping[str, ToolRecord]:
    """What episodes show of each tool of the library.

    Episodes whose verdict has a fault still show what tools took and refused; what the verdict
    says is left out.
    """
    records: dict[str, ToolRecord] = defaultdict(ToolRecord)
    for episode in episodes:
        wrong, corrected = _verified(episode, records), _corrected(episode)
        earlier: list[EarlierCall] = []
        refusals: list[str] = []
        begins = begins_a_conversation(episode)
        programmed = {one.call.call_id for turn in episode.turns for one in turn.program_calls}
        for turn in steps_of(episode, library):
            for step in turn:
                is_ours = step.failure is not None and breaks_learned_rule(step.failure)
                if step.call.malformed is None and step.call.name in library and not is_ours:
                    call = _observed(step, episode, earlier, refusals)
                    call = replace(
                        call,
                        blamed=call.blamed | wrong[step.call.call_id],
                        corrections=tuple(corrected[step.call.call_id]),
                        is_from_start=begins and step.call.call_id not in programmed,
                    )
                    records[step.call.name].calls.append(call)
            for step in turn:
                if _is_accepted(step) and step.result:
                    text = step.result.text or _as_text(step.result.value)
                    earlier.append(EarlierCall(name=step.call.name, text=text))
                refusals += _refused(step)
    return records


def _verified(episode: Episode, records: Mapping[str, ToolRecord]) -> Mapping[str, set[str]]:
    """Note the values that the verdict expected; the parameters that it calls wrong, by call."""
    wrong: dict[str, set[str]] = defaultdict(set)
    verdict = episode.verdict
    for item in () if verdict is None or verdict.fault else verdict.evidence:
        if item.call_id and item.parameter:
            wrong[item.call_id].add(item.parameter)
        if item.tool and item.parameter and item.expected is not None and not is_by_user(verdict):
            values = item.expected if isinstance(item.expected, list | tuple) else [item.expected]
            right = records[item.tool].right[item.parameter]
            right += [(episode.episode_id, value) for value in (*values, item.expected)]
    return wrong


_OF_ARGUMENTS = frozenset({"wrong_value", "missing_argument", "unexpected_argument"})


def _corrected(episode: Episode) -> Mapping[str, list[Correction]]:
    """What a person said by hand of arguments, by call."""
    found: dict[str, list[Correction]] = defaultdict(list)
    verdict = episode.verdict
    if verdict is None or verdict.fault or verdict.verifier != PERSON:
        return found
    for item in verdict.evidence:
        if item.call_id and item.parameter and item.kind in _OF_ARGUMENTS:
            said = Correction(parameter=item.parameter, words=item.message)
            found[item.call_id].append(said)
    return found


def _is_accepted(step: Step) -> bool:
    is_ok = step.result is not None and step.result.status == "ok" and step.failure is None
    return is_ok and not (step.result and is_error_as_data(step.result.value))


_WORDS_OF_ERRORS = frozenset({"error", "errors", "message", "detail", "code", "status", "success"})


def is_error_as_data(value: Any) -> bool:
    """Whether a result is an error that was returned as data: that shows no call as accepted.

    Known are problem details (RFC 9457), and objects that hold an error and nothing else.

    Example:
        >>> is_error_as_data({"title": "Not Found", "status": 404})
        True
        >>> is_error_as_data({"error": "no such city"}), is_error_as_data({"error": 0.1, "fit": 2})
        (True, False)
    """
    if not isinstance(value, Mapping):
        return False
    status = value.get("status")
    is_problem = type(status) is int and 400 <= status < 600 and "title" in value
    said = value.get("error") or value.get("errors")
    return is_problem or (bool(said) and value.keys() <= _WORDS_OF_ERRORS)


def _observed(
    step: Step, episode: Episode, earlier: Iterable[EarlierCall], refusals: Iterable[str]
) -> ObservedCall:
    failure, arguments = step.failure, step.call.arguments
    blamed = ""
    if failure is not None and failure.kind in OF_THE_TOOL:
        blamed = parameter_of(failure) or blamed_argument(failure, arguments) or ""
    else:
        failure = None
    is_probe = PROBE_OF in episode.metadata
    party = (
        ("episode", episode.episode_id),
        ("episode", episode.resumes),
        ("session", episode.session_id),
        ("session", episode.metadata.get(CONVERSATION, "")),
        ("episode", episode.metadata.get(CONVERSATION, "")),
        ("user", name_key(episode.metadata.get("user", ""))),
        ("key", witness(episode.metadata)),
    )
    return ObservedCall(
        episode_id=episode.episode_id,
        arguments=arguments,
        is_accepted=_is_accepted(step),
        refusal=failure,
        blamed=frozenset({blamed} - {""}),
        earlier=None if is_probe or episode.history_length else tuple(earlier),
        refusals=tuple(refusals),
        request="" if is_probe else episode.request,
        told=words_of_callers(episode),
        party=frozenset((kind, name) for kind, name in party if name),
        is_answered=step.result is not None and step.result.attempts == 0,
    )


def _refused(step: Step) -> Iterable[str]:
    """What a model read of a failed call: the rule, and the values that were near."""
    texts = () if step.result is None else (step.result.text,)
    failure = step.failure
    return texts if failure is None else (*texts, failure.rule, *failure.nearest)


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""


# --- What a definition should say, and how much must have happened -------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceConfig:
    """Thresholds of the evidence proposer.

    Attributes:
        min_failures: Calls that a tool must have refused for the same stated reason.
        min_episodes: Different episodes that they must come from. One episode may repeat one
            call, and one text may be hostile or broken.
    """

    min_failures: int = 2
    min_episodes: int = 2

    def __post_init__(self) -> None:
        counts = (self.min_failures, self.min_episodes)
        if min(counts) < 1:
            raise UsageError(f"counts of EvidenceConfig must be 1 or more, got {counts}")


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

    def notes(self, reason: PassedOverReason, why: str, parameter: str, failures: int) -> None:
        """Say why nothing came of failures."""
        tool = self.definition.name
        self.pass_over(
            PassedOver(tool=tool, parameter=parameter, reason=reason, why=why, failures=failures)
        )


def parameter_of_rule(rule: Rule) -> str:
    """The path of the parameter that a rule is about; empty for none, or for several."""
    parameter: str = getattr(rule, "parameter", "")
    return parameter


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSuggestion:
    """A rule to add, in the place of one of its kind about the same parameter, or to take away.

    Attributes:
        rule: The rule.
        drops: Whether it is taken away.
        basis: What it rests on, in words.
        failures: Calls that failed for it.
        episodes: Ids of the episodes of these calls, each once.
        kept: Calls that the tool took, all of which the rule lets pass.
        origins: Where its texts came from.
    """

    rule: Rule
    drops: bool = False
    basis: str
    failures: int
    episodes: tuple[str, ...]
    kept: int = 0
    origins: tuple[TextOrigin, ...] = ()

    @classmethod
    def from_calls(
        cls,
        calls: Collection[ObservedCall],
        record: ToolRecord,
        *,
        basis: str,
        rule: Rule,
        origins: tuple[TextOrigin, ...] = (),
    ) -> RuleSuggestion:
        """A rule to add, because of failed calls among those that were observed of its tool."""
        return cls(
            rule=rule,
            basis=basis,
            failures=len(calls),
            episodes=tuple(dict.fromkeys(call.episode_id for call in calls)),
            kept=len(record.accepted),
            origins=origins,
        )

    def __str__(self) -> str:
        words = rule_sentence(self.rule)
        where = plural(len(self.episodes), "conversation")
        if self.drops:
            return f"No longer: {words} {self.basis} ({plural(self.failures, 'call')} in {where})."
        if isinstance(self.rule, Takes) and not self.failures:
            return f"{words} {self.basis} ({where})."
        kept = f"; it lets all {self.kept:,} accepted calls pass" if self.kept > 1 else ""
        return f"{words} {self.basis} ({plural(self.failures, 'failed call')} in {where}{kept})."


def is_enough(calls: Collection[ObservedCall], knobs: EvidenceConfig) -> bool:
    """Whether calls are many enough, and from enough episodes."""
    episodes = {call.episode_id for call in calls}
    return len(calls) >= knobs.min_failures and len(episodes) >= knobs.min_episodes


def with_rule(definition: ToolDefinition, rule: Rule) -> ToolDefinition:
    """The definition with a rule, in the place of what it said of the same thing before."""
    others = (one for one in definition.specification.rules if subject(one) != subject(rule))
    return _ruled(definition, (*others, rule))


def _ruled(definition: ToolDefinition, rules: tuple[Rule, ...]) -> ToolDefinition:
    return replace(definition, specification=replace(definition.specification, rules=rules))


def applied(definition: ToolDefinition, lessons: Iterable[RuleSuggestion]) -> ToolDefinition:
    """The definition with what the suggestions say."""
    for lesson in lessons:
        if lesson.drops:
            kept = (rule for rule in definition.specification.rules if rule != lesson.rule)
            definition = _ruled(definition, tuple(kept))
        else:
            definition = with_rule(definition, lesson.rule)
    return definition


def subject(rule: Rule) -> tuple[object, ...]:
    """What a rule is about: two rules about the same take each other's place."""
    if isinstance(rule, CallBefore | Condition):
        return (rule,)
    return (rule.kind, rule.parameter)


# --- From what a tool states to a rule about one of its parameters -------------------------------


_MOST_PATHS = 100
_MOST_STEPS = 2_000
_PYTHON = {"True": True, "False": False, "true": True, "false": False}


def rule_key(rule: Rule) -> str:
    """What a rule says, whatever the order of its values and the way its numbers are written.

    Example:
        >>> one = OneOf(parameter="periods", values=(36, 48))
        >>> rule_key(one) == rule_key(OneOf(parameter="periods", values=(48.0, 36)))
        True
    """
    said = {name: _shortest(value) for name, value in rule_to_json(rule).items()}
    if isinstance(rule, OneOf):
        values = map(_shortest, rule.values)
        said["values"] = sorted(canonical_json(value).decode() for value in values)
    for name in ("example", "calls"):
        said.pop(name, None)
    return canonical_json(said).decode()


def _shortest(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def described_rules(definition: ToolDefinition, name: str) -> Iterator[Rule]:
    """The rules that the text of a parameter states."""
    part = definition.known_signature.properties.get(name)
    texts = [definition.description.parameters.get(name, "")]
    texts += [part.get("description", "")] if isinstance(part, Mapping) else []
    for text in filter(lambda text: isinstance(text, str), dict.fromkeys(texts)):
        for statement in stated_in_description(text):
            for path in value_paths(name, definition):
                if (rule := rule_of(statement, path, definition)) is not None:
                    yield rule


def value_paths(name: str, definition: ToolDefinition) -> Iterator[str]:
    """The path of a parameter, and that of its items where it is a list.

    Example:
        >>> tags = ToolDefinition.from_schema("tag", "", {
        ...     "properties": {"tags": {"type": "array", "items": {"type": "string"}}}})
        >>> list(value_paths("tags", tags)), list(value_paths("colour", tags))
        (['tags[]'], [])
    """
    for path in (name, f"{name}[]"):
        if any(types - {"array", "object"} for types in _types(path, definition)):
            yield path


def given_paths(arguments: JsonObject) -> tuple[str, ...]:
    """The paths of the values that arguments give, those of items once.

    Example:
        >>> given_paths({"city": "Oslo", "days": [{"n": 1}, {"n": 2}]})
        ('city', 'days[].n')
    """
    found: dict[str, None] = {}
    for steps, value in islice(parts_of(arguments), _MOST_STEPS):
        if not isinstance(value, Mapping | list | tuple):
            names = ("[]" if isinstance(step, int) else f".{step}" for step in steps)
            found["".join(names).removeprefix(".")] = None
    return tuple(islice(found, _MOST_PATHS))


def values_of(path: str, arguments: JsonObject, definition: ToolDefinition) -> list[Any]:
    """The values that arguments give for a parameter."""
    schema = definition.known_signature.parameters
    steps = path_steps(schema, path)
    return [value for _, value in values_at(arguments, steps)] if parts_at(schema, path) else []


def rule_of(statement: Statement, path: str, definition: ToolDefinition) -> Rule | None:
    """The rule that a statement makes for a parameter; None when it makes none.

    A bound that is itself not allowed ("greater than 0") stays one. For a whole number the next
    one is the bound, which says the same in the words that models follow best.

    Example:
        >>> wait = ToolDefinition.from_schema("wait", "", {
        ...     "properties": {"days": {"type": "integer"}}})
        >>> above = Statement(rule=Between(parameter="", exclusive_minimum=0))
        >>> rule_of(above, "days", wait).minimum
        1
        >>> rule_of(Statement(rule=OneOf(parameter="", values=("7", "14"))), "days", wait)
        OneOf(parameter='days', values=(7, 14), kind='one_of')
    """
    match rule := statement.rule:
        case OneOf():
            parts = _parts(path, definition)
            values = tuple(_typed(value, parts[0], definition) for value in rule.values if parts)
            is_rule = values and all(map(_is_scalar, values))
            return OneOf(parameter=path, values=values) if is_rule else None
        case Between():
            types = _types(path, definition)
            is_whole = bool(types) and all("number" not in found for found in types)
            return _range_about(path, rule, is_whole=is_whole)
        case Form():
            return replace(rule, parameter=path)
        case _:
            return rule


def _typed(value: Any, part: Any, definition: ToolDefinition) -> Any:
    """A value as the parameter takes it; what was read from a text may be a number."""
    if not isinstance(value, str):
        return value
    types = allowed_types(part, root=definition.known_signature.parameters)
    if "boolean" in types and "string" not in types:
        return _PYTHON.get(value, value)
    return coerce(value, part)


def _range_about(path: str, rule: Between, *, is_whole: bool) -> Between | None:
    (low, is_above), (high, is_included) = _low(rule), _high(rule)
    if is_whole and isfinite(low):
        low, is_above = floor(low) + 1 if is_above else ceil(low), False
    if is_whole and isfinite(high):
        high, is_included = floor(high) if is_included else ceil(high) - 1, True
    lowest, highest = (_shortest(n) if isfinite(n) else None for n in (low, high))
    if lowest is None and highest is None and rule.multiple_of is None and not rule.unit:
        return None
    return Between(
        parameter=path,
        minimum=None if is_above else lowest,
        maximum=highest if is_included else None,
        exclusive_minimum=lowest if is_above else None,
        exclusive_maximum=None if is_included else highest,
        multiple_of=_shortest(rule.multiple_of),
        unit=rule.unit,
    )


def _low(rule: Between) -> tuple[float, bool]:
    """The lower bound, and whether it is itself left out."""
    bounds = ((rule.minimum, False), (rule.exclusive_minimum, True))
    return max(((n, is_open) for n, is_open in bounds if n is not None), default=(-inf, False))


def _high(rule: Between) -> tuple[float, bool]:
    """The upper bound, and whether it is itself allowed."""
    bounds = ((rule.maximum, True), (rule.exclusive_maximum, False))
    return min(((n, is_in) for n, is_in in bounds if n is not None), default=(inf, True))


def _parts(path: str, definition: ToolDefinition) -> list[Any]:
    """What the schema says of a parameter, in each place that declares it."""
    return parts_at(definition.known_signature.parameters, path)


def _types(path: str, definition: ToolDefinition) -> list[frozenset[str]]:
    schema = definition.known_signature.parameters
    return [allowed_types(part, root=schema) for part in _parts(path, definition)]


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


# --- What speaks against a rule: calls that were taken, values that are right, the contract ------
# Successes alone never make a rule, but they can forbid one. That a value was taken shows that it
# is allowed; that another one never came up shows nothing.


class RuleBacktest:
    """One rule of a tool, or several, and no other, held against calls.

    Args:
        rules: The rule or rules.
        definition: The tool, with or without them.
    """

    def __init__(self, rules: Rule | tuple[Rule, ...], definition: ToolDefinition) -> None:
        together = rules if isinstance(rules, tuple) else (rules,)
        self._ruled = with_rules_alone(definition, together)
        self._checker = RuleChecker(self._ruled)

    def refuses(self, call: ObservedCall) -> bool:
        """Whether the rule would have refused a call as it was made, as far as it can be told."""
        return self._checker.refusal(call.arguments, call.earlier) is not None

    def stops(self, arguments: JsonObject, earlier: Sequence[EarlierCall] | None = None) -> bool:
        """Whether the rule would keep a call from running, once its plain slips are coerced.

        ``"Burger"`` runs where a rule lists ``"BURGER"``, so that such a call, once taken, does not
        speak against the rule.
        """
        coerced: JsonObject = coerce(arguments, self._ruled.parameters_schema)
        return self._checker.refusal(coerced, earlier) is not None

    def refused_values(self, record: ToolRecord) -> Iterator[str]:
        """The episodes in which a verifier expected a value that the rule refuses.

        Values that the parameter does not take at all say nothing, such as the empty text for one
        that may be left out (BFCL).
        """
        for name, values in record.right.items():
            part = self._ruled.known_signature.properties.get(name)
            root = self._ruled.known_signature.parameters
            for episode_id, value in values if part is not None else ():
                may_be = value not in ("", None) and fits(value, part, root=root) is not False
                if may_be and self.stops({name: value}):
                    yield episode_id


def is_sound(rule: Rule, definition: ToolDefinition, library: Container[str]) -> bool:
    """Whether a rule fits the contract, the worked examples and the other rules of its tool."""
    return not rule_problems(rule, with_rule(definition, rule), library)


def rejects_known(rule: Rule, definition: ToolDefinition, record: ToolRecord) -> bool:
    """Whether a rule refuses a call that the tool took, or a value that a verifier expected."""
    trial = RuleBacktest(rule, definition)
    if any(trial.stops(call.arguments, call.earlier) for call in record.accepted):
        return True
    if isinstance(rule, CallBefore | Requires):
        return False  # one value says nothing about other calls or parameters
    return any(True for _ in trial.refused_values(record))


def refused_by_rules(
    rules: tuple[Rule, ...], definition: ToolDefinition, calls: Iterable[ObservedCall]
) -> Iterator[tuple[Rule, ObservedCall]]:
    """The calls that rules would keep from running, each with the first rule that does.

    Args:
        rules: New rules of a tool.
        definition: The tool, with or without them.
        calls: Calls that are known to be right, or that the tool took.
    """
    together = RuleBacktest(rules, definition)
    trials = [(rule, RuleBacktest(rule, definition)) for rule in rules]
    for call in calls:
        if together.stops(call.arguments, call.earlier):
            stops = (rule for rule, one in trials if one.stops(call.arguments, call.earlier))
            yield from ((rule, call) for rule in islice(stops, 1))


def accepted_calls(
    definition: ToolDefinition, library: Library, episodes: Iterable[Episode]
) -> tuple[ObservedCall, ...]:
    """The worked examples of a tool, and its calls in episodes that it took.

    Args:
        definition: The tool.
        library: By which calls are read.
        episodes: What happened; those without a call of the tool are passed over.
    """
    worked = (
        ObservedCall(episode_id="", arguments=one.arguments, is_accepted=True)
        for one in definition.examples
    )
    name = definition.name
    about = (one for one in episodes if any(call.name == name for call in one.calls))
    return tuple(chain(worked, observed(about, library).get(name, ToolRecord()).accepted))


def allows_more(rule: Rule, other: Rule) -> bool:
    """Whether a list or range is a wider one of its kind; False where that cannot be told.

    Example:
        >>> allows_more(OneOf(parameter="n", values=(1, 2, 3)), OneOf(parameter="n", values=(3, 1)))
        True
        >>> closed, open_ = Between(parameter="n", minimum=0), Between(parameter="n", minimum=1)
        >>> allows_more(closed, open_), allows_more(open_, closed), allows_more(closed, closed)
        (True, False, False)
    """
    match rule, other:
        case OneOf(), OneOf():
            more, fewer = ({canonical_json(v) for v in one.values} for one in (rule, other))
            return fewer < more
        case Between(), Between():
            mine, yours = (_low(rule), _high(rule)), (_low(other), _high(other))
            is_wider = mine[0] <= yours[0] and mine[1] >= yours[1] and mine != yours
            is_alike = rule.measure == other.measure and rule.multiple_of == other.multiple_of
            return is_wider and is_alike
        case _:
            return False
