"""What is wrong with a learned rule, before anybody relies on it.

A rule may come from a model, a file or a statistic over failures. It is held against the contract
that it narrows, the other rules of the tool, its worked examples, and the library.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from agentkit.composites.contracts import Expression
from agentkit.composites.rule_checker import RuleChecker
from agentkit.errors import CompositeError
from agentkit.messages import JsonObject
from agentkit.tools.canonical import same_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import close_to, value_text
from agentkit.tools.fit import fits
from agentkit.tools.patterns import why_unsafe
from agentkit.tools.rules.contradictions import contradiction, possible_types
from agentkit.tools.rules.holding import holds
from agentkit.tools.rules.malformed import is_finite, why_malformed
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    Measure,
    NamedFormat,
    OneOf,
    Requires,
    Rule,
)
from agentkit.tools.rules.sentences import scalar_text
from agentkit.tools.schema import places

MAX_VALUES = 64
"""Most values that a rule may list: a model reads them all at every turn."""

RuleProblemCode = Literal[
    "ambiguous_parameter",  # the path can be read in several ways
    "contradiction",  # no value is left
    "empty_rule",  # it says nothing
    "example_breaks_rule",  # a worked example of the tool would be refused
    "expression_unreadable",  # outside the composite language
    "format_unknown",  # no form of that name
    "malformed",  # it is no rule, or a part of it is of the wrong type
    "no_words",  # what it says can not be told to a model
    "outside_contract",  # it allows a value that the contract refuses
    "own_example",  # its example does not have its form
    "pattern_unsafe",  # no portable and quick regular expression
    "repeated_values",  # a value is listed twice
    "reversed_bounds",  # the minimum is above the maximum
    "too_many_values",  # more than MAX_VALUES
    "unknown_parameter",  # the contract does not name it
    "unknown_tool",  # the library has no such tool
    "unusable_number",  # a bound or a step that is no number to compare with
    "wrong_type",  # the parameter never takes what the rule speaks of
]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleProblem:
    """One reason against a rule.

    Attributes:
        code: What is wrong.
        message: The same in a sentence, with the names and values concerned.
        advice: What to do instead.
    """

    code: RuleProblemCode
    message: str
    advice: str


def rule_problems(
    rule: Rule, definition: ToolDefinition, library: Container[str] = ()
) -> tuple[RuleProblem, ...]:
    """What is wrong with a rule for a tool; empty when nothing is.

    Args:
        rule: The rule; whatever stands in its place is a problem, never an exception. Whether
            ``definition`` has it already makes no difference.
        definition: The tool with the other rules that are to hold.
        library: The tools that there are, by name; a ``Library`` will do.

    Example:
        >>> from agentkit.tools.rules import OneOf
        >>> loan = ToolDefinition.from_schema(
        ...     "loan", "", {"properties": {"periods": {"type": "integer"}}}
        ... )
        >>> rule_problems(OneOf(parameter="periods", values=(36, 48)), loan)
        ()
        >>> (problem,) = rule_problems(OneOf(parameter="term", values=(36,)), loan)
        >>> problem.message, problem.advice
        ('loan has no parameter term', 'It has periods.')
    """
    if why := why_malformed(rule):
        return (_malformed(why),)
    found = list(_problems(rule, definition, library))
    if not found and (problem := _breaking_example(rule, definition)):
        found.append(problem)
    return tuple(found)


def _problems(
    rule: Rule, definition: ToolDefinition, library: Container[str]
) -> Iterator[RuleProblem]:
    match rule:
        case OneOf() | Between() | Form():
            own = list(_WITHIN[rule.kind](rule))
            yield from own
            place = _place(rule.parameter, definition)
            yield from place.problems
            if not own and not place.problems:
                yield from _against_contract(rule, place, definition)
        case Requires():
            yield from _requirement(rule, definition)
        case Condition():
            yield from _condition(rule, definition)
        case CallBefore():
            yield from _order(rule, definition, library)


# --- what a rule says of itself -------------------------------------------------------------------


def _values(rule: OneOf) -> Iterator[RuleProblem]:
    count = len(rule.values)
    if not count:
        yield _empty("it lists no value")
    if count > MAX_VALUES:
        yield RuleProblem(
            code="too_many_values",
            message=f"it lists {count} values, more than {MAX_VALUES}",
            advice="State the form of the values or a look-up that gives them instead.",
        )
        return  # comparing each with each would take long
    repeated = [
        v for at, v in enumerate(rule.values) if any(same_json(v, w) for w in rule.values[:at])
    ]
    if repeated:
        yield RuleProblem(
            code="repeated_values",
            message=f"it lists {value_text(repeated[0])} twice",
            advice="List each value once.",
        )
    numbers = (v for v in rule.values if isinstance(v, float))
    yield from _not_finite(numbers)


def _range(rule: Between) -> Iterator[RuleProblem]:
    lows, highs = rule.lows, rule.highs
    if rule.measure != "value":
        yield from _count(rule)
    limits = [*lows, *highs, *([] if rule.multiple_of is None else [rule.multiple_of])]
    if not limits and not rule.unit:
        yield _empty("it has no bound, no step and no unit")
    yield from _not_finite(limits)
    if rule.multiple_of is not None and rule.multiple_of <= 0:
        yield _unusable(rule.multiple_of, "as a step; give one above 0")
    if lows and highs and max(lows) > min(highs):
        yield RuleProblem(
            code="reversed_bounds",
            message=f"the minimum {_number(max(lows))} is above the maximum {_number(min(highs))}",
            advice="Exchange them.",
        )


def _count(rule: Between) -> Iterator[RuleProblem]:
    """What can not be said of a length or of a number of items."""
    if rule.measure not in get_args(Measure):
        yield _malformed(f"its measure is {rule.measure!r:.60}, not value, length or items")
    elif not (rule.lows or rule.highs) and rule.unit:
        yield _empty("a count has bounds, and no unit")
    for number in (*rule.lows, *rule.highs):
        if is_finite(number) and (number < 0 or number % 1):
            yield _unusable(number, "as a count; give a whole number that is not below 0")
    others = (rule.exclusive_minimum, rule.exclusive_maximum, rule.multiple_of)
    if any(part is not None for part in others):
        yield _malformed("a length or number of items has a minimum and a maximum, and no others")


def _form(rule: Form) -> Iterator[RuleProblem]:
    if bool(rule.pattern) == bool(rule.format):
        yield _empty(f"it has {'both' if rule.pattern else 'neither'} a pattern and a format")
    if rule.format and rule.format not in get_args(NamedFormat):
        yield RuleProblem(
            code="format_unknown",
            message=f"there is no format {rule.format!r}",
            advice=f"Use one of {', '.join(get_args(NamedFormat))}, or a pattern.",
        )
    if rule.pattern and (why := why_unsafe(rule.pattern)):
        yield RuleProblem(
            code="pattern_unsafe",
            message=f"the pattern {rule.pattern[:80]!r} can not be used: {why}",
            advice="Use characters, classes such as [A-Z], and counts such as {2} or {1,8}.",
        )
        return
    if rule.pattern and not rule.words.strip():
        yield _wordless("the pattern")
    if rule.example and not holds(rule, rule.example):
        yield RuleProblem(
            code="own_example",
            message=f"its example {rule.example!r:.80} does not have the form",
            advice="Give an example that has it.",
        )


_WITHIN: dict[str, Callable[[Any], Iterator[RuleProblem]]] = {
    "one_of": _values,
    "between": _range,
    "form": _form,
}


def _malformed(why: str) -> RuleProblem:
    return RuleProblem(
        code="malformed", message=why, advice="give rules in the form of agentkit.tools.rules"
    )


def _not_finite(numbers: Iterable[float]) -> Iterator[RuleProblem]:
    for number in numbers:
        if not is_finite(number):
            yield _unusable(number, "as a bound or value; leave it out")


def _number(number: float) -> str:
    return scalar_text(number) if isinstance(number, int) else str(number)


def _unusable(number: float, what: str) -> RuleProblem:
    return RuleProblem(
        code="unusable_number",
        message=f"{_number(number)} can not be used",
        advice=f"It makes no sense {what}.",
    )


def _empty(why: str) -> RuleProblem:
    return RuleProblem(
        code="empty_rule", message=f"the rule says nothing: {why}", advice="Fill it in or drop it."
    )


def _wordless(what: str) -> RuleProblem:
    return RuleProblem(
        code="no_words",
        message=f"there are no words for {what}",
        advice="Say it in words: that is what a hosted model reads.",
    )


# --- against the contract -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where the parameter of a rule is; or why it is nowhere."""

    parts: tuple[Any, ...] = ()
    problems: tuple[RuleProblem, ...] = ()


def _place(parameter: str, definition: ToolDefinition) -> _Place:
    ways = places(definition.signature.parameters, parameter)
    if not ways:
        return _Place(problems=(_unknown(parameter, definition),))
    if len(ways) > 1:
        problem = RuleProblem(
            code="ambiguous_parameter",
            message=f"{parameter} of {definition.name} can be read in {len(ways)} ways",
            advice="A rule can not speak of a name that holds a dot or brackets.",
        )
        return _Place(problems=(problem,))
    (parts,) = ways.values()
    return _Place(parts=tuple(parts))


def _unknown(parameter: str, definition: ToolDefinition) -> RuleProblem:
    names = tuple(definition.signature.properties)
    near = close_to(parameter, names) or names[:8]
    return RuleProblem(
        code="unknown_parameter",
        message=f"{definition.name} has no parameter {parameter}",
        advice=f"It has {', '.join(near)}." if near else "It has none.",
    )


def _against_contract(
    rule: OneOf | Between | Form, place: _Place, definition: ToolDefinition
) -> Iterator[RuleProblem]:
    contract = definition.signature.parameters
    if isinstance(rule, OneOf):
        refused = _refused(rule, place, contract)
        if refused is not None:
            yield refused
            return
    elif problem := _wrong_type(rule, place, contract):
        yield problem
        return
    on_it = [
        other
        for other in definition.specification.rules
        if isinstance(other, OneOf | Between | Form)
        and not why_malformed(other)
        and other.parameter == rule.parameter
        and other != rule
    ]
    if why := contradiction([*on_it, rule], place.parts, contract):
        yield RuleProblem(
            code="contradiction",
            message=f"no value is left for {rule.parameter} of {definition.name}: {why}",
            advice="Drop the rule, or the rule that it contradicts.",
        )


def _refused(rule: OneOf, place: _Place, contract: JsonObject) -> RuleProblem | None:
    for value in rule.values:
        if all(fits(value, part, root=contract) is False for part in place.parts):
            return RuleProblem(
                code="outside_contract",
                message=f"the schema does not allow {value_text(value)} for {rule.parameter}",
                advice="List only values that the schema allows; a rule can not widen it.",
            )
    return None


def _wrong_type(rule: Between | Form, place: _Place, contract: JsonObject) -> RuleProblem | None:
    what, wanted = "number", {"integer", "number"}
    if isinstance(rule, Form) or rule.measure == "length":
        what, wanted = "text", {"string"}
    elif rule.measure == "items":
        what, wanted = "list", {"array"}
    if any(possible_types(part, contract) & wanted for part in place.parts):
        return None
    return RuleProblem(
        code="wrong_type",
        message=f"{rule.parameter} is never a {what}",
        advice="Use a kind of rule that speaks of the type that the schema declares.",
    )


def _requirement(rule: Requires, definition: ToolDefinition) -> Iterator[RuleProblem]:
    if not rule.others or rule.parameter in rule.others:
        yield _empty("it names no other parameter" if not rule.others else "it names itself")
    for name in (rule.parameter, *rule.others):
        if name not in definition.signature.properties:
            yield _unknown(name, definition)


def _condition(rule: Condition, definition: ToolDefinition) -> Iterator[RuleProblem]:
    if not rule.words.strip():
        yield _wordless(f"the condition `{rule.expression[:80]}`")
    try:
        expression = Expression.parse(rule.expression, tuple(definition.signature.properties))
    except CompositeError as error:
        problem = error.problems[0] if error.problems else None
        yield RuleProblem(
            code="expression_unreadable",
            message=f"`{rule.expression[:80]}` can not be read: {problem or error}",
            advice=problem.advice if problem else "Use the composite language.",
        )
        return
    if not expression.reads:
        yield _empty(f"`{rule.expression[:80]}` reads no parameter")


def _order(
    rule: CallBefore, definition: ToolDefinition, library: Container[str]
) -> Iterator[RuleProblem]:
    if rule.tool == definition.name:
        yield _empty("the tool would have to be called before itself")
    elif rule.tool not in library:
        yield RuleProblem(
            code="unknown_tool",
            message=f"there is no tool {rule.tool!r:.80} in the library",
            advice="Name a tool as the library does.",
        )
    if rule.parameter:
        yield from _place(rule.parameter, definition).problems


def _breaking_example(rule: Rule, definition: ToolDefinition) -> RuleProblem | None:
    """A worked example is a call that went well, so a rule that refuses it is wrong."""
    alone = replace(definition.specification, rules=(rule,))
    checker = RuleChecker(replace(definition, specification=alone))
    for at, example in enumerate(definition.worked_calls):
        arguments: Any = example.arguments
        if not isinstance(arguments, Mapping):
            continue  # the example is no call, which is not the fault of the rule
        if failure := checker.refusal(arguments):
            return RuleProblem(
                code="example_breaks_rule",
                message=f"example {at} of {definition.name} breaks it: {failure.rule}",
                advice="Widen the rule until the calls that went well are allowed.",
            )
    return None
