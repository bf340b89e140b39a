"""``Artifact``: a library with where it comes from and why, in a form that leaves the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from agentkit._version import __version__
from agentkit.errors import CompositeError, StoreError, ToolNotFoundError
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.repository import LibraryStore
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import AppliedChange, LibraryChange
from agentkit.messages import JsonObject

FORMAT_VERSION = 1
"""Version of the artifact's form. A newer one is refused, never guessed at."""

UNKNOWN_LICENCE = ""
"""The entry for tools whose source names no licence."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A library as one value that can be written, hashed, signed, compared and loaded.

    ``artifact_of`` makes one, ``write_artifact`` and ``read_artifact`` keep it in a file.

    Attributes:
        library: The tools, in the order in which they are offered, at the version that was
            exported.
        changes: How the library came about, oldest first. Where the history was left out, one
            change that brings everything.
        events: The chain of events up to that version, as the store held it.
        evidence: What gates, judges and persons said of the proposals that these tools came from,
            as JSON data (``gate_evidence``).
        made_with: Version of agentkit that collected it.
        signature: Signs ``digest``, as ``hmac-sha256:...`` or ``ed25519:...``; empty for none.
    """

    library: Library
    changes: tuple[AppliedChange, ...] = ()
    events: tuple[LibraryEvent, ...] = ()
    evidence: tuple[JsonObject, ...] = ()
    made_with: str = ""
    signature: str = ""

    @property
    def has_history(self) -> bool:
        """Whether the changes begin with the first library version, so that none is missing."""
        return bool(self.changes) and self.changes[0].version == 1

    @cached_property
    def licences(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the tools by the licence of their source, an SPDX expression."""
        found: dict[str, list[str]] = {}
        for definition in self.library.all_definitions:
            licence = definition.origin.licence or UNKNOWN_LICENCE
            found.setdefault(licence, []).append(definition.name)
        return {licence: tuple(found[licence]) for licence in sorted(found)}

    @cached_property
    def dag(self) -> Mapping[str, Mapping[str, Any]]:
        """For each composite: the tools it calls and, if no tool is missing, depth and size."""
        return dag_of(self.library)


def dag_of(library: Library) -> dict[str, dict[str, Any]]:
    """What calls what in a library, as JSON data: see ``agentkit.library.dag`` for the words.

    A composite in or above a circle, or above a tool that is missing, has no depth and no size; one
    in or above a program that cannot be read has no size.
    """
    dag = library.dag
    nodes: dict[str, dict[str, Any]] = {}
    for definition in library.definitions:
        name = definition.name
        if not definition.is_composite:
            continue
        node: dict[str, Any] = {"children": list(dag.children[name])}
        if name in dag.depths:
            node["depth"] = dag.depths[name]
            with suppress(CompositeError):
                node["flat_size"] = dag.flat_size(name)
        nodes[name] = node
    return nodes


def gate_evidence(events: Iterable[LibraryEvent]) -> tuple[JsonObject, ...]:
    """Why each proposal that became active serves: what gates, judges and persons said of it.

    Raises:
        StoreFormatError: The events are not a chain, or of a kind that this agentkit does not know.
    """
    found: list[JsonObject] = []
    for record in Ledger().after(events).proposals.values():
        if record.activation is None:
            continue
        facts = (event.facts for event in record.assessments)
        found.append(
            {
                "tool": record.tool_name,
                "proposal_id": record.proposal_id,
                "state": record.state,
                "digest": record.activation.digest_after,
                "author": record.author.name,
                "reason": record.reason,
                "agreed": list(record.agreed),
                "reports": [{k: v for k, v in one.items() if k != "stage"} for one in facts],
            }
        )
    return tuple(found)


def artifact_of(
    source: LibraryStore | Library,
    *,
    version: int | None = None,
    history: bool = True,
    only: Iterable[str] = (),
) -> Artifact:
    """Everything about a library that can leave its store.

    Args:
        source: A store; or a library in memory, which has no history.
        version: The library version; None for the newest. Nothing later is included.
        history: Whether earlier revisions and the events go along. Without them the evidence of
            gates still does.
        only: Names of tools, to take these and what they call instead of all; without history,
            because a part of a chain of events proves nothing.

    Raises:
        StoreError: There is no such version, or the store holds no tool.
        ToolNotFoundError: ``only`` names a tool that is not there.
        LibraryError: A tool that one of ``only`` calls is not there.

    Example:
        >>> from agentkit import open_store
        >>> from agentkit.library import LibraryChange
        >>> from agentkit.testing import sample_library
        >>> store = open_store("memory:")
        >>> change = LibraryChange(proposal_id="1", upserts=sample_library().definitions[:3])
        >>> store.commit(change, expected_version=0)
        1
        >>> artifact = artifact_of(store)
        >>> len(artifact.library), artifact.library.version, artifact.has_history
        (3, 1, True)
    """
    if isinstance(source, Library):
        return _of_library(_part(source, tuple(only)))
    library = source.load(version)
    if not library.all_definitions:
        raise StoreError("there is nothing to export: the library holds no tool")
    events = tuple(takewhile(lambda one: one.library_version <= library.version, source.events()))
    evidence = gate_evidence(events)
    names = tuple(only)
    if names or not history:
        part = _part(library, names)
        bare = _of_library(part)
        kept = tuple(one for one in evidence if one["tool"] in part)
        return Artifact(library=part, changes=bare.changes, evidence=kept, made_with=bare.made_with)
    return Artifact(
        library=library,
        changes=tuple(takewhile(lambda one: one.version <= library.version, source.changes())),
        events=events,
        evidence=evidence,
        made_with=__version__,
    )


def _of_library(library: Library) -> Artifact:
    change = LibraryChange(
        proposal_id=f"snapshot-{library.digest[:20]}",
        upserts=library.all_definitions,
        reason="exported without its history",
    )
    applied = AppliedChange(version=max(library.version, 1), change=change)
    return Artifact(library=library, changes=(applied,), made_with=__version__)


def _part(library: Library, names: tuple[str, ...]) -> Library:
    """The tools of these names and all that they call; the whole library for no names."""
    if not names:
        return library
    closed: dict[str, None] = {}
    open_ = list(names)
    while open_:
        name = open_.pop()
        if name in closed:
            continue
        if name not in library:
            raise ToolNotFoundError(name, nearest=library.nearest(name), version=library.version)
        closed[name] = None
        open_ += library.dag.children.get(name, ())
    kept = [library[one.name] for one in library.all_definitions if one.name in closed]
    return Library(kept, version=library.version)
