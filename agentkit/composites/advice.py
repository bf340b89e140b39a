"""What to write instead of Python that the composite language does not have."""

from __future__ import annotations

from collections.abc import Mapping

FUNCTIONS: Mapping[str, str] = {
    "Decimal": "Use numbers as they are, and round(x, 2) for the result.",
    "acos": "There is no trigonometry here; call a tool for it.",
    "ceil": "Use `-(-x // 1)`.",
    "chr": "Write the character itself.",
    "dict": "Write a literal, `{'key': value}`, or a dict comprehension.",
    "divmod": "Use `x // y` and `x % y`.",
    "eval": "Write the code itself; no text is run as code.",
    "exec": "Write the code itself; no text is run as code.",
    "filter": "Write a comprehension, `[x for x in xs if test]`.",
    "floor": "Use `x // 1`.",
    "format": "Use an f-string with plain {value}, and round(value, 2) for digits.",
    "getattr": "Values are JSON: read an entry with `row['key']` or `row.get('key')`.",
    "input": "Make it a parameter.",
    "isclose": "Use `is_close(a, b)`.",
    "isinstance": "State the type in the annotations; compare values, such as `x is None`.",
    "isnan": "Use `x != x`, or `not isfinite(x)`.",
    "iter": "Use a for statement, or an index, `xs[0]`.",
    "map": "Write a comprehension, `[f(x) for x in xs]`.",
    "next": "Use an index, `xs[0]`, or a for statement with `break`.",
    "open": "Call a tool that reads the file, or take its content as a parameter.",
    "ord": "Compare the characters themselves.",
    "pow": "Use `x ** y`.",
    "print": "Delete it; give what matters with `return`.",
    "reversed": "Use a slice, `xs[::-1]`.",
    "set": "Use a list; `x in xs` works, and a comprehension over a dict drops repeated items.",
    "sqrt": "Use `x ** 0.5`.",
    "super": "There are no classes here; call a tool.",
    "tuple": "Write `(a, b)`, or use a list.",
    "type": "State the type in the annotations; compare values, such as `x is None`.",
}
"""Functions that models like to call, by their last name."""

METHODS: Mapping[str, str] = {
    "add": "Use a list: `xs = xs + [x]`.",
    "append": "Nothing changes a list: write `xs = xs + [x]`, or a comprehension.",
    "clear": "Assign a new value, `xs = []`.",
    "copy": "Delete it: nothing changes a value, so no copy is needed.",
    "decode": "Texts are texts already.",
    "encode": "Texts stay texts; there are no bytes.",
    "extend": "Nothing changes a list: write `xs = xs + ys`.",
    "format": "Use an f-string with plain {value}.",
    "format_map": "Use an f-string with plain {value}.",
    "insert": "Nothing changes a list: write `xs = xs[:i] + [x] + xs[i:]`.",
    "isnumeric": "Use `.isdigit()`.",
    "pop": "Nothing changes a value: take `xs[-1]` and go on with `xs[:-1]`.",
    "popitem": "Nothing changes a value: use `for key, value in d.items()`.",
    "remove": "Nothing changes a list: write `[y for y in xs if y != x]`.",
    "reverse": "Nothing changes a list: write `xs = xs[::-1]`.",
    "setdefault": "Nothing changes a dict: read with `d.get(key, default)`.",
    "sort": "Nothing changes a list: write `xs = sorted(xs)`.",
    "update": "Nothing changes a dict: build the joined one with a literal or a comprehension.",
}
"""Methods that models like to call."""

NAMES: Mapping[str, str] = {
    "math.e": "Write the number: 2.718281828459045.",
    "math.inf": "Compare with None or with a large number, such as 1e308.",
    "math.pi": "Write the number: 3.141592653589793.",
}
"""Attributes that models like to read."""

STATEMENTS: Mapping[str, tuple[str, str]] = {
    "Assert": ("`assert` is", "State it as a precondition, or return a value that says so."),
    "AsyncFor": ("`async for` is", "Use a plain `for` over a list."),
    "AsyncFunctionDef": ("a function inside a function is", "Write its code where it is used."),
    "AsyncWith": ("`async with` is", "Call a tool that does the whole work."),
    "ClassDef": ("`class` is", "Use dicts, `{'key': value}`."),
    "Delete": ("`del` is", "Delete the line: nothing changes a value."),
    "FunctionDef": ("a function inside a function is", "Write its code where it is used."),
    "Global": ("`global` is", "Use parameters and local variables."),
    "Import": ("`import` is", "Delete it; tools are called by their names."),
    "ImportFrom": ("`import` is", "Delete it; tools are called by their names."),
    "Match": ("`match` is", "Use if and elif."),
    "Nonlocal": ("`nonlocal` is", "Use parameters and local variables."),
    "Raise": ("`raise` is", "Return a value that says what is wrong, such as None."),
    "Try": ("`try` is", "Test for the case before: `if d != 0:`, `row.get('key')`."),
    "TryStar": ("`try` is", "Test for the case before: `if d != 0:`, `row.get('key')`."),
    "TypeAlias": ("`type` is", "Write the type in the annotation."),
    "While": ("`while` is", "Use `for i in range(n)`, with `break` where it may end earlier."),
    "With": ("`with` is", "Call a tool that does the whole work."),
}
"""Statements of Python that are not in the language, by the name of their syntax."""

EXPRESSIONS: Mapping[str, tuple[str, str]] = {
    "Lambda": ("`lambda` is", "Write the expression where it is used, or a comprehension."),
    "NamedExpr": ("`:=` is", "Assign in a line of its own before."),
    "Set": ("a set is", "Write a list, `[a, b]`; `x in [a, b]` works."),
    "SetComp": ("a set is", "Write a list comprehension, in square brackets."),
    "Slice": ("a slice between commas is", "Take one slice, `xs[a:b]`."),
    "Starred": (
        "`*` in front of a value is",
        "Join lists with `+`; write arguments out one by one.",
    ),
    "TemplateStr": ("a t-string is", "Use an f-string."),
    "Yield": ("`yield` is", "Collect the items in a list and return it."),
    "YieldFrom": ("`yield` is", "Collect the items in a list and return it."),
}
"""Expressions of Python that are not in the language, by the name of their syntax."""
