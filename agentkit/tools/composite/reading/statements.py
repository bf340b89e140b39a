"""Statements and blocks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.tools.composite import ir
from agentkit.tools.composite.reading.context import Reading
from agentkit.tools.composite.reading.expressions import BINARY, foreign_operator, loop_targets

ReadStatement: TypeAlias = Callable[[Reading, Any], ir.Statement | None]


def block(reading: Reading, nodes: Sequence[ast.stmt]) -> ir.Block:
    """Read the statements of a block; ``pass`` and what is refused leave nothing."""
    if not nodes or not reading.enter(nodes[0]):
        return ()
    made = []
    for node in nodes:
        statement = STATEMENTS[type(node)](reading, node)
        if statement is not None:
            reading.nodes[id(statement)] = node
            made.append(statement)
    reading.leave()
    return tuple(made)


def _assign(reading: Reading, node: ast.Assign) -> ir.Statement:
    targets = loop_targets(reading, node.targets[0])
    return ir.Assign(targets=targets, value=reading.expression(node.value))


def _annotated(reading: Reading, node: ast.AnnAssign) -> ir.Statement | None:
    targets = loop_targets(reading, node.target)
    if node.value is None:
        return None
    return ir.Assign(targets=targets, value=reading.expression(node.value))


def _update(reading: Reading, node: ast.AugAssign) -> ir.Statement | None:
    operator = BINARY.get(type(node.op))
    if operator is None:
        foreign_operator(reading, node, node.op)
        return None
    (target,) = loop_targets(reading, node.target)
    return ir.Update(target=target, operator=operator, value=reading.expression(node.value))


def _expression(reading: Reading, node: ast.Expr) -> ir.Statement | None:
    made = reading.expression(node.value)
    return ir.Do(call=made) if isinstance(made, ir.Call) else None


def _if(reading: Reading, node: ast.If) -> ir.Statement:
    test = reading.expression(node.test)
    then = block(reading, node.body)
    return ir.If(test=test, then=then, otherwise=block(reading, node.orelse))


def _for(reading: Reading, node: ast.For) -> ir.Statement:
    targets = loop_targets(reading, node.target)
    source = reading.expression(node.iter)
    return ir.For(targets=targets, source=source, body=block(reading, node.body))


def _return(reading: Reading, node: ast.Return) -> ir.Statement:
    value = ir.Constant(value=None) if node.value is None else reading.expression(node.value)
    return ir.Return(value=value)


def _pass(reading: Reading, node: ast.Pass) -> None:
    return None


def _break(reading: Reading, node: ast.Break) -> ir.Statement:
    return ir.Break()


def _continue(reading: Reading, node: ast.Continue) -> ir.Statement:
    return ir.Continue()


STATEMENTS: Mapping[type[ast.stmt], ReadStatement] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _update,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.Return: _return,
    ast.Pass: _pass,
    ast.Break: _break,
    ast.Continue: _continue,
}
"""The reader of each kind of statement."""
