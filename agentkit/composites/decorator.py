"""``@composite``: a Python function over tools becomes a tool whose body is data."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from agentkit.composites.composite import composite_tool
from agentkit.composites.problems import CompositeLimits, ContractMode, refusal
from agentkit.composites.source import DECORATOR, compose_authored, name_of
from agentkit.errors import CompositeError, SourceProblem, UsageError
from agentkit.messages import JsonObject
from agentkit.tools.definition import Example
from agentkit.tools.tool import Tool, tools_by_name


@overload
def composite(function: Callable[..., Any], /) -> Tool: ...


@overload
def composite(
    *,
    tools: Mapping[str, Tool] | Iterable[Tool] = (),
    description: str | None = None,
    tags: Iterable[str] = (),
    usage_rules: Iterable[str] = (),
    pre: Iterable[str] = (),
    post: Iterable[str] = (),
    text: Iterable[str] = (),
    complexity: str = "",
    examples: Iterable[Example | JsonObject] = (),
    limits: CompositeLimits | None = None,
    contracts: ContractMode = "off",
    timeout_seconds: float | None = None,
    max_retries: int | None = None,
    requires_approval: bool | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def composite(
    function: Callable[..., Any] | None = None,
    /,
    *,
    tools: Mapping[str, Tool] | Iterable[Tool] = (),
    description: str | None = None,
    tags: Iterable[str] = (),
    usage_rules: Iterable[str] = (),
    pre: Iterable[str] = (),
    post: Iterable[str] = (),
    text: Iterable[str] = (),
    complexity: str = "",
    examples: Iterable[Example | JsonObject] = (),
    limits: CompositeLimits | None = None,
    contracts: ContractMode = "off",
    timeout_seconds: float | None = None,
    max_retries: int | None = None,
    requires_approval: bool | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function whose body only calls tools; ``@composite`` or ``@composite(...)``.

    The function itself is never called: its text is read, checked and kept as data, and a call
    of the tool runs that program. Its children are the tools that it names, whatever the file
    calls them, and those in ``tools``.

    Args:
        function: A ``def`` or ``async def`` in the composite language.
        tools: Tools that the text calls by their own name, or by the name given here; they come
            before what the function's surroundings hold under that name.
        description: The summary; the docstring's by default.
        tags: Free labels.
        usage_rules: Rules for the model, one a sentence.
        pre: Expressions over the parameters that hold before a call.
        post: Expressions over the parameters and ``result`` that hold after it.
        text: Conditions in words.
        complexity: Cost in words.
        examples: Worked calls.
        limits: Caps on the text, the program and each run.
        contracts: When pre- and postconditions are checked.
        timeout_seconds: Longest run; the agent's by default.
        max_retries: Further attempts; the agent's by default.
        requires_approval: Ask a person first; by default when a child needs that.

    Returns:
        The tool, or the decorator that makes it.

    Raises:
        CompositeError: The text is outside the language; lines are those of the file.
        UsageError: The function has no text, as when it was typed into a plain prompt.

    Example:
        >>> from agentkit import tool
        >>> @tool
        ... def multiply(a: float, b: float) -> float:
        ...     '''The product of two numbers.'''
        ...     return a * b
        >>> @composite(pre=["side > 0"])
        ... def volume(side: float) -> float:
        ...     '''Volume of a cube.'''
        ...     return multiply(multiply(side, side), side)
        >>> volume(side=3), [child.name for child in volume.definition.signature.children]
        (27, ['multiply'])
    """
    keywords = {
        "description": description,
        "tags": _texts("tags", tags),
        "usage_rules": _texts("usage_rules", usage_rules),
        "pre": _texts("pre", pre),
        "post": _texts("post", post),
        "text": _texts("text", text),
        "complexity": complexity,
        "examples": tuple(map(_record, examples)),
    }
    named = tools_by_name(tools)

    def make(wrapped: Callable[..., Any]) -> Tool:
        code = _Code.of(wrapped)
        found = {**_surroundings(code.function), **named}
        try:
            definition = compose_authored(
                code.text,
                found,
                keywords=keywords,
                limits=limits,
                reference=code.reference,
            )
        except CompositeError as error:
            raise code.located(error) from None
        by_name = {tool.name: tool for tool in found.values()}
        bound = composite_tool(definition, by_name, limits=limits, contracts=contracts)
        asks = bound.requires_approval if requires_approval is None else requires_approval
        return replace(
            bound,
            timeout_seconds=timeout_seconds,
            max_retries=max_retries,
            requires_approval=asks,
        )

    return make if function is None else make(function)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Code:
    """The text of a function, moved to the left margin.

    Attributes:
        function: The function.
        text: Its source without decorators.
        file: Where it stands.
        line: Lines above it in that file.
        indent: Characters to its left.
    """

    function: types.FunctionType
    text: str
    file: str
    line: int
    indent: int

    @classmethod
    def of(cls, wrapped: object) -> _Code:
        """Find the text of a function.

        Raises:
            UsageError: It is no function, or it has no text.
        """
        inner = wrapped.__func__ if isinstance(wrapped, staticmethod) else wrapped
        if not isinstance(inner, types.FunctionType) or inner.__name__ == "<lambda>":
            raise UsageError(
                f"@composite reads the text of a function written with def, got {wrapped!r:.100}; "
                "put it directly above the def"
            )
        try:
            lines, start = inspect.getsourcelines(inner)
        except (OSError, TypeError) as error:
            raise UsageError(
                f"@composite can not find the text of {inner.__name__!r} ({error}); write the "
                "function in a file, or pass its text to agentkit.composites.source"
            ) from error
        source = "".join(lines)
        indent = len(source) - len(source.lstrip(" \t"))
        return cls(
            function=inner,
            text=_without_decorators(_moved_left(source, indent)),
            file=inspect.getsourcefile(inner) or inner.__code__.co_filename,
            line=start - 1,
            indent=indent,
        )

    @property
    def reference(self) -> str:
        """The module path of the function."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def located(self, error: CompositeError) -> CompositeError:
        """The error with lines and columns of the file."""
        problems = tuple(self._moved(problem) for problem in error.problems)
        named = refusal(self.function.__name__, problems)
        return CompositeError(
            f"{self.file}: {named}", problems=problems, tool_name=self.function.__name__
        )

    def _moved(self, problem: SourceProblem) -> SourceProblem:
        return replace(problem, line=problem.line + self.line, column=problem.column + self.indent)


def _moved_left(source: str, indent: int) -> str:
    """The source without its indentation; lines inside strings are left as they are."""
    if not indent:
        return source
    inside = {
        line
        for node in ast.walk(ast.parse(f"if True:\n{source}"))
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }
    lines = source.split("\n")
    return "\n".join(
        line if number in inside or not line[:indent].isspace() else line[indent:]
        for number, line in enumerate(lines, start=2)
    )


def _without_decorators(source: str) -> str:
    """The text with its decorators blanked out: Python has evaluated ours, and others come later.

    Raises:
        CompositeError: A decorator stands below ours, so that the text is not what ours was given.
    """
    lines = source.split("\n")
    decorators: list[ast.expr] = getattr(ast.parse(source).body[0], "decorator_list", [])
    names = [name for one in decorators if (name := name_of(one)) != "staticmethod"]
    if DECORATOR in names[:-1]:
        problem = SourceProblem(
            code="decorator",
            message=f"@{names[-1]} stands below @composite, and what it makes is not in the text",
            advice="Put @composite directly above the def.",
        )
        raise refusal("", (problem,))
    for decorator in decorators:
        for line in range(decorator.lineno - 1, decorator.end_lineno or decorator.lineno):
            lines[line] = ""
    return "\n".join(lines)


def _surroundings(function: types.FunctionType) -> dict[str, Tool]:
    """The tools that a function's closure, globals and imported modules hold, as it names them."""
    names = function.__code__.co_names
    values: dict[str, object] = {
        name: function.__globals__[name] for name in names if name in function.__globals__
    }
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet: the parser says that there is no such tool
            continue
    found = {name: value for name, value in values.items() if isinstance(value, Tool)}
    for prefix, module in values.items():
        if isinstance(module, types.ModuleType):
            held = ((name, vars(module).get(name)) for name in names)
            found |= {f"{prefix}.{name}": tool for name, tool in held if isinstance(tool, Tool)}
    return found


def _texts(option: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise UsageError(f"{option} is a collection, not one string; write {option}=[{given!r}]")
    return tuple(given)


def _record(example: Example | JsonObject) -> JsonObject:
    if isinstance(example, Example):
        return {
            "arguments": dict(example.arguments),
            "result": example.result,
            "query": example.query,
        }
    if not isinstance(example.get("arguments"), Mapping):
        raise UsageError(f"an example has arguments, got {dict(example)!r:.200}")
    return example
