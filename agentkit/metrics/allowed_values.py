"""Calls against lists of allowed values, the way the Berkeley leaderboard (BFCL) judges them.

A gold call names a tool and, for each argument, the values that are right. The rules are those of
BFCL's AST checker (Patil et al., "The Berkeley Function Calling Leaderboard", ICML 2025; package
``bfcl_eval`` 2026.3.23), stated here in full:

* A value must be of the declared type to begin with; an integer is taken for a number, a number
  is not taken for an integer, nothing else is converted. A parameter without a declared type
  expects a string. A value of another type still counts when it is of the type of the first
  allowed value: gold names a variable, say, where a number is declared. It is then compared to the
  letter, and so is every value when the first allowed one is not of the declared type.
* Strings are equal when they are so without spaces, without the signs ``, . / - _ * ^``, without
  case, and with both kinds of quotes taken for one.
* Lists are equal element by element, in order. An element must be of the declared item type, or
  of the type that the first allowed element has; here an integer is not taken for a number.
* For an object, the allowed values of each key are listed again inside it, and a key that gold
  does not have may not be given; lists of objects are compared one by one. Further down, values
  are compared to the letter.
* ``""`` among the allowed values means that the argument, or the key, may be left out; an argument
  that the schema requires may not. All others must be given, and nothing else may be. Where a list
  may be left out, an empty one is right too.
* Several calls match in any order.
* In the Java and JavaScript categories, text is read as source text by the declared type first
  (``Language``; ``agentkit_bench.bfcl_values`` has them).

Where upstream's verdict would be an accident, ours is another one:

* Calls are assigned to gold calls so that as many as possible match, where upstream takes the
  first that fits and may then fail the rest. Verdicts therefore do not depend on the order in
  which a model wrote parallel calls.
* Gold that no call could match (``gold_problems``) is told apart from a wrong answer.
* A single option that is not in a list is that option; upstream takes the letters of a text.
* Tuples count as lists, and nothing raises: an integer beyond any float is a wrong type where a
  number is declared.

``docs/agentkit-bench.md`` tells how often that happens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentkit.errors import UsageError
from agentkit.messages import ToolCall
from agentkit.metrics.argument_types import Language
from agentkit.metrics.call_rules import (
    AllowedCall,
    CallRule,
    DeclaredArguments,
    GoldProblem,
    Mismatch,
    MismatchKind,
    call_rule,
    unreadable,
)
from agentkit.tools.definition import ToolDefinition

__all__ = [
    "AllowedCall",
    "AllowedValuesResult",
    "GoldCalls",
    "GoldProblem",
    "Mismatch",
    "MismatchKind",
    "UnmatchedCall",
    "gold_problems",
    "match_allowed_values",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmatchedCall:
    """A gold call that no call matched.

    Attributes:
        expected: Its index among the gold calls.
        nearest: Index of the unmatched call that came closest; None when none was left.
        mismatches: All that is wrong with the nearest call.
    """

    expected: int
    nearest: int | None = None
    mismatches: tuple[Mismatch, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedValuesResult:
    """How calls compare to gold calls.

    Attributes:
        pairs: Index of gold call and call of each match.
        unmatched: Gold calls without a match, with the reasons.
        spurious: Indexes of calls that matched no gold call.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    unmatched: tuple[UnmatchedCall, ...] = ()
    spurious: tuple[int, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every gold call was made, and no other call."""
        return not self.unmatched and not self.spurious


class GoldCalls:
    """Gold calls, prepared to be compared with the calls of many answers.

    Args:
        expected: The gold calls.
        definitions: The tools, for the declared types of the gold calls' arguments.
        language: What the values are written in; None for plain JSON.
    """

    __slots__ = ("_declared", "_problems", "_rules", "expected", "unreadable")

    def __init__(
        self,
        expected: Sequence[AllowedCall],
        definitions: Iterable[ToolDefinition],
        *,
        language: Language | None = None,
    ) -> None:
        self.expected = tuple(expected)
        wanted = {gold.name for gold in expected}
        known = {one.name: one for one in definitions if one.name in wanted}
        self.unreadable = tuple(
            problem
            for at, gold in enumerate(expected)
            if (problem := unreadable(at, gold, known.get(gold.name)))
        )
        """Gold calls that no call can be compared with."""
        self._rules: tuple[CallRule, ...] = ()
        self._declared: dict[str, DeclaredArguments] = {}
        if not self.unreadable:
            self._declared = {
                name: DeclaredArguments.of(definition, language)
                for name, definition in known.items()
            }
            self._rules = tuple([call_rule(gold, self._declared[gold.name]) for gold in expected])
        self._problems: tuple[GoldProblem, ...] | None = None

    @property
    def problems(self) -> tuple[GoldProblem, ...]:
        """Why no calls at all could match; empty when some could."""
        if self._problems is None:
            met = [problem for at, rule in enumerate(self._rules) for problem in rule.problems(at)]
            self._problems = (*self.unreadable, *met)
        return self._problems

    def match(self, calls: Sequence[ToolCall]) -> AllowedValuesResult:
        """Compare the calls of one answer with the gold calls.

        Raises:
            UsageError: There are ``unreadable`` gold calls.
        """
        if self.unreadable:
            reasons = "; ".join(map(str, self.unreadable))
            raise UsageError(f"{reasons}; see gold_problems for what else is wrong")
        answer = _Answer(calls, self._declared)
        rules = self._rules
        pairs = _assignment([answer.fitting(rule) for rule in rules])
        taken = set(pairs.values())
        spurious = tuple([at for at in range(len(calls)) if at not in taken])
        return AllowedValuesResult(
            pairs=tuple(sorted(pairs.items())),
            unmatched=tuple(
                [
                    answer.unmatched(at, rule, spurious)
                    for at, rule in enumerate(rules)
                    if at not in pairs
                ]
            ),
            spurious=spurious,
        )


class _Answer:
    """The calls of one answer, whose arguments are read once for all gold calls."""

    __slots__ = ("_calls", "_given")

    def __init__(
        self, calls: Sequence[ToolCall], declared: Mapping[str, DeclaredArguments]
    ) -> None:
        self._calls = calls
        self._given = [
            declared[call.name].read(call) if call.name in declared else None for call in calls
        ]

    def fitting(self, rule: CallRule) -> list[int]:
        """Indexes of the calls that are a gold call."""
        name = rule.name
        return [
            at
            for at, (call, given) in enumerate(zip(self._calls, self._given, strict=True))
            if given is not None and call.name == name and rule.fits(given)
        ]

    def unmatched(self, expected: int, rule: CallRule, left: Sequence[int]) -> UnmatchedCall:
        """A gold call with the reasons why the nearest of the calls that are left is not it."""
        if not left:
            return UnmatchedCall(expected=expected)
        same_tool = [at for at in left if self._calls[at].name == rule.name] or left[:1]
        nearest, distance = same_tool[0], self._distance(rule, same_tool[0])
        for at in same_tool[1:]:
            if distance == 1:  # none of them fits, so none is nearer
                break
            if (other := self._distance(rule, at, below=distance)) < distance:
                nearest, distance = at, other
        mismatches = rule.mismatches(self._calls[nearest], self._given[nearest])
        return UnmatchedCall(expected=expected, nearest=nearest, mismatches=mismatches)

    def _distance(self, rule: CallRule, at: int, below: float = math.inf) -> int:
        given = self._given[at]
        if given is None or self._calls[at].name != rule.name:
            return 1
        return rule.distance(given, below)


def match_allowed_values(
    calls: Sequence[ToolCall],
    expected: Sequence[AllowedCall],
    definitions: Iterable[ToolDefinition],
    *,
    language: Language | None = None,
) -> AllowedValuesResult:
    """Compare calls with gold calls by BFCL's rules (see the module's text).

    Args:
        calls: What the model called, values as it wrote them.
        expected: The gold calls.
        definitions: The tools, for the declared types of the gold calls' arguments.
        language: What the values are written in; None for plain JSON.

    Returns:
        The best assignment of calls to gold calls, and the reasons for what is left over.

    Raises:
        UsageError: A gold call names a tool that is not among the definitions, or has no list of
            allowed values for an argument. ``gold_problems`` tells beforehand.

    Example:
        >>> book = ToolDefinition.from_schema(
        ...     "book",
        ...     "Book a table.",
        ...     {"properties": {"day": {"type": "string"}, "seats": {"type": "integer"}}},
        ... )
        >>> gold = AllowedCall(name="book", allowed={"day": ["April 1, 2026"], "seats": [2, ""]})
        >>> call = ToolCall(call_id="1", name="book", arguments={"day": "april 1 2026"})
        >>> match_allowed_values([call], [gold], [book]).passed
        True
        >>> late = ToolCall(call_id="1", name="book", arguments={"day": "May 1", "seats": 2})
        >>> print(match_allowed_values([late], [gold], [book]).unmatched[0].mismatches[0])
        argument 'day': wrong value, got 'May 1', allowed ['April 1, 2026']
    """
    return GoldCalls(expected, definitions, language=language).match(calls)


def gold_problems(
    expected: Sequence[AllowedCall],
    definitions: Iterable[ToolDefinition],
    *,
    language: Language | None = None,
) -> tuple[GoldProblem, ...]:
    """Why no calls at all could match gold calls; empty when some could.

    A verdict on gold calls with problems says nothing about the model.

    Args:
        expected: The gold calls.
        definitions: The tools.
        language: Of the values; None for plain JSON.

    Example:
        >>> gold = AllowedCall(name="book", allowed={"day": ["Monday"]})
        >>> print(*gold_problems([gold], []))
        gold call 0 names the tool 'book', which is not among the definitions
    """
    return GoldCalls(expected, definitions, language=language).problems


def _assignment(fitting: Sequence[Sequence[int]]) -> dict[int, int]:
    """A largest assignment of rows to columns that fit (augmenting paths, Kuhn 1955)."""
    row_of: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column in fitting[row]:
            if column not in tried:
                tried.add(column)
                if column not in row_of or place(row_of[column], tried):
                    row_of[column] = row
                    return True
        return False

    for row in range(len(fitting)):
        place(row, set())
    return {row: column for column, row in row_of.items()}
