"""L3 of a composite: its pre- and postconditions, read when it is composed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.composites.authored import Authored
from agentkit.composites.faults import Fault
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.parser import parse_expression
from agentkit.composites.problems import SourceCode
from agentkit.errors import CompositeError, SourceProblem

RESULT = "result"
"""The name by which a postcondition speaks of the returned value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inside:
    """A place inside a condition.

    Attributes:
        node: The syntax of the condition, a text.
        line: Line inside that text, from 1.
        column: Column in that line, from 1.
    """

    node: ast.AST
    line: int
    column: int


def condition_faults(
    authored: Authored, parameters: Sequence[str], limits: CompositeLimits
) -> Iterator[Fault]:
    """What is wrong with the conditions of a composite."""
    if RESULT in parameters and authored.post:
        yield Fault(
            authored.node("post", 0),
            "parameter",
            f"the parameter {RESULT!r} has the name by which postconditions mean the result",
            "Rename the parameter.",
        )
    for keyword in ("pre", "post"):
        names = (*parameters, RESULT) if keyword == "post" else tuple(parameters)
        conditions: tuple[str, ...] = getattr(authored, keyword)
        for at, condition in enumerate(conditions):
            node = authored.node(keyword, at)
            for problem in _problems(condition, names, limits):
                yield Fault(
                    Inside(node=node, line=problem.line, column=problem.column),
                    _code(problem),
                    f"in the {keyword}condition {condition!r}: {problem.message}",
                    problem.advice,
                )


def _code(problem: SourceProblem) -> SourceCode:
    code: SourceCode = problem.code  # type: ignore[assignment]  # the parser's codes are SourceCode
    return code


def _problems(
    condition: str, names: Sequence[str], limits: CompositeLimits
) -> tuple[SourceProblem, ...]:
    try:
        parse_expression(condition, names, limits=limits)
    except CompositeError as error:
        return error.problems
    return ()
