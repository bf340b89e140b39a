"""The log of a directory store: a line of JSON for each change, and the library they come to."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentkit.errors import AgentKitError, StoreFormatError
from agentkit.library.changes import change_from_json, change_to_json, now
from agentkit.library.directory.folder import Folder, digest_of
from agentkit.library.events import storable
from agentkit.library.memory import MemoryStore
from agentkit.library.store import LibraryChange
from agentkit.reading import read_json

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""Format of a store's files; see ``from_format_1`` for the one before."""

_HEAD = b'{"format": '
_MARKERS = (b"<" * 7, b"=" * 7, b">" * 7)  # as git writes them at the start of lines


@dataclass(kw_only=True)
class LogState:
    """The state after all lines.

    Attributes:
        kept: The library at each version, and the events.
        form: How tools are written, ``yaml``; empty for a store without a log. Stores with ``json``
            are only read.
        head: Digest of the last line.
        end: Bytes of the lines.
        is_open: Whether the last line lacks its newline, as an editor may leave it.
        signature: Detects another log or more lines.
    """

    kept: MemoryStore = field(default_factory=MemoryStore)
    form: str = ""
    head: str = ""
    end: int = 0
    is_open: bool = False
    signature: object = None

    def apply(self, line: bytes, path: Path) -> None:
        """Take up the next line.

        Raises:
            StoreFormatError: It follows another line, or is damaged.
        """
        record = json_object(line, path)
        if not self.head:
            _check_format(record, path, FORMAT_VERSION)
            self.form = record.get("form", "")
        elif record.get("previous") != self.head:
            raise forked(path)
        else:
            try:
                self._take(record)
            except (AgentKitError, KeyError, TypeError, ValueError, AttributeError) as error:
                raise damaged(path, str(error)) from error
        self.head = digest_of(line)

    def _take(self, record: Mapping[str, Any]) -> None:
        if "proposal_id" in record:
            change, newest = change_from_json(record), self.kept.load().version
            if self.kept.commit(change, expected_version=newest) != record["version"]:
                raise ValueError(f"it says that it made version {record['version']}")


class ChangeLog:
    """The file ``log.jsonl``, as far as it was read. Safe to use from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._state: LogState | None = None

    def refresh(self) -> LogState:
        """Take up what anybody added, and what git put in the place of what was there.

        Raises:
            StoreFormatError: The log is damaged, forked, or was written by a newer agentkit.
        """
        with self._lock:
            known, seen = self._state, self._folder.signature(self._folder.log)
            if known is None or known.signature != seen:
                self._state = None  # until it is read whole
                state = None
                if known is not None and not known.is_open and seen and seen[2] > known.end > 0:
                    with suppress(StoreFormatError):  # it is read again from the beginning
                        state = self._read_on(known)
                self._state = state or self._read_on(LogState())
                self._state.signature = seen
            assert self._state is not None
            return self._state

    def _read_on(self, state: LogState) -> LogState:
        """Take up the lines behind those that were read; a last one that was cut is none yet."""
        path = self._folder.log
        if self._folder.signature(path) is None:
            return state
        content = self._folder.plain(path, start=state.end)
        whole = content[: content.rfind(b"\n") + 1]
        if not (state.end or whole or content.startswith(_HEAD[: len(content)])):
            _check_format({}, path, FORMAT_VERSION)
        for line in whole.splitlines():
            state.apply(line, path)
        state.end += len(whole)
        last = content[len(whole) :]
        if state.end and _is_whole(last, path):
            state.apply(last, path)
            state.end, state.is_open = state.end + len(last), True
        return state

    def append(self, change: LibraryChange) -> None:
        """Add a change. The caller holds the folder's lock."""
        with self._lock:
            state = self.refresh()
            record: dict[str, Any] = {"previous": state.head}
            content = b"\n" if state.is_open else b""
            if not state.end:
                content = _line({"format": FORMAT_VERSION, "form": "yaml"})
                record["previous"] = digest_of(content.rstrip())
            version = state.kept.load().version + change.makes_version
            record |= {"version": version, **change_to_json(change)}
            if state.end and (torn := self._folder.plain(self._folder.log, start=state.end)):
                aside = self._folder.local / f"log-{digest_of(torn)[:12]}.part"
                self._folder.replace(aside, torn)
                logger.warning("%s ended in half a change, which is in %s", self._folder.log, aside)
            self._folder.append(self._folder.log, content + _line(record), end=state.end)
            self.refresh()


_OLD_FILES, _OLD_KEYS = f"{'[0-9]' * 8}.json", {"format", "place"}


def from_format_1(folder: Folder) -> None:
    """Write the log of a store of format 1, in which each change was a file of ``history/``.

    Raises:
        StoreFormatError: A file is damaged, or missing; the folder is left as it was.
    """
    if folder.signature(folder.log) is not None or not folder.history.is_dir():
        return
    form, index = "yaml", folder.path / "index.json"
    if folder.signature(index) is not None:
        record = json_object(folder.plain(index), index)
        _check_format(record, index, 1)
        form = record.get("form", form)
    lines, seen = [_line({"format": FORMAT_VERSION, "form": form})], ""
    paths = sorted(folder.history.glob(_OLD_FILES))
    for place, path in enumerate(paths, start=1):
        if path.name != f"{place:08}.json":
            raise damaged(folder.history / f"{place:08}.json", f"it is missing before {path.name}")
        content = folder.plain(path)
        record = json_object(content, path)
        _check_format(record, path, 1)
        if record.get("previous", "") != seen:
            raise forked(path)
        seen = digest_of(content)
        left_out = {name for name, value in record.items() if value in ("", [])}
        kept = {key: one for key, one in record.items() if key not in left_out | _OLD_KEYS}
        lines.append(_line(kept | {"previous": digest_of(lines[-1].rstrip())}))
    folder.make_local()
    folder.replace(folder.log, b"".join(lines))
    with folder.translated(folder.history):
        for path in (*paths, index):
            path.unlink(missing_ok=True)
        if not any(folder.history.iterdir()):
            folder.history.rmdir()


def as_written(change: LibraryChange) -> LibraryChange:
    """A change with texts that a file can hold, and its time."""
    return replace(
        change,
        proposal_id=storable(change.proposal_id),
        author=storable(change.author),
        reason=storable(change.reason),
        evidence=tuple(map(storable, change.evidence)),
        created_at=change.created_at or now(),
    )


def _is_whole(line: bytes, path: Path) -> bool:
    """Whether a line without its newline is all there: of a JSON object, no beginning is one."""
    with suppress(StoreFormatError):
        return bool(json_object(line, path))
    return False


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _check_format(record: Mapping[str, Any], path: Path, known: int) -> None:
    form = record.get("format")
    if type(form) is not int or form < 1:
        raise StoreFormatError(f"{path} was not written by agentkit; choose another folder")
    if form > known:
        words = "run: pip install --upgrade agentkit-evolve"
        raise StoreFormatError(f"{path} has format {form}, this agentkit reads {known}; {words}")


def json_object(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in a file of the store, or in a line of one.

    Raises:
        StoreFormatError: There is none, or git could not merge the file.
    """
    if content.startswith(_MARKERS) or has_markers(content):
        raise StoreFormatError(f"{path} holds what git could not merge. {one_side(path)}")
    try:
        record = read_json(content)
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(record, dict):
        raise damaged(path, "it holds no JSON object")
    return record


def forked(path: Path) -> StoreFormatError:
    """The error for a change that follows another one than the one before it."""
    return StoreFormatError(
        f"the log is forked: a change in {path} follows another one than the one before it. Two "
        f"branches were merged, or the file was changed by hand. {one_side(path)}"
    )


def one_side(path: Path) -> str:
    """How to resolve a merge conflict.

    Example:
        >>> print(one_side(Path("library/log.jsonl"))[:61])
        Take one side: 'git checkout --ours -- library/log.jsonl' (or
    """
    return (
        f"Take one side: 'git checkout --ours -- {path}' (or --theirs), and leave the files in "
        "'tools' merged: what the other side changed are then edits by hand (docs/stores.md)"
    )


def has_markers(content: bytes) -> bool:
    """Whether git left its marks of a conflict in a file."""
    if _MARKERS[0] not in content:
        return False
    lines = content.splitlines()
    return all(any(line.startswith(mark) for line in lines) for mark in _MARKERS)


def damaged(path: Path, why: str) -> StoreFormatError:
    """The error for a file that is not as the store wrote it."""
    words = "restore it ('git checkout -- FILE', or a backup)"
    return StoreFormatError(f"{path} is damaged: {why}. Nothing was changed; {words}")
