"""The log of a directory store: a line of JSON for each change, and the library they come to."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
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
from agentkit.tools.definition import ToolDefinition

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""Format of a store's files. In format 1 each change was a file of ``history/``, and ``index.json``
named the definition each tool's file was written from."""

_HEAD = b'{"format": '
_MARKERS = (b"<" * 7, b"=" * 7, b">" * 7)  # as git writes them at the start of lines


@dataclass(kw_only=True)
class LogState:
    """The state after all lines.

    Attributes:
        kept: The library at each version, and the events.
        form: How tools are written, ``yaml`` or ``json``; empty for a store without a log.
        behind: Tools whose files do not show the newest definition, because people edit them: the
            digest of the definition that each edit began with; empty for none.
        head: Digest of the last line.
        end: Bytes of the lines.
        is_open: Whether the last line lacks its newline, as an editor may leave it.
        signature: Detects another log or more lines.
        is_old: Whether this was read from a store of format 1.
    """

    kept: MemoryStore = field(default_factory=MemoryStore)
    form: str = ""
    behind: Mapping[str, str] = field(default_factory=dict)
    head: str = ""
    end: int = 0
    is_open: bool = False
    signature: object = None
    is_old: bool = False

    def base(self, name: str) -> ToolDefinition | None:
        """The definition that the file of a tool was written from, or an edit of it began with."""
        tool = self.kept.load().get(name)
        digest = self.behind.get(name)
        if digest is None:
            return None if tool is None else tool.definition
        earlier = (one.definition for one in reversed(self.kept.history(name)))
        return next((one for one in earlier if one is not None and one.digest == digest), None)

    def apply(self, record: Mapping[str, Any], digest: str, path: Path) -> None:
        """Take up the next line.

        Raises:
            StoreFormatError: It follows another line, or is damaged.
        """
        if record.get("previous") != self.head:
            raise StoreFormatError(
                f"the log is forked: a change in {path} follows another one than the one before "
                "it. Two branches were merged, or the file was changed by hand. Nothing was "
                f"changed. {one_side(path)}"
            )
        try:
            self._take(record)
        except (AgentKitError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path, str(error)) from error
        self.head = digest

    def _take(self, record: Mapping[str, Any]) -> None:
        if "proposal_id" in record:
            change, newest = change_from_json(record), self.kept.load().version
            if self.kept.commit(change, expected_version=newest) != record["version"]:
                raise ValueError(f"it says that it made version {record['version']}")
        if "behind" in record:
            self.behind = {**record["behind"]}


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
            state, folder = self._state, self._folder
            signature = folder.signature(folder.log)
            is_old = signature is None and folder.history.is_dir()
            seen = _of_history(folder) if is_old else signature
            if state is not None and state.signature == seen:
                return state
            has_grown = state is not None and signature is not None and signature[2] > state.end > 0
            self._state = None
            if state is not None and has_grown and not state.is_open:
                with suppress(StoreFormatError):  # it is read again from the beginning, below
                    self._state = self._read_on(state)
            if self._state is None:
                self._state = self._read_old() if is_old else LogState()
                if signature is not None:
                    self._state = self._read_on(LogState())
            self._state.signature = seen
            return self._state

    def _read_on(self, state: LogState) -> LogState:
        """Take up the lines behind those that were read; a last one that was cut is none yet."""
        path = self._folder.log
        content = self._folder.plain(path, start=state.end)
        whole = content[: content.rfind(b"\n") + 1]
        if not (state.end or whole or content.startswith(_HEAD[: len(content)])):
            _check_format({}, path, FORMAT_VERSION)
        for line in whole.splitlines():
            record = json_object(line, path)
            if not state.end and not state.form:
                _check_format(record, path, FORMAT_VERSION)
                state.form = record.get("form", "")
                state.head = digest_of(line)
            else:
                state.apply(record, digest_of(line), path)
        state.end += len(whole)
        last = content[len(whole) :]
        if state.end and _is_whole(last, path):
            state.apply(json_object(last, path), digest_of(last), path)
            state.end, state.is_open = state.end + len(last), True
        return state

    def append(
        self,
        change: LibraryChange | None,
        *,
        form: str,
        behind: Mapping[str, str],
    ) -> None:
        """Add a change, or only that other files are behind. The caller holds the folder's lock."""
        with self._lock:
            state = self.refresh()
            record: dict[str, Any] = {"previous": state.head}
            content = b"\n" if state.is_open else b""
            if not state.end:
                content = _line({"format": FORMAT_VERSION, "form": form})
                record["previous"] = digest_of(content.rstrip())
            if change is not None:
                version = state.kept.load().version + change.makes_version
                record |= {"version": version, **change_to_json(change)}
            if behind != state.behind:
                record["behind"] = dict(behind)
            if state.end and (torn := self._folder.plain(self._folder.log, start=state.end)):
                aside = self._folder.lay_aside(self._folder.log, torn)
                logger.warning("%s ended in half a change, which is in %s", self._folder.log, aside)
            self._folder.append(self._folder.log, content + _line(record), end=state.end)
            self.refresh()

    def _read_old(self) -> LogState:
        """The state of a store of format 1."""
        state = LogState(is_old=True)
        for _, record, digest, path in self._old_records():
            state.apply(record, digest, path)
        index = self._folder.path / "index.json"
        state.form = "json" if any(self._folder.tools.glob("*.json")) else "yaml"
        if self._folder.signature(index) is not None:
            found = json_object(self._folder.plain(index), index)
            _check_format(found, index, 1)
            state.form, rows = found.get("form", state.form), found.get("tools", {})
            newest = {one.name: one.definition.digest for one in state.kept.load()}
            try:
                behind = {name: str(digest) for name, (_, digest, _) in rows.items()}
            except (TypeError, ValueError, AttributeError) as error:
                raise damaged(index, f"or delete it: {error}") from error
            state.behind = {n: one for n, one in behind.items() if one != newest.get(n)}
        return state

    def _old_records(self) -> Iterator[tuple[int, dict[str, Any], str, Path]]:
        """Place, content and digest of each change of a store of format 1, and its file."""
        names = {one.name for one in self._folder.history.glob("*.json")}
        place = 0
        while (name := f"{place + 1:08}.json") in names:
            path, place = self._folder.history / name, place + 1
            content = self._folder.plain(path)
            record = json_object(content, path)
            _check_format(record, path, 1)
            yield place, record, digest_of(content), path
        later = [one for one in names if one[:-5].isdecimal() and int(one[:-5]) > place]
        if later:
            raise StoreFormatError(
                f"{self._folder.history / f'{place + 1:08}.json'} is missing, and {min(later)} is "
                "there. Nothing was changed; restore the folder ('git checkout', or a backup)"
            )

    def bring_up_to_date(self) -> None:
        """Write the log of a store of format 1. The caller holds the folder's lock."""
        with self._lock:
            state = self.refresh()
            if not state.is_old:
                return
            lines = [_line({"format": FORMAT_VERSION, "form": state.form})]
            places = list(self._old_records())
            for place, record, _, _ in places:
                kept = {name: value for name, value in record.items() if value not in ("", [])}
                del kept["format"], kept["place"]
                kept["previous"] = digest_of(lines[-1].rstrip())
                if place == len(places) and state.behind:
                    kept["behind"] = dict(state.behind)
                lines.append(_line(kept))
            self._folder.replace(self._folder.log, b"".join(lines))
            with self._folder.translated(self._folder.history):
                for *_, path in places:
                    path.unlink()
                (self._folder.path / "index.json").unlink(missing_ok=True)
                if not any(self._folder.history.iterdir()):
                    self._folder.history.rmdir()
            self.refresh()


def _of_history(folder: Folder) -> tuple[object, ...]:
    """Detects a change of a store of format 1."""
    newest = max(folder.history.glob("*.json"), default=folder.history)
    return folder.signature(newest), folder.signature(folder.path / "index.json")


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
        raise StoreFormatError(
            f"{path} was not written by agentkit, it has no 'format'. Nothing was changed; choose "
            "another folder, or move the file away"
        )
    if form > known:
        raise StoreFormatError(
            f"{path} has format {form}, this agentkit reads up to {known} there. Nothing was "
            "changed; run: pip install --upgrade agentkit-evolve"
        )


def json_object(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in a file of the store, or in a line of one.

    Raises:
        StoreFormatError: There is none, or git could not merge the file.
    """
    if content.startswith(_MARKERS) or has_markers(content):
        raise StoreFormatError(
            f"{path} holds what git could not merge: two branches each made a change at the same "
            f"place, and only one can stand. {one_side(path)}"
        )
    try:
        record = read_json(content)
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(record, dict):
        raise damaged(path, "it holds no JSON object")
    return record


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
    return StoreFormatError(
        f"{path} is damaged: {why}. Nothing was changed; restore it ('git checkout -- FILE', or a "
        "backup)"
    )
