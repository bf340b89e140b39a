"""Expressions over values, the pre- and postconditions of tools (L3) made of them, learned rules.

A condition is an expression of the composite language over the parameters; a postcondition may
also read ``result``. One that cannot be read or evaluated counts as violated, with the reason:
a contract is never true by accident. Conditions in words (``Specification.text``) never gate.

A rule was learned from evidence and may be less than the whole truth, so it refuses only what it
can judge: a condition whose parameters are not given, or that cannot be evaluated, is no reason,
nor is an earlier call that nobody knows of. Before anybody relies on a rule it is held against the
contract that it narrows, the other rules of the tool, its worked examples, and the library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, NoReturn, get_args

from agentkit.composites.guards import ACTIVATION, METER, OUTERMOST, Frame, Meter, fail
from agentkit.composites.interpreter import FrameLayout, Lowering
from agentkit.composites.language import names_in
from agentkit.composites.parser import parse_expression
from agentkit.composites.problems import CONTRACT_LIMITS, CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError, ContractViolation, UsageError
from agentkit.messages import JsonObject, ToolFailure
from agentkit.tools.canonical import is_finite, same_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import close_to, path_text, short_repr, value_text
from agentkit.tools.patterns import why_unsafe
from agentkit.tools.rules.checking import holds, missing_call, nearest_allowed
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    EarlierCall,
    Form,
    Measure,
    NamedFormat,
    OneOf,
    Requires,
    Rule,
    Takes,
    why_malformed,
)
from agentkit.tools.rules.rendering import demand, scalar_text
from agentkit.tools.schema import (
    JSON_TYPES,
    Steps,
    allowed_types,
    excerpt,
    for_same_value,
    places,
    values_at,
)
from agentkit.tools.schema_validator import fits

_LIMITS = CompositeLimits()


class Expression:
    """An expression of the composite language without calls of tools.

    It is lowered once, so that it may be evaluated for every row of a table.

    Attributes:
        text: As it was written.
        names: The names that it may read.
        reads: Those that it does read.

    Example:
        >>> large = Expression.parse('row["amount"] > 10 and row["region"] == "EU"', names=["row"])
        >>> large.evaluate({"row": {"amount": 12, "region": "EU"}})
        True
    """

    __slots__ = ("_cost", "_evaluate", "_places", "_program", "_template", "names", "reads", "text")

    def __init__(self, program: ast.expr, *, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = tuple(names)
        slots = FrameLayout(names)
        lowering = Lowering(slots)
        self._evaluate = lowering.lower(program)
        self._cost = lowering.nodes
        used = names_in(program)
        self.reads = tuple(name for name in self.names if name in used)
        self._places = tuple((name, slots.of(name)) for name in self.reads)
        self._program = program
        self._template: Frame = [None] * slots.size
        self._template[ACTIVATION] = OUTERMOST

    @classmethod
    def parse(
        cls, text: str, names: Sequence[str], *, limits: CompositeLimits | None = None
    ) -> Expression:
        """Read an expression.

        Args:
            text: One expression of the composite language.
            names: The names that it may read.
            limits: Caps on the text.

        Raises:
            CompositeError: It is outside the language; ``problems`` says where and why.
        """
        return cls(parse_expression(text, names, limits=limits), text=text, names=names)

    def evaluate(self, values: Mapping[str, Any], *, limits: CompositeLimits | None = None) -> Any:
        """The value of the expression.

        Args:
            values: By name, at least what the expression reads; JSON data.
            limits: Caps on this evaluation.

        Raises:
            CompositeRunError: An operation failed, or a limit was reached.
            UsageError: A name that the expression reads has no value.
        """
        frame = self._template.copy()
        meter = frame[METER] = Meter(limits or _LIMITS)
        for name, place in self._places:
            try:
                frame[place] = values[name]
            except KeyError:
                self._complain(name, values)
        meter.fuel -= self._cost
        if meter.fuel < 0:
            fail(frame, self._program, meter.out_of_fuel())
        return self._evaluate(frame)

    def _complain(self, name: str, values: Mapping[str, Any]) -> NoReturn:
        names = ", ".join(map(repr, values)) or "nothing"
        message = f"the expression `{self.text}` reads {name!r}, but was given {names}"
        raise UsageError(message) from None


# --- conditions of tools --------------------------------------------------------------------------


def check_pre(definition: ToolDefinition, arguments: Mapping[str, Any]) -> ContractViolation | None:
    """The first precondition that does not hold for the arguments of a call; None when all do.

    A parameter that is left out has the default of its schema. A composite keeps the conditions of
    its children ready; this reads them again at each call.

    Args:
        definition: The tool.
        arguments: By parameter name; JSON data.

    Example:
        >>> from agentkit.tools.decorator import tool
        >>> @tool(pre=["b != 0"])
        ... def div(a: float, b: float) -> float:
        ...     '''A quotient.'''
        ...     return a / b
        >>> check_pre(div.definition, {"a": 1, "b": 2})
        >>> print(check_pre(div.definition, {"a": 1, "b": 0}))
        div: the precondition `b != 0` does not hold for b = 0
    """
    return Conditions(definition).before(arguments)


def check_post(
    definition: ToolDefinition, arguments: Mapping[str, Any], result: Any
) -> ContractViolation | None:
    """The first postcondition that does not hold for a call and its result; None when all do."""
    return Conditions(definition).after(arguments, result)


class Conditions:
    """The conditions of one tool, read at the first check and kept."""

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._names = tuple(definition.signature.properties)
        self._defaults = _defaults(definition)

    @cached_property
    def _pre(self) -> Sequence[tuple[str, Expression | str]]:
        return _read(self._definition.specification.pre, self._names)

    @cached_property
    def _post(self) -> Sequence[tuple[str, Expression | str]]:
        return _read(self._definition.specification.post, (*self._names, "result"))

    def before(
        self, arguments: Mapping[str, Any], *, path: Sequence[str] = ()
    ) -> ContractViolation | None:
        """The first precondition that does not hold; ``path`` ends in the tool's own name."""
        return self._first("precondition", self._pre, {**self._defaults, **arguments}, path)

    def after(
        self, arguments: Mapping[str, Any], result: Any, *, path: Sequence[str] = ()
    ) -> ContractViolation | None:
        """The first postcondition that does not hold."""
        values = {**self._defaults, **arguments, "result": result}
        return self._first("postcondition", self._post, values, path)

    def _first(
        self,
        kind: Literal["precondition", "postcondition"],
        conditions: Sequence[tuple[str, Expression | str]],
        values: Mapping[str, Any],
        path: Sequence[str],
    ) -> ContractViolation | None:
        for text, expression in conditions:
            read = values if isinstance(expression, str) else expression.reads
            shown = {name: values[name] for name in read if name in values}
            reason = _broken(expression, values, shown)
            if reason:
                name = self._definition.name
                path = tuple(path) or (name,)
                return ContractViolation(
                    f"{' → '.join(path)}: the {kind} `{text}` {reason}",
                    code=kind,
                    tool_name=name,
                    condition=text,
                    values=shown,
                    path=path,
                )
        return None


def _defaults(definition: ToolDefinition) -> JsonObject:
    """The defaults of omitted parameters, as far as the contract gives them."""
    return {
        name: schema["default"]
        for name, schema in definition.signature.properties.items()
        if isinstance(schema, dict) and "default" in schema  # true and false are schemas as well
    }


def _read(texts: Iterable[str], names: Sequence[str]) -> Sequence[tuple[str, Expression | str]]:
    """Conditions, lowered; one that cannot be read has the reason instead."""
    read: list[tuple[str, Expression | str]] = []
    for text in texts:
        try:
            read.append((text, Expression.parse(text, names)))
        except CompositeError as error:
            problem = error.problems[0] if error.problems else error
            read.append((text, f"cannot be read: {problem}"))
    return read


def _broken(
    expression: Expression | str, values: Mapping[str, Any], shown: Mapping[str, Any]
) -> str:
    """Why a condition does not hold, as the end of a sentence; empty when it does."""
    if isinstance(expression, str):
        return expression
    try:
        if expression.evaluate(values, limits=CONTRACT_LIMITS):
            return ""
    except (CompositeRunError, UsageError) as error:
        return f"cannot be evaluated: {error}"
    assignments = ", ".join(f"{name} = {short_repr(value)}" for name, value in shown.items())
    return f"does not hold for {assignments}" if assignments else "does not hold"


# --- one call -------------------------------------------------------------------------------------

_Path = tuple[str | int, ...]


class _Broken(NamedTuple):
    """A rule that a call breaks: in a sentence, where, and what would be allowed."""

    sentence: str
    path: _Path = ()
    nearest: tuple[str, ...] = ()


class RuleChecker:
    """The learned rules of one tool, made ready once.

    Args:
        definition: The tool.

    Attributes:
        definition: The tool.
        wanted_before: The tools that must be called before it.

    Example:
        >>> from agentkit.tools.definition import Signature, Specification
        >>> from agentkit.tools.rules import OneOf
        >>> loan = ToolDefinition(
        ...     name="loan",
        ...     signature=Signature(parameters={"properties": {"periods": {"type": "integer"}}}),
        ...     specification=Specification(
        ...         rules=(OneOf(parameter="periods", values=(36, 48, 60)),)
        ...     ),
        ... )
        >>> failure = RuleChecker(loan).refusal({"periods": 40})
        >>> failure.rule, failure.nearest
        ('`periods` must be one of 36, 48, 60, got the number 40', ('36', '48', '60'))
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self._rules = definition.specification.rules
        self._defaults = _defaults(definition)
        self.wanted_before = frozenset(
            rule.tool for rule in self._rules if isinstance(rule, CallBefore)
        )
        parameters = definition.known_signature.parameters
        self._steps: dict[str, Steps] = {}  # of each parameter that the contract has
        self._expressions: dict[str, Expression] = {}  # of each condition that can be read
        for rule in self._rules:
            if isinstance(rule, Condition):
                self._read(rule.expression)
            elif not isinstance(rule, Requires) and (ways := places(parameters, rule.parameter)):
                self._steps[rule.parameter] = next(iter(ways))

    def _read(self, expression: str) -> None:
        names = tuple(self.definition.known_signature.properties)
        with suppress(CompositeError):  # it refuses nothing; ``rule_problems`` tells
            self._expressions[expression] = Expression.parse(expression, names)

    def refusal(
        self, arguments: JsonObject, earlier: Sequence[EarlierCall] | None = None
    ) -> ToolFailure | None:
        """The first rule that a call breaks, as a failure that the model may correct.

        Args:
            arguments: As they satisfy the contract.
            earlier: The calls that succeeded before this one; None when they are not known, and
                then nothing is said about them.
        """
        for rule in self._rules:
            broken = self._broken(rule, arguments, earlier)
            if broken is not None:
                return self._failure(rule, broken)
        return None

    def _broken(
        self, rule: Rule, arguments: JsonObject, earlier: Sequence[EarlierCall] | None
    ) -> _Broken | None:
        match rule:
            case OneOf() | Between() | Form():
                for path, value in self._values(rule.parameter, arguments):
                    if not holds(rule, value):
                        shown = f"`{path_text(path)}` {demand(rule)}, got {value_text(value)}"
                        return _Broken(shown, path, nearest_allowed(rule, value))
            case Requires() if rule.parameter in arguments:
                for name in rule.others:
                    if name not in arguments:
                        shown = f"`{name}` must be given too when `{rule.parameter}` is given"
                        return _Broken(shown, (name,))
            case Takes(required=True) if rule.parameter not in arguments:
                return _Broken(f"`{rule.parameter}` must be given", (rule.parameter,))
            case Condition():
                return self._unmet(rule, arguments)
            case CallBefore() if earlier is not None:
                values = self._values(rule.parameter, arguments)
                missing = missing_call(rule, values, earlier)
                return None if missing is None else _Broken(*missing)
        return None

    def _values(self, parameter: str, arguments: JsonObject) -> list[tuple[_Path, Any]]:
        """The values of a parameter with their paths; none of one that the contract lacks."""
        steps = self._steps.get(parameter)
        return [] if steps is None else list(values_at(arguments, steps))

    def _unmet(self, rule: Condition, arguments: JsonObject) -> _Broken | None:
        expression = self._expressions.get(rule.expression)
        if expression is None:
            return None
        values = {**self._defaults, **arguments}
        try:
            if expression.evaluate(values, limits=CONTRACT_LIMITS):
                return None
        except (CompositeRunError, UsageError):  # a parameter is not given, or is not a number
            return None
        assignments = " and ".join(
            f"{name} = {_value_shown(values[name])}" for name in expression.reads
        )
        return _Broken(f"{rule.words.rstrip('.')}, got {assignments}", expression.reads[:1])

    def _failure(self, rule: Rule, broken: _Broken) -> ToolFailure:
        has_schema = bool(broken.path) and not isinstance(rule, CallBefore)
        offered = self.definition.parameters_schema
        return ToolFailure(
            kind="contract_violated",
            rule=broken.sentence,
            path=path_text(broken.path),
            schema_excerpt=excerpt(offered, broken.path) if has_schema else None,
            nearest=broken.nearest,
            cause=rule.kind,
        )


def _value_shown(value: Any) -> str:
    return value_text(value).removeprefix("the number ").removeprefix("the string ")


# --- what is wrong with a rule --------------------------------------------------------------------

MAX_VALUES = 64
"""Most values that a rule may list: a model reads them all at every turn."""

_ADVICE: Mapping[str, str] = {
    "ambiguous_parameter": "A rule cannot speak of a name that holds a dot or brackets.",
    "code_declares": "Declare the parameter in the code.",
    "contradiction": "Drop the rule, or the rule that it contradicts.",
    "empty_rule": "Fill it in or drop it.",
    "example_breaks_rule": "Widen the rule until the calls that went well are allowed.",
    "expression_unreadable": "Use the composite language.",
    "format_unknown": f"Use one of {', '.join(get_args(NamedFormat))}, or a pattern.",
    "malformed": "Give rules in the form of agentkit.tools.rules.",
    "no_words": "Say it in words: that is what a hosted model reads.",
    "outside_contract": "List only values that the schema allows; a rule cannot widen it.",
    "own_example": "Give an example that has it.",
    "pattern_unsafe": "Use characters, classes such as [A-Z], and counts such as {2} or {1,8}.",
    "repeated_values": "List each value once.",
    "reversed_bounds": "Exchange them.",
    "too_many_values": "State the form of the values or a look-up that gives them instead.",
    "unknown_parameter": "It has none.",
    "unknown_tool": "Name a tool as the library does.",
    "unusable_number": "It makes no sense as a bound or value; leave it out.",
    "wrong_type": "Use a kind of rule that speaks of the type that the schema declares.",
}
"""Problems of a rule, and how to fix them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleProblem:
    """One reason against a rule.

    Attributes:
        code: What is wrong.
        message: The same in a sentence, with the names and values concerned.
        advice: What to do instead.
    """

    code: str
    message: str
    advice: str


def rule_problems(
    rule: Rule, definition: ToolDefinition, library: Container[str] = ()
) -> tuple[RuleProblem, ...]:
    """The problems of a rule for a tool; empty when it is valid.

    Args:
        rule: The rule; anything else in its place is a problem, never an exception. Whether
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
        case OneOf(values=values):
            found = [*_values(values), *_misplaced(rule.parameter, definition)]
        case Between():
            found = [*_range(rule), *_misplaced(rule.parameter, definition)]
        case Form():
            found = [*_form(rule), *_misplaced(rule.parameter, definition)]
        case Requires():
            found = [*_requirement(rule, definition)]
        case Condition():
            found = [*_condition(rule, definition)]
        case CallBefore():
            found = [*_order(rule, definition, library)]
        case Takes():
            found = [*_discovery(rule, definition)]
    if not found and isinstance(rule, OneOf | Between | Form):
        found = [*_against_contract(rule, definition)]
    return tuple(found or _breaking_example(rule, definition))


def _problem(code: str, message: str, advice: str = "") -> RuleProblem:
    return RuleProblem(code=code, message=message, advice=advice or _ADVICE[code])


# --- validity of a rule itself --------------------------------------------------------------------


def _values(values: Sequence[Any]) -> Iterator[RuleProblem]:
    if not values:
        yield _empty_rule("it lists no value")
    if len(values) > MAX_VALUES:
        yield _problem("too_many_values", f"it lists {len(values)} values, more than {MAX_VALUES}")
        return  # comparing each with each would take long
    repeated = [v for at, v in enumerate(values) if any(same_json(v, w) for w in values[:at])]
    if repeated:
        yield _problem("repeated_values", f"it lists {value_text(repeated[0])} twice")
    yield from _unusable(one for one in values if isinstance(one, float) and not is_finite(one))


def _range(rule: Between) -> Iterator[RuleProblem]:
    lows, highs, step = rule.lows, rule.highs, rule.multiple_of
    limits = [*lows, *highs, *([] if step is None else [step])]
    if rule.measure != "value":
        yield from _count(rule)
    elif not limits and not rule.unit:
        yield _empty_rule("it has no bound, no step and no unit")
    yield from _unusable(one for one in limits if not is_finite(one))
    if step is not None and step <= 0:
        yield from _unusable([step])
    if lows and highs and (low := max(lows)) > (high := min(highs)):
        shown = f"the minimum {_number(low)} is above the maximum {_number(high)}"
        yield _problem("reversed_bounds", shown)


def _count(rule: Between) -> Iterator[RuleProblem]:
    """Problems of a rule about a length or a number of items."""
    bounds = [*rule.lows, *rule.highs]
    others = (rule.exclusive_minimum, rule.exclusive_maximum, rule.multiple_of)
    if rule.measure not in get_args(Measure):
        why = f"its measure is {rule.measure!r:.60}, not value, length or items"
        yield _problem("malformed", why)
    elif any(part is not None for part in others):
        why = "a length or number of items has a minimum and a maximum, and no others"
        yield _problem("malformed", why)
    elif not bounds:
        yield _empty_rule("a count has bounds")
    yield from _unusable(one for one in bounds if is_finite(one) and (one < 0 or one % 1))


def _form(rule: Form) -> Iterator[RuleProblem]:
    if bool(rule.pattern) == bool(rule.format):
        both = "both" if rule.pattern else "neither"
        yield _empty_rule(f"it has {both} a pattern and a format")
    if rule.format and rule.format not in get_args(NamedFormat):
        yield _problem("format_unknown", f"there is no format {rule.format!r}")
    if rule.pattern and (why := why_unsafe(rule.pattern)):
        shown = f"the pattern {rule.pattern[:80]!r} cannot be used: {why}"
        yield _problem("pattern_unsafe", shown)
        return
    if rule.pattern and not rule.words.strip():
        yield _problem("no_words", "there are no words for the pattern")
    if rule.example and not holds(rule, rule.example):
        yield _problem("own_example", f"its example {rule.example!r:.80} does not have the form")


def _empty_rule(why: str) -> RuleProblem:
    return _problem("empty_rule", f"the rule says nothing: {why}")


def _unusable(numbers: Iterable[float]) -> Iterator[RuleProblem]:
    for number in numbers:
        yield _problem("unusable_number", f"{_number(number)} cannot be used")


def _number(number: float) -> str:
    return scalar_text(number) if isinstance(number, int) else str(number)


# --- against the contract -------------------------------------------------------------------------


def _misplaced(parameter: str, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """Why the parameter of a rule is nowhere, or in several places."""
    ways = places(definition.known_signature.parameters, parameter)
    if not ways:
        yield _unknown(parameter, definition)
    elif len(ways) > 1:
        shown = f"{parameter} of {definition.name} can be read in {len(ways)} ways"
        yield _problem("ambiguous_parameter", shown)


def _unknown(parameter: str, definition: ToolDefinition) -> RuleProblem:
    names = tuple(definition.known_signature.properties)
    near = close_to(parameter, names) or names[:8]
    advice = f"It has {', '.join(near)}." if near else ""
    return _problem("unknown_parameter", f"{definition.name} has no parameter {parameter}", advice)


_MEASURED: Mapping[Measure, tuple[str, set[str], str, str]] = {
    "value": ("number", {"integer", "number"}, "minimum", "maximum"),
    "length": ("text", {"string"}, "minLength", "maxLength"),
    "items": ("list", {"array"}, "minItems", "maxItems"),
}
"""For each measure: what it measures, its JSON types, and the keywords of its bounds."""


def _against_contract(
    rule: OneOf | Between | Form, definition: ToolDefinition
) -> Iterator[RuleProblem]:
    contract = definition.known_signature.parameters
    (parts,) = places(contract, rule.parameter).values()
    if isinstance(rule, OneOf):
        for value in rule.values:
            if all(fits(value, part, root=contract) is False for part in parts):
                why = f"the schema does not allow {value_text(value)} for {rule.parameter}"
                yield _problem("outside_contract", why)
                return
    else:
        what, types, *_ = _MEASURED["length" if isinstance(rule, Form) else rule.measure]
        if not any(allowed_types(part, root=contract) & types for part in parts):
            yield _problem("wrong_type", f"{rule.parameter} is never a {what}")
            return
    rules = [
        other
        for other in definition.specification.rules
        if isinstance(other, OneOf | Between | Form)
        and not why_malformed(other)
        and other.parameter == rule.parameter
        and other != rule
    ]
    if why := _contradiction([*rules, rule], parts, contract):
        shown = f"no value is left for {rule.parameter} of {definition.name}: {why}"
        yield _problem("contradiction", shown)


def _contradiction(
    rules: Sequence[OneOf | Between | Form], parts: Sequence[Any], root: JsonObject
) -> str:
    """Why no value is left for a parameter of which ``parts`` are the alternatives; else empty.

    Listed values are tried one by one, and bounds are compared; steps and patterns are not.
    """
    together = [[*for_same_value(part, root, "allOf")] for part in parts]
    lists: list[Sequence[Any]] = [rule.values for rule in rules if isinstance(rule, OneOf)]
    listed = [
        next((found for one in schemas if (found := _own_values(one)) is not None), None)
        for schemas in together
    ]
    if listed and None not in listed:
        lists.append([value for values in listed for value in values or ()])
    for values in lists:
        if not any(
            any(fits(value, part, root=root) is not False for part in parts)
            and all(holds(rule, value) for rule in rules)
            for value in values
        ):
            return "no listed value is allowed by all that must hold"
    for measure, (what, _, *keywords) in _MEASURED.items():
        own = [rule for rule in rules if isinstance(rule, Between) and rule.measure == measure]
        if own and all(_is_empty(own, schemas, *keywords) for schemas in together):
            return f"no {what} lies within all the bounds"
    return ""


def _own_values(part: JsonObject) -> list[Any] | None:
    if "const" in part:
        return [part["const"]]
    members = part.get("enum")
    return members if isinstance(members, list) else None


def _is_empty(
    rules: Sequence[Between], schemas: Sequence[JsonObject], minimum: str, maximum: str
) -> bool:
    """Whether the bounds of rules and schemas leave nothing."""
    lows = [low for rule in rules for low in rule.lows] + [one.get(minimum) for one in schemas]
    highs = [high for rule in rules for high in rule.highs] + [one.get(maximum) for one in schemas]
    above, below = (
        [one for one in bounds if isinstance(one, int | float) and is_finite(one)]
        for bounds in (lows, highs)
    )
    return bool(above and below) and max(above) > min(below)


def _requirement(rule: Requires, definition: ToolDefinition) -> Iterator[RuleProblem]:
    if not rule.others or rule.parameter in rule.others:
        yield _empty_rule("it names itself" if rule.others else "it names no other parameter")
    for name in (rule.parameter, *rule.others):
        if name not in definition.known_signature.properties:
            yield _unknown(name, definition)


def _condition(rule: Condition, definition: ToolDefinition) -> Iterator[RuleProblem]:
    shown = f"`{rule.expression[:80]}`"
    if not rule.words.strip():
        yield _problem("no_words", f"there are no words for the condition {shown}")
    try:
        expression = Expression.parse(rule.expression, (*definition.known_signature.properties,))
    except CompositeError as error:
        problem = error.problems[0] if error.problems else None
        why = f"{shown} cannot be read: {problem or error}"
        yield _problem("expression_unreadable", why, problem.advice if problem else "")
        return
    if not expression.reads:
        yield _empty_rule(f"{shown} reads no parameter")


def _order(
    rule: CallBefore, definition: ToolDefinition, library: Container[str]
) -> Iterator[RuleProblem]:
    if rule.tool == definition.name:
        yield _empty_rule("the tool would have to be called before itself")
    elif rule.tool not in library:
        yield _problem("unknown_tool", f"there is no tool {rule.tool!r:.80} in the library")
    if rule.parameter:
        yield from _misplaced(rule.parameter, definition)


_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.ASCII)


def _discovery(rule: Takes, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """Only what nobody declared is there to be discovered."""
    name, is_known = rule.parameter, rule.parameter in definition.signature.properties
    if _NAME.fullmatch(name) is None:
        yield _problem("malformed", f"{name!r:.80} is no name of a parameter")
    elif is_declared_by_code(definition):
        shown = f"the code of {definition.name} declares its parameters, and no call adds {name}"
        yield _problem("code_declares", shown)
    elif not places(with_rules_alone(definition, (rule,)).known_signature.parameters, name):
        yield _problem("outside_contract", f"the schema has no room for a parameter {name}")
    elif strange := [one for one in rule.types if one.rstrip("[]") not in JSON_TYPES]:
        yield _problem("malformed", f"{strange[0]!r:.80} is no type")
    elif is_known and not rule.types and not rule.required:
        yield _empty_rule(f"the schema has {name}")


def with_rules_alone(definition: ToolDefinition, rules: Iterable[Rule]) -> ToolDefinition:
    """The tool with these rules alone; discovered parameters stay, and demand nothing."""
    rules = tuple(rules)
    stated = {one.parameter for one in rules if isinstance(one, Takes)}
    known = (one for one in definition.specification.rules if isinstance(one, Takes))
    left = (replace(one, required=False) for one in known if one.parameter not in stated)
    specification = replace(definition.specification, rules=(*left, *rules))
    return replace(definition, specification=specification)


def is_declared_by_code(definition: ToolDefinition) -> bool:
    """Whether code of the project declares the parameters, so that there is none to discover."""
    return definition.is_composite or definition.origin.kind in {"function", "pydantic"}


def _breaking_example(rule: Rule, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """A worked example is a call that went well, so a rule that refuses it is wrong."""
    checker = RuleChecker(with_rules_alone(definition, (rule,)))
    for at, example in enumerate(definition.worked_calls):
        arguments: Any = example.arguments
        if not isinstance(arguments, Mapping):
            continue  # the example is not a call, which is not the fault of the rule
        if failure := checker.refusal(arguments):
            shown = f"example {at} of {definition.name} breaks it: {failure.rule}"
            yield _problem("example_breaks_rule", shown)
            return
