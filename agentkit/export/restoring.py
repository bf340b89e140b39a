"""An artifact with its history into an empty store."""

from __future__ import annotations

from agentkit.errors import ArtifactError, UsageError
from agentkit.evolution.lifecycle.arriving import text_faults
from agentkit.evolution.lifecycle.journal import LibraryStore
from agentkit.export.artifact import Artifact
from agentkit.export.store import ArtifactStore
from agentkit.library.copying.writing import copy_library


def restore_artifact(artifact: Artifact, store: LibraryStore, *, trusted: bool = False) -> int:
    """Make a store what the artifact's store was: every version, every event, as it was.

    Versions have their numbers, changes their ids, authors, reasons and times, and events their
    hashes and signatures, so that ``agentkit log --verify`` holds.

    Nothing is validated but the texts of the definitions, which must pass the same checks as on
    import: a history can not be taken in by parts.

    Args:
        artifact: One that has its history.
        store: An empty store.
        trusted: Leave the texts alone, because the signature was checked.

    Returns:
        The library version.

    Raises:
        UsageError: The store is not empty, or the artifact has no history.
        ArtifactError: A text is suspicious.
        StoreError: The store failed; what was restored before stays, and the store must be made
            anew.
    """
    if not artifact.has_history:
        raise UsageError(
            "the artifact has no history to restore; import it ('agentkit import'), or export it "
            "with its history"
        )
    if store.versions() or store.events():
        raise UsageError("a history is restored into an empty store, and this one holds something")
    if not trusted:
        _check_texts(artifact)
    version = artifact.changes[-1].version
    copy_library(ArtifactStore(artifact), store, artifact.events, after=0, until=version)
    return version


def _check_texts(artifact: Artifact) -> None:
    seen: set[str] = set()
    for change in artifact.changes:
        for definition in change.upserts:
            if definition.digest in seen:
                continue
            seen.add(definition.digest)
            failed = text_faults(definition)
            if failed:
                raise ArtifactError(
                    f"{definition.name!r} of version {change.version}: {failed[0]}; check who "
                    "made the artifact (its signature), or import what is not suspicious",
                    place=f"changes ({definition.name!r})",
                )
