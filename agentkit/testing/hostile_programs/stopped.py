"""Programs that the language allows, and that a run must stop before they take the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.composites.problems import RunCode


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


def _program(
    name: str, code: RunCode | tuple[RunCode, ...], text: str, data: Any = None
) -> StoppedProgram:
    lines = ["used = add(n, 1)", "x = used", *text.split("\n"), "return [used, x]"]
    return StoppedProgram(
        name=name,
        codes=(code,) if isinstance(code, str) else code,
        source="def f(data, n=1):\n" + "".join(f"    {line}\n" for line in lines),
        arguments={"data": data},
    )


_NUMBERS = (
    _program("tower of powers", "integer_bits", "x = 9 ** 9 ** 9 ** n"),
    _program("huge power", "integer_bits", "x = 2 ** data", 10**9),
    _program("huge power of a huge number", "integer_bits", "x = data ** data", 10**300),
    _program("huge negative power", "integer_bits", "x = (0 - 3) ** data", 10**18),
    _program("power in an update", "integer_bits", "x **= 10 ** 18"),
    _program("squares in a loop", "integer_bits", "x = 3\nfor i in range(100):\n    x = x * x"),
    _program("squares by update", "integer_bits", "x = 3\nfor i in range(100):\n    x *= x"),
    _program("powers in a loop", "integer_bits", "x = 3\nfor i in range(100):\n    x = x ** 3"),
    _program("huge number from text", ("integer_bits", "value_error"), "x = int('9' * 4000)"),
    _program(
        "huge number as an argument", ("integer_bits", "opaque_value"), "x = data + 1", 10**5000
    ),
    _program("root of a negative number", "complex_number", "x = (0 - 8) ** 0.5"),
    _program("overflow of floats", "overflow", "x = 10.0 ** 400"),
    _program("infinity as a whole number", "overflow", "x = int(1e308 * 10)"),
    _program("division by zero", "zero_division", "x = 1 / (n - 1)"),
    _program("zero to a negative power", "zero_division", "x = 0 ** (0 - n)"),
)

_SEQUENCES = (
    _program("huge text", "string_chars", "x = 'ab' * data", 10**9),
    _program("huge text, number first", "string_chars", "x = data * 'ab'", 10**15),
    _program("huge text by update", "string_chars", "x = 'ab'\nx *= 10 ** 10"),
    _program("huge list", "collection_items", "x = [0] * data", 10**9),
    _program("huge tuple", "collection_items", "x = data * (0, 1)", 10**9),
    _program("beyond a machine word", ("collection_items", "overflow"), "x = [0] * data", 10**30),
    _program("lists in a list", "fuel", "x = [[0] * 10000 for i in range(9999)]"),
    _program("texts in a list", "fuel", "x = ['a' * 100000 for i in range(9999)]"),
    _program("doubled text", "string_chars", "x = 'a'\nfor i in range(60):\n    x = x + x"),
    _program(
        "doubled list", ("collection_items", "fuel"), "x = [0]\nfor i in range(60):\n    x = x + x"
    ),
    _program(
        "list within itself", ("fuel", "nesting"), "x = [0]\nfor i in range(100):\n    x = [x, x]"
    ),
    _program(
        "dict within itself",
        ("fuel", "nesting"),
        "x = {}\nfor i in range(100):\n    x = {'a': x, 'b': x}",
    ),
    _program("list a thousand times", "fuel", "x = [0]\nfor i in range(10):\n    x = [x] * 1000"),
    _program(
        "shared lists compared",
        "fuel",
        "x = [0]\ny = [0]\nfor i in range(60):\n    x = [x, x]\n    y = [y, y]\nx = x == y",
    ),
    _program("deep list", ("fuel", "nesting"), "x = []\nfor i in range(9000):\n    x = [x]"),
    _program(
        "deep list as text",
        ("fuel", "nesting"),
        "x = []\nfor i in range(2000):\n    x = [x]\nx = str(x)",
    ),
    _program(
        "deep tuple compared",
        ("fuel", "nesting"),
        "x = ()\ny = ()\nfor i in range(2000):\n    x = (x,)\n    y = (y,)\nx = x == y",
    ),
    _program("growing by one", "fuel", "x = []\nfor i in range(5000):\n    x = x + [i]"),
    _program("text growing by one", "fuel", "x = ''\nfor i in range(10000):\n    x = x + 'ab'"),
    _program(
        "slices of a list", "fuel", "y = list(range(5000))\nfor i in range(1000):\n    x = y[1:]"
    ),
    _program("replacement", ("string_chars", "fuel"), "x = ('a' * 1000).replace('a', 'b' * 1000)"),
    _program(
        "replacement of nothing",
        ("string_chars", "fuel"),
        "x = ('a' * 1000).replace('', 'b' * 1000)",
    ),
    _program("join", ("string_chars", "fuel"), "x = ('b' * 1000).join('a' * 1000)"),
    _program("split", ("collection_items", "fuel"), "x = ('a,' * 50000).split(',')"),
    _program("lines", ("collection_items", "fuel"), "x = ('a\\n' * 50000).splitlines()"),
    _program("letters", ("collection_items", "fuel"), "x = list('a' * 100000)"),
    _program(
        "f-string", ("string_chars", "fuel"), "x = 'a'\nfor i in range(60):\n    x = f'{x}{x}'"
    ),
    _program(
        "text of a list",
        ("string_chars", "fuel"),
        "x = ['a' * 1000] * 40\nfor i in range(60):\n    x = [str(x)]",
    ),
    _program(
        "searches", "fuel", "y = 'a' * 50000\nfor i in range(5000):\n    x = (y + 'b').find('b')"
    ),
    _program(
        "slow search",
        "fuel",
        "y = 'a' * 50000\nz = 'a' * 25000 + 'b'\nfor i in range(500):\n    x = y.count(z)",
    ),
    _program(
        "membership", "fuel", "y = list(range(9000))\nfor i in range(9000):\n    x = 0 - 1 in y"
    ),
    _program(
        "sorting",
        "fuel",
        "y = list(range(9000))\nfor i in range(9000):\n    x = sorted(y, reverse=True)",
    ),
    _program(
        "dict growing by one",
        "fuel",
        "x = 0\nfor i in range(9000):\n    y = {k: k for k in range(9000)}\n    x = len(y)",
    ),
    _program("list updated in place", "in_place_list", "x = [1]\nx += [2]"),
    _program("list repeated in place", "in_place_list", "x = [1]\nx *= 10"),
    _program("printf", "string_format", "x = '%1000000000d' % n"),
    _program("printf of a tuple", "string_format", "x = '%s %s' % (n, n)"),
    _program("printf by update", "string_format", "x = '%s'\nx %= n"),
)

_ITERATION = (
    _program("long loop", "fuel", "for i in range(data):\n    x = i", 10**12),
    _program(
        "loops in loops",
        "fuel",
        "for i in range(9999):\n    for j in range(9999):\n        x = i + j",
    ),
    _program(
        "empty loops", "fuel", "for i in range(9999):\n    for j in range(9999):\n        pass"
    ),
    _program("sum of a range", "fuel", "x = sum(range(data))", 10**10),
    _program("largest of a range", "fuel", "x = max(range(data))", 10**10),
    _program("list of a range", ("collection_items", "fuel"), "x = list(range(data))", 10**10),
    _program("sorted range", ("collection_items", "fuel"), "x = sorted(range(data))", 10**10),
    _program("any of a range", "fuel", "x = any(i < 0 for i in range(data))", 10**10),
    _program("all of a range", "fuel", "x = all(range(1, data))", 10**10),
    _program(
        "pairs of ranges",
        ("collection_items", "fuel"),
        "x = list(zip(range(data), range(data)))",
        10**10,
    ),
    _program("numbered range", "fuel", "for i, j in enumerate(range(data)):\n    x = i", 10**10),
    _program("length of an endless range", "overflow", "x = len(range(data))", 10**30),
    _program("comprehension", ("collection_items", "fuel"), "x = [i for i in range(data)]", 10**9),
    _program("filtered comprehension", "fuel", "x = [i for i in range(data) if i < 0]", 10**9),
    _program("many calls", ("child_calls", "fuel"), "for i in range(data):\n    note('x')", 10**6),
    _program(
        "many calls in a comprehension",
        ("child_calls", "fuel"),
        "x = [add(i, 1) for i in range(data)]",
        10**6,
    ),
)

_VALUES = (
    _program(
        "deep argument", ("nesting", "fuel", "opaque_value"), "x = str(data)", _nested(100_000)
    ),
    _program(
        "deep argument passed on",
        ("nesting", "fuel", "opaque_value", "invalid_arguments", "unserialisable_result"),
        "x = echo(data)",
        _nested(100_000),
    ),
    _program("endless argument", ("nesting", "fuel", "opaque_value"), "x = str(data)", _cycle()),
    _program(
        "endless argument compared",
        ("nesting", "fuel", "opaque_value"),
        "x = data == [data]",
        _cycle(),
    ),
    _program("function as an argument", "opaque_value", "x = data", print),
    _program("object as an argument", "opaque_value", "x = data == n", object()),
    _program("bytes as an argument", "opaque_value", "x = data + data", b"a"),
    _program("set as an argument", "opaque_value", "x = sorted(data)", {1, 2}),
    _program("a child that fails", "child_failed", "x = label(data, 3) + add('a', 1)"),
)

STOPPED_PROGRAMS: tuple[StoppedProgram, ...] = (*_NUMBERS, *_SEQUENCES, *_ITERATION, *_VALUES)
"""Over the children of ``agentkit.testing.random_programs``."""
