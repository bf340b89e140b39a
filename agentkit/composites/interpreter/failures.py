"""From what an operation raised to an error that says where, for the rare run that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from agentkit.composites import ir
from agentkit.composites.interpreter.frames import ACTIVATION, Frame
from agentkit.composites.interpreter.guard import Guard
from agentkit.composites.problems import RunCode
from agentkit.composites.render import render_expression
from agentkit.errors import CompositeRunError, ToolSignal
from agentkit.tools.invocation import described, shortened

FAILURES = (
    Guard,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What an operation on values may raise."""

_CODES: tuple[tuple[type[BaseException], RunCode], ...] = (
    (ZeroDivisionError, "zero_division"),
    (OverflowError, "overflow"),
    (IndexError, "index_error"),
    (KeyError, "key_error"),
    (RecursionError, "nesting"),
    (MemoryError, "fuel"),
    (ValueError, "value_error"),
    (TypeError, "type_error"),
    (AttributeError, "type_error"),  # a method that the type does not have
)


def fail(frame: Frame, node: ir.Expression | None, error: BaseException) -> NoReturn:
    """Raise the error of the run for what an operation raised."""
    fail_on(frame[ACTIVATION].path, node, error)


def fail_on(path: Sequence[str], node: ir.Expression | None, error: BaseException) -> NoReturn:
    """The same, for a place of one's own; a ``Guard`` has nothing to add as a cause."""
    raise located(path, node, error) from (None if isinstance(error, Guard) else error)


@contextmanager
def failing_at(frame: Frame, node: ir.Expression) -> Iterator[None]:
    """What an operation raises inside fails there; for places where speed does not matter."""
    try:
        yield
    except FAILURES as error:
        fail(frame, node, error)


def located(
    path: Sequence[str], node: ir.Expression | None, error: BaseException
) -> CompositeRunError:
    """The error of a run for what an operation of the program raised."""
    if isinstance(error, Guard):
        return run_error(path, node, error.code, error.message)
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return run_error(path, node, code, described(error))


def run_error(
    path: Sequence[str], node: ir.Expression | None, code: RunCode, what: str
) -> CompositeRunError:
    """An error with its place in words: path, what happened, and the part of the program."""
    expression = "" if node is None else render_expression(node)
    where = f", at `{shortened(expression)}`" if expression else ""
    who = f"{path_text(path)}: " if path else ""
    message = f"{who}{shortened(what)}{where}"
    return CompositeRunError(message, code=code, path=path, expression=expression)


def repeated_signal(path: Sequence[str], signal: ToolSignal) -> ToolSignal:
    """``ModelRetry`` or ``ToolFailed`` again, saying which of the inner tools speaks."""
    kind = next(kind for kind in type(signal).__mro__ if kind.__module__ == ToolSignal.__module__)
    again: ToolSignal = kind(f"{path_text(path)}: {signal.message}")
    return again


def path_text(path: Sequence[str]) -> str:
    """A path of tools for a sentence."""
    return " → ".join(path)
