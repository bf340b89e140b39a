"""What the readers of one text share: limits, tools, places and the faults found so far."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.checking.sizes import too_deep
from agentkit.composites.faults import HOLE, Fault, Place
from agentkit.composites.language import BUILTINS
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.nearest import did_you_mean
from agentkit.composites.problems import SourceCode
from agentkit.composites.written import is_plain, written
from agentkit.tools.tool import Tool

ReadExpression: TypeAlias = "Callable[[Reading, Any], ir.Expression]"
Located: TypeAlias = ast.expr | ast.stmt | ast.arg | ast.keyword
"""Syntax that has a place in the text."""

_HINTS = 3
"""For how many unknown names similar tools are looked for, among any number of tools."""

_QUOTED = 60


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
    before = _lines(source)[node.lineno - 1].encode("utf-8")[: node.col_offset]
    return node.lineno, len(before.decode("utf-8", "replace")) + 1


def _lines(source: str) -> list[str]:
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


class Reading:
    """One text being read.

    Attributes:
        source: The text.
        tools: What a call may name.
        limits: Caps on the program.
        name: The function's own name; empty for a condition.
        children: The tools called so far, by their name in the library.
        faults: What is wrong so far.
        nodes: The syntax that each node was read from, by the node's ``id``.
        lost: Names that are set in what was refused.
        is_partial: Whether a statement was refused, so that the flow of the program is unknown.
    """

    def __init__(
        self,
        source: str,
        *,
        tools: Mapping[str, Tool],
        limits: CompositeLimits,
        readers: Mapping[type[ast.AST], ReadExpression],
        root: ast.expr | ast.stmt,
    ) -> None:
        self.source = source
        self.tools = tools
        self.limits = limits
        self.name = root.name if isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef) else ""
        self.children: dict[str, Tool] = {}
        self.faults: list[Fault] = []
        self.nodes: dict[int, Located] = {}
        self.lost: set[str] = set()
        self.is_partial = False
        self._root = root
        self._readers = readers
        self._foreign = readers[ast.expr]
        self._nesting = limits.nesting
        self._depth = 0
        self._hints = 0
        self._is_too_deep = False

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that are variables anywhere in the text, and parameters."""
        found: set[str] = set()
        for node in ast.walk(self._root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
        return frozenset(found)

    @cached_property
    def _keys(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of tools that the text writes in another way, by that way."""
        found: dict[str, tuple[str, ...]] = {}
        for key in self.tools:
            if not is_plain(key):
                text = written(key)
                found[text] = (*found.get(text, ()), key)
        return found

    def spelled(self, text: str) -> tuple[str, ...]:
        """The keys of tools that ``text`` can stand for, when it is none itself."""
        return self._keys.get(text, ())

    def similar(self, name: str) -> str:
        """A question that names tools and functions with a similar name, or what to do."""
        self._hints += 1
        hint = did_you_mean(name, [*self.tools, *BUILTINS]) if self._hints <= _HINTS else ""
        return hint or "Call one of the tools that you were given, or a function of the language."

    def quote(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, shortened."""
        line = _lines(self.source)[node.lineno - 1].encode("utf-8")
        ends_here = node.end_lineno == node.lineno
        text = line[node.col_offset : node.end_col_offset if ends_here else None].decode("utf-8")
        return text if len(text) <= _QUOTED and ends_here else f"{text[:_QUOTED]} ..."

    def expression(self, node: ast.expr) -> ir.Expression:
        """Read one expression; a hole when it is refused."""
        depth = self._depth
        if depth >= self._nesting:
            return self.too_deep(node)
        self._depth = depth + 1
        made = self._readers.get(type(node), self._foreign)(self, node)
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

    @staticmethod
    def is_hole(made: ir.Expression) -> bool:
        """Whether an expression stands for one that was refused."""
        return isinstance(made, ir.Name) and made.name == HOLE

    def too_deep(self, node: Located) -> ir.Name:
        """Refuse what is nested beyond the limit, once; what is in it stays unknown."""
        if not self._is_too_deep:
            self.faults.append(too_deep(node, self.limits))
        self._is_too_deep = self.is_partial = True
        return self.hole(node)

    def enter(self, node: Located) -> bool:
        """Go one level down into a block; False, with a fault, when that is too deep."""
        if self._depth >= self._nesting:
            self.too_deep(node)
            return False
        self._depth += 1
        return True

    def leave(self) -> None:
        """Come back up from a block."""
        self._depth -= 1
