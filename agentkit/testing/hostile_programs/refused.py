"""Texts that a reader of composites must refuse, with the code and the place of the refusal."""

# ruff: noqa: RUF001 - letters that look like others are what some of these texts are about

from __future__ import annotations

from dataclasses import dataclass

from agentkit.composites.problems import SourceCode

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


def _program(name: str, code: SourceCode, text: str) -> RefusedProgram:
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

_CONSTRUCTS: tuple[tuple[str, SourceCode, str], ...] = (
    ("endless loop", "unknown_construct", "«while True:\n    note('x')"),
    ("loop with else", "unknown_construct", "for i in data:\n    note('x')\nelse:\n    «note('y')"),
    ("exception handler", "unknown_construct", "«try:\n    note('x')\nexcept:\n    note('y')"),
    ("raise", "unknown_construct", "if n == 1:\n    «raise ValueError"),
    ("assert", "unknown_construct", "«assert data"),
    ("with", "unknown_construct", "«with data:\n    note('x')"),
    ("import", "unknown_construct", "«import os"),
    ("star import", "unknown_construct", "«from os import *"),
    ("import from", "unknown_construct", "«from os import system"),
    ("global", "unknown_construct", "«global data2"),
    ("nested function", "unknown_construct", "«def g(x):\n    return x"),
    ("class", "unknown_construct", "«class G:\n    pass"),
    ("lambda", "unknown_construct", "x = «lambda: 1\nnote(x)"),
    ("walrus", "unknown_construct", "if («y := n) > 1:\n    note('x')"),
    ("yield", "unknown_construct", "x = «yield 1\nnote(x)"),
    ("match", "unknown_construct", "«match data:\n    case 1:\n        note('x')"),
    ("set", "unknown_construct", "x = «{1, 2}\nnote(x)"),
    ("set comprehension", "unknown_construct", "x = «{c for c in data}\nnote(x)"),
    ("unpacking in a list", "unknown_construct", "x = [«*data]\nnote(x)"),
    ("unpacking in a dict", "unknown_construct", "x = {**«data}\nnote(x)"),
    ("starred target", "unknown_construct", "a, «*b = data\nnote([a, b])"),
    ("nested targets", "unknown_construct", "a, «(b, c) = data\nnote([a, b, c])"),
    ("chained assignment", "unknown_construct", "«a = b = data\nnote([a, b])"),
    ("bare annotation", "unknown_construct", "«x: int"),
    ("expression statement", "unknown_construct", "«n + 1"),
    ("second text", "unknown_construct", "«'a text'"),
    ("bit operation", "unknown_construct", "x = «n << 1000000000\nnote(x)"),
    ("bit inversion", "unknown_construct", "x = «~n\nnote(x)"),
    ("matrix product", "unknown_construct", "x = «n @ n\nnote(x)"),
    ("identity of values", "unknown_construct", "x = «data is n\nnote(x)"),
    (
        "await of a value",
        "unknown_construct",
        "async def f(data):\n    return [«await data, add(1, 2)]",
    ),
    ("bare return", "unknown_construct", "if n == 1:\n    «return"),
    ("extended slice", "unknown_construct", "x = data[«1:2, 3]\nnote(x)"),
    ("ellipsis", "literal", "x = «...\nnote(x)"),
    ("bytes", "literal", "x = «b'a'\nnote(x)"),
    ("complex number", "literal", "x = «1j\nnote(x)"),
    ("infinite number", "literal", "x = «1e999\nnote(x)"),
    ("huge hexadecimal", "literal", f"x = «0x{'f' * 2000}\nnote(x)"),
    ("lone surrogate", "literal", "x = «'\\ud800'\nnote(x)"),
)

_SCOPES: tuple[tuple[str, SourceCode, str], ...] = (
    ("builtin as a variable", "name_shadowing", "«len = 3"),
    ("builtin as a parameter", "name_shadowing", "def f(«sum):\n    return add(sum, 1)"),
    ("builtin as a loop variable", "name_shadowing", "«for list in data:\n    note('x')"),
    ("child as a variable", "name_shadowing", "«add = 3"),
    ("own name as a variable", "name_shadowing", "«f = 3"),
    ("child as a parameter", "name_shadowing", "def f(«add):\n    return add(1, 1)"),
    ("comprehension over a name in use", "name_shadowing", "x = «[n for n in data]\nnote(x)"),
    ("underscore variable", "underscore_name", "«_x = 3"),
    ("lone underscore", "underscore_name", "«for _ in data:\n    note('x')"),
    ("underscore parameter", "parameter", "def f(«__x):\n    return add(1, 1)"),
    ("underscore name", "unknown_name", "x = «__builtins__\nnote(x)"),
    ("unknown name", "unknown_name", "x = «missing\nnote(x)"),
    ("name of one branch", "possibly_unbound", "if n == 1:\n    x = 1\nnote(«x)"),
    ("loop variable after the loop", "possibly_unbound", "for i in data:\n    note('x')\nnote(«i)"),
    ("name of a comprehension", "unknown_name", "x = [c for c in data]\nnote(«c, x)"),
    ("no return", "missing_return", "def f(x):\n    «note(x)"),
    ("a path without return", "missing_return", "def f(x):\n    «if x:\n        return add(1, 2)"),
    ("code after return", "unreachable_code", "def f(x):\n    return add(x, 1)\n    «note(x)"),
    ("code after break", "unreachable_code", "for i in data:\n    break\n    «note('x')"),
    ("constant condition", "constant_condition", "if «1 < 2 and not 0:\n    note('x')"),
    ("constant choice", "constant_condition", "x = n if «True else 2\nnote(x)"),
    ("constant filter", "constant_condition", "x = [c for c in data if «1]\nnote(x)"),
    ("call for nothing", "dead_call", "«add(1, 2)"),
    ("result for nothing", "dead_call", "x = «add(1, 2)"),
    ("result overwritten", "dead_call", "x = «add(1, 2)\nx = 3\nnote(x)"),
    ("generator as a value", "iterator_escapes", "x = «(c for c in data)\nnote(x)"),
    ("range as a value", "iterator_escapes", "x = «range(3)\nnote(x)"),
    ("view as a value", "iterator_escapes", "x = «data.keys()\nnote(x)"),
    ("zip as an argument", "iterator_escapes", "note(«zip(data, data))"),
    ("two clauses", "nested_comprehension", "x = «[c for v in data for c in v]\nnote(x)"),
    (
        "comprehension inside",
        "nested_comprehension",
        "x = [«[c for c in v] for v in data]\nnote(x)",
    ),
    (
        "asynchronous clause",
        "unknown_construct",
        "async def f(x):\n    return «[add(c, 1) async for c in x]",
    ),
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
    _program(*entry)
    for entry in (
        *_ATTRIBUTES,
        *_CALLS,
        *_CONSTRUCTS,
        *_SCOPES,
        *_FUNCTIONS,
        *_UNICODE,
        *_SYNTAX,
        *_SIZES,
    )
)
"""Over the children of ``agentkit.testing.random_programs``."""
