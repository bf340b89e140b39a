"""What can be wrong with a composite: codes, limits, faults, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Literal, get_args

from agentkit.errors import CompositeError, SourceProblem, UsageError

SourceCode = Literal[
    "syntax",  # not Python, or nested too deeply for its parser
    "too_large",  # bytes, nodes or nesting beyond the limits
    "not_one_function",
    "parameter",  # star, positional-only or underscore parameters, defaults that are no scalars
    "unknown_construct",  # while, try, lambda, import, global, with, attributes, ...
    "unknown_name",
    "unknown_tool",
    "unknown_method",
    "wrong_arity",
    "underscore_name",
    "name_shadowing",
    "recursive_call",
    "possibly_unbound",
    "missing_return",
    "unreachable_code",
    "constant_condition",
    "dead_call",  # the result of a call that changes nothing is never used
    "iterator_escapes",
    "nested_comprehension",
    "format_specification",
    "literal",  # bytes, complex, ellipsis, infinite or oversized literals
    "missing_argument",
    "unknown_argument",
    "repeated_argument",
    "argument_type",
    "result_type",
    "annotation",  # a type that has no JSON Schema
    "decorator",
    "example",
    "malformed_program",  # data that is no program
    "missing_child",
    "changed_child",  # a child's digest is not the pinned one
    "unbound_child",  # a child has no function in this process
]
"""What can be wrong with the text or the data of a composite."""

RunCode = Literal[
    # Python's own errors, one for one
    "zero_division",
    "type_error",
    "value_error",
    "index_error",
    "key_error",
    "overflow",
    # what Python would do and we do not
    "complex_number",
    "in_place_list",
    "string_format",
    "opaque_value",
    # limits
    "fuel",
    "integer_bits",
    "string_chars",
    "collection_items",
    "child_calls",
    "deadline",
    "nesting",
    # children
    "invalid_arguments",
    "child_failed",
    "child_timeout",
    "unserialisable_result",
    # contracts
    "precondition",
    "postcondition",
]
"""Why a run of a composite ended before its result."""

RUN_CODES: frozenset[str] = frozenset(get_args(RunCode))
"""The same as a set."""

ContractMode = Literal["off", "dry_run", "always"]
"""When pre- and postconditions are checked: never, in validation runs only, or at every call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompositeLimits:
    """Caps on the text of a composite and on one run of it.

    A run shares them with all the composites that it calls.

    Attributes:
        source_bytes: Longest source text, in UTF-8.
        nodes: Most nodes of the program.
        nesting: Deepest nesting of expressions and blocks, and of composites within composites.
        integer_bits: Largest integer that may be computed.
        string_chars: Longest text that may be built.
        collection_items: Longest list, tuple or dict that may be built.
        fuel: Work of one run: one unit for each node evaluated and for about eight bytes built or
            looked through.
        child_calls: Most calls of children in one run.
        deadline_seconds: Longest run, waiting included; None for no deadline.
        concurrency: Most children that run at the same time.
    """

    source_bytes: int = 8_192
    nodes: int = 600
    nesting: int = 24
    integer_bits: int = 4_096
    string_chars: int = 100_000
    collection_items: int = 10_000
    fuel: int = 50_000
    child_calls: int = 500
    deadline_seconds: float | None = 30.0
    concurrency: int = 16

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise UsageError(f"CompositeLimits.{field.name} must be positive, got {value!r}")


CONTRACT_LIMITS = CompositeLimits(fuel=300_000, collection_items=100_000)
"""For one pre- or postcondition, which has the whole of a table to look through: enough for
simple conditions on each of 50,000 items, and still no more than about a quarter of a second."""

READING_LIMITS = CompositeLimits(source_bytes=1_048_576, nodes=20_000, nesting=80)
"""For looking at the programs of a library: one that was accepted under limits of its author's own
stays readable to those who count its calls or draw it."""


# --- faults ---------------------------------------------------------------------------------------

_SHOWN = 10
"""Problems that the message of an error spells out; ``CompositeError.problems`` has them all."""

Place = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one node.

    Attributes:
        node: The node of the program or of the syntax tree, or where it stands in the text.
        code: What is wrong.
        message: The same in a sentence.
        advice: What to write instead.
    """

    node: object
    code: SourceCode
    message: str
    advice: str


def placed(faults: Iterable[Fault], place: Callable[[object], Place]) -> tuple[SourceProblem, ...]:
    """Faults as problems with line and column, in the order of the text, each once."""
    problems = {
        SourceProblem(
            code=fault.code, message=fault.message, advice=fault.advice, line=line, column=column
        ): None
        for fault in faults
        for line, column in (place(fault.node),)
    }
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def refusal(name: str, problems: tuple[SourceProblem, ...]) -> CompositeError:
    """The error that carries the problems of one program, with the first of them in its text."""
    what = f"the composite {name!r}" if name else "the composite"
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{what} has {count}:", *map(str, problems[:_SHOWN])]
    if len(problems) > _SHOWN:
        lines.append(f"and {len(problems) - _SHOWN} more")
    return CompositeError("\n".join(lines), problems=problems, tool_name=name or None)


# --- similar names --------------------------------------------------------------------------------

_COMPARED = 500
"""Names that are compared letter by letter, out of any number."""

_LETTERS = 64


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names up to three names that look like ``name``; empty when none does.

    Only names of about the same length that start alike or have a word in common are compared, so
    that ten thousand known names take milliseconds.
    """
    # difflib loads when something is wrong only
    from difflib import get_close_matches

    folded = name.casefold()[:_LETTERS]
    likely = {
        other.casefold()[:_LETTERS]: other for other in islice(_akin(folded, known), _COMPARED)
    }
    names = [likely[match] for match in get_close_matches(folded, likely, 3, 0.6)]
    return f"Did you mean {' or '.join(f'`{other}`' for other in names)}?" if names else ""


def _akin(folded: str, known: Iterable[str]) -> Iterator[str]:
    """The names of about the same length that start alike or have a word in common."""
    first, words, slack = folded[:1], set(folded.split("_")), 4 + len(folded) // 4
    for other in known:
        if -slack <= len(other) - len(folded) <= slack:
            lower = other.lower()
            if lower[:1] == first or not words.isdisjoint(lower.split("_")):
                yield other


# --- what to write instead ------------------------------------------------------------------------

INSTEAD_OF_FUNCTION: Mapping[str, str] = {
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

INSTEAD_OF_METHOD: Mapping[str, str] = {
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

INSTEAD_OF_NAME: Mapping[str, str] = {
    "math.e": "Write the number: 2.718281828459045.",
    "math.inf": "Compare with None or with a large number, such as 1e308.",
    "math.pi": "Write the number: 3.141592653589793.",
}
"""Attributes that models like to read."""

INSTEAD_OF_STATEMENT: Mapping[str, tuple[str, str]] = {
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

INSTEAD_OF_EXPRESSION: Mapping[str, tuple[str, str]] = {
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
