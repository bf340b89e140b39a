"""Takes dead assignments out of a random program, because the language refuses dead calls.

A variable is live where a later statement may need its value; what only feeds dead variables is
dead as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentkit.testing.random_programs.children import CHILDREN

Live = frozenset[str]
READERS = {child.spelling for child in CHILDREN if not child.writes}
WRITERS = {child.spelling for child in CHILDREN if child.writes}
NOTHING: Live = frozenset()


@dataclass(frozen=True, slots=True)
class _Loop:
    """Where the jumps of a loop lead."""

    after: Live = NOTHING
    head: Live = NOTHING


@dataclass(slots=True)
class _Liveness:
    """One pass from the end to the start; ``dead`` collects by identity."""

    dead: dict[int, ast.stmt] = field(default_factory=dict)
    _known: dict[int, tuple[Live, Live]] = field(default_factory=dict)

    def _names(self, expression: ast.expr) -> Live:
        return self._read(expression)[0]

    def calls(self, node: ast.stmt) -> Live:
        """What an assignment calls."""
        assert isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        assert node.value is not None
        return self._read(node.value)[1]

    def _read(self, expression: ast.expr) -> tuple[Live, Live]:
        """The names in an expression, and the spellings of what it calls."""
        found = self._known.get(id(expression))
        if found is None:
            names, called, waiting = set(), set(), [expression]
            while waiting:
                node = waiting.pop()
                if isinstance(node, ast.Name):
                    names.add(node.id)
                    continue
                if isinstance(node, ast.Call):
                    called.add(spelling(node.func))
                waiting += children_of(node)
            found = self._known[id(expression)] = frozenset(names), frozenset(called)
        return found

    def block(self, body: Sequence[ast.stmt], after: Live, loop: _Loop) -> Live:
        for statement in reversed(body):
            after = self._statement(statement, after, loop)
        return after

    def _statement(self, node: ast.stmt, after: Live, loop: _Loop) -> Live:
        before = after
        match node:
            case ast.Return(value=ast.expr() as value):
                before = self._names(value)
            case ast.If(test=test, body=then, orelse=otherwise):
                branches = self.block(then, after, loop) | self.block(otherwise, after, loop)
                before = self._names(test) | branches
            case ast.For():
                before = self._for(node, after)
            case ast.Break():
                before = loop.after
            case ast.Continue():
                before = loop.head
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                before = self._assignment(node, after)
            case ast.Expr(value=value):
                before = after | self._names(value)
        return before

    def _for(self, node: ast.For, after: Live) -> Live:
        head, before = after, None
        while head != before:
            before = head
            inside = self.block(node.body, head, _Loop(after=after, head=head))
            head = head | (inside - _targets(node.target))
        return head | self._names(node.iter)

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, after: Live) -> Live:
        assert node.value is not None
        targets = _targets(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        names, called = self._read(node.value)
        used = names | (targets if isinstance(node, ast.AugAssign) else NOTHING)
        if targets & after:
            self.dead.pop(id(node), None)
            return (after - targets) | used
        if called & WRITERS:
            return (after - targets) | used
        self.dead[id(node)] = node
        return after - targets


def _targets(target: ast.expr) -> Live:
    return frozenset(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def children_of(node: ast.AST) -> list[ast.expr]:
    """The expressions and other syntax right inside, without operators and contexts."""
    found = []
    for name in node._fields:
        value = getattr(node, name)
        if isinstance(value, list):
            found += value
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def spelling(function: ast.expr) -> str:
    """What a call writes before its parentheses, as far as that can be a child."""
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=holder), attr=member):
            return f"{holder}.{member}"
        case _:
            return ""


def without_dead_calls(function: ast.FunctionDef) -> bool:
    """Take out the dead assignments when one of them calls a child; whether there were any."""
    found = _Liveness()
    found.block(function.body, NOTHING, _Loop())
    if not any(found.calls(node) & READERS for node in found.dead.values()):
        return False
    for body in _blocks(function.body):
        body[:] = [node for node in body if id(node) not in found.dead] or [ast.Pass()]
    return True


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    for node in body:
        if isinstance(node, ast.For | ast.If):
            yield from _blocks(node.body)
            if node.orelse:
                yield from _blocks(node.orelse)
    yield body
