"""Programs that mean harm, or do it by mistake, to try a reader or an engine of composites on.

``REFUSED_PROGRAMS`` are outside the language; ``STOPPED_PROGRAMS`` are inside it and must be ended
by a limit. Both call the children of ``support.random_children``. As a program it tries all of them
and prints how many MB of memory that took.
"""

# ruff: noqa: RUF001 - letters that look like others are what some of these texts are about

from __future__ import annotations

import contextlib
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.composites.problems import RunCode
from agentkit.errors import CompositeError, CompositeRunError
from support.random_children import ChildrenInUse

MARK = "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}"
"""Stands in a text right before what is to be refused; taken out before use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedProgram:
    """A text outside the language.

    Attributes:
        name: What it tries.
        code: The code of the refusal.
        source: The text.
        line: Where the refusal points, from 1; 0 when the place does not matter.
        column: The same, in the line.
    """

    name: str
    code: str
    source: str
    line: int = 0
    column: int = 0


_FUNCTIONS: tuple[tuple[str, str, str], ...] = (
    ("empty text", "not_one_function", ""),
    ("only an expression", "not_one_function", "«add(1, 2)"),
    ("unfinished", "syntax", " def"),
    ("statement beside", "not_one_function", "def f(x):\n    return add(x, 1)\n«f(1)"),
    ("call as a default", "parameter", "def f(x=«add(1, 2)):\n    return add(x, 1)"),
)
"""Texts that are whole."""


def _refused(name: str, code: str, text: str) -> RefusedProgram:
    whole = "def f(" in text or (name, code, text) in _FUNCTIONS
    source = text if whole else _wrapped(text)
    before, mark, after = source.partition(MARK)
    line = before.count("\n") + 1 if mark else 0
    column = len(before.rpartition("\n")[2]) + 1 if mark else 0
    return RefusedProgram(name=name, code=code, source=before + after, line=line, column=column)


def _wrapped(statements: str) -> str:
    """Statements as the body of a function that calls a child."""
    lines = "".join(f"    {line}\n" for line in statements.split("\n"))
    return f"def f(data, n=1):\n    used = add(n, 1)\n{lines}    return [used, data]\n"


_TEXTS: tuple[tuple[str, str, str], ...] = (
    (
        "walk to subclasses",
        "unknown_method",
        "x = «().__class__.__base__.__subclasses__()\nnote(x)",
    ),
    ("globals of a child", "unknown_construct", "x = «add.__globals__\nnote(x)"),
    ("format method", "unknown_method", "x = «'{0.__class__}'.format(data)\nnote(x)"),
    ("format specification", "format_specification", "x = «f'{data:>1000000000}'\nnote(x)"),
    ("method of a child", "unknown_tool", "x = «add.now(1)\nnote(x)"),
    *(
        (f"call of {name}", "unknown_tool", f"x = «{name}('1')\nnote(x)")
        for name in ("eval", "exec", "compile", "open", "getattr", "type", "vars", "__import__")
    ),
    ("call of a result", "unknown_construct", "x = «add(1, 2)(3)\nnote(x)"),
    ("child as a value", "unknown_name", "x = [«add, 1]\nnote(x)"),
    *_FUNCTIONS,
    # letters that look like others
    ("full-width builtin", "name_shadowing", "«ｌｅｎ = 3"),
    ("full-width underscore", "syntax", "«＿x = 3"),
    ("mathematical letters", "name_shadowing", "«𝐚𝐝𝐝 = 3"),
    ("Cyrillic letter", "unknown_tool", "x = «аdd(1, 2)\nnote(x)"),
    ("after wide characters", "unknown_tool", "x = ['日本', «eval('1')]\nnote(x)"),
    ("bidirectional control in a name", "syntax", "x\u202e = 3"),
    ("zero-width space in a name", "syntax", "x\u200by = 3"),
    ("null byte", "syntax", "x = 'a\x00b'"),
    ("lone surrogate in the text", "syntax", "x = '\ud800'"),
    # sizes
    ("huge decimal", "literal", f"x = {'9' * 5000}\nnote(x)"),
    ("4,000 signs", "too_large", f"x = {'-' * 4000}1\nnote(x)"),
    ("a megabyte", "too_large", "x = 1\n" * 170_000),
    ("100,000 brackets", "too_large", f"x = {'(' * 100_000}1{')' * 100_000}"),
    ("8 KB of characters of 4 bytes", "too_large", f"x = '{chr(0x1F600) * 2100}'\nnote(x)"),
    ("1,000 statements", "too_large", "x = 1\n" * 1000 + "note(x)"),
    ("30 calls in calls", "too_large", f"x = {'add(1, ' * 30}1{')' * 30}\nnote(x)"),
    (
        "40 branches",
        "too_large",
        "if n == 0:\n    note('x')\n"
        + "".join(f"elif n == {i}:\n    note('x')\n" for i in range(1, 40)),
    ),
)

REFUSED_PROGRAMS: tuple[RefusedProgram, ...] = tuple(_refused(*entry) for entry in _TEXTS)
"""Over the children of ``support.random_children``."""


# --- stopped --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppedProgram:
    """A program that asks for too much.

    Attributes:
        name: What it tries.
        codes: The codes that may end it.
        source: Its text.
        arguments: What it is called with.
    """

    name: str
    codes: tuple[RunCode, ...]
    source: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _stopped(
    name: str, code: RunCode | tuple[RunCode, ...], text: str, data: Any = None
) -> StoppedProgram:
    lines = ["used = add(n, 1)", "x = used", *text.split("\n"), "return [used, x]"]
    return StoppedProgram(
        name=name,
        codes=(code,) if isinstance(code, str) else code,
        source="def f(data, n=1):\n" + "".join(f"    {line}\n" for line in lines),
        arguments={"data": data},
    )


_DEEP: tuple[RunCode, ...] = ("nesting", "fuel", "opaque_value")
_LONG: tuple[RunCode, ...] = ("string_chars", "fuel")
_MANY: tuple[RunCode, ...] = ("collection_items", "fuel")
_SHARED: tuple[RunCode, ...] = ("fuel", "nesting")
_GROWN = "x = [0]\ny = [0]\nfor i in range(60):\n    x = [x, x]\n    y = [y, y]\n"
_PROGRAMS: tuple[tuple[str, RunCode | tuple[RunCode, ...], str, Any], ...] = (
    # numbers
    ("tower of powers", "integer_bits", "x = 9 ** 9 ** 9 ** n", None),
    ("huge power of a huge number", "integer_bits", "x = data ** data", 10**300),
    ("squares in a loop", "integer_bits", "x = 3\nfor i in range(100):\n    x = x * x", None),
    ("huge number from text", ("integer_bits", "value_error"), "x = int('9' * 4000)", None),
    ("sum of huge numbers", "integer_bits", "x = sum([2 ** 4095, 2 ** 4095])", None),
    ("root of a negative number", "complex_number", "x = (0 - 8) ** 0.5", None),
    ("overflow of floats", "overflow", "x = 10.0 ** 400", None),
    ("large numbers as text", "fuel", "y = 3 ** 2500\nx = [str(y) for i in range(9999)]", None),
    # texts
    ("huge text", "string_chars", "x = 'ab' * data", 10**9),
    ("texts in a list", "fuel", "x = ['a' * 100000 for i in range(9999)]", None),
    ("doubled text", "string_chars", "x = 'a'\nfor i in range(60):\n    x = x + x", None),
    ("text growing by one", "fuel", "x = ''\nfor i in range(10000):\n    x = x + 'ab'", None),
    ("replacement of nothing", _LONG, "x = ('a' * 1000).replace('', 'b' * 1000)", None),
    ("join", _LONG, "x = ('b' * 1000).join('a' * 1000)", None),
    ("long splits", "fuel", "y = 'a ' * 4000\nx = [y.split() for i in range(9999)]", None),
    ("strip of many letters", "fuel", "y = 'b' * 50000\nx = y.strip('a' * 50000 + 'b')", None),
    ("split", _MANY, "x = ('a,' * 50000).split(',')", None),
    ("letters", _MANY, "x = list('a' * 100000)", None),
    ("f-string", _LONG, "x = 'a'\nfor i in range(60):\n    x = f'{x}{x}'", None),
    ("text of a list", _LONG, "x = ['a' * 1000] * 40\nfor i in range(60):\n    x = [str(x)]", None),
    ("slow search", "fuel", "y = 'a' * 50000\nz = 'a' * 25000 + 'b'\nx = [y.count(z) for i in range(500)]", None),
    ("search letter by letter", "fuel", "y = 'a' * 2499\nz = 'a' * 1248 + 'ba'\nx = [y.count(z) for i in range(9999)]", None),
    ("search of half a text", "fuel", "y = 'a' * 99999\nz = 'a' * 48000 + 'ba' + 'a' * 49900\nx = y.find(z)", None),
    ("printf", "string_format", "x = '%1000000000d' % n", None),
    # lists and dicts
    ("huge list", "collection_items", "x = [0] * data", 10**9),
    ("lists in a list", "fuel", "x = [[0] * 10000 for i in range(9999)]", None),
    ("doubled list", _MANY, "x = [0]\nfor i in range(60):\n    x = x + x", None),
    ("list within itself", _SHARED, "x = [0]\nfor i in range(100):\n    x = [x, x]", None),
    ("shared lists compared", _SHARED, f"{_GROWN}x = x == y", None),
    ("shared list handed over", _SHARED, f"{_GROWN}x = echo(x)", None),
    ("shared tuple as a key", _SHARED, "x = (1, 1)\nfor i in range(40):\n    x = (x, x)\nx = {x: 1}", None),
    ("deep list", _SHARED, "x = []\nfor i in range(9000):\n    x = [x]", None),
    ("deep list as text", _SHARED, "x = []\nfor i in range(2000):\n    x = [x]\nx = str(x)", None),
    ("growing by one", "fuel", "x = []\nfor i in range(5000):\n    x = x + [i]", None),
    ("quadratic sum", "fuel", "x = sum([[i] for i in range(9999)], [])", None),
    ("slices of a list", "fuel", "y = list(range(5000))\nfor i in range(1000):\n    x = y[1:]", None),
    ("membership", "fuel", "y = list(range(9000))\nfor i in range(9000):\n    x = 0 - 1 in y", None),
    ("sorting", "fuel", "y = list(range(9000))\nfor i in range(9000):\n    x = sorted(y, reverse=True)", None),
    ("sorts of large numbers", "fuel", "y = [2 ** 4000 + i * 7919 % 10007 for i in range(90)] * 99\nx = [len(sorted(y)) for i in range(9999)]", None),
    ("many dicts", "fuel", "x = [{i: {i: {i: {}}}} for i in range(9999)]", None),
    ("keys of one hash", "fuel", "x = {i * (2 ** 61 - 1): i for i in range(9999)}", None),
    ("tuples of one hash", "fuel", "x = {(i * (2 ** 61 - 1),): i for i in range(9999)}", None),
    ("list updated in place", "in_place_list", "x = [1]\nx += [2]", None),
    # iteration
    ("long loop", "fuel", "for i in range(data):\n    x = i", 10**12),
    ("empty loops", "fuel", "for i in range(9999):\n    for j in range(9999):\n        pass", None),
    ("sum of a range", "fuel", "x = sum(range(data))", 10**10),
    ("sorted range", _MANY, "x = sorted(range(data))", 10**10),
    ("any of a range", "fuel", "x = any(i < 0 for i in range(data))", 10**10),
    ("length of an endless range", "overflow", "x = len(range(data))", 10**30),
    ("filtered comprehension", "fuel", "x = [i for i in range(data) if i < 0]", 10**9),
    ("many calls", ("child_calls", "fuel"), "for i in range(data):\n    note('x')", 10**6),
    # arguments
    ("deep argument", _DEEP, "x = str(data)", _nested(100_000)),
    ("deep argument passed on", (*_DEEP, "invalid_arguments", "unserialisable_result"), "x = echo(data)", _nested(100_000)),
    ("endless argument", _DEEP, "x = str(data)", _cycle()),
    ("function as an argument", "opaque_value", "x = data", print),
    ("set as an argument", "opaque_value", "x = sorted(data)", {1, 2}),
)  # fmt: skip

STOPPED_PROGRAMS: tuple[StoppedProgram, ...] = tuple(_stopped(*entry) for entry in _PROGRAMS)
"""Over the children of ``support.random_children``."""


# --- all of them ----------------------------------------------------------------------------------


def peak_mb() -> float:
    """Highest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ``ru_maxrss`` remembers the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Try every program once; one that comes through ends the process with an error."""
    children = ChildrenInUse()
    programs = [
        (parse(one.source, children.tools).program, one.arguments) for one in STOPPED_PROGRAMS
    ]
    before = peak_mb()
    for one in REFUSED_PROGRAMS:
        with contextlib.suppress(CompositeError):
            parse(one.source, children.tools)
            raise SystemExit(f"{one.name} was not refused")
    for program, arguments in programs:
        with contextlib.suppress(CompositeRunError):
            Composite(program, children.by_name, name="f").run(arguments)
            raise SystemExit("a hostile program ran to its end")
    print(peak_mb() - before)


if __name__ == "__main__":
    main()
