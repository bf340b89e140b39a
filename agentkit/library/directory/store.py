"""``DirectoryStore``: a folder with one readable file for each tool, made for review in git."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.episodes import Episode
from agentkit.errors import StoreError
from agentkit.library.changes import check_change
from agentkit.library.directory.files import ToolFiles, require_yaml, text_of
from agentkit.library.directory.folder import Folder, no_parent
from agentkit.library.directory.log import ChangeLog, as_written, from_format_1
from agentkit.library.library import Library
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import folder_of
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import (
    EpisodeVolume,
    ForwardingStore,
    LibraryChange,
    Retention,
    StoreFault,
)
from agentkit.tools.definition import ToolDefinition

logger = logging.getLogger(__name__)


class DirectoryStore(ForwardingStore):
    """All parts of a store in one folder, of which git may keep all but ``local/``.

    The truth is ``log.jsonl``: a line a change, only ever appended, each with the digest of the one
    before. ``tools/`` shows the newest library, one YAML file a tool. After a writer was killed,
    the next commit or look for edits brings the files up to date.

    Nothing is made before something is written, so a checkout that may only be read can be opened.

    Args:
        path: The folder. It is made with the first change; the folder above it has to be there.
        timeout_seconds: How long to wait for a writer in another process.

    Raises:
        MissingExtraError: PyYAML is not installed.
        StoreFormatError: The folder is damaged, holds what git could not merge, is another
            program's, or was written by a newer agentkit. It is left as it was.
        StoreError: The folder cannot be opened.

    Example:
        >>> import tempfile
        >>> from agentkit import ToolDefinition
        >>> from agentkit.library import LibraryChange
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = DirectoryStore(Path(folder.name) / "library")
        >>> change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(change, expected_version=0)
        1
        >>> sorted(path.name for path in store.path.iterdir())
        ['local', 'log.jsonl', 'tools']
        >>> store.close()
        >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout_seconds: float = 5.0) -> None:
        self.path = Path(path)
        self._folder = Folder(self.path, timeout_seconds=timeout_seconds)
        self._files = ToolFiles(folder=self._folder)
        self._log = ChangeLog(self._folder)
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._episode_file: SQLiteStore | None = None
        self._closed = False
        self._open()

    def _open(self) -> None:
        """Look at everything that could be wrong."""
        require_yaml()
        if not self.path.absolute().parent.is_dir():
            raise no_parent(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file; name a folder, which is made when absent")
        self._folder.check_no_links()
        from_format_1(self._folder)
        if not self._log.refresh().form and any(self._folder.tools.glob("*")):
            raise StoreError(
                f"{self.path} has a folder 'tools' that is not from a store. Nothing was changed; "
                "choose another folder"
            )

    def __repr__(self) -> str:
        return f"DirectoryStore({str(self.path)!r})"

    @property
    def _tools(self) -> MemoryStore:
        """The state of the log. Asking again costs one file check."""
        self._check_open()
        return self._log.refresh().kept

    @property
    def _episodes(self) -> SQLiteStore | MemoryStore:
        """The file of episodes; an empty store when none was ever kept: reading makes no file."""
        self._check_open()
        path = self._folder.local / "episodes.db"
        with self._folder.translated(path):
            is_there = self._episode_file is not None or path.exists()
        return self._made_episodes() if is_there else MemoryStore()

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``.

        When the change is made and the files of tools cannot be written, as on a full disk, the
        change stands, a warning is logged, and the next commit writes them.

        Raises:
            StoreError: Somebody edited the file of a tool that this changes; see ``edits``.
        """
        self._check_open()
        check_change(change)
        change = as_written(change)
        if self._log.refresh().form == "json":
            raise StoreError(
                f"{self.path} keeps its tools as JSON files, which are only read. Nothing was "
                f"changed; make a store of YAML files: agentkit store copy dir:{self.path} dir:NEW"
            )
        self._folder.make()
        with self._writing, self._folder.locked():
            self._finish()
            state = self._log.refresh()
            known = state.kept.answer(change, expected_version)
            if known is not None:
                return known
            library = state.kept.load()
            after = library.without(change.removals).with_tools(change.upserts)
            names = [*(one.name for one in change.upserts), *change.removals]
            for name in names:
                self._check_untouched(name, library, after)
            if names:
                self._folder.replace(self._folder.pending, b"{}")  # should this program be killed
            self._log.append(change)
            try:
                self._write(names, library, after)
            except StoreError as error:  # the change is made: it would be wrong to say it is not
                logger.warning(
                    "%s: the files of tools are behind the log (%s); the next commit brings them "
                    "up to date",
                    self.path,
                    episodes.error_line(error),
                )
            return self._log.refresh().kept.load().version

    def _check_untouched(self, name: str, before: Library, after: Library) -> None:
        """Refuse to change a tool whose file somebody edited, unless it says what is to come."""
        path = self._files.of(name)
        content = self._folder.content(path)
        if not any(self._files.shows(content, _definition(one, name)) for one in (before, after)):
            raise StoreError(
                f"{path} was edited by hand, and would be overwritten. Nothing was changed; take "
                f"the edit in ('agentkit tools import {path} --on-conflict replace') or give it up "
                f"('git checkout -- {path}'), and try again"
            )

    def _write(self, names: Iterable[str], before: Library, after: Library) -> None:
        """Write the files that show ``before``. The caller holds the folder's lock."""
        files = {self._files.of(name): name for name in names}
        self._folder.put(
            {path: _text(_definition(after, name)) for path, name in files.items()},
            lambda path, content: self._files.shows(content, _definition(before, files[path])),
        )
        with self._folder.translated(self._folder.pending):
            self._folder.pending.unlink(missing_ok=True)

    def _finish(self) -> None:
        """Write what a killed writer left unwritten. The caller holds the folder's lock."""
        if self._folder.pending.exists():
            tools = self._log.refresh().kept
            after = tools.load()
            before = tools.load(max(after.version - 1, 0))
            names = {*before.tools, *after.tools}
            changed = [one for one in names if _definition(before, one) != _definition(after, one)]
            self._write(changed, before, after)

    def edits(self) -> Mapping[Path, str]:
        """The files that are not as the store wrote them, and why one cannot be read; else nothing.

        Nothing is changed: 'agentkit tools import FILE --on-conflict replace' takes such a file in.

        Raises:
            StoreUnavailableError: Another writer was at the files for too long.
        """
        self._check_open()
        with self._held_still():
            state = self._log.refresh()
            return {} if state.form == "json" else dict(self._files.edits(state.kept.load()))

    @contextmanager
    def _held_still(self) -> Iterator[None]:
        """End what a killed writer began, and keep others from being between log and files.

        Neither is done in a folder that this user may not write.
        """
        places = (self.path, self._folder.local, self._folder.tools)
        if not all(os.access(place, os.W_OK) for place in places):
            yield
            return
        with self._writing, self._folder.locked():
            self._finish()
            yield

    def check(self) -> Iterator[StoreFault]:
        """Read every file; an edit by hand is a note, unless it cannot be read."""
        for path, why in self.edits().items():
            taken = f"'agentkit tools import {path} --on-conflict replace' takes it in; or "
            there = path.exists() and not why
            yield StoreFault(
                place=path.name,
                message=f"it cannot be read: {why}" if why else "it was edited by hand",
                advice=f"{taken * there}restore it with git ('git checkout -- {path}')",
                code="edit",
                is_note=not why,
            )
        log, end = self._folder.log, self._log.refresh().end
        if end and self._folder.plain(log, start=end):
            words = "ends in half a change, which a killed writer left; the next commit fixes it"
            yield StoreFault(place=str(log), message=words, is_note=True)
        if isinstance(episodes := self._episodes, SQLiteStore):
            yield from episodes.check()

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes, on this machine, all of them or none; known ids are ignored.

        Raises:
            EpisodeFormatError: An episode holds a value that JSON cannot.
        """
        self._made_episodes().append_many(episodes)

    def append(self, episode: Episode) -> None:
        """Keep one episode; see ``append_many``."""
        self.append_many((episode,))

    def volume(self) -> EpisodeVolume:
        """The size of the stored episodes."""
        return self._episodes.volume()

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``."""
        return self._episodes.prune(retention)

    def close(self) -> None:
        """Close the file of episodes, and refuse further use. A second call does nothing."""
        with self._opening:
            self._closed = True
            if self._episode_file is not None:
                self._episode_file.close()
                self._episode_file = None

    def _made_episodes(self) -> SQLiteStore:
        """The file of episodes, made when it is absent."""
        with self._opening:
            self._check_open()
            if self._episode_file is None:
                self._folder.make_local()
                self._episode_file = SQLiteStore(self._folder.local / "episodes.db")
            return self._episode_file

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} is closed; open it again with open_store")


def _definition(library: Library, name: str) -> ToolDefinition | None:
    tool = library.get(name)
    return None if tool is None else tool.definition


def _text(definition: ToolDefinition | None) -> bytes | None:
    return None if definition is None else text_of(definition)


def open_directory(url: str) -> DirectoryStore:
    """The store of a URL ``dir:PATH``; see ``agentkit.library.opening.folder_of``.

    Raises:
        UsageError: The URL names no folder.
        StoreError: The store cannot be opened; see ``DirectoryStore``.
    """
    folder = folder_of(url)
    assert folder is not None
    return DirectoryStore(folder)
