"""Problems of composites: codes, limits, faults, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from agentkit.errors import CompositeError, SourceProblem, UsageError
from agentkit.tools.error_messages import close_to

ADVICE: Mapping[str, str] = {
    "syntax": "Write plain Python: one function.",
    "too_large": "Split it into two composites, one of which calls the other.",
    "not_one_function": "Keep one function; write helpers out where they are used.",
    "parameter": "Write plain parameters, one name for each value.",
    "unknown_construct": "Use the statements and expressions of the language.",
    "unknown_name": "Use a parameter, or a variable that was assigned before.",
    "unknown_tool": "Call one of the tools that you were given, or a function of the language.",
    "unknown_method": "Use a method of the language.",
    "wrong_arity": "Give as many arguments as it takes.",
    "underscore_name": "Use a plain name, such as `item`.",
    "name_shadowing": "Use another name for the variable, such as `item`.",
    "recursive_call": "Use a for loop over range; tools form a graph without cycles.",
    "possibly_unbound": "Set it before the if or the loop, for example to None, 0 or [].",
    "missing_return": "End every way with `return value`; write `return None` for nothing.",
    "unreachable_code": "Delete it, or move it before.",
    "dead_call": "Delete the call, or use its result.",
    "iterator_escapes": "Write list(...) around it.",
    "nested_comprehension": "Use a for statement, or assign the inner one to a variable first.",
    "format_specification": "Write plain {value}; for fewer digits use {round(value, 2)}.",
    "literal": "Write a constant of JSON.",
    "missing_argument": "Give every required argument.",
    "unknown_argument": "Give arguments that the tool declares.",
    "repeated_argument": "Give each argument once.",
    "argument_type": "Give a value of the declared type.",
    "result_type": "Return a value of the declared type.",
    "annotation": "Use a type that JSON has.",
    "decorator": "Write @composite(...) with constants, directly above the def.",
    "example": "Give every required argument, in JSON values of the declared types.",
    "malformed_program": "Compose it from its text.",
    "missing_child": "Add that tool, or remove the composite.",
    "changed_child": "Validate the composite again with the child as it is now.",
    "unbound_child": "Bind it, or give a recorded stub in its place.",
}
"""Problems of a composite's text or data, and how to fix them."""

STYLE_CODES = frozenset({"dead_call"})
"""What a new program is refused for although it would run; a stored one keeps running with it."""

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

ContractMode = Literal["off", "always"]
"""When pre- and postconditions are checked: never, or at every call."""


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
"""Limits for one pre- or postcondition, which may search a whole table: enough for
simple conditions on each of 50,000 items, and still no more than about a quarter of a second."""

READING_LIMITS = CompositeLimits(source_bytes=1_048_576, nodes=20_000, nesting=80)
"""Limits for reading the programs of a library: one that was accepted under its author's own limits
stays readable for counting its calls or drawing it."""


# --- faults ---------------------------------------------------------------------------------------

_SHOWN = 10
"""Problems that the message of an error spells out; ``CompositeError.problems`` has them all."""

Place = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem at one node.

    Attributes:
        node: The node of the program or of the syntax tree, or its place in the text.
        code: What is wrong, a key of ``ADVICE``.
        message: The same in a sentence.
        advice: What to write instead; that of the code when empty.
    """

    node: object
    code: str
    message: str
    advice: str = ""

    def at(self, line: int = 1, column: int = 1) -> SourceProblem:
        """The problem, in its place."""
        advice = self.advice or ADVICE[self.code]
        return SourceProblem(
            code=self.code, message=self.message, advice=advice, line=line, column=column
        )


def placed(faults: Iterable[Fault], place: Callable[[object], Place]) -> tuple[SourceProblem, ...]:
    """Faults as problems with line and column, in the order of the text, each once."""
    problems = {fault.at(*place(fault.node)): None for fault in faults}
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def refusal(name: str, problems: tuple[SourceProblem, ...]) -> CompositeError:
    """The error that carries the problems of one program, with the first of them in its text."""
    what = f"the composite {name!r}" if name else "the composite"
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{what} has {count}:", *map(str, problems[:_SHOWN])]
    if len(problems) > _SHOWN:
        lines.append(f"and {len(problems) - _SHOWN} more")
    return CompositeError("\n".join(lines), problems=problems, tool_name=name or None)


# --- what to write instead ------------------------------------------------------------------------


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names up to three names that look like ``name``; empty when none does."""
    names = " or ".join(f"`{other}`" for other in close_to(name, known))
    return f"Did you mean {names}?" if names else ""


_NO_CHANGE = "Nothing changes a value: "

INSTEAD: Mapping[str, str] = {
    # functions, by their last name
    "dict": "Write a literal, `{'key': value}`, or a dict comprehension.",
    "eval": "Write the code itself; no text is run as code.",
    "exec": "Write the code itself; no text is run as code.",
    "filter": "Write a comprehension, `[x for x in xs if test]`.",
    "getattr": "Values are JSON: read an entry with `row['key']` or `row.get('key')`.",
    "isinstance": "State the type in the annotations; compare values, such as `x is None`.",
    "map": "Write a comprehension, `[f(x) for x in xs]`.",
    "open": "Call a tool that reads the file, or take its content as a parameter.",
    "print": "Delete it; give what matters with `return`.",
    "reversed": "Use a slice, `xs[::-1]`.",
    "set": "Use a list; `x in xs` works, and a comprehension over a dict drops repeated items.",
    "sqrt": "Use `x ** 0.5`.",
    "type": "State the type in the annotations; compare values, such as `x is None`.",
    # methods
    ".append": f"{_NO_CHANGE}write `xs = xs + [x]`, or a comprehension.",
    ".extend": f"{_NO_CHANGE}write `xs = xs + ys`.",
    ".format": "Use an f-string with plain {value}.",
    ".pop": f"{_NO_CHANGE}take `xs[-1]` and go on with `xs[:-1]`.",
    ".reverse": f"{_NO_CHANGE}write `xs = xs[::-1]`.",
    ".sort": f"{_NO_CHANGE}write `xs = sorted(xs)`.",
    ".update": f"{_NO_CHANGE}build the joined dict with a literal or a comprehension.",
    # statements and expressions, by the name of their syntax
    **dict.fromkeys(("AugAssign", "BinOp", "UnaryOp"), "Use arithmetic, `and`, `or`."),
    "AnnAssign": "Give it a value, such as None, or delete the line.",
    "Assert": "State it as a precondition, or return a value that says so.",
    "Assign": "Write one assignment a line.",
    "Expr": "Assign it to a name, or delete the line; write a comment with #.",
    "For": "Use a plain `for` over a list.",
    "FunctionDef": "Write its code where it is used.",
    "Global": "Use parameters and local variables.",
    "Import": "Delete it; tools are called by their names.",
    "Lambda": "Write the expression where it is used, or a comprehension.",
    "Match": "Use if and elif.",
    "NamedExpr": "Assign in a line of its own before.",
    "Raise": "Return a value that says what is wrong, such as None.",
    "Return": "Write `return None`.",
    "Set": "Write a list, `[a, b]`; `x in [a, b]` works.",
    "Starred": "Join lists with `+`; write arguments out one by one.",
    "Try": "Test for the case before: `if d != 0:`, `row.get('key')`.",
    "While": "Use `for i in range(n)`, with `break` where it may end earlier.",
    "With": "Call a tool that does the whole work.",
    "Yield": "Collect the items in a list and return it.",
}
"""Replacements for functions, methods and syntax that models like to use."""


def instead_of(node: object) -> str:
    """The replacement for a piece of syntax, in its async and other variants."""
    name = type(node).__name__.removeprefix("Async").removesuffix("From").removesuffix("Star")
    return INSTEAD.get(name, "Use the statements and expressions of the language.")
