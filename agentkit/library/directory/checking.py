"""Looking for damage in a folder: every file is read, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agentkit.errors import StoreError
from agentkit.library.capabilities import StoreFault
from agentkit.library.chain_check import verify_chain
from agentkit.library.directory.folder import Folder
from agentkit.library.directory.hand_edits import HandEdit, Index
from agentkit.library.directory.history import History, HistoryState, check_follows_file
from agentkit.library.events import LibraryEvent

_OURS = frozenset({"tools", "history", "local", "index.json"})
_MAY_BE = frozenset({".gitignore", ".gitattributes", "README.md", "README"})


def history_faults(folder: Folder, history: History) -> Iterator[StoreFault]:
    """What is damaged in the history; after a file that can not be read, nothing can be told."""
    places = history.places()
    past = HistoryState()
    events: list[LibraryEvent] = []
    for place in range(1, max(places, default=0) + 1):
        path = folder.entry(place)
        try:
            for entry in history.entries(place, place):
                check_follows_file(entry, past.head, path)
                past.apply(entry, path)
                events += entry.events
        except StoreError as error:
            yield StoreFault(place=str(path), message=str(error))
            return
    for fault in verify_chain(events):
        if not fault.is_note:
            message = f"event {fault.sequence}: {fault.message}"
            yield StoreFault(place=str(folder.history), message=message)


def file_faults(folder: Folder, index: Index | None, past: HistoryState) -> Iterator[StoreFault]:
    """Where the index and the history disagree."""
    if index is None:
        if past.version:
            message = "is missing; the next commit makes it again from the history"
            yield StoreFault(place=str(folder.index), message=message, is_note=True)
        return
    if (index.place, index.head) != past.shown:
        message = (
            f"shows the change at place {index.place}, and the newest version was made at place "
            f"{past.shown[0]}; the next commit brings the files up to date"
        )
        yield StoreFault(place=str(folder.index), message=message, is_note=True)
        return
    for name in past.definitions.keys() - index.tools.keys():
        yield StoreFault(
            place=name,
            message=f"has no file; delete {folder.index}, and the next commit writes them all",
        )


def edit_faults(edits: Iterable[HandEdit]) -> Iterator[StoreFault]:
    """Edits by hand, which are no damage, but not what the store wrote either."""
    for edit in edits:
        if edit.faults:
            message = f"was edited by hand and can not be taken: {'; '.join(edit.faults)}"
        elif edit.is_deletion:
            message = "was deleted by hand"
        else:
            message = "was made by hand" if edit.before is None else "was changed by hand"
        if edit.is_conflict and edit.newest is not None and edit.before is not None:
            message += "; the library changed the tool meanwhile"
        message += " (see 'agentkit check')"
        yield StoreFault(place=str(edit.file), message=message, is_note=True)


def strangers(folder: Folder, in_tools: Iterable[Path], suffix: str) -> Iterator[StoreFault]:
    """Files of other programs; they are left alone."""
    message = "is not from this store; it is left alone"
    for path in in_tools:
        if path.suffix != suffix:
            yield StoreFault(place=str(path), message=message, is_note=True)
    with folder.translated(folder.path):
        beside = sorted(folder.path.iterdir()) if folder.path.is_dir() else []
        past = sorted(folder.history.iterdir()) if folder.history.is_dir() else []
    for path in beside:
        if path.name not in _OURS | _MAY_BE:
            yield StoreFault(place=str(path), message=message, is_note=True)
    for path in past:
        if path != folder.entry(int(path.stem) if path.stem.isdecimal() else 0):
            yield StoreFault(place=str(path), message=message, is_note=True)
