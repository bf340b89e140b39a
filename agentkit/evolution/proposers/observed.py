"""Calls as evidence: what tools took and refused, what to say for it, and what speaks against."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import inf, isfinite
from typing import Any, get_args

from agentkit.composites import rule_problems
from agentkit.composites.rule_checker import RuleChecker
from agentkit.diagnosis.findings import Step, parameter_of, steps_of
from agentkit.diagnosis.labels import blamed_argument, breaks_learned_rule
from agentkit.episodes import Episode, Evidence
from agentkit.errors import UsageError
from agentkit.evolution.feedback import is_by_user
from agentkit.evolution.proposers.constraints import (
    StatedForm,
    StatedNeed,
    StatedOrder,
    StatedRange,
    StatedSet,
    Statement,
    form_of_pattern,
    stated_in_description,
)
from agentkit.evolution.validation.report import TextOrigin
from agentkit.library.library import Library
from agentkit.messages import FailureKind, JsonObject, ToolFailure
from agentkit.metrics.statistics import wilson_interval
from agentkit.tools.canonical import canonical_json
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.formats import FORMAT_EXAMPLES
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    NamedFormat,
    OneOf,
    Requires,
    Rule,
    rule_sentence,
    rule_to_json,
)
from agentkit.tools.rules.checking import EarlierCall
from agentkit.tools.rules.contradictions import possible_types
from agentkit.tools.schema import places, values_at
from agentkit.tools.schema_validator import fits

# --- The calls of a tool as evidence: which were taken, which were refused, and in what words ----


_OF_THE_TOOL: frozenset[FailureKind] = frozenset(
    {"invalid_arguments", "contract_violated", "retry_requested", "tool_error", "tool_failed"}
)
"""Failures whose words are those of the tool or of its contract."""


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
        party: Who asked, as far as the episode says: its own id, conversation and user.
    """

    episode_id: str
    arguments: JsonObject
    is_accepted: bool
    refusal: ToolFailure | None = None
    blamed: frozenset[str] = frozenset()
    earlier: tuple[EarlierCall, ...] | None = None
    refusals: tuple[str, ...] = ()
    request: str = ""
    party: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRecord:
    """All that was observed of one tool.

    Attributes:
        calls: Its calls, in the order of the episodes. A call that was refused for a learned rule
            is none: it never came to the tool, and what was learned is no evidence for itself.
        right: Values that verifiers held for right, each with the id of the episode, by parameter.
    """

    calls: list[ObservedCall] = field(default_factory=list)
    right: dict[str, list[tuple[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def accepted(self) -> tuple[ObservedCall, ...]:
        """The calls that the tool took."""
        return tuple(call for call in self.calls if call.is_accepted)

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
        verdict = episode.verdict
        evidence = () if verdict is None or verdict.fault else verdict.evidence
        if not is_by_user(verdict):  # whose word neither keeps a rule out nor takes one away
            _note_right(evidence, episode, records)
        wrong = defaultdict(set)
        for item in evidence:
            if item.call_id and item.parameter:
                wrong[item.call_id].add(item.parameter)
        earlier: list[EarlierCall] = []
        refusals: list[str] = []
        for turn in steps_of(episode, library):
            for step in turn:
                if _is_about_tool(step, library):
                    blamed = frozenset(wrong[step.call.call_id])
                    call = _observed(step, episode, blamed, earlier, refusals)
                    records[step.call.name].calls.append(call)
            earlier += [one for step in turn for one in _succeeded(step)]
            refusals += [text for step in turn for text in _refused(step)]
    return records


def _is_about_tool(step: Step, library: Library) -> bool:
    is_ours = step.failure is not None and breaks_learned_rule(step.failure)
    return step.call.malformed is None and step.call.name in library and not is_ours


def _note_right(
    evidence: Iterable[Evidence], episode: Episode, records: Mapping[str, ToolRecord]
) -> None:
    """What verifiers expected: allowed values come as a list, of which each one is right."""
    for item in evidence:
        if item.tool and item.parameter and item.expected is not None:
            values = item.expected if isinstance(item.expected, list | tuple) else [item.expected]
            right = records[item.tool].right[item.parameter]
            right += [(episode.episode_id, value) for value in (*values, item.expected)]


def _observed(
    step: Step,
    episode: Episode,
    wrong: frozenset[str],
    earlier: Iterable[EarlierCall],
    refusals: Iterable[str],
) -> ObservedCall:
    failure = step.failure
    is_refused = failure is not None and failure.kind in _OF_THE_TOOL
    blamed = _blamed(step) if is_refused else frozenset[str]()
    return ObservedCall(
        episode_id=episode.episode_id,
        arguments=step.call.arguments,
        is_accepted=step.result is not None and step.result.status == "ok" and failure is None,
        refusal=failure if is_refused else None,
        blamed=blamed | wrong,
        earlier=None if episode.history_length else tuple(earlier),
        refusals=tuple(refusals),
        request=episode.request,
        party=_party(episode),
    )


def _party(episode: Episode) -> frozenset[tuple[str, str]]:
    """What tells whose episode it is; two that share a part are of one user."""
    known = (
        ("episode", episode.episode_id),
        ("episode", episode.resumes),
        ("session", episode.session_id),
        ("user", episode.metadata.get("user")),
    )
    return frozenset((kind, name) for kind, name in known if name)


def _blamed(step: Step) -> frozenset[str]:
    failure, arguments = step.failure, step.call.arguments
    if failure is None:
        return frozenset()
    named = parameter_of(failure) or blamed_argument(failure, arguments) or ""
    return frozenset({named} - {""})


def _succeeded(step: Step) -> Iterable[EarlierCall]:
    if step.result is None or step.result.status != "ok" or step.failure is not None:
        return ()
    text = step.result.text or _as_text(step.result.value)
    return (EarlierCall(name=step.call.name, text=text),)


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


# --- What a definition should say -------------------------------------------------------------
# A ``RuleSuggestion`` is one thing that the evidence says, and what it rests on.
# ``EvidenceConfig`` says how much must have happened before the evidence proposer says anything.


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceConfig:
    """Thresholds of the evidence proposer.

    Attributes:
        min_failures: Calls that a tool must have refused for the same stated reason.
        min_episodes: Different episodes that they must come from. One episode may repeat one
            call, and one text may be hostile or broken.
        min_agreement: Of the refusals that state something of this kind about the parameter, the
            share that must state the same. A list that differs from call to call depends on the
            other arguments, and no rule can hold it.
        min_share: Of the observed calls of the tool, the share that must have failed so.
        min_lookups: Episodes in which a parameter's value must have come from another tool's
            result before that tool is asked to be called first.
        max_lessons: Lessons that one proposal may hold; those with most failures come first.
    """

    min_failures: int = 2
    min_episodes: int = 2
    min_agreement: float = 1.0
    min_share: float = 0.0
    min_lookups: int = 3
    max_lessons: int = 12

    def __post_init__(self) -> None:
        counts = (self.min_failures, self.min_episodes, self.min_lookups, self.max_lessons)
        if min(counts) < 1:
            raise UsageError(f"counts of EvidenceConfig must be 1 or more, got {counts}")
        for share in (self.min_agreement, self.min_share):
            if not 0 <= share <= 1:
                raise UsageError(f"shares of EvidenceConfig must be from 0 to 1, got {share}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSuggestion:
    """One thing to say.

    Attributes:
        rule: A rule to add, in the place of one of its kind about the same parameter; or to take
            away.
        drops: Whether it is taken away.
        basis: What it rests on, in words.
        failures: Calls that failed for it.
        episodes: Ids of the episodes of these calls, each once.
        kept: Calls that the tool took, all of which the lesson lets pass.
        confidence: Lower end of the 95% interval (Wilson) of the share of refusals that agree.
        origins: Where its texts came from.
    """

    rule: Rule
    drops: bool = False
    basis: str
    failures: int
    episodes: tuple[str, ...]
    kept: int = 0
    confidence: float = 0.0
    origins: tuple[TextOrigin, ...] = ()

    @classmethod
    def from_calls(
        cls,
        calls: Collection[ObservedCall],
        record: ToolRecord,
        *,
        basis: str,
        rule: Rule,
        against: int = 0,
        origins: tuple[TextOrigin, ...] = (),
    ) -> RuleSuggestion:
        """A lesson that calls of a tool teach.

        Args:
            calls: The failed calls behind it.
            record: All that was observed of the tool.
            basis: What it rests on, in words.
            rule: The rule to add.
            against: Refusals that speak against it.
            origins: Where its texts came from.
        """
        return cls(
            rule=rule,
            basis=basis,
            failures=len(calls),
            episodes=tuple(dict.fromkeys(call.episode_id for call in calls)),
            kept=len(record.accepted),
            confidence=confidence(len(calls), against),
            origins=origins,
        )

    @property
    def words(self) -> str:
        """What it says, for people."""
        sentence = rule_sentence(self.rule)
        return f"No longer: {sentence}" if self.drops else sentence

    def __str__(self) -> str:
        failed = _many(self.failures, "call" if self.drops else "failed call")
        where = _many(len(self.episodes), "conversation")
        kept = (
            f"; it lets all {_many(self.kept, 'accepted call')} pass"
            if self.kept > 1 and not self.drops
            else ""
        )
        return f"{self.words} {self.basis} ({failed} in {where}{kept})."


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def confidence(agreeing: int, against: int = 0) -> float:
    """How sure a share of all is, at least: the lower end of Wilson's 95% interval.

    Example:
        >>> confidence(2), confidence(20), confidence(20, 5)
        (0.34, 0.84, 0.61)
    """
    return round(wilson_interval(agreeing, agreeing + against).low, 2)


def is_enough(calls: Collection[ObservedCall], record: ToolRecord, knobs: EvidenceConfig) -> bool:
    """Whether calls are many enough, from enough episodes, and a share of all that matters."""
    episodes = {call.episode_id for call in calls}
    share = len(calls) / max(1, len(record.calls))
    return (
        len(calls) >= knobs.min_failures
        and len(episodes) >= knobs.min_episodes
        and share >= knobs.min_share
    )


def with_rule(definition: ToolDefinition, rule: Rule) -> ToolDefinition:
    """The definition with a rule, in the place of what it said of the same thing before."""
    specification = definition.specification
    others = tuple(one for one in specification.rules if subject(one) != subject(rule))
    return replace(definition, specification=replace(specification, rules=(*others, rule)))


def applied(definition: ToolDefinition, lessons: Iterable[RuleSuggestion]) -> ToolDefinition:
    """The definition with what the lessons say."""
    for lesson in lessons:
        if not lesson.drops:
            definition = with_rule(definition, lesson.rule)
            continue
        kept = tuple(rule for rule in definition.specification.rules if rule != lesson.rule)
        specification = replace(definition.specification, rules=kept)
        definition = replace(definition, specification=specification)
    return definition


def subject(rule: Rule) -> tuple[object, ...]:
    """What a rule is about: two rules about the same take each other's place."""
    if isinstance(rule, CallBefore | Condition):
        return (rule,)
    return (rule.kind, rule.parameter)


# --- From what a tool states to a rule about one of its parameters -------------------------------


_NAME = re.compile(r"[A-Za-z]\w{0,60}", re.ASCII)
_NAMED_FORMATS: Mapping[str, NamedFormat] = {name: name for name in get_args(NamedFormat)}
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_MOST_PATHS = 100
_MOST_STEPS = 2_000
_LARGEST = 1e300
_PYTHON = {"True": True, "False": False, "true": True, "false": False}


def rule_key(rule: Rule) -> str:
    """What a rule says, whatever the order of its values and the way its numbers are written.

    Example:
        >>> one = OneOf(parameter="periods", values=(36, 48))
        >>> rule_key(one) == rule_key(OneOf(parameter="periods", values=(48.0, 36)))
        True
    """
    said: dict[str, Any] = rule_to_json(rule)
    for name, value in said.items():
        said[name] = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(rule, OneOf):
        values = (int(v) if isinstance(v, float) and v.is_integer() else v for v in rule.values)
        said["values"] = sorted(canonical_json(value).decode() for value in values)
    said.pop("example", None)
    return canonical_json(said).decode()


def described_rules(definition: ToolDefinition, name: str) -> Iterator[Rule]:
    """The rules that the text of a parameter states."""
    part = definition.signature.properties.get(name)
    texts = [definition.description.parameters.get(name, "")]
    texts += [part.get("description", "")] if isinstance(part, Mapping) else []
    for text in filter(lambda text: isinstance(text, str), dict.fromkeys(texts)):
        for statement in stated_in_description(text):
            for path in value_paths(name, definition):
                rule = rule_of(statement, path, definition)
                if rule is not None:
                    yield rule


def structured(failure: ToolFailure) -> tuple[Statement, ...]:
    """What a refusal states as data: the keyword of the schema that was broken.

    Example:
        >>> structured(ToolFailure(kind="invalid_arguments", rule="", path="unit", cause="enum",
        ...                        schema_excerpt={"type": "string", "enum": ["C", "F"]}))
        (StatedSet(values=('C', 'F'), is_closed=True, start=0),)
    """
    schema, keyword = failure.schema_excerpt, failure.cause
    if failure.kind != "invalid_arguments" or schema is None or not keyword:
        return ()
    limit = schema.get(keyword)
    if keyword == "enum" and isinstance(limit, list | tuple) and all(map(_is_scalar, limit)):
        return (StatedSet(values=tuple(limit)),)
    if keyword in _BOUNDS and _is_number(limit):
        return (_range_of(schema),)
    if keyword == "pattern" and isinstance(limit, str):
        form = form_of_pattern(limit)
        return () if form is None else (form,)
    if keyword == "format" and isinstance(limit, str) and limit in _NAMED_FORMATS:
        return (StatedForm(format=_NAMED_FORMATS[limit], example=FORMAT_EXAMPLES[limit]),)
    return ()


def value_paths(name: str, definition: ToolDefinition) -> Iterator[str]:
    """The path of a parameter, and that of its items where it is a list.

    Example:
        >>> tags = ToolDefinition.from_schema("tag", "", {
        ...     "properties": {"tags": {"type": "array", "items": {"type": "string"}}}})
        >>> list(value_paths("tags", tags)), list(value_paths("colour", tags))
        (['tags[]'], [])
    """
    for path in (name, f"{name}[]"):
        ways = places(definition.signature.parameters, path).values()
        parts = [part for found in ways for part in found]
        if any(_types(part, definition) - {"array", "object"} for part in parts):
            yield path


def given_paths(arguments: JsonObject) -> tuple[str, ...]:
    """The paths of the values that arguments give, those of items once.

    Example:
        >>> given_paths({"city": "Oslo", "days": [{"n": 1}, {"n": 2}]})
        ('city', 'days[].n')
    """
    found: dict[str, None] = {}
    waiting: deque[tuple[str, Any]] = deque([("", arguments)])
    for _ in range(_MOST_STEPS):
        if not waiting or len(found) >= _MOST_PATHS:
            break
        path, value = waiting.popleft()
        if isinstance(value, Mapping):
            inside = islice(value.items(), _MOST_PATHS)
            waiting += [(f"{path}.{name}" if path else str(name), part) for name, part in inside]
        elif isinstance(value, list | tuple):
            waiting += [(f"{path}[]", item) for item in value[:_MOST_PATHS]]
        else:
            found[path] = None
    return tuple(found)


def values_of(path: str, arguments: JsonObject, definition: ToolDefinition) -> list[Any]:
    """The values that arguments give for a parameter."""
    ways = places(definition.signature.parameters, path)
    return [value for steps in ways for _, value in values_at(arguments, steps)]


def rule_of(statement: Statement, path: str, definition: ToolDefinition) -> Rule | None:
    """The rule that a statement makes for a parameter; None when it makes none.

    A bound that is itself not allowed ("greater than 0") stays one. For a whole number the next
    one is the bound, which says the same in the words that models follow best.

    Example:
        >>> wait = ToolDefinition.from_schema("wait", "", {
        ...     "properties": {"days": {"type": "integer"}}})
        >>> rule_of(StatedRange(minimum=0, above=True), "days", wait).minimum
        1
        >>> cost = ToolDefinition.from_schema("cost", "", {
        ...     "properties": {"rate": {"type": "number"}}})
        >>> rule_of(StatedRange(minimum=0, above=True), "rate", cost).exclusive_minimum
        0
        >>> rule_of(StatedSet(values=("7", "14")), "days", wait)
        OneOf(parameter='days', values=(7, 14), kind='one_of')
    """
    match statement:
        case StatedSet():
            return _one_of(statement, path, definition)
        case StatedRange():
            return _between(statement, path, _is_whole(path, definition))
        case StatedForm():
            pattern = "" if statement.format else statement.pattern
            return Form(
                parameter=path,
                pattern=pattern,
                format=statement.format,
                words=statement.words if pattern else "",
                example=statement.example,
            )
        case StatedOrder():
            return _condition(statement)
        case StatedNeed():
            return Requires(parameter=statement.parameter, others=(statement.other,))


def _one_of(stated: StatedSet, path: str, definition: ToolDefinition) -> OneOf | None:
    schema = definition.signature.parameters
    parts = [part for found in places(schema, path).values() for part in found]
    if not stated.is_closed or not parts:
        return None
    values = tuple(_typed(value, parts[0], definition) for value in stated.values)
    return OneOf(parameter=path, values=values) if all(map(_is_scalar, values)) else None


def _typed(value: Any, part: Any, definition: ToolDefinition) -> Any:
    """A value as the parameter takes it; what was read from a text may be a number."""
    if not isinstance(value, str):
        return value
    types = _types(part, definition)
    if "boolean" in types and "string" not in types:
        return _PYTHON.get(value, value)
    return coerce(value, part)


def _between(stated: StatedRange, path: str, is_whole: bool) -> Between | None:  # noqa: FBT001 - of the type
    low, high, step = stated.minimum, stated.maximum, stated.multiple_of
    if is_whole:
        low = None if low is None else _next_whole(low, above=stated.above)
        high = None if high is None else -_next_whole(-high, above=stated.below)
    low, high, step = (None if n is None else _shortest(n) for n in (low, high, step))
    if low is None and high is None and step is None and not stated.unit:
        return None
    is_above, is_below = (one and not is_whole for one in (stated.above, stated.below))
    return Between(
        parameter=path,
        minimum=None if is_above else low,
        maximum=None if is_below else high,
        exclusive_minimum=low if is_above else None,
        exclusive_maximum=high if is_below else None,
        multiple_of=step,
        unit=stated.unit,
    )


def _next_whole(bound: float, *, above: bool) -> float:
    whole = float(-(-bound // 1))
    return whole + 1 if above and whole == bound else whole


def _shortest(number: float) -> float:
    return int(number) if isfinite(number) and number == int(number) else number


def _condition(stated: StatedOrder) -> Condition | None:
    if not (_NAME.fullmatch(stated.left) and _NAME.fullmatch(stated.right)):
        return None
    word = "less than" if stated.sign == "<" else "at most"
    words = f"{stated.left} must be {word} {stated.right}"
    return Condition(expression=f"{stated.left} {stated.sign} {stated.right}", words=words)


def _range_of(schema: JsonObject) -> StatedRange:
    def bound(keyword: str) -> Any:
        return schema.get(keyword) if _is_number(schema.get(keyword)) else None

    low, above = bound("minimum"), bound("exclusiveMinimum")
    high, below = bound("maximum"), bound("exclusiveMaximum")
    is_above = above is not None and (low is None or above >= low)
    is_below = below is not None and (high is None or below <= high)
    return StatedRange(
        minimum=above if is_above else low,
        maximum=below if is_below else high,
        above=is_above,
        below=is_below,
        multiple_of=bound("multipleOf"),
    )


def _types(part: Any, definition: ToolDefinition) -> frozenset[str]:
    return possible_types(part, definition.signature.parameters)


def _is_whole(path: str, definition: ToolDefinition) -> bool:
    ways: Mapping[Any, list[Any]] = places(definition.signature.parameters, path)
    types = [_types(part, definition) for parts in ways.values() for part in parts]
    return bool(types) and all("number" not in found for found in types)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


# --- What speaks against a rule: calls that were taken, values that are right, the contract ------
# Successes alone never make a rule, but they can forbid one. That a value was taken shows that it
# is
# allowed; that another one never came up shows nothing (a closed world is not assumed).


class RuleBacktest:
    """One rule of a tool, or several, and no other, held against calls.

    Args:
        rules: The rule or rules.
        definition: The tool, with or without them.
    """

    def __init__(self, rules: Rule | tuple[Rule, ...], definition: ToolDefinition) -> None:
        rules = rules if isinstance(rules, tuple) else (rules,)
        specification = replace(definition.specification, rules=rules)
        self._ruled = replace(definition, specification=specification)
        self._checker = RuleChecker(self._ruled)

    def refuses(self, call: ObservedCall) -> bool:
        """Whether the rule would have refused a call as it was made, as far as it can be told."""
        return self._checker.refusal(call.arguments, call.earlier) is not None

    def stops(self, arguments: JsonObject, earlier: Sequence[EarlierCall] | None = None) -> bool:
        """Whether the rule would keep a call from running, once its plain slips are mended.

        ``"Burger"`` runs where a rule lists ``"BURGER"``, so that such a call, once taken, does not
        speak against the rule.
        """
        mended: JsonObject = coerce(arguments, self._ruled.parameters_schema, fill="none")
        return self._checker.refusal(mended, earlier) is not None


def is_sound(rule: Rule, definition: ToolDefinition, library: Container[str]) -> bool:
    """Whether a rule fits the contract, the worked examples and the other rules of its tool."""
    return not rule_problems(rule, with_rule(definition, rule), library)


def rejects_known(rule: Rule, definition: ToolDefinition, record: ToolRecord) -> bool:
    """Whether a rule refuses a call that the tool took, or a value that a verifier held for right.

    Verifiers list the values that are right. Values that the parameter does not take at all say
    nothing, such as the empty text for one that may be left out (BFCL).
    """
    trial = RuleBacktest(rule, definition)
    if any(trial.stops(call.arguments, call.earlier) for call in record.accepted):
        return True
    if isinstance(rule, CallBefore | Requires):
        return False  # one value says nothing about other calls or parameters
    return any(
        trial.stops({name: value})
        for name, values in record.right.items()
        for _, value in values
        if may_be(value, name, definition)
    )


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
            yield from ((rule, call) for rule in [*stops][:1])


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
    record = observed(about, library).get(name, ToolRecord())
    return tuple(chain(worked, record.accepted))


def may_be(value: Any, name: str, definition: ToolDefinition) -> bool:
    """Whether a value is one that the contract lets a parameter have."""
    part = definition.signature.properties.get(name)
    if part is None or value in ("", None):
        return False
    return fits(value, part, root=definition.signature.parameters) is not False


def allows_more(rule: Rule, other: Rule) -> bool:
    """Whether a list or range is a wider one of its kind; False where that can not be told.

    Example:
        >>> allows_more(OneOf(parameter="n", values=(1, 2, 3)), OneOf(parameter="n", values=(3, 1)))
        True
        >>> closed, open_ = Between(parameter="n", minimum=0), Between(parameter="n", minimum=1)
        >>> allows_more(closed, open_), allows_more(open_, closed), allows_more(closed, closed)
        (True, False, False)
    """
    match rule, other:
        case OneOf(), OneOf():
            return _members(other) < _members(rule)
        case Between(), Between():
            mine, yours = (_low(rule), _high(rule)), (_low(other), _high(other))
            is_wider = mine[0] <= yours[0] and mine[1] >= yours[1] and mine != yours
            is_alike = rule.measure == other.measure and rule.multiple_of == other.multiple_of
            return is_wider and is_alike
        case _:
            return False


def _members(rule: OneOf) -> set[bytes]:
    return {canonical_json(value) for value in rule.values}


def _low(rule: Between) -> tuple[float, bool]:
    """The lower bound, and whether it is itself left out."""
    bounds = ((rule.minimum, False), (rule.exclusive_minimum, True))
    return max(((n, is_open) for n, is_open in bounds if n is not None), default=(-inf, False))


def _high(rule: Between) -> tuple[float, bool]:
    """The upper bound, and whether it is itself allowed."""
    bounds = ((rule.maximum, True), (rule.exclusive_maximum, False))
    return min(((n, is_in) for n, is_in in bounds if n is not None), default=(inf, True))
