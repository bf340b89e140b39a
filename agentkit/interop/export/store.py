"""``ArtifactStore``: an artifact opened as a store that nobody can write to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agentkit.episodes import Episode
from agentkit.errors import (
    ReadOnlyStoreError,
    StoreError,
    StoreLookupError,
    UsageError,
)
from agentkit.interop.export.artifact import Artifact
from agentkit.interop.export.file import read_artifact
from agentkit.library.changes import check_filter, no_such_version, revisions_of
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import AppliedChange, EpisodeFilter, LibraryChange, ToolRevision
from agentkit.tools.definition import ToolDefinition

SCHEME = "artifact"
"""URL scheme: ``artifact:tools.json`` for a relative path, ``artifact:/data/tools.json`` else."""


class ArtifactStore:
    """A library with its history, read from an artifact. It holds no episodes.

    Args:
        artifact: What it shows.

    Example:
        >>> from agentkit.interop.export.artifact import artifact_of
        >>> from agentkit.testing import sample_library
        >>> store = ArtifactStore(artifact_of(sample_library()))
        >>> store.load() == store.load(store.versions()[-1]), len(store.history("weather_now"))
        (True, 1)
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self._closed = False

    def __repr__(self) -> str:
        return f"ArtifactStore({self.artifact.library!r})"

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``."""
        self._check_open()
        library = self.artifact.library
        if version is None or version == self._newest:
            return library
        if version not in self.versions() and not (version == 0 and self.artifact.has_history):
            raise no_such_version(version, self.versions())
        tools: dict[str, ToolDefinition] = {}
        for applied in self.artifact.changes:
            if applied.version <= version:
                for name in applied.change.removals:
                    tools.pop(name, None)
                tools |= {one.name: one for one in applied.change.upserts}
        return Library(tools.values(), version=version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Refused: an artifact is never changed.

        Raises:
            ReadOnlyStoreError: Always.
        """
        raise ReadOnlyStoreError(
            "an artifact cannot be written to; 'agentkit import' brings it into a library that can"
        )

    def versions(self) -> Sequence[int]:
        """The versions that the artifact tells of, ascending."""
        self._check_open()
        return tuple(change.version for change in self.artifact.changes)

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        self._check_open()
        return revisions_of(self.artifact.changes, tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``, ascending."""
        self._check_open()
        return (change for change in self.artifact.changes if change.version > after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        self._check_open()
        return self.artifact.events[max(after, 0) :]

    def append(self, episode: Episode) -> None:
        """Refused: an artifact is never changed.

        Raises:
            StoreError: Always.
        """
        raise StoreError(
            f"an artifact keeps no episodes, so {episode.episode_id!r} has no place in it; give "
            "the agent a store of its own for them"
        )

    def get(self, episode_id: str) -> Episode | None:
        """None: an artifact holds no episodes."""
        self._check_open()
        return None

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """None: an artifact holds no episodes."""
        check_filter(matching)
        self._check_open()
        return iter(())

    def close(self) -> None:
        """Refuse further use. A second call does nothing."""
        self._closed = True

    @property
    def _newest(self) -> int:
        changes = self.artifact.changes
        return changes[-1].version if changes else self.artifact.library.version

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("this artifact is closed; open it again")


def open_artifact(url: str) -> ArtifactStore:
    """The store of an artifact's URL: ``artifact:PATH``.

    Raises:
        UsageError: The URL names no file.
        StoreError: The file cannot be read.
        ArtifactError: The file is not an artifact, or was changed.
    """
    scheme, colon, rest = url.partition(":")
    path = rest.removeprefix("//")
    if scheme.lower() != SCHEME or not colon or not path:
        raise UsageError(f"{url!r} is not the URL of an artifact; write {SCHEME}:tools.json")
    try:
        return ArtifactStore(read_artifact(Path(path).expanduser()))
    except FileNotFoundError as error:
        raise StoreLookupError(f"there is no artifact {path}: no such file") from error
    except OSError as error:
        raise StoreError(f"the artifact {path} cannot be read: {error.strerror}") from error
