"""``DirectoryStore``: a folder with one readable file for each tool, made for review in git."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.episodes import Episode
from agentkit.errors import StoreError, UsageError
from agentkit.library.changes import check_change
from agentkit.library.directory.files import HandEdit, ToolFiles, form_named
from agentkit.library.directory.folder import Folder, digest_of, no_parent
from agentkit.library.directory.log import ChangeLog, LogState, as_written, damaged
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import (
    EpisodeVolume,
    ForwardingStore,
    LibraryChange,
    Retention,
    StoreFault,
)
from agentkit.reading import read_json

logger = logging.getLogger(__name__)


class DirectoryStore(ForwardingStore):
    """All parts of a store in one folder, of which git may keep all but ``local/``.

    The truth is ``log.jsonl``: a line a change, only ever appended, each with the digest of the one
    before. ``tools/`` shows the newest library, one file a tool. After a writer was killed, the
    next commit or look for edits brings the files up to date.

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
        StoreError: The folder cannot be opened.

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
        ['local', 'log.jsonl', 'tools']
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
        self._log = ChangeLog(self._folder)
        self._wanted = form and form_named(form).name
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._episode_file: SQLiteStore | None = None
        self._closed = False
        self._open()

    def _open(self) -> None:
        """Look at everything that could be wrong."""
        if not self.path.absolute().parent.is_dir():
            raise no_parent(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file; name a folder, which is made when absent")
        self._folder.check_no_links()
        state = self._log.refresh()
        self._files(state)  # says what cannot be used
        if not state.form and any(self._folder.tools.glob("*")):
            raise StoreError(
                f"{self.path} has a folder 'tools' that is not from a store. Nothing was changed; "
                "choose another folder"
            )

    def _files(self, state: LogState) -> ToolFiles:
        """The files of tools.

        Raises:
            UsageError: The store has another form than was asked for.
            MissingExtraError: It needs a package that is not installed.
        """
        form = form_named(state.form or self._wanted or "yaml")
        if self._wanted not in {"", form.name}:
            raise UsageError(
                f"{self.path} keeps its tools as {form.name}; open it without "
                "'?format=', or copy it into a new store of the other form"
            )
        form.check()
        return ToolFiles(folder=self._folder, form=form)

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

        A file in ``tools/`` that somebody edited stays as it is; see ``edits``. When the change is
        made and the files of tools cannot be written, as on a full disk, the change stands, a
        warning is logged, and the next commit writes them.
        """
        self._check_open()
        check_change(change)
        change = as_written(change)
        self._files(self._log.refresh())  # says what cannot be used, before anything is made
        self._folder.make()
        with self._writing, self._folder.locked():
            self._finish()
            state = self._log.refresh()
            known = state.kept.answer(change, expected_version)
            if known is not None:
                return known
            self._log.bring_up_to_date()
            state = self._log.refresh()
            files = self._files(state)
            behind, seen = self._compared(files, state, change)
            self._note_pending(state, seen)
            self._log.append(change, form=files.form.name, behind=behind)
            self._settle()
            return self._log.refresh().kept.load().version

    def _compared(
        self, files: ToolFiles, state: LogState, change: LibraryChange
    ) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
        """Which files people edited, and which are to be written.

        Returns:
            For edited ones the digest of the definition that the edit began with. For those to be
            written the digest of the file's content, and of the definition that it shows.
        """
        library = state.kept.load()
        changed = {one.name: one for one in change.upserts} | dict.fromkeys(change.removals)
        behind: dict[str, str] = {}
        seen: dict[str, tuple[str, str]] = {}
        for name in sorted({*changed, *state.behind}):
            content, base = self._folder.content(files.of(name)), state.base(name)
            tool = library.get(name)
            target = changed.get(name, None if tool is None else tool.definition)
            digest = "" if base is None else base.digest
            if files.shows(content, target):
                continue
            if files.shows(content, base) and not (content is None and target is None):
                seen[name] = (digest_of(content), digest)
            else:
                behind[name] = digest
        return behind, seen

    def _note_pending(self, state: LogState, seen: Mapping[str, tuple[str, str]]) -> None:
        """Note which files are to be written, in case this program is killed."""
        if seen:
            record = {"head": state.head, "files": list(seen.items())}
            self._folder.replace(self._folder.pending, json.dumps(record).encode())

    def _settle(self) -> None:
        try:
            self._finish()
        except StoreError as error:  # the change is made: it would be wrong to say that it is not
            logger.warning(
                "%s: the files of tools are behind the log (%s); the next commit brings them "
                "up to date",
                self.path,
                episodes.error_line(error),
            )

    def _finish(self) -> None:
        """Write the files that the last change is to have. The caller holds the folder's lock."""
        content = self._folder.content(self._folder.pending)
        if content is None:
            return
        state = self._log.refresh()
        try:
            pending = read_json(content)
            noted = {str(name): (str(seen), str(base)) for name, (seen, base) in pending["files"]}
            is_made = pending["head"] != state.head
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(self._folder.pending, f"{error}; or delete it") from error
        if is_made:
            files, library = self._files(state), state.kept.load()
            paths = {files.of(name): name for name in noted}
            contents = {
                path: files.form.text_of(library[name].definition) if name in library else None
                for path, name in paths.items()
            }
            seen = {path: noted[name][0] for path, name in paths.items()}
            edited = self._folder.put(contents, seen)
            if edited:  # since they were looked at
                began = {paths[path]: noted[paths[path]][1] for path in edited}
                behind = {**state.behind, **began}
                self._log.append(None, form=files.form.name, behind=behind)
        self._folder.clear_drafts()
        with self._folder.translated(self._folder.pending):
            self._folder.pending.unlink()

    def edits(self) -> tuple[HandEdit, ...]:
        """Hand edits of tool files since the store wrote them.

        Each can be proposed as a change by a person. Nothing is changed.

        Raises:
            StoreUnavailableError: Another writer was at the files for too long.
        """
        self._check_open()
        with self._held_still():
            state = self._log.refresh()
            return tuple(self._files(state).edits(state))

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

    def take_back(self, name: str) -> Path | None:
        """Write a tool's file as the library has it; the old content is kept in ``local/``.

        Args:
            name: The tool, or the name of an edit.

        Returns:
            Where the text of the person lies now; None when the file was deleted.
        """
        edit = next((one for one in self.edits() if one.name == name), None)
        if edit is None:
            raise UsageError(f"{name!r} has no edit by hand; see 'agentkit check'")
        with self._writing, self._folder.locked():
            self._log.bring_up_to_date()
            state = self._log.refresh()
            files = self._files(state)
            text = None
            if edit.newest is not None and edit.file == files.of(name):
                text = files.form.text_of(edit.newest)
            is_taken = False
            while not is_taken:  # what an editor writes meanwhile is laid aside too
                content = self._folder.content(edit.file)
                aside = None if content is None else self._folder.lay_aside(edit.file, content)
                seen = digest_of(content if edit.file.exists() else None)
                is_taken = not self._folder.put({edit.file: text}, {edit.file: seen})
            if name in state.behind:
                behind = {one: digest for one, digest in state.behind.items() if one != name}
                self._log.append(None, form=files.form.name, behind=behind)
            return aside

    def check(self) -> Iterator[StoreFault]:
        """Read every file; edits by hand are notes."""
        self._check_open()
        with self._held_still():
            found = tuple(self._file_faults())
        yield from found
        if isinstance(episodes := self._episodes, SQLiteStore):
            yield from episodes.check()

    def _file_faults(self) -> Iterator[StoreFault]:
        """Half a change, and differences between the files and the newest library."""
        state = self._log.refresh()
        files = self._files(state)
        log, is_old = self._folder.log, state.is_old
        if state.end and not is_old and self._folder.plain(log, start=state.end):
            message = "ends in half a change, which a killed writer left; the next commit fixes it"
            yield _note(self._folder.log, message)
        for aside in self._folder.laid_aside(self._folder.log):
            message = "is half a change that the log ended in; delete it if nobody misses a change"
            yield _note(aside, message)
        for edit in files.edits(state):
            yield _note(edit.file, f"{edit.summary} (see 'agentkit check')")

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

    def prunable(self, retention: Retention) -> EpisodeVolume:
        """The size of what ``prune`` would delete."""
        return self._episodes.prunable(retention)

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


def _note(place: Path, message: str) -> StoreFault:
    return StoreFault(place=str(place), message=message, is_note=True)


def open_directory(url: str) -> DirectoryStore:
    """The store of a URL ``dir:PATH`` or ``dir:PATH?format=json``.

    ``dir:library``, ``dir:/data/library`` and ``dir:~/library`` are paths; ``dir:///data/library``
    is one too.

    Raises:
        UsageError: The URL names no folder, or asks for something else than a format.
        StoreError: The store cannot be opened; see ``DirectoryStore``.
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
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not path or not options.keys() <= {"format"}:
        raise UsageError(
            f"{url!r} is not the URL of a directory store; write dir:library, "
            "dir:/data/library, or dir:library?format=json"
        )
    return Path(path).expanduser(), options.get("format", "")
