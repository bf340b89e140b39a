"""The text of a mined composite, as a program: one call after the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.codec import literal_of
from agentkit.evolution.mining import naming
from agentkit.evolution.mining.patterns import Link, Pattern

Slot: TypeAlias = tuple[int, str]
"""An argument of a pattern that comes from outside: index of the call, name of the argument."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramWriter:
    """Writes the body of a program that makes the calls of a pattern.

    Attributes:
        pattern: The calls.
        filled: What stands for each argument from outside.
        orders: For each tool the declared order of its parameters.
        fed: For each call a word for what its result is used as; mostly empty.
    """

    pattern: Pattern
    filled: Mapping[Slot, ir.Expression]
    orders: Mapping[str, Sequence[str]]
    fed: Sequence[str]

    def body(self, returned: Sequence[int], keys: Sequence[str]) -> ir.Block:
        """The statements.

        Args:
            returned: Indexes of the calls whose results are returned.
            keys: Names of these results in the returned object; empty when there is one.
        """
        variables = self._variables()
        last = len(self.pattern.steps) - 1
        body = [
            ir.Assign(targets=(variables[at],), value=self._call(at, variables))
            for at in range(last)
        ]
        if list(returned) == [last]:
            return (*body, ir.Return(value=self._call(last, variables)))
        body.append(ir.Assign(targets=(variables[last],), value=self._call(last, variables)))
        return (*body, ir.Return(value=_returned(returned, keys, variables)))

    def _variables(self) -> list[str]:
        parameters = [part.name for part in self.filled.values() if isinstance(part, ir.Name)]
        taken = [*written_names(self.pattern), *parameters]
        variables: list[str] = []
        for name in naming.variable_names([step.tool for step in self.pattern.steps], self.fed):
            variables.append(naming.identifier(name, taken=[*taken, *variables]))
        return variables

    def _call(self, at: int, variables: Sequence[str]) -> ir.Call:
        step = self.pattern.steps[at]
        links = dict(step.arguments)
        names = arguments_in_order(step.arguments, self.orders.get(step.tool, ()))
        arguments = [
            ir.Argument(name=name, value=self._value(at, name, links[name], variables))
            for name in names
        ]
        return ir.Call(child=step.tool, arguments=tuple(arguments))

    def _value(self, at: int, name: str, link: Link, variables: Sequence[str]) -> ir.Expression:
        if link is None:
            return self.filled[at, name]
        value: ir.Expression = ir.Name(name=variables[link.step])
        for step in link.path:
            value = ir.Index(value=value, index=literal_of(step))
        return ir.Builtin(function=link.cast, arguments=(value,)) if link.cast else value


def _returned(
    returned: Sequence[int], keys: Sequence[str], variables: Sequence[str]
) -> ir.Expression:
    if not keys:
        return ir.Name(name=variables[returned[0]])
    return ir.DictLiteral(
        keys=tuple(ir.Constant(value=key) for key in keys),
        values=tuple(ir.Name(name=variables[call]) for call in returned),
    )


def arguments_in_order(arguments: Sequence[tuple[str, Link]], declared: Sequence[str]) -> list[str]:
    """Names of the arguments, declared ones first in their order."""
    rank = {name: at for at, name in enumerate(declared)}
    return sorted((name for name, _ in arguments), key=lambda n: (rank.get(n, len(rank)), n))


def written_names(pattern: Pattern) -> list[str]:
    """Names that the children take in the text of a program: variables are called otherwise."""
    names: dict[str, None] = {}
    for step in pattern.steps:
        written = re.sub(r"\W", "_", step.tool, flags=re.ASCII)
        names |= dict.fromkeys((step.tool, step.tool.partition(".")[0], written))
    return list(names)
