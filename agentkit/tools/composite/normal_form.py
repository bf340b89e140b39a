"""The form of a program that its author's choice of names does not change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentkit.tools.composite import ir


def normal_form(program: ir.Program) -> ir.Program:
    """``program`` with its parameters and variables called ``v0``, ``v1``, ... as they come.

    Two programs that differ in these names only have one normal form; two that do anything else
    in another order have two. The names of children, and of their arguments, stay.

    Example:
        >>> from agentkit.tools.composite.codec import program_digest
        >>> from agentkit.tools.composite.parser import parse
        >>> from agentkit.tools.composite.render import render
        >>> one = parse("def double_all(prices): return [2 * p for p in prices]", {}).program
        >>> two = parse("def twice(xs): return [2 * x for x in xs]", {}).program
        >>> print(render(normal_form(one)), end="")
        def composite(v0):
            return [2 * v1 for v1 in v0]
        >>> program_digest(normal_form(one)) == program_digest(normal_form(two))
        True
    """
    made: ir.Program = _Renaming().node(program)
    return made


class _Renaming:
    """Gives names in the order in which they are met; each comprehension has names of its own."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._count = 0

    def node(self, node: Any) -> Any:
        match node:
            case ir.Name(name=name):
                return ir.Name(name=self._name(name))
            case ir.Parameter(name=name):
                return replace(node, name=self._name(name))
            case ir.Comprehension():
                return self._comprehension(node)
            case ir.Assign(targets=targets) | ir.For(targets=targets):
                renamed = replace(node, targets=tuple(map(self._name, targets)))
                return ir.with_parts(renamed, self.node)
            case ir.Update(target=target):
                return ir.with_parts(replace(node, target=self._name(target)), self.node)
            case _:
                return ir.with_parts(node, self.node)

    def _comprehension(self, node: ir.Comprehension) -> ir.Comprehension:
        source = self.node(node.source)
        outside = self._names
        self._names = {**outside, **{target: self._fresh() for target in node.targets}}
        renamed = replace(
            node,
            targets=tuple(map(self._name, node.targets)),
            source=source,
            element=self.node(node.element),
            key=None if node.key is None else self.node(node.key),
            conditions=tuple(self.node(condition) for condition in node.conditions),
        )
        self._names = outside
        return renamed

    def _name(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = self._fresh()
        return self._names[name]

    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count - 1}"
