"""From a store, or a library in memory, to an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from agentkit._version import __version__
from agentkit.errors import StoreError, ToolNotFoundError
from agentkit.evolution.lifecycle.journal import LibraryStore
from agentkit.export.artifact import Artifact, ArtifactChange, snapshot_change
from agentkit.export.evidence import gate_evidence
from agentkit.library.abilities import AppliedChange
from agentkit.library.copying.changes import changes_of
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library


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
        version: The library version; None for the newest. Nothing later is told.
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
    if not library:
        raise StoreError("there is nothing to export: the library holds no tool")
    events = tuple(_until(source.events(), library.version))
    evidence = gate_evidence(events)
    wanted = tuple(only)
    if wanted or not history:
        part = _part(library, wanted)
        bare = _of_library(part)
        kept = tuple(one for one in evidence if one.tool in part)
        return Artifact(library=part, changes=bare.changes, evidence=kept, made_with=bare.made_with)
    changes = takewhile(lambda one: one.version <= library.version, changes_of(source))
    return Artifact(
        library=library,
        changes=tuple(map(_change, changes)),
        events=events,
        evidence=evidence,
        made_with=__version__,
    )


def _of_library(library: Library) -> Artifact:
    change = snapshot_change(library, reason="exported without its history")
    return Artifact(library=library, changes=(change,), made_with=__version__)


def _part(library: Library, names: tuple[str, ...]) -> Library:
    """The tools of these names and all that they call; the whole library for no names."""
    if not names:
        return library
    wanted: dict[str, None] = {}
    open_ = list(names)
    while open_:
        name = open_.pop()
        if name in wanted:
            continue
        if name not in library:
            raise ToolNotFoundError(name, nearest=library.nearest(name), version=library.version)
        wanted[name] = None
        open_ += library.dag.children[name]
    kept = [tool for tool in library if tool.name in wanted]
    return Library(kept, version=library.version)


def _until(events: Sequence[LibraryEvent], version: int) -> Iterator[LibraryEvent]:
    """The beginning of the chain, up to the last event before a later library version."""
    for event in events:
        if event.library_version > version:
            return
        yield event


def _change(applied: AppliedChange) -> ArtifactChange:
    change = applied.change
    return ArtifactChange(
        version=applied.version,
        upserts=change.upserts,
        removals=change.removals,
        proposal_id=change.proposal_id,
        author=change.author,
        reason=change.reason,
        evidence=change.evidence,
        created_at=change.created_at,
    )
