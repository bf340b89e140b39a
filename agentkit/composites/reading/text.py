"""From text to Python's syntax tree, whatever the text is."""

from __future__ import annotations

import ast
import re
import warnings
from threading import Lock

from agentkit.composites.limits import CompositeLimits
from agentkit.composites.problems import SourceCode
from agentkit.errors import SourceProblem

_MAY_WARN = re.compile(r"\\|\d[A-Za-z]")
"""What Python's parser may warn of: ``"\\d"`` and ``1if x else y``."""

_ATTEMPTS = 20
"""How often a text is read before an internal error of Python is believed."""

_WARNINGS = Lock()
"""Silencing warnings is not safe for threads (before Python 3.14): one of ours at a time."""


def syntax_tree(text: str, limits: CompositeLimits) -> ast.Module | SourceProblem:
    """The syntax of a text, or why it has none."""
    return _size_problem(text, limits) or _parsed(text)


def _size_problem(text: str, limits: CompositeLimits) -> SourceProblem | None:
    size = len(text)
    if size <= limits.source_bytes and not text.isascii():
        size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        return SourceProblem(
            code="too_large",
            message=f"the text has {size} bytes, more than {limits.source_bytes}",
            advice="Split it into two composites, one of which calls the other.",
        )
    for char in text if not text.isascii() or "\0" in text else "":
        if char == "\0" or "\ud800" <= char <= "\udfff":
            return _problem_at(
                text,
                text.index(char),
                f"the character {char!r} can not stand in a text",
                "Delete it, or write the whole character.",
            )
    return None


def _problem_at(text: str, offset: int, message: str, advice: str) -> SourceProblem:
    before = text[:offset]
    return SourceProblem(
        code="syntax",
        message=message,
        advice=advice,
        line=before.count("\n") + 1,
        column=offset - before.rfind("\n"),
    )


def _parsed(text: str) -> ast.Module | SourceProblem:
    try:
        if not _MAY_WARN.search(text):
            return _tree(text)
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _tree(text)
    except SyntaxError as error:
        return _syntax_problem(error)
    except (RecursionError, MemoryError):
        return SourceProblem(
            code="too_large",
            message="the text is nested too deeply for Python's parser",
            advice="Assign inner parts to variables first.",
        )
    except ValueError as error:  # null bytes and the like, in older versions of Python
        return SourceProblem(code="syntax", message=str(error), advice="Write plain Python.")


def _tree(text: str) -> ast.Module:
    """``ast.parse``, again where another thread disturbed it.

    CPython 3.11 counts the depth of a tree under construction in one place for all threads (see
    python/cpython#106905, which is related); a parse that another thread interrupts may end in a
    SystemError although nothing is wrong.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def _syntax_problem(error: SyntaxError) -> SourceProblem:
    reason = error.msg or "invalid syntax"
    code: SourceCode = "syntax"
    advice = "Correct the syntax; the text must be one Python function."
    if "nested" in reason or "too many" in reason:
        code, advice = "too_large", "Assign inner parts to variables first."
    elif "integer string conversion" in reason:
        code, advice = "literal", "Use a smaller number, or a float such as 1e300."
        reason = reason.partition(";")[0]
    elif isinstance(error, IndentationError):
        advice = "Indent each block by four spaces, and start `def` at the left."
    line = (error.text or "").strip()
    quoted = f" in `{line[:80]}`" if line else ""
    return SourceProblem(
        code=code,
        message=f"Python can not read this: {reason}{quoted}",
        advice=advice,
        line=max(error.lineno or 1, 1),
        column=max(error.offset or 1, 1),
    )
