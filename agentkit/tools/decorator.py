"""``@tool``: a Python function becomes a ``Tool``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, Unpack, overload

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.tools import sources  # a door: it loads when a function is read
from agentkit.tools.definition import EffectName, Effects, Example
from agentkit.tools.tool import Tool

Text = TypeVar("Text", bound=str)


class SharedOptions(TypedDict, total=False):
    """Options that ``tool`` and ``composite`` have in common."""

    description: str | None
    tags: Iterable[str]
    usage_rules: Iterable[str]
    pre: Iterable[str]
    post: Iterable[str]
    complexity: str
    examples: Iterable[Example | JsonObject]
    timeout_seconds: float | None
    max_retries: int | None
    requires_approval: bool | None


class ToolOptions(SharedOptions, total=False):
    """Options of ``tool``, documented there."""

    name: str | None
    effects: Effects | Iterable[EffectName]
    deferred: bool


_COLLECTIONS = ("effects", "tags", "usage_rules", "pre", "post")
RUNNING = ("timeout_seconds", "max_retries", "requires_approval")
"""Options that say how a tool runs; its definition does not hold them."""


@overload
def tool(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> Tool: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async; use it as ``@tool``, ``@tool(...)`` or ``tool(f)``.

    Parameters come from annotations and defaults, the words from the docstring (Google, NumPy
    or reST) or from ``Annotated[int, "how many"]``. What is given here wins. A first parameter
    ``ctx: RunContext[...]`` is given the run's context, and models do not see it. The tool is
    still called like the function.

    Args:
        function: The function, bound method, ``functools.partial`` or object with ``__call__``.
        name: The name that models use; the function's own by default.
        description: The summary; the docstring's by default.
        effects: What running it does, such as ``("reads",)`` or ``("writes", "destructive")``.
        tags: Free labels.
        usage_rules: Rules for the model, one a sentence.
        pre: Expressions that hold before a call.
        post: Expressions over the parameters and ``result`` that hold after it.
        complexity: Cost in words, such as ``O(n log n)`` or ``two database reads``.
        examples: Worked calls.
        timeout_seconds: Longest run of one attempt; the agent's by default.
        max_retries: Further attempts; the agent's by default.
        requires_approval: Ask a person first; by default when it is destructive.
        deferred: Somebody outside this process answers: the function's body is never run.

    Returns:
        The tool, or the decorator that makes it.

    Raises:
        DefinitionError: A model cannot call the function; the message names the parameter.
        UsageError: ``timeout_seconds`` or ``max_retries`` is out of range, or there is no such
            option.

    Example:
        >>> @tool(effects=("reads",))
        ... def word_count(text: str) -> int:
        ...     '''Count the words of a text.'''
        ...     return len(text.split())
        >>> word_count("to be or not"), word_count.name, word_count.definition.text
        (4, 'word_count', 'Count the words of a text.')
    """
    if unknown := options.keys() - ToolOptions.__optional_keys__:
        raise UsageError(f"@tool knows no {', '.join(sorted(unknown))}")
    settings: dict[str, Any] = {**options}
    deferred = settings.pop("deferred", False)
    _check_bounds(settings.get("timeout_seconds"), settings.get("max_retries"))
    running = {name: settings.pop(name) for name in RUNNING if name in settings}
    settings["examples"] = tuple(settings.get("examples", ()))
    for name in _COLLECTIONS:
        if not isinstance(settings.get(name), Effects):
            settings[name] = as_tuple(name, settings.get(name, ()))

    def make(wrapped: Callable[..., Any]) -> Tool:
        if isinstance(wrapped, Tool):
            raise UsageError(
                f"{wrapped.name!r} is a tool already; give its options where it is made, or use "
                "Tool.with_definition"
            )
        made = sources.read_function(wrapped, sources.DefinitionOptions(**settings))
        if deferred:
            return replace(made, is_async=False, **running)
        return replace(made, function=wrapped, **running)

    return make if function is None else make(function)


def as_tuple(option: str, values: Iterable[Text]) -> tuple[Text, ...]:
    """Texts as a tuple.

    Raises:
        UsageError: They are a single text, which would be taken letter by letter.
    """
    if isinstance(values, str):
        raise UsageError(f"{option} is a collection, not one string; write {option}=[{values!r}]")
    return tuple(values)


def _check_bounds(timeout_seconds: float | None, max_retries: int | None) -> None:
    if timeout_seconds is not None and not timeout_seconds > 0:
        raise UsageError(f"timeout_seconds must be positive, got {timeout_seconds!r}")
    if max_retries is not None and max_retries < 0:
        raise UsageError(f"max_retries must be 0 or more, got {max_retries!r}")
