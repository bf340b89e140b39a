"""What is wrong with a learned rule, before anybody relies on it.

A rule may come from a model, a file or a statistic over failures. It is held against the contract
that it narrows, the other rules of the tool, its worked examples, and the library.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from agentkit.composites.contracts import Expression
from agentkit.composites.rule_checker import RuleChecker
from agentkit.errors import CompositeError
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_finite, same_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import close_to, value_text
from agentkit.tools.patterns import why_unsafe
from agentkit.tools.rules.checking import holds
from agentkit.tools.rules.contradictions import contradiction, possible_types
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
    why_malformed,
)
from agentkit.tools.rules.rendering import scalar_text
from agentkit.tools.schema import places
from agentkit.tools.schema_validator import fits

_OnValue: TypeAlias = OneOf | Between | Form
"""The rules that speak of the value of one parameter."""

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
        >>> from agentkit.tools import OneOf
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
        return (_problem("malformed", why),)
    match rule:
        case OneOf() | Between() | Form():
            found = [*_of_itself(rule), *_misplaced(rule.parameter, definition)]
            found = found or [*_against_contract(rule, definition)]
        case Requires():
            found = [*_requirement(rule, definition)]
        case Condition():
            found = [*_condition(rule, definition)]
        case CallBefore():
            found = [*_order(rule, definition, library)]
    return tuple(found or _breaking_example(rule, definition))


_ADVICE: Mapping[RuleProblemCode, str] = {
    "ambiguous_parameter": "A rule can not speak of a name that holds a dot or brackets.",
    "contradiction": "Drop the rule, or the rule that it contradicts.",
    "empty_rule": "Fill it in or drop it.",
    "example_breaks_rule": "Widen the rule until the calls that went well are allowed.",
    "expression_unreadable": "Use the composite language.",
    "format_unknown": f"Use one of {', '.join(get_args(NamedFormat))}, or a pattern.",
    "malformed": "Give rules in the form of agentkit.tools.rules.",
    "no_words": "Say it in words: that is what a hosted model reads.",
    "outside_contract": "List only values that the schema allows; a rule can not widen it.",
    "own_example": "Give an example that has it.",
    "pattern_unsafe": "Use characters, classes such as [A-Z], and counts such as {2} or {1,8}.",
    "repeated_values": "List each value once.",
    "reversed_bounds": "Exchange them.",
    "too_many_values": "State the form of the values or a look-up that gives them instead.",
    "unknown_parameter": "It has none.",
    "unknown_tool": "Name a tool as the library does.",
    "unusable_number": "Leave it out.",
    "wrong_type": "Use a kind of rule that speaks of the type that the schema declares.",
}


def _problem(code: RuleProblemCode, message: str, advice: str = "") -> RuleProblem:
    return RuleProblem(code=code, message=message, advice=advice or _ADVICE[code])


# --- what a rule says of itself -------------------------------------------------------------------


def _of_itself(rule: _OnValue) -> Iterator[RuleProblem]:
    match rule:
        case OneOf():
            yield from _values(rule.values)
        case Between():
            yield from _range(rule)
        case Form():
            yield from _form(rule)


def _values(values: Sequence[Any]) -> Iterator[RuleProblem]:
    if not values:
        yield _says_nothing("it lists no value")
    if len(values) > MAX_VALUES:
        yield _problem("too_many_values", f"it lists {len(values)} values, more than {MAX_VALUES}")
        return  # comparing each with each would take long
    repeated = [v for at, v in enumerate(values) if any(same_json(v, w) for w in values[:at])]
    if repeated:
        yield _problem("repeated_values", f"it lists {value_text(repeated[0])} twice")
    yield from _not_finite(value for value in values if isinstance(value, float))


def _range(rule: Between) -> Iterator[RuleProblem]:
    lows, highs, step = rule.lows, rule.highs, rule.multiple_of
    if rule.measure != "value":
        yield from _count(rule)
    limits = [*lows, *highs, *([] if step is None else [step])]
    if not limits and not rule.unit:
        yield _says_nothing("it has no bound, no step and no unit")
    yield from _not_finite(limits)
    if step is not None and step <= 0:
        yield _unusable(step, "It makes no sense as a step; give one above 0.")
    if lows and highs and (low := max(lows)) > (high := min(highs)):
        shown = f"the minimum {_number(low)} is above the maximum {_number(high)}"
        yield _problem("reversed_bounds", shown)


def _count(rule: Between) -> Iterator[RuleProblem]:
    """What can not be said of a length or of a number of items."""
    if rule.measure not in get_args(Measure):
        why = f"its measure is {rule.measure!r:.60}, not value, length or items"
        yield _problem("malformed", why)
    elif not (rule.lows or rule.highs) and rule.unit:
        yield _says_nothing("a count has bounds, and no unit")
    for number in (*rule.lows, *rule.highs):
        if is_finite(number) and (number < 0 or number % 1):
            advice = "It makes no sense as a count; give a whole number that is not below 0."
            yield _unusable(number, advice)
    others = (rule.exclusive_minimum, rule.exclusive_maximum, rule.multiple_of)
    if any(part is not None for part in others):
        why = "a length or number of items has a minimum and a maximum, and no others"
        yield _problem("malformed", why)


def _form(rule: Form) -> Iterator[RuleProblem]:
    if bool(rule.pattern) == bool(rule.format):
        yield _says_nothing(
            f"it has {'both' if rule.pattern else 'neither'} a pattern and a format"
        )
    if rule.format and rule.format not in get_args(NamedFormat):
        yield _problem("format_unknown", f"there is no format {rule.format!r}")
    if rule.pattern and (why := why_unsafe(rule.pattern)):
        yield _problem(
            "pattern_unsafe", f"the pattern {rule.pattern[:80]!r} can not be used: {why}"
        )
        return
    if rule.pattern and not rule.words.strip():
        yield _problem("no_words", "there are no words for the pattern")
    if rule.example and not holds(rule, rule.example):
        yield _problem("own_example", f"its example {rule.example!r:.80} does not have the form")


def _says_nothing(why: str) -> RuleProblem:
    return _problem("empty_rule", f"the rule says nothing: {why}")


def _not_finite(numbers: Iterable[float]) -> Iterator[RuleProblem]:
    for number in numbers:
        if not is_finite(number):
            yield _unusable(number, "It makes no sense as a bound or value; leave it out.")


def _unusable(number: float, advice: str) -> RuleProblem:
    return _problem("unusable_number", f"{_number(number)} can not be used", advice)


def _number(number: float) -> str:
    return scalar_text(number) if isinstance(number, int) else str(number)


# --- against the contract -------------------------------------------------------------------------


def _misplaced(parameter: str, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """Why the parameter of a rule is nowhere, or in several places."""
    ways = places(definition.signature.parameters, parameter)
    if not ways:
        yield _unknown(parameter, definition)
    elif len(ways) > 1:
        shown = f"{parameter} of {definition.name} can be read in {len(ways)} ways"
        yield _problem("ambiguous_parameter", shown)


def _unknown(parameter: str, definition: ToolDefinition) -> RuleProblem:
    names = tuple(definition.signature.properties)
    near = close_to(parameter, names) or names[:8]
    advice = f"It has {', '.join(near)}." if near else ""
    return _problem("unknown_parameter", f"{definition.name} has no parameter {parameter}", advice)


def _against_contract(rule: _OnValue, definition: ToolDefinition) -> Iterator[RuleProblem]:
    contract = definition.signature.parameters
    (parts,) = places(contract, rule.parameter).values()
    if problem := _outside(rule, parts, contract):
        yield problem
        return
    rules = [
        other
        for other in definition.specification.rules
        if isinstance(other, OneOf | Between | Form)
        and not why_malformed(other)
        and other.parameter == rule.parameter
        and other != rule
    ]
    if why := contradiction([*rules, rule], parts, contract):
        shown = f"no value is left for {rule.parameter} of {definition.name}: {why}"
        yield _problem("contradiction", shown)


def _outside(rule: _OnValue, parts: Sequence[Any], contract: JsonObject) -> RuleProblem | None:
    """A value, or a type, that the contract does not allow."""
    if isinstance(rule, OneOf):
        for value in rule.values:
            if all(fits(value, part, root=contract) is False for part in parts):
                why = f"the schema does not allow {value_text(value)} for {rule.parameter}"
                return _problem("outside_contract", why)
        return None
    what, wanted = "number", {"integer", "number"}
    if isinstance(rule, Form) or rule.measure == "length":
        what, wanted = "text", {"string"}
    elif rule.measure == "items":
        what, wanted = "list", {"array"}
    if any(possible_types(part, contract) & wanted for part in parts):
        return None
    return _problem("wrong_type", f"{rule.parameter} is never a {what}")


def _requirement(rule: Requires, definition: ToolDefinition) -> Iterator[RuleProblem]:
    if not rule.others or rule.parameter in rule.others:
        yield _says_nothing("it names itself" if rule.others else "it names no other parameter")
    for name in (rule.parameter, *rule.others):
        if name not in definition.signature.properties:
            yield _unknown(name, definition)


def _condition(rule: Condition, definition: ToolDefinition) -> Iterator[RuleProblem]:
    shown = f"`{rule.expression[:80]}`"
    if not rule.words.strip():
        yield _problem("no_words", f"there are no words for the condition {shown}")
    try:
        expression = Expression.parse(rule.expression, tuple(definition.signature.properties))
    except CompositeError as error:
        problem = error.problems[0] if error.problems else None
        why = f"{shown} can not be read: {problem or error}"
        yield _problem("expression_unreadable", why, problem.advice if problem else "")
        return
    if not expression.reads:
        yield _says_nothing(f"{shown} reads no parameter")


def _order(
    rule: CallBefore, definition: ToolDefinition, library: Container[str]
) -> Iterator[RuleProblem]:
    if rule.tool == definition.name:
        yield _says_nothing("the tool would have to be called before itself")
    elif rule.tool not in library:
        yield _problem("unknown_tool", f"there is no tool {rule.tool!r:.80} in the library")
    if rule.parameter:
        yield from _misplaced(rule.parameter, definition)


def _breaking_example(rule: Rule, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """A worked example is a call that went well, so a rule that refuses it is wrong."""
    alone = replace(definition.specification, rules=(rule,))
    checker = RuleChecker(replace(definition, specification=alone))
    for at, example in enumerate(definition.worked_calls):
        arguments: Any = example.arguments
        if not isinstance(arguments, Mapping):
            continue  # the example is no call, which is not the fault of the rule
        if failure := checker.refusal(arguments):
            shown = f"example {at} of {definition.name} breaks it: {failure.rule}"
            yield _problem("example_breaks_rule", shown)
            return
