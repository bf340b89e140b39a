"""Statements and blocks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.composites import advice, ir
from agentkit.composites.reading.context import Reading
from agentkit.composites.reading.expressions import BINARY, foreign_operator, targets_of

ReadStatement: TypeAlias = Callable[[Reading, Any], ir.Statement | None]


def block(reading: Reading, nodes: Sequence[ast.stmt]) -> ir.Block:
    """Read the statements of a block; ``pass`` and what is refused leave nothing."""
    if not nodes or not reading.enter(nodes[0]):
        return ()
    made = []
    for node in nodes:
        statement = STATEMENTS.get(type(node), _foreign)(reading, node)
        if statement is not None:
            reading.nodes[id(statement)] = node
            made.append(statement)
    reading.leave()
    return tuple(made)


def _assign(reading: Reading, node: ast.Assign) -> ir.Statement:
    if len(node.targets) > 1:
        reading.refuse(
            node,
            "unknown_construct",
            "one statement assigns to several targets with `=`",
            "Write one assignment a line.",
        )
        for target in node.targets[1:]:
            reading.lost.update(targets_of(reading, target))
    value = reading.expression(node.value)
    return ir.Assign(targets=targets_of(reading, node.targets[0]), value=value)


def _annotated(reading: Reading, node: ast.AnnAssign) -> ir.Statement | None:
    targets = targets_of(reading, node.target)
    if node.value is None:
        reading.refuse(
            node,
            "unknown_construct",
            f"`{reading.quote(node)}` declares a variable without a value",
            "Give it a value, such as None, or delete the line.",
        )
        return None
    return ir.Assign(targets=targets, value=reading.expression(node.value))


def _update(reading: Reading, node: ast.AugAssign) -> ir.Statement | None:
    operator = BINARY.get(type(node.op))
    if operator is None:
        foreign_operator(reading, node, node.op)
        return None
    (target,) = targets_of(reading, node.target)
    return ir.Update(target=target, operator=operator, value=reading.expression(node.value))


def _expression(reading: Reading, node: ast.Expr) -> ir.Statement | None:
    before = len(reading.faults)
    made = reading.expression(node.value)
    if isinstance(made, ir.Call):
        return ir.Do(call=made)
    if len(reading.faults) == before:  # what was refused already needs no second complaint
        is_text = isinstance(made, ir.Constant) and isinstance(made.value, str)
        reading.refuse(
            node,
            "unknown_construct",
            f"the value of `{reading.quote(node)}` is not used",
            "Write a comment with #." if is_text else "Assign it to a name, or delete the line.",
        )
    return None


def _if(reading: Reading, node: ast.If) -> ir.Statement:
    test = reading.expression(node.test)
    then = block(reading, node.body)
    return ir.If(test=test, then=then, otherwise=block(reading, node.orelse))


def _for(reading: Reading, node: ast.For) -> ir.Statement:
    source = reading.expression(node.iter)
    targets = targets_of(reading, node.target)
    body = block(reading, node.body)
    if node.orelse:
        reading.is_partial = True
        reading.refuse(
            node.orelse[0],
            "unknown_construct",
            "`else` behind a for statement is not in the language",
            "Set a variable before the loop and test it afterwards.",
        )
    return ir.For(targets=targets, source=source, body=body)


def _return(reading: Reading, node: ast.Return) -> ir.Statement:
    if node.value is not None:
        return ir.Return(value=reading.expression(node.value))
    reading.refuse(node, "unknown_construct", "`return` without a value", "Write `return None`.")
    return ir.Return(value=reading.hole(node))


def _pass(_: Reading, __: ast.Pass) -> None:
    return None


def _break(_: Reading, __: ast.Break) -> ir.Statement:
    return ir.Break()


def _continue(_: Reading, __: ast.Continue) -> ir.Statement:
    return ir.Continue()


def _foreign(reading: Reading, node: ast.stmt) -> ir.Statement:
    """Refuse a statement, and read on inside it for what else is wrong."""
    unknown = f"`{reading.quote(node)}` is", "Use the statements of the language."
    what, hint = advice.STATEMENTS.get(type(node).__name__, unknown)
    reading.refuse(node, "unknown_construct", f"{what} not in the language", hint)
    reading.is_partial = True
    reading.lost.update(_names_set(node))
    if isinstance(node, ast.While | ast.Match | ast.AsyncFor):
        reading.expression(_head(node))
    test = reading.hole(node)
    if isinstance(node, _SCOPES):
        return ir.If(test=test, then=())
    body = block(reading, list(_inside(node)))
    if isinstance(node, _LOOPS):
        return ir.For(targets=(reading.hole(node).name,), source=test, body=body)
    return ir.If(test=test, then=body)


_LOOPS = (ast.While, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _head(node: ast.While | ast.Match | ast.AsyncFor) -> ast.expr:
    if isinstance(node, ast.Match):
        return node.subject
    return node.test if isinstance(node, ast.While) else node.iter


def _inside(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements directly inside one, whatever its clauses are called."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt):
            yield part
        elif isinstance(part, ast.ExceptHandler | ast.match_case):
            yield from part.body


def _names_set(node: ast.stmt) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0]
        elif isinstance(part, _NAMED) and part.name:
            yield part.name


_NAMED = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, *_SCOPES)

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
