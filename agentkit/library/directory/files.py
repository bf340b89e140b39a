"""The files of tools in a directory store: their names, their index, and edits by hand."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentkit.errors import DefinitionError, StoreFormatError, UsageError
from agentkit.library.directory.folder import Folder, OvertakenError
from agentkit.library.directory.history import (
    FORMAT_VERSION,
    History,
    HistoryState,
    damaged,
    digest_of,
    has_markers,
    json_object,
)
from agentkit.library.directory.texts import FORMS, TextForm, form_named
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import record_faults

# Names.

_AS_IT_IS = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,98}[a-z0-9_])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")  # on Windows, with any ending
_LONGEST_STEM = 60
_MOST_BYTES = 120


def file_stem(tool_name: str) -> str:
    """The name of a tool's file, without its ending.

    A name in small letters that every file system takes stands for itself. Any other is made
    readable, and the first digits of its digest tell it apart: from names that differ in case,
    accents or signs alone, also where the file system does not see the difference.

    Example:
        >>> file_stem("get_weather")
        'get_weather'
        >>> file_stem("Get Weather/v2"), file_stem("CON")
        ('get-weather-v2--a1f304ca2831', 'con--a3dbc4b644a9')
    """
    is_safe = _AS_IT_IS.fullmatch(tool_name) and not _RESERVED.fullmatch(tool_name)
    if is_safe and "--" not in tool_name and ".." not in tool_name:
        return tool_name
    return f"{_readable(tool_name)}--{_digest(tool_name)}"


def _digest(tool_name: str) -> str:
    """What tells apart names whose readable parts are the same."""
    return hashlib.sha256(tool_name.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _readable(tool_name: str) -> str:
    """Letters and digits in the form that all file systems keep, and ``-`` for all else."""
    plain = unicodedata.normalize("NFKD", tool_name[:1_000]).casefold()
    plain = unicodedata.normalize("NFKD", plain)
    letters = "".join(
        "" if unicodedata.combining(one) else one if one.isalnum() or one == "_" else "-"
        for one in plain
    )
    stem = re.sub("-+", "-", letters).strip("-")[:_LONGEST_STEM]
    stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore")
    return stem.strip("-") or "tool"


# The index.

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
    if not file or file in {".", ".."} or set(file) & {"/", "\\", "\0"}:
        raise damaged(path, f"{file!r} is no name of a file in tools/")
    return Written(file=file, digest=digest, content=content)


# Edits by hand.

_LARGEST = 4_000_000
"""More would keep the reader of YAML busy for minutes."""

_ONLY_ORIGIN = "only 'origin' differs: where a tool came from is noted by importing it again"


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
    if len(content) > _LARGEST:
        raise DefinitionError(
            f"it has {len(content):,} bytes; a tool that people edit has at most {_LARGEST:,}"
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


# Keeping the files current.


class _Plan:
    """One round of writing: the files of tools held against the newest library.

    Attributes:
        index: The index once all is done.
        writes: Files to write.
        deletes: Files to delete.
        seen: Digest of what stood in each of these files; None where there was none.

    Args:
        files: Those of the store.
        past: What the history comes to, which stays as it is meanwhile.
        held: The index as it was last written; None when that is not known any more.
    """

    def __init__(self, files: ToolFiles, past: HistoryState, held: Index | None) -> None:
        self._files = files
        self._folder = files.folder
        self._past = past
        self._held = held or Index(form=files.form.name)
        self._index_is_lost = held is None
        self._since = _shown_version(self._held, past, files.folder)
        place, head = past.shown
        tools = dict(self._held.tools)
        self.index = Index(
            form=files.form.name, place=place, head=head, version=past.version, tools=tools
        )
        self._tools = tools
        self.writes: dict[Path, bytes] = {}
        self.deletes: list[Path] = []
        self.seen: dict[Path, str | None] = {}

    def settle_all(self) -> None:
        """Plan what makes the files show the newest library."""
        changed, removed = [*self._past.definitions, *self._tools, *self._past.touched], set[str]()
        if self._since:
            first, last = self._held.place + 1, self._past.shown[0]
            entries = list(self._files.history.entries(first, last))
            removed = {name for entry in entries for name in entry.removals}
            changed = [name for entry in entries for name in entry.names]
        taken = {one.file.casefold() for one in self._tools.values()}
        for name in dict.fromkeys(changed):
            written = self._held.tools.get(name)
            file = self._new_file(name, taken) if written is None else written.file
            self._settle(name, self._folder.tools / file, written, was_removed=name in removed)

    def _new_file(self, name: str, taken: Collection[str]) -> str:
        """The name of a tool's file; an older agentkit may have given it to another tool."""
        suffix = self._files.form.suffix
        file = f"{file_stem(name)}{suffix}"
        return f"{file_stem(name)}--{_digest(name)}{suffix}" if file.casefold() in taken else file

    def _settle(self, name: str, path: Path, written: Written | None, *, was_removed: bool) -> None:
        newest, content = self._past.definitions.get(name), self._folder.content(path)
        # Somebody who deleted the file wants to take the tool out, unless the store itself did it.
        is_ours = newest is None or written is None or was_removed
        if content is not None:
            is_ours = self._is_ours(content, name, written)
        if newest is None:
            if is_ours:  # else somebody edited it, and is to hear that the tool is gone
                self.take_out(name, path, content)
        elif is_ours:
            self.write(newest, path, content)
        elif content is not None and self._shows(content, newest):
            self._keep(newest, path, content)
        elif written is None:  # a person made this file, or edited it and the index is lost
            began = newest.digest if self._index_is_lost else ""
            self._tools[name] = Written(file=path.name, digest=began, content="")

    def write(self, definition: ToolDefinition, path: Path, before: bytes | None) -> None:
        """Let a file say what a definition says, if it still holds what it held before."""
        self.writes[path] = self._files.form.text_of(definition)
        self.seen[path] = None if before is None else digest_of(before)
        self._keep(definition, path, self.writes[path])

    def take_out(self, name: str, path: Path, before: bytes | None) -> None:
        """Let the file of a tool go, if it still holds what it held before."""
        if (written := self._tools.get(name)) and written.file == path.name:
            del self._tools[name]
        if before is not None:
            self.deletes.append(path)
            self.seen[path] = digest_of(before)

    def is_as_seen(self, path: Path) -> bool:
        """Whether a file holds what it held when it was planned to write or delete it."""
        content = self._folder.content(path)
        return self.seen[path] == (None if content is None else digest_of(content))

    def _keep(self, definition: ToolDefinition, path: Path, content: bytes) -> None:
        """Note that a file shows a definition."""
        self._tools[definition.name] = Written(
            file=path.name, digest=definition.digest, content=digest_of(content)
        )

    def _is_ours(self, content: bytes, name: str, written: Written | None) -> bool:
        """Whether a file says what a store wrote there, and nothing that a person did."""
        if written is not None and digest_of(content) == written.content:
            return True
        for revision in self._files.history.revisions(name):
            definition = revision.definition
            if definition is None:
                continue
            if written is not None and definition.digest == written.digest:
                if self._shows(content, definition):  # in other words of YAML
                    return True
            elif revision.version > self._since and self._is_text_of(content, definition):
                return True  # a writer was killed before it wrote the index
        return False

    def _is_text_of(self, content: bytes, definition: ToolDefinition) -> bool:
        return digest_of(content) == digest_of(self._files.form.text_of(definition))

    def _shows(self, content: bytes, definition: ToolDefinition) -> bool:
        """Whether a file says what a definition says, in whatever words of YAML."""
        if self._is_text_of(content, definition):
            return True
        try:
            return is_same(read_definition(content, self._files.form), definition)
        except DefinitionError:
            return False


def _shown_version(index: Index, past: HistoryState, folder: Folder) -> int:
    """The version that the files showed; 0 when the index says nothing about this history."""
    if not index.place:
        return index.version if not index.head else 0
    if index.place == past.shown[0]:
        head = past.shown[1]
    else:
        head = digest_of(folder.content(folder.entry(index.place)) or b"")
    return index.version if index.head == head else 0


class ToolFiles:
    """The folder ``tools/`` and the index beside it.

    Args:
        folder: Of the store.
        history: The changes.
        form: The form that was asked for; empty for the one that the store has, else YAML.
    """

    def __init__(self, folder: Folder, history: History, *, form: str = "") -> None:
        self.folder = folder
        self.history = history
        self._wanted = form_named(form) if form else None
        self._known: tuple[object, Index] | None = None
        self._checked: TextForm | None = None

    @property
    def form(self) -> TextForm:
        """How tools are written.

        Raises:
            UsageError: The store has another form than was asked for.
            MissingExtraError: It needs a package that is not installed.
        """
        index = self.index()
        form = (self._wanted or FORMS["yaml"]) if index is None else form_named(index.form)
        if self._wanted not in {None, form}:
            raise UsageError(
                f"{self.folder.path} keeps its tools as {form.name}; open it without "
                "'?format=', or copy it into a new store of the other form"
            )
        if self._checked is not form:
            form.check()
            self._checked = form
        return form

    def index(self) -> Index | None:
        """The index as it is now; None when there is none.

        Raises:
            StoreFormatError: It is damaged, or was written by a newer agentkit.
        """
        path = self.folder.index
        signature = self.folder.signature(path)
        content = None if signature is None else b""
        if signature is not None and (self._known is None or self._known[0] != signature):
            content = self.folder.content(path)
            if content is not None:
                self._known = (signature, decoded(content, path))
        return None if content is None or self._known is None else self._known[1]

    def check_not_ahead(self) -> None:
        """Refuse to go on where the index tells of changes that the history lacks.

        Raises:
            StoreFormatError: It does.
        """
        index = self.index()  # first: what a writer adds meanwhile is in the history before
        past, _ = self.history.refresh()
        if index is not None and index.place > past.length:
            raise StoreFormatError(
                f"{self.folder.index} tells of {index.place} changes, and the history holds "
                f"{past.length}. Nothing was changed; restore the folder 'history' ('git "
                "checkout', or a backup), or delete the index where the history is right"
            )

    def is_behind(self) -> bool:
        """Whether the files do not show the newest version yet."""
        index = self.index()
        past, _ = self.history.refresh()
        if index is None:
            return past.version > 0
        return (index.place, index.head) != past.shown

    def settle(self) -> None:
        """Make the files show the newest library. The caller holds the lock of the folder.

        Raises:
            StoreError: A file can not be written. The next call goes on where this one ended.
        """
        while self.is_behind():
            with suppress(OvertakenError):  # an editor was faster: plan again around the edit
                self._carry_out(self._planned())

    def _planned(self) -> _Plan:
        """What settling would do now."""
        with self.history.lock:
            self.check_not_ahead()
            index, (past, _) = self.index(), self.history.refresh()
            plan = _Plan(self, past, index)
            if self.is_behind():
                plan.settle_all()
        return plan

    def _carry_out(self, plan: _Plan) -> None:
        self.folder.make()
        self.folder.put(
            plan.writes,
            gone=plan.deletes,
            last=(self.folder.index, plan.index.encoded()),
            is_as_planned=plan.is_as_seen,
        )

    def take_back(self, edit: HandEdit) -> Path | None:
        """Write a tool's file as the library has it, and lay aside what stood there.

        The caller holds the lock of the folder.

        Returns:
            Where the text lies now; None when there was none.
        """
        self.settle()
        while True:
            with suppress(OvertakenError):  # what an editor wrote meanwhile is laid aside too
                past, _ = self.history.refresh()
                plan = _Plan(self, past, self.index())
                content = self.folder.content(edit.file)
                aside = None if content is None else self.folder.lay_aside(edit.file, content)
                if not edit.file.exists():
                    content = None  # what is no plain file was moved
                written, newest = plan.index.tools.get(edit.name), past.definitions.get(edit.name)
                if newest is None or written is None or written.file != edit.file.name:
                    plan.take_out(edit.name, edit.file, content)  # or a file beside those of tools
                else:
                    plan.write(newest, edit.file, content)
                self._carry_out(plan)
                return aside

    def edits(self) -> Iterator[HandEdit]:
        """Every edit: of tools in the order of names, then of files that are new.

        The folder is taken as it is; its files may be behind, as in a fresh clone.
        """
        plan = self._planned()
        past, _ = self.history.refresh()
        found = [self._edit(name, one, past) for name, one in sorted(plan.index.tools.items())]
        found += [
            self._new(path, past)
            for path in self._strangers(plan.index)
            if path.suffix == self.form.suffix
        ]
        yield from (edit for edit in found if edit is not None and edit.file not in plan.seen)

    def strangers(self) -> list[Path]:
        """Files beside those of tools that could not be one."""
        found = self._strangers(self._planned().index)
        return [one for one in found if one.suffix != self.form.suffix]

    def _strangers(self, index: Index) -> list[Path]:
        """Files beside those of tools; hidden ones belong to editors."""
        known = {one.file for one in index.tools.values()}
        with self.folder.translated(self.folder.tools):
            if not self.folder.tools.is_dir():
                return []
            found = [path for path in self.folder.tools.iterdir() if path.name not in known]
        return sorted(path for path in found if not path.name.startswith("."))

    def _edit(self, name: str, written: Written, past: HistoryState) -> HandEdit | None:
        path = self.folder.tools / written.file
        content, newest = self.folder.content(path), past.definitions.get(name)
        if content is None and newest is None:
            return None
        if content is not None and digest_of(content) == written.content:
            return None
        before: ToolDefinition | None = None
        if newest is not None and newest.digest == written.digest:
            before = newest
        elif written.digest:
            before = self.history.revision(name, written.digest)
        edit = HandEdit(name=name, file=path, before=before, after=None, newest=newest)
        if content is None:
            return edit
        after, faults = self._read(path, content)
        if after is not None and after.name != name:
            fault = (
                f"it says that its name is {after.name!r}; a tool keeps its name, so put {name!r} "
                "back, or make a new file for the other one and delete this one"
            )
            after, faults = None, (fault,)
        if after is None:
            return replace(edit, faults=faults)
        faults = () if is_other(before, after) else (_ONLY_ORIGIN,)
        is_told = is_same(after, newest) or is_same(after, before)  # perhaps in other words of YAML
        return None if is_told else replace(edit, after=after, faults=faults)

    def _new(self, path: Path, past: HistoryState) -> HandEdit | None:
        content = self.folder.content(path)
        if content is None:
            return None
        found, faults = self._read(path, content)
        name = path.stem if found is None else found.name
        newest = None if found is None else past.definitions.get(name)
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
            return read_definition(content, self.form), ()
        except DefinitionError as error:
            return None, tuple(map(str, error.args))
