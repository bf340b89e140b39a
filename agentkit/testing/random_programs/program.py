"""``random_program``: a whole function in the composite language, from a seed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from agentkit.testing.random_programs.children import CHILDREN
from agentkit.testing.random_programs.expressions import Expressions
from agentkit.testing.random_programs.kinds import SCALARS, Kind, json_kind, json_sample
from agentkit.testing.random_programs.liveness import children_of, spelling, without_dead_calls
from agentkit.testing.random_programs.scope import PARAMETERS, Scope
from agentkit.testing.random_programs.statements import Statements, indented

LARGEST = 520
"""Syntax nodes of a program at most, safely below the limit of the language."""

DEEPEST = 18
CHILD_NAMES = {child.spelling for child in CHILDREN}


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomProgram:
    """A program and some calls of it.

    Attributes:
        seed: What it was made from.
        name: The name of the function.
        source: Its text.
        cases: Arguments to call it with; what has a default may be missing.
    """

    seed: int
    name: str
    source: str
    cases: tuple[Mapping[str, Any], ...]


def random_program(
    seed: int, *, statements: int = 22, mistakes: float = 0.006, cases: int = 3
) -> RandomProgram:
    """A random program in the composite language, over the children of ``ChildrenInUse``.

    It keeps the static rules: names are assigned before they are read, every path returns,
    conditions are not constant, results of children that change nothing are used. Types mostly
    fit, so that it runs deep; some do not, so that exceptions can be compared too.

    Args:
        seed: The same seed gives the same program.
        statements: About how many statements it has at most.
        mistakes: How often an expression is of another type than its place wants.
        cases: How many sets of arguments come with it.

    Returns:
        The program, which is valid Python as well.

    Example:
        >>> random_program(7) == random_program(7)
        True
    """
    random = Random(seed)  # noqa: S311 - reproducible programs, no secrets
    while True:
        program = _attempt(random, seed, statements=statements, mistakes=mistakes, cases=cases)
        if program is not None:
            return program


def _attempt(
    random: Random, seed: int, *, statements: int, mistakes: float, cases: int
) -> RandomProgram | None:
    scope = Scope(random)
    expressions = Expressions(random, scope, mistakes=mistakes)
    kinds = {
        name: json_kind(random)
        for name in random.sample(PARAMETERS, k=random.choice((0, 1, 2, 2, 3, 3, 4, 5)))
    }
    header, optional = _parameters(random, kinds, expressions)
    for name, kind in kinds.items():
        scope.assign(name, kind)
    body = Statements(random, scope, expressions, budget=statements).body()
    name = f"program_{seed}"
    documented = ['"""Made at random."""'] if random.random() < 0.1 else []
    text = "\n".join([f"def {name}({header}):", *indented(documented + body), ""])
    source = _spelled(random, text)
    if source is None:
        return None
    arguments = tuple(_arguments(random, kinds, optional) for _ in range(cases))
    return RandomProgram(seed=seed, name=name, source=source, cases=arguments)


def _parameters(
    random: Random, kinds: Mapping[str, Kind], expressions: Expressions
) -> tuple[str, set[str]]:
    """The text between the parentheses, and the names that have a default."""
    header, optional = [], set[str]()
    for name, kind in kinds.items():
        if (kind in SCALARS and random.random() < 0.4) or optional:
            default = kind if kind in SCALARS else random.choice(SCALARS)
            header.append(f"{name}={expressions.literal(default)}")
            optional.add(name)
        else:
            header.append(name)
    return ", ".join(header), optional


def _arguments(random: Random, kinds: Mapping[str, Kind], optional: set[str]) -> dict[str, Any]:
    given = [name for name in kinds if name not in optional or random.random() < 0.6]
    return {
        name: json_sample(random, kinds[name] if random.random() < 0.97 else "any")
        for name in given
    }


def _spelled(random: Random, text: str) -> str | None:
    """The text, sometimes as ``ast`` writes it; None when it is too large or calls no child."""
    tree = ast.parse(text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    changed = without_dead_calls(function)
    if not _fits(function):
        return None
    if not changed and random.random() < 0.75:
        return text
    try:
        return ast.unparse(tree) + "\n"
    except ValueError:  # quotes in an f-string that ``ast`` can not write
        return None if changed else text


def _fits(function: ast.FunctionDef) -> bool:
    """Whether a program is within the limits of the language and calls a child."""
    count, calls_a_child, level = 0, False, list[ast.AST]([function])
    for _ in range(DEEPEST):
        count += len(level)
        calls_a_child |= any(
            isinstance(node, ast.Call) and spelling(node.func) in CHILD_NAMES for node in level
        )
        level = [child for node in level for child in children_of(node)]
    return not level and count <= LARGEST and calls_a_child
