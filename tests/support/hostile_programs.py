"""Programs that mean harm, or do it by mistake, to try a reader or an engine of composites on.

``REFUSED_PROGRAMS`` are outside the language; ``STOPPED_PROGRAMS`` are inside it and must be ended
by a limit. Both call the children of ``support.random_children``.
"""

# ruff: noqa: RUF001 - letters that look like others are what some of these texts are about

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.composites.problems import RunCode, SourceCode

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
    code: SourceCode
    source: str
    line: int = 0
    column: int = 0


def _refused(name: str, code: SourceCode, text: str) -> RefusedProgram:
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


_ATTRIBUTES: tuple[tuple[str, SourceCode, str], ...] = (
    ("class of a literal", "unknown_construct", "x = «().__class__\nnote(x)"),
    (
        "walk to subclasses",
        "unknown_method",
        "x = «().__class__.__base__.__subclasses__()\nnote(x)",
    ),
    ("globals of a child", "unknown_construct", "x = «add.__globals__\nnote(x)"),
    ("attribute of a parameter", "unknown_construct", "x = «data.secret\nnote(x)"),
    ("assignment to an attribute", "unknown_construct", "«data.x = 1"),
    ("assignment to an item", "unknown_construct", "«data[0] = 1"),
    ("deletion of an item", "unknown_construct", "«del data[0]"),
    ("underscore method", "unknown_method", "x = «data.__init__()\nnote(x)"),
    ("mutating method", "unknown_method", "x = «data.append(1)\nnote(x)"),
    ("format method", "unknown_method", "x = «'{0.__class__}'.format(data)\nnote(x)"),
    ("format_map method", "unknown_method", "x = «'{x}'.format_map(data)\nnote(x)"),
    ("encode method", "unknown_method", "x = «'a'.encode()\nnote(x)"),
    ("format specification", "format_specification", "x = «f'{data:>1000000000}'\nnote(x)"),
    ("nested format specification", "format_specification", "x = «f'{data:{n}}'\nnote(x)"),
    ("conversion", "format_specification", "x = «f'{data!r}'\nnote(x)"),
    ("attribute in an f-string", "unknown_construct", "x = f'{«data.__class__}'\nnote(x)"),
    ("method of a child", "unknown_tool", "x = «add.now(1)\nnote(x)"),
)

_CALLS: tuple[tuple[str, SourceCode, str], ...] = (
    *(
        (f"call of {name}", "unknown_tool", f"x = «{name}('1')\nnote(x)")
        for name in (
            *("eval", "exec", "compile", "open", "getattr", "setattr", "type", "vars", "globals"),
            *("input", "print", "breakpoint", "map", "iter", "repr", "chr", "hash", "object"),
        )
    ),
    ("call of __import__", "unknown_tool", "x = «__import__('os')\nnote(x)"),
    ("call of a value", "unknown_construct", "x = «data[0](1)\nnote(x)"),
    ("call of a result", "unknown_construct", "x = «add(1, 2)(3)\nnote(x)"),
    ("call of a parameter", "unknown_tool", "x = «data(1)\nnote(x)"),
    ("call of itself", "recursive_call", "x = «f(data)\nnote(x)"),
    ("starred arguments", "unknown_construct", "x = add(«*data)\nnote(x)"),
    ("arguments from a dict", "unknown_construct", "x = add(«**data)\nnote(x)"),
    ("unknown argument", "unknown_argument", "x = add(1, b=2, «c=3)\nnote(x)"),
    ("too many arguments", "wrong_arity", "x = add(1, 2, «3)\nnote(x)"),
    ("argument given twice", "repeated_argument", "x = add(1, 2, «a=3)\nnote(x)"),
    ("missing argument", "missing_argument", "x = «add(1)\nnote(x)"),
    ("renamed child", "unknown_tool", "x = «add_numbers(1, 2)\nnote(x)"),
    ("child as a value", "unknown_name", "x = [«add, 1]\nnote(x)"),
    ("builtin as a value", "unknown_name", "x = sorted([«len])\nnote(x)"),
    ("unknown keyword of a builtin", "wrong_arity", "x = sorted([1], «key=n)\nnote(x)"),
    ("too many arguments of a builtin", "wrong_arity", "x = «len([1], [2])\nnote(x)"),
    ("no arguments of a method", "wrong_arity", "x = «'a'.replace('a')\nnote(x)"),
)

_FUNCTIONS: tuple[tuple[str, SourceCode, str], ...] = (
    ("empty text", "not_one_function", ""),
    ("only a comment", "not_one_function", "# def f(x): pass\n"),
    ("only an expression", "not_one_function", "«add(1, 2)"),
    ("only a class", "not_one_function", "«class F:\n    pass"),
    ("unfinished", "syntax", " def"),
    (
        "two functions",
        "not_one_function",
        "def f(x):\n    return add(x, 1)\n«def g(x):\n    return add(x, 2)",
    ),
    ("statement beside", "not_one_function", "def f(x):\n    return add(x, 1)\n«f(1)"),
    ("variable arguments", "parameter", "def f(*«args):\n    return add(args, 1)"),
    ("variable keywords", "parameter", "def f(**«kw):\n    return add(kw, 1)"),
    ("positional-only", "parameter", "def f(«x, /):\n    return add(x, 1)"),
    ("call as a default", "parameter", "def f(x=«add(1, 2)):\n    return add(x, 1)"),
    ("list as a default", "parameter", "def f(x=«[]):\n    return add(x, 1)"),
    ("name as a default", "parameter", "def f(x=«y):\n    return add(x, 1)"),
)

_UNICODE: tuple[tuple[str, SourceCode, str], ...] = (
    ("full-width builtin", "name_shadowing", "«ｌｅｎ = 3"),
    ("full-width eval", "unknown_tool", "x = «ｅｖａｌ('1')\nnote(x)"),
    ("full-width underscore", "syntax", "«＿x = 3"),
    ("mathematical letters", "name_shadowing", "«𝐚𝐝𝐝 = 3"),
    ("Cyrillic letter", "unknown_tool", "x = «аdd(1, 2)\nnote(x)"),
    ("attribute in full width", "unknown_construct", "x = «data.__ｃｌａｓｓ__\nnote(x)"),
    ("after wide characters", "unknown_tool", "x = ['日本', «eval('1')]\nnote(x)"),
)

_SYNTAX: tuple[tuple[str, SourceCode, str], ...] = (
    ("bidirectional control in a name", "syntax", "x\u202e = 3"),
    ("zero-width space in a name", "syntax", "x\u200by = 3"),
    ("null byte", "syntax", "x = 'a\x00b'"),
    ("lone surrogate in the text", "syntax", "x = '\ud800'"),
    ("byte order mark inside", "syntax", "\ufeffx = 1"),
    ("tabs and spaces", "syntax", "if n:\n        x = 1\n\tx = 2"),
    ("keyword as a name", "syntax", "None = 3"),
    ("assignment to a call", "syntax", "add(1, 2) = 3"),
    ("return outside", "not_one_function", "def f(x):\n    return add(x, 1)\n«return 3"),
    ("break outside a loop", "syntax", "break"),
    ("a name twice", "parameter", "def f(x, «x):\n    return add(x, x)"),
    ("huge decimal", "literal", f"x = {'9' * 5000}\nnote(x)"),
    ("unclosed", "syntax", "x = (1,"),
    ("200 brackets", "too_large", f"x = {'[' * 200}{']' * 200}\nnote(x)"),
    ("4,000 brackets", "too_large", f"x = {'(' * 4000}{')' * 4000}\nnote(x)"),
    ("4,000 signs", "too_large", f"x = {'-' * 4000}1\nnote(x)"),
    ("1,000 attributes", "unknown_construct", f"x = data{'.a' * 1000}\nnote(x)"),
)

_SIZES: tuple[tuple[str, SourceCode, str], ...] = (
    ("a megabyte", "too_large", "x = 1\n" * 170_000),
    ("a megabyte in one line", "too_large", f"x = '{'a' * 1_000_000}'"),
    ("100,000 brackets", "too_large", f"x = {'(' * 100_000}1{')' * 100_000}"),
    ("8 KB of characters of 4 bytes", "too_large", f"x = '{chr(0x1F600) * 2100}'\nnote(x)"),
    ("2,000 terms", "too_large", f"x = {'1+' * 2000}n\nnote(x)"),
    ("1,000 statements", "too_large", "x = 1\n" * 1000 + "note(x)"),
    ("30 brackets", "too_large", f"x = {'[' * 30}{']' * 30}\nnote(x)"),
    ("30 signs", "too_large", f"x = {'-' * 30}n\nnote(x)"),
    (
        "40 branches",
        "too_large",
        "if n == 0:\n    note('x')\n"
        + "".join(f"elif n == {i}:\n    note('x')\n" for i in range(1, 40)),
    ),
    ("30 calls in calls", "too_large", f"x = {'add(1, ' * 30}1{')' * 30}\nnote(x)"),
    (
        "30 blocks",
        "too_large",
        "\n".join("    " * i + "for v in data:" for i in range(30))
        + "\n"
        + "    " * 30
        + "note('x')",
    ),
)

REFUSED_PROGRAMS: tuple[RefusedProgram, ...] = tuple(
    _refused(*entry)
    for entry in (
        *_ATTRIBUTES,
        *_CALLS,
        *_FUNCTIONS,
        *_UNICODE,
        *_SYNTAX,
        *_SIZES,
    )
)
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


_NUMBERS = (
    _stopped("tower of powers", "integer_bits", "x = 9 ** 9 ** 9 ** n"),
    _stopped("huge power", "integer_bits", "x = 2 ** data", 10**9),
    _stopped("huge power of a huge number", "integer_bits", "x = data ** data", 10**300),
    _stopped("huge negative power", "integer_bits", "x = (0 - 3) ** data", 10**18),
    _stopped("power in an update", "integer_bits", "x **= 10 ** 18"),
    _stopped("squares in a loop", "integer_bits", "x = 3\nfor i in range(100):\n    x = x * x"),
    _stopped("squares by update", "integer_bits", "x = 3\nfor i in range(100):\n    x *= x"),
    _stopped("powers in a loop", "integer_bits", "x = 3\nfor i in range(100):\n    x = x ** 3"),
    _stopped("huge number from text", ("integer_bits", "value_error"), "x = int('9' * 4000)"),
    _stopped(
        "huge number as an argument", ("integer_bits", "opaque_value"), "x = data + 1", 10**5000
    ),
    _stopped("root of a negative number", "complex_number", "x = (0 - 8) ** 0.5"),
    _stopped("overflow of floats", "overflow", "x = 10.0 ** 400"),
    _stopped("infinity as a whole number", "overflow", "x = int(1e308 * 10)"),
    _stopped("division by zero", "zero_division", "x = 1 / (n - 1)"),
    _stopped("zero to a negative power", "zero_division", "x = 0 ** (0 - n)"),
)

_SEQUENCES = (
    _stopped("huge text", "string_chars", "x = 'ab' * data", 10**9),
    _stopped("huge text, number first", "string_chars", "x = data * 'ab'", 10**15),
    _stopped("huge text by update", "string_chars", "x = 'ab'\nx *= 10 ** 10"),
    _stopped("huge list", "collection_items", "x = [0] * data", 10**9),
    _stopped("huge tuple", "collection_items", "x = data * (0, 1)", 10**9),
    _stopped("beyond a machine word", ("collection_items", "overflow"), "x = [0] * data", 10**30),
    _stopped("lists in a list", "fuel", "x = [[0] * 10000 for i in range(9999)]"),
    _stopped("texts in a list", "fuel", "x = ['a' * 100000 for i in range(9999)]"),
    _stopped("doubled text", "string_chars", "x = 'a'\nfor i in range(60):\n    x = x + x"),
    _stopped(
        "doubled list", ("collection_items", "fuel"), "x = [0]\nfor i in range(60):\n    x = x + x"
    ),
    _stopped(
        "list within itself", ("fuel", "nesting"), "x = [0]\nfor i in range(100):\n    x = [x, x]"
    ),
    _stopped(
        "dict within itself",
        ("fuel", "nesting"),
        "x = {}\nfor i in range(100):\n    x = {'a': x, 'b': x}",
    ),
    _stopped("list a thousand times", "fuel", "x = [0]\nfor i in range(10):\n    x = [x] * 1000"),
    _stopped(
        "shared lists compared",
        "fuel",
        "x = [0]\ny = [0]\nfor i in range(60):\n    x = [x, x]\n    y = [y, y]\nx = x == y",
    ),
    _stopped("deep list", ("fuel", "nesting"), "x = []\nfor i in range(9000):\n    x = [x]"),
    _stopped(
        "deep list as text",
        ("fuel", "nesting"),
        "x = []\nfor i in range(2000):\n    x = [x]\nx = str(x)",
    ),
    _stopped(
        "deep tuple compared",
        ("fuel", "nesting"),
        "x = ()\ny = ()\nfor i in range(2000):\n    x = (x,)\n    y = (y,)\nx = x == y",
    ),
    _stopped("growing by one", "fuel", "x = []\nfor i in range(5000):\n    x = x + [i]"),
    _stopped("text growing by one", "fuel", "x = ''\nfor i in range(10000):\n    x = x + 'ab'"),
    _stopped(
        "slices of a list", "fuel", "y = list(range(5000))\nfor i in range(1000):\n    x = y[1:]"
    ),
    _stopped("replacement", ("string_chars", "fuel"), "x = ('a' * 1000).replace('a', 'b' * 1000)"),
    _stopped(
        "replacement of nothing",
        ("string_chars", "fuel"),
        "x = ('a' * 1000).replace('', 'b' * 1000)",
    ),
    _stopped("join", ("string_chars", "fuel"), "x = ('b' * 1000).join('a' * 1000)"),
    _stopped("split", ("collection_items", "fuel"), "x = ('a,' * 50000).split(',')"),
    _stopped("lines", ("collection_items", "fuel"), "x = ('a\\n' * 50000).splitlines()"),
    _stopped("letters", ("collection_items", "fuel"), "x = list('a' * 100000)"),
    _stopped(
        "f-string", ("string_chars", "fuel"), "x = 'a'\nfor i in range(60):\n    x = f'{x}{x}'"
    ),
    _stopped(
        "text of a list",
        ("string_chars", "fuel"),
        "x = ['a' * 1000] * 40\nfor i in range(60):\n    x = [str(x)]",
    ),
    _stopped(
        "searches", "fuel", "y = 'a' * 50000\nfor i in range(5000):\n    x = (y + 'b').find('b')"
    ),
    _stopped(
        "slow search",
        "fuel",
        "y = 'a' * 50000\nz = 'a' * 25000 + 'b'\nfor i in range(500):\n    x = y.count(z)",
    ),
    _stopped(
        "membership", "fuel", "y = list(range(9000))\nfor i in range(9000):\n    x = 0 - 1 in y"
    ),
    _stopped(
        "sorting",
        "fuel",
        "y = list(range(9000))\nfor i in range(9000):\n    x = sorted(y, reverse=True)",
    ),
    _stopped(
        "dict growing by one",
        "fuel",
        "x = 0\nfor i in range(9000):\n    y = {k: k for k in range(9000)}\n    x = len(y)",
    ),
    _stopped("list updated in place", "in_place_list", "x = [1]\nx += [2]"),
    _stopped("list repeated in place", "in_place_list", "x = [1]\nx *= 10"),
    _stopped("printf", "string_format", "x = '%1000000000d' % n"),
    _stopped("printf of a tuple", "string_format", "x = '%s %s' % (n, n)"),
    _stopped("printf by update", "string_format", "x = '%s'\nx %= n"),
)

_ITERATION = (
    _stopped("long loop", "fuel", "for i in range(data):\n    x = i", 10**12),
    _stopped(
        "loops in loops",
        "fuel",
        "for i in range(9999):\n    for j in range(9999):\n        x = i + j",
    ),
    _stopped(
        "empty loops", "fuel", "for i in range(9999):\n    for j in range(9999):\n        pass"
    ),
    _stopped("sum of a range", "fuel", "x = sum(range(data))", 10**10),
    _stopped("largest of a range", "fuel", "x = max(range(data))", 10**10),
    _stopped("list of a range", ("collection_items", "fuel"), "x = list(range(data))", 10**10),
    _stopped("sorted range", ("collection_items", "fuel"), "x = sorted(range(data))", 10**10),
    _stopped("any of a range", "fuel", "x = any(i < 0 for i in range(data))", 10**10),
    _stopped("all of a range", "fuel", "x = all(range(1, data))", 10**10),
    _stopped(
        "pairs of ranges",
        ("collection_items", "fuel"),
        "x = list(zip(range(data), range(data)))",
        10**10,
    ),
    _stopped("numbered range", "fuel", "for i, j in enumerate(range(data)):\n    x = i", 10**10),
    _stopped("length of an endless range", "overflow", "x = len(range(data))", 10**30),
    _stopped("comprehension", ("collection_items", "fuel"), "x = [i for i in range(data)]", 10**9),
    _stopped("filtered comprehension", "fuel", "x = [i for i in range(data) if i < 0]", 10**9),
    _stopped("many calls", ("child_calls", "fuel"), "for i in range(data):\n    note('x')", 10**6),
    _stopped(
        "many calls in a comprehension",
        ("child_calls", "fuel"),
        "x = [add(i, 1) for i in range(data)]",
        10**6,
    ),
)

_VALUES = (
    _stopped(
        "deep argument", ("nesting", "fuel", "opaque_value"), "x = str(data)", _nested(100_000)
    ),
    _stopped(
        "deep argument passed on",
        ("nesting", "fuel", "opaque_value", "invalid_arguments", "unserialisable_result"),
        "x = echo(data)",
        _nested(100_000),
    ),
    _stopped("endless argument", ("nesting", "fuel", "opaque_value"), "x = str(data)", _cycle()),
    _stopped(
        "endless argument compared",
        ("nesting", "fuel", "opaque_value"),
        "x = data == [data]",
        _cycle(),
    ),
    _stopped("function as an argument", "opaque_value", "x = data", print),
    _stopped("object as an argument", "opaque_value", "x = data == n", object()),
    _stopped("bytes as an argument", "opaque_value", "x = data + data", b"a"),
    _stopped("set as an argument", "opaque_value", "x = sorted(data)", {1, 2}),
    _stopped("a child that fails", "child_failed", "x = label(data, 3) + add('a', 1)"),
)

STOPPED_PROGRAMS: tuple[StoppedProgram, ...] = (*_NUMBERS, *_SEQUENCES, *_ITERATION, *_VALUES)
"""Over the children of ``support.random_children``."""
