"""``DirectoryStore``: a folder with one readable file for each tool, made for review in git."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qsl

from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, StoreError, UsageError
from agentkit.library.changes import are_held, check_change, check_follows, missing_tool
from agentkit.library.directory.files import HandEdit, ToolFiles
from agentkit.library.directory.folder import Folder, no_parent
from agentkit.library.directory.history import History, HistoryState, encoded
from agentkit.library.events import LibraryEvent, storable
from agentkit.library.library import Library
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    EpisodeVolume,
    LibraryChange,
    Retention,
    StoreFault,
    ToolRevision,
)

_SECONDS_OF_A_WRITER = 3600
"""A draft of a writer on another machine may be in use; none is for so long."""

_MAY_BE = frozenset(
    {"tools", "history", "local", "index.json", ".gitignore", ".gitattributes", "README.md"}
)
"""What may stand in the folder without a word."""

logger = logging.getLogger(__name__)


class DirectoryStore:
    """All parts of a store in one folder, of which git may keep all but ``local/``.

    The truth is ``history/``: one file a change, made once. A name can be linked to a file only
    once, so no two writers make the same version, on whatever machine they are. ``tools/`` shows
    the newest library, one file a tool, and ``index.json`` says what was written there. Whoever
    opens the store next brings these up to date when a writer was killed.

    Nothing is made before something is written, so a checkout that may only be read can be opened.

    Args:
        path: The folder. It is made with the first change; the folder above it has to be there.
        form: How tools are written, ``yaml`` or ``json``; empty for what the store has, else YAML.
        timeout_seconds: How long to wait for a writer in another process.

    Raises:
        MissingExtraError: The tools are YAML files, and PyYAML is not installed.
        UsageError: The store keeps its tools in another form, or there is no such form.
        StoreFormatError: The folder is damaged, holds what git could not merge, is another
            program's, or was written by a newer agentkit. It is left as it was.
        StoreError: The folder can not be opened.

    Example:
        >>> import tempfile
        >>> from agentkit import ToolDefinition
        >>> from agentkit.library import LibraryChange
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = DirectoryStore(Path(folder.name) / "library", form="json")
        >>> change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(change, expected_version=0)
        1
        >>> sorted(path.name for path in store.path.iterdir())
        ['history', 'index.json', 'local', 'tools']
        >>> store.close()
        >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        form: str = "",
        timeout_seconds: float = 5.0,
    ) -> None:
        self.path = Path(path)
        self._folder = Folder(self.path, timeout_seconds=timeout_seconds)
        self._history = History(self._folder)
        self._files = ToolFiles(self._folder, self._history, form=form)
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._episodes: SQLiteStore | None = None
        self._closed = False
        self._open()

    def _open(self) -> None:
        """Look at everything that could be wrong, and end what a killed writer began."""
        if not self.path.absolute().parent.is_dir():
            raise no_parent(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file; name a folder, which is made when absent")
        self._folder.check_no_links()
        index = self._files.index()  # the index first: the history is never behind it
        self._files.form  # noqa: B018 - says what can not be used
        if index is None and not self._folder.history.exists() and self._folder.tools.exists():
            raise StoreError(
                f"{self.path} has a folder 'tools' that is not from a store. Nothing was changed; "
                "choose another folder"
            )
        self._files.check_not_ahead()
        if self._may_write():
            self._clear_drafts()
        if self._files.is_behind() and self._may_write():
            with self._folder.locked(is_patient=False) as is_alone:
                if is_alone:  # otherwise somebody is just at it
                    self._settle()

    def _may_write(self) -> bool:
        places = (self.path, self._folder.local, self._folder.tools)
        return all(os.access(place, os.W_OK) for place in places)

    def __repr__(self) -> str:
        return f"DirectoryStore({str(self.path)!r})"

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest snapshot is kept: asking again costs a look at two files and gives the same
        object until somebody commits, and then only what changed is read.
        """
        self._check_open()
        return self._history.refresh()[1] if version is None else self._history.at(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``.

        A file in ``tools/`` that somebody edited stays as it is; see ``edits``. When the change is
        made and the files of tools can not be written, as on a full disk, the change stands, a
        warning is logged, and the next commit writes them.
        """
        self._check_open()
        check_change(change)
        self._files.form  # noqa: B018 - says what can not be used, before anything is made
        self._folder.make()
        with self._writing, self._folder.locked():
            while True:
                with self._history.lock:
                    self._files.check_not_ahead()
                    past, _ = self._history.refresh()
                    known = self._answer(change, past, expected_version)
                    if known is not None:
                        return known
                    place, version = past.length + 1, past.version + change.makes_version
                    content = encoded(change, place=place, version=version, previous=past.head)
                if self._folder.claim(place, content):
                    self._settle()
                    return version

    def _answer(
        self, change: LibraryChange, past: HistoryState, expected_version: int
    ) -> int | None:
        """The version that a known change made; None for one that is to be made."""
        made = past.made_by.get(storable(change.proposal_id))
        if made is not None:
            return made
        if not change.makes_version:
            first, end = change.events[0].sequence, past.last_event
            if (
                end is not None
                and first <= end.sequence
                and are_held(change.events, self._history.events(first - 1))
            ):
                return past.version
        if past.version != expected_version:
            raise StaleVersionError(expected=expected_version, actual=past.version)
        check_follows(change.events, past.last_event)
        for name in change.removals:
            if name not in past.definitions:
                raise missing_tool(name, self._history.refresh()[1])
        return None

    def _settle(self) -> None:
        try:
            self._files.settle()
        except StoreError as error:  # the change is made: it would be wrong to say that it is not
            logger.warning(
                "%s: the files of tools are behind the history (%s); the next commit brings them "
                "up to date",
                self.path,
                error,
            )

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        self._check_open()
        return range(1, self._history.refresh()[0].version + 1)

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        self._check_open()
        return self._history.revisions(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind ``after``, ascending; see ``ChangeLog.changes``."""
        self._check_open()
        return self._history.changes(after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        self._check_open()
        return self._history.events(after)

    def edits(self) -> tuple[HandEdit, ...]:
        """What people made of the files of tools since the store wrote them.

        ``agentkit.evolution.hand_edits`` makes proposals of them. Nothing is changed.

        Raises:
            StoreUnavailableError: Another writer was at the files for too long.
        """
        self._check_open()
        with self._held_still() as is_alone:
            if is_alone:
                self._files.settle()
            return tuple(self._files.edits())

    @contextmanager
    def _held_still(self) -> Iterator[bool]:
        """Keep writers from being between history and files; whether that can be done here."""
        if not self._may_write():
            yield False
            return
        with self._writing, self._folder.locked():
            yield True

    def take_back(self, name: str) -> Path | None:
        """Write a tool's file as the library has it; what stood there is kept in ``local/``.

        Args:
            name: The tool, or the name of an edit.

        Returns:
            Where the text of the person lies now; None when the file was deleted.
        """
        edit = next((one for one in self.edits() if one.name == name), None)
        if edit is None:
            raise UsageError(f"{name!r} has no edit by hand; see 'agentkit check'")
        with self._writing, self._folder.locked():
            return self._files.take_back(edit)

    def check(self) -> Iterator[StoreFault]:
        """Read every file; edits by hand and files of others are notes."""
        self._check_open()
        with self._held_still():
            found = tuple(self._file_faults())
        yield from found
        yield from self._kept_episodes().check()

    def _file_faults(self) -> Iterator[StoreFault]:
        """What the files show that the newest library does not, and what is not from the store."""
        index, (past, _) = self._files.index(), self._history.refresh()
        if index is None or (index.place, index.head) != past.shown:
            if past.version:
                message = "does not show the newest version; the next commit brings it up to date"
                yield _note(self._folder.index, message)
        else:
            for name in past.definitions.keys() - index.tools.keys():
                message = (
                    f"has no file; delete {self._folder.index}, and the next commit writes all"
                )
                yield StoreFault(place=name, message=message)
        for edit in self._files.edits():
            yield _note(edit.file, f"{edit.summary} (see 'agentkit check')")
        with self._folder.translated(self.path):
            beside = sorted(self.path.iterdir()) if self.path.is_dir() else []
        strange = [one for one in beside if one.name not in _MAY_BE]
        for path in (*self._files.strangers(), *strange):
            yield _note(path, "is not from this store; it is left alone")

    def _clear_drafts(self) -> None:
        """Delete drafts that killed writers left."""
        with self._folder.translated(self._folder.local):
            for draft in self._folder.local.glob("draft-*.tmp"):
                with suppress(FileNotFoundError):  # a writer is just done with it
                    if time.time() - draft.stat().st_mtime > _SECONDS_OF_A_WRITER:
                        draft.unlink()

    def append(self, episode: Episode) -> None:
        """Keep one episode, on this machine; one with a known id is ignored.

        Raises:
            EpisodeFormatError: The episode holds a value that JSON can not.
        """
        self._made_episodes().append(episode)

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes, all of them or none."""
        self._made_episodes().append_many(episodes)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        return self._kept_episodes().get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, of those kept before the call; a page is read at a time."""
        return self._kept_episodes().select(matching)

    def volume(self) -> EpisodeVolume:
        """How much is kept of episodes."""
        return self._kept_episodes().volume()

    def prunable(self, retention: Retention) -> EpisodeVolume:
        """How much ``prune`` would delete."""
        return self._kept_episodes().prunable(retention)

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``."""
        return self._kept_episodes().prune(retention)

    def close(self) -> None:
        """Close the file of episodes, and refuse further use. A second call does nothing."""
        with self._opening:
            self._closed = True
            if self._episodes is not None:
                self._episodes.close()
                self._episodes = None

    def _made_episodes(self) -> SQLiteStore:
        """The file of episodes, made when it is absent."""
        with self._opening:
            self._check_open()
            if self._episodes is None:
                self._folder.make_local()
                self._episodes = SQLiteStore(self._folder.local / "episodes.db")
            return self._episodes

    def _kept_episodes(self) -> SQLiteStore | MemoryStore:
        """The file of episodes; an empty store when none was ever kept: reading makes no file."""
        self._check_open()
        path = self._folder.local / "episodes.db"
        with self._folder.translated(path):
            is_there = self._episodes is not None or path.exists()
        return self._made_episodes() if is_there else MemoryStore()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} is closed; open it again with open_store")


def _note(place: Path, message: str) -> StoreFault:
    return StoreFault(place=str(place), message=message, is_note=True)


def open_directory(url: str) -> DirectoryStore:
    """The store of a URL ``dir:PATH`` or ``dir:PATH?format=json``.

    ``dir:library``, ``dir:/data/library`` and ``dir:~/library`` are paths; ``dir:///data/library``
    is one too.

    Raises:
        UsageError: The URL names no folder, or asks for something else than a format.
        StoreError: The store can not be opened; see ``DirectoryStore``.
    """
    path, form = _parts_of(url)
    return DirectoryStore(path, form=form)


def folder_of(url: str) -> Path | None:
    """The folder of a directory store's URL, whether it is there or not; None for any other URL.

    Example:
        >>> print(folder_of("dir:library?format=json"), folder_of("sqlite:///library.db"))
        library None
    """
    return _parts_of(url)[0] if url.partition(":")[0].lower() == "dir" else None


def _parts_of(url: str) -> tuple[Path, str]:
    """The folder of a URL and the form that it asks for, which may be empty."""
    place, _, query = url.partition(":")[2].partition("?")
    path = place.removeprefix("//")
    asked = dict(parse_qsl(query, keep_blank_values=True))
    if not path or not asked.keys() <= {"format"}:
        raise UsageError(
            f"{url!r} is not the URL of a directory store; write dir:library, "
            "dir:/data/library, or dir:library?format=json"
        )
    return Path(path).expanduser(), asked.get("format", "")
