"""Faults found in a program, before they are given a place in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentkit.composites.problems import SourceCode
from agentkit.errors import CompositeError, SourceProblem

_SHOWN = 10
"""Problems that the message of an error spells out; ``CompositeError.problems`` has them all."""

HOLE = "?"
"""The name that stands for an expression that was refused; no rule looks at it again."""

Place = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one node.

    Attributes:
        node: The node of the program or of the syntax tree, or where it stands in the text.
        code: What is wrong.
        message: The same in a sentence.
        advice: What to write instead.
    """

    node: object
    code: SourceCode
    message: str
    advice: str


def placed(faults: Iterable[Fault], place: Callable[[object], Place]) -> tuple[SourceProblem, ...]:
    """Faults as problems with line and column, in the order of the text, each once."""
    problems = {
        SourceProblem(
            code=fault.code, message=fault.message, advice=fault.advice, line=line, column=column
        ): None
        for fault in faults
        for line, column in (place(fault.node),)
    }
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def refusal(name: str, problems: tuple[SourceProblem, ...]) -> CompositeError:
    """The error that carries the problems of one program, with the first of them in its text."""
    what = f"the composite {name!r}" if name else "the composite"
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{what} has {count}:", *map(str, problems[:_SHOWN])]
    if len(problems) > _SHOWN:
        lines.append(f"and {len(problems) - _SHOWN} more")
    return CompositeError("\n".join(lines), problems=problems, tool_name=name or None)
