"""Binding code to the library: what was promoted is what models see.

A tool in code brings its function; what models read of it comes from the library's definition of
the same name. Where both say different things, ``code_registration`` settles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentkit.errors import CodeDriftError, DuplicateToolError
from agentkit.library.library import Library, RecordedNames, link
from agentkit.library.store import EventStore, ToolStore
from agentkit.tools.definition import Signature, ToolDefinition
from agentkit.tools.tool import Tool, contract_of


class LibraryStore(ToolStore, EventStore, Protocol):
    """Definitions and events."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeBinding:
    """The result of binding code to a library.

    Attributes:
        library_version: The library version afterwards.
        registered: Tools that the library did not know.
        revised: Tools whose contract had changed in code.
        without_code: Tools of the library that cannot run here.
        notes: What a person should know, one line each.
    """

    library_version: int = 0
    registered: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()
    without_code: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def with_code(library: Library, tools: Sequence[Tool]) -> Library:
    """A library with code bound to its definitions; nothing is written.

    A tool that the library does not know, or whose parameters differ in code, keeps the definition
    that stands in code.

    Args:
        library: Any version.
        tools: Tools in code. A definition that came from the same source and is kept under
            another name is found.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit import Library, tool
        >>> from agentkit.tools.definition import Description
        >>> @tool
        ... def ping(host: str) -> bool:
        ...     '''Ping.'''
        ...     return True
        >>> learned = replace(ping.definition, description=Description(summary="Ping a host."))
        >>> with_code(Library([learned]), [ping])["ping"].definition.description.summary
        'Ping a host.'
    """
    if not tools:
        return library
    names = RecordedNames(library.tools)
    bound = library.with_tools([_bound(tool, library, names) for tool in tools])
    return link(bound) if len(library) else bound


def bound_as_held(store: ToolStore, tools: Iterable[Tool]) -> tuple[Library, CodeBinding] | None:
    """Bind code to the newest library of a store that says all that the code says.

    Args:
        store: Keeps the library.
        tools: Tools in code.

    Returns:
        As ``bind_code``; None where there is something to write, or to tell a person.

    Raises:
        DuplicateToolError: Two tools have the same name.
        StoreError: The store failed.
    """
    given = tuple(tools)
    held = store.load()
    code = by_name(given, held)
    if all(name in held and _agrees(one, held[name].definition) for name, one in code.items()):
        bound = with_code(held, given)
        return bound, CodeBinding(library_version=held.version, without_code=without_code(bound))
    return None


def without_code(library: Library) -> tuple[str, ...]:
    """The names of the tools that cannot run in this process."""
    return tuple(one.name for one in library if not one.is_bound)


def pinned(
    store: ToolStore, version: int, tools: Iterable[Tool], *, frozen: bool = False
) -> tuple[Library, CodeBinding]:
    """Bind code to one version of a library; nothing is written.

    Args:
        store: Keeps the library.
        version: Which.
        tools: Tools in code.
        frozen: Refuse where code and that version differ.

    Returns:
        As ``bind_code``.

    Raises:
        CodeDriftError: ``frozen``, and they differ.
        DuplicateToolError: Two tools have the same name.
        StoreError: There is no such version.
    """
    given = tuple(tools)
    held = store.load(version)
    differences = tuple(
        f"{name}: library version {version} does not describe this code"
        for name, one in by_name(given, held).items()
        if name not in held or not agree(one.signature, held[name].definition.signature)
    )
    if frozen and differences:
        raise CodeDriftError(differences)
    bound = with_code(held, given)
    return bound, CodeBinding(
        library_version=held.version,
        without_code=without_code(bound),
        notes=tuple(f"{one}; the definition in code is used" for one in differences),
    )


def by_name(tools: Iterable[Tool], library: Library) -> dict[str, ToolDefinition]:
    """The definitions of primitives in code, by the names that the library has for them.

    Raises:
        DuplicateToolError: Two tools have the same name; the same one given twice is one.
    """
    names = RecordedNames(library.tools)
    known: dict[str, Tool] = {}
    for tool in tools:
        other = known.setdefault(names.of(tool.definition), tool)
        if other.definition != tool.definition or other.function is not tool.function:
            raise DuplicateToolError(tool.name, (other.place, tool.place))
    return {name: one.definition for name, one in known.items() if not one.definition.is_composite}


def agree(code: Signature, held: Signature) -> bool:
    """Whether the library's contract is that of the code, as far as the code declares one."""
    return code == held or contract_of(code, held) == held


def _agrees(code: ToolDefinition, held: ToolDefinition) -> bool:
    """Whether the library says of a tool what its code says."""
    return held.description == code.description and agree(code.signature, held.signature)


def _bound(tool: Tool, library: Library, names: RecordedNames) -> Tool:
    held = library.get(names.of(tool.definition))
    if held is None or held.definition.signature.parameters != tool.definition.signature.parameters:
        return tool
    return tool.bound_to(held.definition)
