"""What people made of the files of tools since the store wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.library.directory.folder import Folder
from agentkit.library.directory.history import (
    FORMAT_VERSION,
    History,
    HistoryState,
    check_format,
    damaged,
    digest_of,
    has_markers,
    json_object,
)
from agentkit.library.directory.texts import TextForm
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import record_faults

_text = json.encoder.encode_basestring
_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The file of a tool, as the store knows it.

    Attributes:
        file: Its name in ``tools/``.
        digest: Of the definition that it was written from. An edit by hand was made from this one.
        content: SHA-256 of what stood in it then; empty when that is not known.
    """

    file: str
    digest: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """The files of tools as they were last written.

    Attributes:
        form: How tools are written: ``yaml`` or ``json``.
        place: The change that made the version which the files show.
        head: Digest of its file in the history.
        version: The library version that they show.
        tools: By name, in the order of names.
    """

    form: str
    place: int = 0
    head: str = ""
    version: int = 0
    tools: Mapping[str, Written] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The file."""
        head = {
            "format": FORMAT_VERSION,
            "form": self.form,
            "version": self.version,
            "place": self.place,
            "head": self.head,
        }
        lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        # A store of ten thousand tools writes as many rows with each commit.
        rows = ",\n".join(
            f'  {_text(name)}: [{_text(one.file)}, "{one.digest}", "{one.content}"]'
            for name, one in sorted(self.tools.items())
        )
        tools = f"{{\n{rows}\n }}" if rows else "{}"
        return ("{\n" + ",\n".join([*lines, f' "tools": {tools}']) + "\n}\n").encode()


def decoded(content: bytes, path: Path) -> Index:
    """The inverse of ``Index.encoded``.

    Raises:
        StoreFormatError: The file is none of ours, damaged, holds what git could not merge, or was
            written by a newer agentkit.
    """
    record = json_object(content, path)
    check_format(record, path)
    shape = {"form": str, "version": int, "place": int, "head": str, "tools": dict}
    for name, kind in shape.items():
        if type(record.get(name)) is not kind:
            raise damaged(
                path,
                f"{name!r} is {record.get(name)!r:.60}; or delete it, it is made "
                "again from the history",
            )
    tools = {name: _written(row, path) for name, row in record["tools"].items()}
    return Index(**{name: record[name] for name in shape} | {"tools": tools})


def _written(row: Any, path: Path) -> Written:
    is_row = isinstance(row, list) and len(row) == len(Written.__dataclass_fields__)
    if not is_row or not all(isinstance(one, str) for one in row):
        raise damaged(path, f"it holds {row!r:.60} in the place of a tool's file")
    file, digest, content = row
    if not {*digest, *content} <= _DIGITS:
        raise damaged(path, f"{row!r:.60} holds what is no digest")
    if not file or file in {".", ".."} or "/" in file or "\\" in file:
        raise damaged(path, f"{file!r} is no name of a file in tools/")
    return Written(file=file, digest=digest, content=content)


_MOST_BYTES = 4_000_000
"""More would keep the reader of YAML busy for minutes."""

ONLY_ORIGIN = "only 'origin' differs: where a tool came from is noted by importing it again"


@dataclass(frozen=True, kw_only=True, slots=True)
class HandEdit:
    """What a person made of a tool's file.

    Attributes:
        name: The tool; for a file that can not be read and is new, the file's name.
        file: The file.
        before: The definition that the person began with; None for a tool that is new.
        after: The definition as the file has it; None when the file was deleted or can not be read.
        newest: The definition that the library holds now; None when it holds none.
        faults: Why the file can not be taken as it is; empty for a sound one.
    """

    name: str
    file: Path
    before: ToolDefinition | None
    after: ToolDefinition | None
    newest: ToolDefinition | None
    faults: tuple[str, ...] = ()

    @property
    def is_deletion(self) -> bool:
        """Whether the file was deleted, for the tool to be taken out."""
        return self.after is None and not self.faults

    @property
    def summary(self) -> str:
        """What was done by hand, in words."""
        if self.faults:
            words = f"was edited by hand and can not be taken: {'; '.join(self.faults)}"
        elif self.is_deletion:
            words = "was deleted by hand"
        else:
            words = "was made by hand" if self.before is None else "was changed by hand"
        if self.is_conflict and self.newest is not None and self.before is not None:
            words += "; the library changed the tool meanwhile"
        return words

    @property
    def is_conflict(self) -> bool:
        """Whether the library changed the tool too, since the person began."""
        return is_other(self.before, self.newest)


def is_other(one: ToolDefinition | None, other: ToolDefinition | None) -> bool:
    """Whether two definitions differ in what their digest covers, or one is none."""
    if one is None or other is None:
        return one is not other
    return one.digest != other.digest


def is_same(one: ToolDefinition, other: ToolDefinition | None) -> bool:
    """Whether two definitions are equal, also in where they came from."""
    return other is not None and one == other and one.origin == other.origin


def read_definition(content: bytes, form: TextForm) -> ToolDefinition:
    """The definition in a file that somebody may have edited.

    Raises:
        DefinitionError: There is none; ``args`` hold all reasons.
    """
    if len(content) > _MOST_BYTES:
        raise DefinitionError(
            f"it has {len(content):,} bytes; a tool that people edit has at most {_MOST_BYTES:,}"
        )
    if has_markers(content):
        raise DefinitionError(
            "it holds what git could not merge; choose between the lines marked <<<<<<<, ======= "
            "and >>>>>>>"
        )
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"it is no text in UTF-8 (byte {error.start})") from error
    record = form.read(text)
    if faults := record_faults(record):
        refused = DefinitionError(faults[0])
        refused.args = faults
        raise refused
    try:
        definition = ToolDefinition.from_json(record)
        _ = definition.digest
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DefinitionError(f"it is no definition of a tool: {error}") from error
    return definition


class EditFinder:
    """Looks through the files of tools.

    Args:
        folder: Of the store.
        form: How tools are written.
        history: The changes.
        past: What they come to.
    """

    def __init__(
        self, folder: Folder, form: TextForm, history: History, past: HistoryState
    ) -> None:
        self._folder = folder
        self._form = form
        self._history = history
        self._past = past

    def edits(self, index: Index) -> Iterator[HandEdit]:
        """Every edit: of tools in the order of names, then of files that are new."""
        for name, written in sorted(index.tools.items()):
            if (edit := self._edit(name, written)) is not None:
                yield edit
        for path in self.strangers(index):
            if path.suffix == self._form.suffix and (edit := self._new(path)) is not None:
                yield edit

    def strangers(self, index: Index) -> list[Path]:
        """Files beside those of tools; hidden ones belong to editors."""
        known = {one.file for one in index.tools.values()}
        with self._folder.translated(self._folder.tools):
            if not self._folder.tools.is_dir():
                return []
            found = [path for path in self._folder.tools.iterdir() if path.name not in known]
        return sorted(path for path in found if not path.name.startswith("."))

    def _edit(self, name: str, written: Written) -> HandEdit | None:
        path = self._folder.tools / written.file
        content = self._folder.content(path)
        if content is not None and digest_of(content) == written.content:
            return None
        newest = self._past.definitions.get(name)
        after, faults = (None, ()) if content is None else self._read(path, content)
        if after is not None and after.name != name:
            fault = (
                f"it says that its name is {after.name!r}; a tool keeps its name, so put {name!r} "
                "back, or make a new file for the other one and delete this one"
            )
            after, faults = None, (fault,)
        if (after is not None and is_same(after, newest)) or (content is None and newest is None):
            return None
        before: ToolDefinition | None = None
        if newest is not None and newest.digest == written.digest:
            before = newest
        elif written.digest:
            before = self._history.revision(name, written.digest)
        if after is not None and before is not None and not is_other(before, after):
            if is_same(after, before):  # the same said in other words, of YAML
                return None
            faults = (ONLY_ORIGIN,)
        return HandEdit(
            name=name, file=path, before=before, after=after, newest=newest, faults=faults
        )

    def _new(self, path: Path) -> HandEdit | None:
        content = self._folder.content(path)
        if content is None:
            return None
        found, faults = self._read(path, content)
        name = path.stem if found is None else found.name
        newest = None if found is None else self._past.definitions.get(name)
        if found is not None and is_same(found, newest):
            return None
        if newest is not None:
            faults = (f"{name!r} has a file already; edit that one, and delete this one",)
        return HandEdit(
            name=name, file=path, before=None, after=found, newest=newest, faults=faults
        )

    def _read(self, path: Path, content: bytes) -> tuple[ToolDefinition | None, tuple[str, ...]]:
        """The definition in a file, or why there is none; of what a link leads to, nothing."""
        if path.is_symlink():
            return None, ("it is a link; put a copy of the file here",)
        if not path.is_file():
            return None, ("it is no file; take it away",)
        try:
            return read_definition(content, self._form), ()
        except DefinitionError as error:
            return None, tuple(map(str, error.args))
