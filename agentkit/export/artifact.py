"""``Artifact``: a library with where it comes from and why, in a form that leaves the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentkit.export.evidence import GateEvidence
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition

FORMAT_VERSION = 1
"""Version of the artifact's form. A newer one is refused, never guessed at."""

UNKNOWN_LICENCE = ""
"""What tools are filed under whose source names no licence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactChange:
    """One step of a library's history.

    Attributes:
        version: The library version that it made.
        upserts: Definitions that it brought.
        removals: Names of tools that it took away.
        proposal_id: Identifies it.
        author: Who made it.
        reason: Why, in words.
        evidence: Ids of the episodes behind it.
        created_at: When, as ISO 8601 in UTC; empty where nobody wrote it down.
    """

    version: int
    upserts: tuple[ToolDefinition, ...] = ()
    removals: tuple[str, ...] = ()
    proposal_id: str = ""
    author: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    created_at: str = ""


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
        evidence: What gates, judges and persons said of the proposals that these tools came from.
        made_with: Version of agentkit that collected it.
        signature: Of ``digest``, as ``hmac-sha256:...`` or ``ed25519:...``; empty for none.
    """

    library: Library
    changes: tuple[ArtifactChange, ...] = ()
    events: tuple[LibraryEvent, ...] = ()
    evidence: tuple[GateEvidence, ...] = ()
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
        for definition in self.library.definitions:
            licence = definition.origin.licence or UNKNOWN_LICENCE
            found.setdefault(licence, []).append(definition.name)
        return {licence: tuple(found[licence]) for licence in sorted(found)}

    @cached_property
    def dag(self) -> Mapping[str, Mapping[str, Any]]:
        """Of each composite: the tools it calls and, where no tool is missing, depth and size."""
        return dag_of(self.library)


def dag_of(library: Library) -> dict[str, dict[str, Any]]:
    """What calls what in a library, as JSON data: see ``agentkit.library.dag`` for the words.

    A composite in or above a circle, or above a tool that is missing, has no depth and no size.
    """
    dag = library.dag
    nodes: dict[str, dict[str, Any]] = {}
    for definition in library.definitions:
        name = definition.name
        if not definition.is_composite:
            continue
        node: dict[str, Any] = {"children": list(dag.children[name])}
        if name in dag.depths:
            node |= {"depth": dag.depths[name], "flat_size": dag.flat_size(name)}
        nodes[name] = node
    return nodes


def snapshot_change(library: Library, *, reason: str) -> ArtifactChange:
    """One change that brings a whole library, for an artifact without history."""
    return ArtifactChange(
        version=max(library.version, 1),
        upserts=library.definitions,
        proposal_id=f"snapshot-{library.digest[:20]}",
        reason=reason,
    )


def names_of(changes: Iterable[ArtifactChange]) -> dict[str, None]:
    """Every tool that the changes tell of, in the order in which it first appears."""
    return {one.name: None for change in changes for one in change.upserts}
