"""``@composite``: a Python function over tools becomes a tool whose body is data."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack, overload

from agentkit.composites.composite import composite_tool
from agentkit.composites.parser import read_function
from agentkit.composites.problems import CompositeLimits, ContractMode, Fault, refusal
from agentkit.composites.source import DECORATOR, Composer, name_of
from agentkit.errors import CompositeError, UsageError
from agentkit.tools.decorator import RUNNING, SharedOptions, as_tuple
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.function import DefinitionOptions
from agentkit.tools.tool import Tool, tools_by_name


class CompositeOptions(SharedOptions, total=False):
    """Options of ``composite``, documented there."""

    tools: Mapping[str, Tool] | Iterable[Tool]
    text: Iterable[str]
    limits: CompositeLimits | None
    contracts: ContractMode


_COLLECTIONS = ("tags", "usage_rules", "pre", "post", "text")


@overload
def composite(function: Callable[..., Any], /) -> Tool: ...


@overload
def composite(**options: Unpack[CompositeOptions]) -> Callable[[Callable[..., Any]], Tool]: ...


def composite(
    function: Callable[..., Any] | None = None, /, **options: Unpack[CompositeOptions]
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
    if unknown := options.keys() - CompositeOptions.__optional_keys__:
        raise UsageError(f"@composite knows no {', '.join(sorted(unknown))}")
    settings: dict[str, Any] = dict(options)
    named = tools_by_name(settings.pop("tools", ()))
    limits, contracts = settings.pop("limits", None), settings.pop("contracts", "off")
    running = {name: one for name in RUNNING if (one := settings.pop(name, None)) is not None}
    for name in _COLLECTIONS:
        settings[name] = as_tuple(name, settings.get(name, ()))
    settings["examples"] = tuple(settings.get("examples", ()))
    described = DefinitionOptions(**settings)

    def make(wrapped: Callable[..., Any]) -> Tool:
        inner = wrapped.__func__ if isinstance(wrapped, staticmethod) else wrapped
        if not isinstance(inner, types.FunctionType) or inner.__name__ == "<lambda>":
            raise UsageError(
                f"@composite reads the text of a function written with def, got {wrapped!r:.100}; "
                "put it directly above the def"
            )
        found = {**_surroundings(inner), **named}
        definition = _definition(inner, found, described, limits)
        by_name = {tool.name: tool for tool in found.values()}
        bound = composite_tool(definition, by_name, limits=limits, contracts=contracts)
        return replace(bound, **running)

    return make if function is None else make(function)


def _definition(
    function: types.FunctionType,
    tools: Mapping[str, Tool],
    options: DefinitionOptions,
    limits: CompositeLimits | None,
) -> ToolDefinition:
    """Read the text of a function; problems are placed in its file.

    Raises:
        CompositeError: The text is outside the language, or does not fit its children.
        UsageError: It has no text.
    """
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise UsageError(
            f"@composite cannot find the text of {function.__name__!r} ({error}); write the "
            "function in a file, or pass its text to agentkit.composites.source"
        ) from error
    is_indented = lines[0][:1].isspace()
    text = "".join(["if True:\n"] * is_indented + lines)
    tree: Any = ast.parse(text)
    node: ast.FunctionDef = tree.body[0].body[0] if is_indented else tree.body[0]
    try:
        _take_decorators(node)
        parsed = read_function(node, text, tools, limits=limits)
        if parsed.problems:
            raise refusal(parsed.name, parsed.problems)
        reference = f"{function.__module__}.{function.__qualname__}"
        return Composer(parsed, options).definition(limits, reference)
    except CompositeError as error:
        above = start - 1 - is_indented
        problems = tuple(replace(one, line=one.line + above) for one in error.problems)
        named = refusal(function.__name__, problems)
        file = inspect.getsourcefile(function) or function.__code__.co_filename
        message = f"{file}: {named}"
        raise CompositeError(message, problems=problems, tool_name=function.__name__) from None


def _take_decorators(node: ast.FunctionDef) -> None:
    """Leave the decorators out: Python has evaluated ours, and others come later.

    Raises:
        CompositeError: A decorator stands below ours, so that the text is not what ours was given.
    """
    names = [name for one in node.decorator_list if (name := name_of(one)) != "staticmethod"]
    if DECORATOR in names[:-1]:
        what = f"@{names[-1]} stands below @composite, and what it makes is not in the text"
        advice = "Put @composite directly above the def."
        raise refusal("", (Fault(None, "decorator", what, advice).at(),))
    node.decorator_list = []


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
