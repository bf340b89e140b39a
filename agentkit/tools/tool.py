"""``Tool``: a definition together with the way it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from agentkit.messages import JsonObject
from agentkit.tools.definition import EffectName, Effects, Signature, ToolDefinition


def tools_by_name(tools: Mapping[str, Tool] | Iterable[Tool]) -> Mapping[str, Tool]:
    """Tools by name: a mapping as it is, and a list or a ``Library`` by the tools' own names."""
    return tools if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}


def contract_of(code: Signature, held: Signature) -> Signature:
    """The contract that holds: that of the code, and the library's where code declares nothing.

    A result or an effect that somebody added to the library's definition stays, such as the
    ``destructive`` of a reviewer; that code does *not* write, or may be repeated, only code says.
    """
    freer = held.effects.freer_than(code.effects)
    declared = {
        name: theirs if mine is None and name not in freer else mine
        for name in get_args(EffectName)
        for mine, theirs in ((getattr(code.effects, name), getattr(held.effects, name)),)
    }
    return replace(
        code,
        result=held.result if code.result is None else code.result,
        effects=Effects(**declared),
        children=held.children,
    )


def _unchanged(arguments: JsonObject) -> JsonObject:
    return arguments


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that an agent may offer: what the model sees, and how it runs.

    A tool without a ``function`` is *unbound*: a catalogue entry, or work done outside this
    process. A call to it is validated and then handed back to the caller as deferred.

    Attributes:
        definition: What the model and the retriever see.
        function: Sync or async callable that takes the arguments as keywords, or None.
        is_async: Whether ``function`` returns an awaitable.
        convert: Turns validated JSON arguments into the Python values that ``function`` expects.
        timeout_seconds: Longest run of one attempt; None takes the agent's.
        max_retries: Further attempts after a transient exception, and how often the model may try
            again after ``ModelRetry``; None takes the agent's.
        requires_approval: Ask a person before running; None means "when destructive".
        context: The ``RunContext[...]`` that ``convert`` adds to the arguments; None for none.
    """

    definition: ToolDefinition
    function: Callable[..., Any] | None = None
    is_async: bool = False
    convert: Callable[[JsonObject], JsonObject] = field(default=_unchanged, repr=False)
    timeout_seconds: float | None = None
    max_retries: int | None = None
    requires_approval: bool | None = None
    context: Any = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name that the library knows the tool by."""
        return self.definition.name

    @property
    def is_bound(self) -> bool:
        """Whether the tool runs in this process."""
        return self.function is not None

    @property
    def place(self) -> str:
        """File and line of the code, or what the definition says of its source."""
        code = getattr(self.function, "__code__", None)
        if code is None:
            return self.definition.origin.reference
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def converts(self) -> bool:
        """Whether ``convert`` does anything; without it the function takes plain JSON values."""
        return self.convert is not _unchanged

    @property
    def needs_approval(self) -> bool:
        """Whether a person is asked before the tool runs."""
        if self.requires_approval is not None:
            return self.requires_approval
        return self.definition.signature.effects.destructive is True

    def with_definition(self, definition: ToolDefinition) -> Tool:
        """The same binding under another revision of the definition."""
        return replace(self, definition=definition)

    def bound_to(self, held: ToolDefinition) -> Tool:
        """The same binding under a library's definition, with the contract that its code declares.

        A composite keeps the contract that is held: linking compares it with what it calls.
        """
        if held.is_composite and self.definition.is_composite:
            return self.with_definition(held)
        contract = contract_of(self.definition.signature, held.signature)
        same = contract == held.signature
        return self.with_definition(held if same else replace(held, signature=contract))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly, as if it had not been decorated.

        Raises:
            TypeError: The tool is unbound.
        """
        if self.function is None:
            hint = (
                "; it is a composite: bind the tools that it calls (library.bind), or ask "
                "agentkit.library.library.link_report(library) what stands in its way"
            )
            composite = self.definition.is_composite
            raise TypeError(f"tool {self.name!r} has no function in this process{hint * composite}")
        return self.function(*args, **kwargs)
