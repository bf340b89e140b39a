"""What the readers of one text share: limits, tools, places and the faults found so far."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.tools.composite import ir
from agentkit.tools.composite.faults import Fault, Place
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.composite.problems import SourceCode
from agentkit.tools.tool import Tool

ReadExpression: TypeAlias = "Callable[[Reading, Any], ir.Expression]"
Located: TypeAlias = ast.expr | ast.stmt | ast.arg | ast.keyword
"""Syntax that has a place in the text."""

HOLE = "?"
"""The name that stands for an expression that was refused; no rule looks at it again."""


class Positions(Mapping[int, Place]):
    """Line and column of each node by its ``id``, worked out when asked for."""

    def __init__(self, nodes: Mapping[int, Located], source: str) -> None:
        self._nodes = nodes
        self._source = source

    def __getitem__(self, key: int) -> Place:
        return place_of(self._nodes[key], self._source)

    def __iter__(self) -> Iterator[int]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def place_of(node: Located, source: str) -> Place:
    """Where syntax starts; Python counts columns in bytes from 0, we in characters from 1."""
    if source.isascii():
        return node.lineno, node.col_offset + 1
    line = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")[node.lineno - 1]
    before = line.encode("utf-8")[: node.col_offset]
    return node.lineno, len(before.decode("utf-8", "replace")) + 1


class Reading:
    """One text being read.

    Attributes:
        tools: What a call may name.
        name: The function's own name; empty for a condition.
        children: The tools called so far, by their name in the library.
        faults: What is wrong so far.
        nodes: The syntax that each node was read from, by the node's ``id``.
        is_partial: Whether a statement was refused, so that the flow of the program is unknown.
    """

    def __init__(
        self,
        *,
        tools: Mapping[str, Tool],
        limits: CompositeLimits,
        readers: Mapping[type[ast.AST], ReadExpression],
    ) -> None:
        self.tools = tools
        self.limits = limits
        self.name = ""
        self.variables: set[str] = set()
        self.children: dict[str, Tool] = {}
        self.faults: list[Fault] = []
        self.nodes: dict[int, Located] = {}
        self.is_partial = False
        self._readers = readers
        self._depth = 0

    def expression(self, node: ast.expr) -> ir.Expression:
        """Read one expression; a hole when it is refused."""
        depth = self._depth
        if depth >= self.limits.nesting:
            return self.too_deep(node)
        self._depth = depth + 1
        made = self._readers[type(node)](self, node)
        self._depth = depth
        self.nodes[id(made)] = node
        return made

    def expressions(self, nodes: Sequence[ast.expr]) -> tuple[ir.Expression, ...]:
        """Read several expressions."""
        return tuple([self.expression(node) for node in nodes])

    def refuse(self, node: Located, code: SourceCode, message: str, advice: str) -> ir.Name:
        """Note a fault; gives the hole that stands for what was refused."""
        self.faults.append(Fault(node, code, message, advice))
        return self.hole(node)

    def hole(self, node: Located) -> ir.Name:
        """What stands for an expression of which nothing more is known."""
        made = ir.Name(name=HOLE)
        self.nodes[id(made)] = node
        return made

    def too_deep(self, node: Located) -> ir.Name:
        """Refuse what is nested beyond the limit."""
        return self.refuse(
            node,
            "too_large",
            f"nested more than {self.limits.nesting} deep",
            "Assign inner parts to variables first; use a dict literal and .get() for a long "
            "chain of elif.",
        )

    def enter(self, node: Located) -> bool:
        """Go one level down into a block; False, with a fault, when that is too deep."""
        if self._depth >= self.limits.nesting:
            self.too_deep(node)
            return False
        self._depth += 1
        return True

    def leave(self) -> None:
        """Come back up from a block."""
        self._depth -= 1
