"""Linking: a composite that came as data runs on the code of the tools that it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.errors import SourceProblem
from agentkit.library.bindings import bind_composites, has_composites
from agentkit.library.dag import reachable
from agentkit.library.library import Library

if TYPE_CHECKING:
    from agentkit.composites.problems import CompositeLimits, ContractMode


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkReport:
    """What linking came to.

    Attributes:
        library: The library with its composites linked.
        bound: The composites that run in this process.
        refused: Those that do not, each with the reasons.
    """

    library: Library
    bound: tuple[str, ...]
    refused: Mapping[str, tuple[SourceProblem, ...]]


def link(
    library: Library,
    *,
    limits: CompositeLimits | None = None,
    contracts: ContractMode | None = None,
) -> Library:
    """A library whose composites run on the code of their children.

    ``Library.bind`` ends with this, so that binding the primitives of a library from a store makes
    its composites run; call it yourself to set limits, or to have contracts checked.

    A composite gets code when all its children are in the library with the digests that it pins,
    and have code themselves; the others have none, also when they had before. ``link_report`` says
    why. A composite that was bound to a plain function is left as it is.

    Args:
        library: The library.
        limits: Caps on each run; None keeps those of a composite that has code, and takes the
            defaults for one that has none.
        contracts: When pre- and postconditions are checked; None keeps what a composite that has
            code was bound with, and is ``off`` for one that has none.

    Example:
        >>> from agentkit import Library, open_store, tool
        >>> from agentkit.library import LibraryChange
        >>> from agentkit.composites.source import compose
        >>> @tool
        ... def add(a: float, b: float) -> float:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> text = '''
        ... def add_three(a: float, b: float, c: float) -> float:
        ...     "Add three numbers."
        ...     return add(add(a, b), c)
        ... '''
        >>> composite = compose(text, {"add": add})
        >>> store = open_store("memory:")
        >>> both = LibraryChange(proposal_id="one", upserts=(add.definition, composite))
        >>> store.commit(both, expected_version=0)
        1
        >>> library = store.load().bind({"add": add})
        >>> library["add_three"](a=1, b=2, c=3)
        6
    """
    if not has_composites(library):
        return library
    return link_report(library, limits=limits, contracts=contracts).library


def link_report(
    library: Library,
    *,
    limits: CompositeLimits | None = None,
    contracts: ContractMode | None = None,
) -> LinkReport:
    """As ``link``, with the reasons why composites got no code.

    Args:
        library: The library.
        limits: Caps on each run; None keeps those of a composite that has code, and takes the
            defaults for one that has none.
        contracts: When pre- and postconditions are checked; None keeps what a composite that has
            code was bound with, and is ``off`` for one that has none.
    """
    linked, refused = bind_composites(
        library.tools, library.dag, limits=limits, contracts=contracts
    )
    return LinkReport(
        library=library.with_tools(linked.values()),
        bound=tuple(name for name, tool in linked.items() if tool.is_bound),
        refused=refused,
    )


def broken_links(library: Library, name: str) -> tuple[SourceProblem, ...]:
    """Why a composite can not run, for reasons that code for its primitives would not mend.

    A child is missing or has changed, here or in a composite below; the body is no program; or
    the calls run in a circle. Nothing when it only waits for primitives to be bound.

    Args:
        library: The library.
        name: A tool of it.

    Cost: linking the composite and what is below it.
    """
    below = reachable([name], library.dag.children)
    part = Library(library[one] for one in below if one in library)
    problems = link_report(part).refused.get(name, ())
    return tuple(problem for problem in problems if problem.code != "unbound_child")
