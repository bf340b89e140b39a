"""The files of tools in a directory store: their names, their index, and keeping them current."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from agentkit.errors import DefinitionError, StoreFormatError, UsageError
from agentkit.library.directory.folder import Folder, OvertakenError
from agentkit.library.directory.hand_edits import (
    EditFinder,
    HandEdit,
    Index,
    Written,
    decoded,
    is_same,
    read_definition,
)
from agentkit.library.directory.history import History, HistoryState, digest_of
from agentkit.library.directory.texts import FORMS, TextForm, form_named
from agentkit.tools.definition import ToolDefinition

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
    return f"{_readable(tool_name)}--{_digest_suffix(tool_name)}"


def _digest_suffix(tool_name: str) -> str:
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


_MOST_STRANGERS = 1_000
"""So many files beside those of tools are looked through for a new tool's own."""


def _digest_if_any(content: bytes | None) -> str | None:
    return None if content is None else digest_of(content)


class Plan:
    """One round of writing: the files of tools held against the newest library.

    Attributes:
        tools: The files of tools as they will be.
        writes: Files to write.
        deletes: Files to delete.
        seen: Digest of what stood in each of these files; None where there was none.

    Args:
        folder: Of the store.
        form: How tools are written.
        history: The changes.
        past: What they come to, which stays as it is meanwhile.
        index: The files as they were last written; None when that is not known any more.
    """

    def __init__(
        self,
        folder: Folder,
        form: TextForm,
        history: History,
        past: HistoryState,
        index: Index | None,
    ) -> None:
        self._folder = folder
        self._form = form
        self._history = history
        self._past = past
        self._index_is_lost = index is None
        self._held = index or Index(form=form.name)
        self.tools = dict(self._held.tools)
        self.writes: dict[Path, bytes] = {}
        self.deletes: list[Path] = []
        self.seen: dict[Path, str | None] = {}
        # as a file system compares them that does not see case
        self._taken = {one.file.casefold() for one in self.tools.values()}

    @property
    def reached(self) -> Index:
        """The index once all is done."""
        place, head = self._past.shown
        return Index(
            form=self._form.name,
            place=place,
            head=head,
            version=self._past.version,
            tools=self.tools,
        )

    def settle_all(self) -> None:
        """Plan what makes the files show the newest library."""
        changed, removed = self._changed()
        homes = self._homes(changed)
        for name in changed:
            newest, written = self._past.definitions.get(name), self._held.tools.get(name)
            if newest is None:
                self._take_out(name, written)
            elif written is None:
                self._add(newest, self._folder.tools / (homes.get(name) or self._file_for(name)))
            else:
                self._bring_up(newest, written, was_removed=name in removed)

    def is_as_seen(self, path: Path) -> bool:
        """Whether a file holds what it held when it was planned to write or delete it."""
        return self.seen[path] == _digest_if_any(self._folder.content(path))

    def write(self, definition: ToolDefinition, path: Path, before: bytes | None) -> None:
        """Let a file say what a definition says, if it still holds what it held before."""
        self.writes[path] = self._form.text_of(definition)
        self.seen[path] = _digest_if_any(before)
        self._keep(definition, path, self.writes[path])

    def delete(self, path: Path, before: bytes | None) -> None:
        """Let a file go, if it still holds what it held before."""
        self.deletes.append(path)
        self.seen[path] = _digest_if_any(before)

    def _keep(self, definition: ToolDefinition, path: Path, content: bytes) -> None:
        """Note that a file shows a definition."""
        self.tools[definition.name] = Written(
            file=path.name, digest=definition.digest, content=digest_of(content)
        )

    def _file_for(self, name: str) -> str:
        """The name of a new tool's file, which no other tool has."""
        stem, suffix = file_stem(name), self._form.suffix
        if f"{stem}{suffix}".casefold() in self._taken:  # a person gave it to another tool's file
            stem = f"{stem}--{_digest_suffix(name)}"
        self._taken.add(f"{stem}{suffix}".casefold())
        return f"{stem}{suffix}"

    @cached_property
    def _since(self) -> int:
        """The version that the files showed; 0 when the index says nothing about this history."""
        index = self._held
        if not index.place or index.place == self._past.shown[0]:
            head = self._past.shown[1] if index.place else ""
        else:
            head = digest_of(self._folder.content(self._folder.entry(index.place)) or b"")
        return index.version if index.head == head else 0

    def _changed(self) -> tuple[list[str], set[str]]:
        """The tools that changed since the index was written, and those that were taken out."""
        if self._since:
            entries = list(self._history.entries(self._held.place + 1, self._past.shown[0]))
            removed = {name for entry in entries for name in entry.removals}
            return list(dict.fromkeys(name for entry in entries for name in entry.names)), removed
        every = [*self._past.definitions, *self._held.tools, *self._past.touched]
        return list(dict.fromkeys(every)), set()

    def _take_out(self, name: str, written: Written | None) -> None:
        file = f"{file_stem(name)}{self._form.suffix}" if written is None else written.file
        if written is None and file.casefold() in self._taken:
            return
        path = self._folder.tools / file
        content = self._folder.content(path)
        if content is not None and not self._is_ours(content, name, written):
            return  # somebody edited it, and is to hear that the tool is gone
        self.tools.pop(name, None)
        if content is not None:
            self.delete(path, content)

    def _add(self, newest: ToolDefinition, path: Path) -> None:
        """A tool that the index does not know."""
        content = self._folder.content(path)
        if content is None or self._is_ours(content, newest.name, None):
            self.write(newest, path, content)
        elif self._shows(content, newest):
            self._keep(newest, path, content)
        else:  # a person made this file, or edited it and the index that knew it is lost
            began = "" if not self._index_is_lost else newest.digest
            self.tools[newest.name] = Written(file=path.name, digest=began, content="")

    def _bring_up(self, newest: ToolDefinition, written: Written, *, was_removed: bool) -> None:
        path = self._folder.tools / written.file
        content = self._folder.content(path)
        # Somebody who deleted the file wants to take the tool out, unless the store itself did it.
        is_ours = was_removed if content is None else self._is_ours(content, newest.name, written)
        if is_ours:
            self.write(newest, path, content)
        elif content is not None and self._shows(content, newest):
            self._keep(newest, path, content)

    def _is_ours(self, content: bytes, name: str, written: Written | None) -> bool:
        """Whether a file says what a store wrote there, and nothing that a person did."""
        if written is not None and digest_of(content) == written.content:
            return True
        for revision in self._history.revisions(name):
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
        return digest_of(content) == digest_of(self._form.text_of(definition))

    def _shows(self, content: bytes, definition: ToolDefinition) -> bool:
        """Whether a file says what a definition says, in whatever words of YAML."""
        if self._is_text_of(content, definition):
            return True
        try:
            return is_same(read_definition(content, self._form), definition)
        except DefinitionError:
            return False

    def _homes(self, changed: Iterable[str]) -> Mapping[str, str]:
        """Files that people made for tools that came into the library with what these say."""
        held, suffix = self._held, self._form.suffix
        new = {
            name for name in changed if name in self._past.definitions and name not in held.tools
        }
        if not new:
            return {}
        finder = EditFinder(self._folder, self._form, self._history, self._past)
        usual = {f"{file_stem(name)}{suffix}" for name in new}
        strangers = (one for one in finder.strangers(held) if one.suffix == suffix)
        homes: dict[str, str] = {}
        for path in [one for one in strangers if one.name not in usual][:_MOST_STRANGERS]:
            try:
                found = read_definition(self._folder.content(path) or b"", self._form)
            except DefinitionError:
                continue
            if found.name in new and is_same(found, self._past.definitions[found.name]):
                homes.setdefault(found.name, path.name)
        return homes


class ToolFiles:
    """The folder ``tools/`` and the index beside it.

    Args:
        folder: Of the store.
        history: The changes.
        form: The form that was asked for; empty for the one that the store has, else YAML.
    """

    def __init__(self, folder: Folder, history: History, *, form: str = "") -> None:
        self._folder = folder
        self._history = history
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
        if index is None:
            form = self._wanted or FORMS["yaml"]
        else:
            form = form_named(index.form)
            if self._wanted not in {None, form}:
                raise UsageError(
                    f"{self._folder.path} keeps its tools as {index.form}; open it without "
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
        path = self._folder.index
        signature = self._folder.signature(path)
        if signature is None:
            return None
        if self._known is None or self._known[0] != signature:
            content = self._folder.content(path)
            if content is None:
                return None
            self._known = (signature, decoded(content, path))
        return self._known[1]

    def check_not_ahead(self) -> None:
        """Refuse to go on where the index tells of changes that the history lacks.

        Raises:
            StoreFormatError: It does.
        """
        index = self.index()  # first: what a writer adds meanwhile is in the history before
        past, _ = self._history.refresh()
        if index is not None and index.place > past.length:
            raise StoreFormatError(
                f"{self._folder.index} tells of {index.place} changes, and the history holds "
                f"{past.length}. Nothing was changed; restore the folder 'history' ('git "
                "checkout', or a backup), or delete the index where the history is right"
            )

    def is_behind(self) -> bool:
        """Whether the files do not show the newest version yet."""
        index = self.index()
        past, _ = self._history.refresh()
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
                self._carry_out(self.planned())

    def planned(self) -> Plan:
        """What settling would do now."""
        with self._history.lock:
            self.check_not_ahead()
            index, (past, _) = self.index(), self._history.refresh()
            plan = Plan(self._folder, self.form, self._history, past, index)
            if self.is_behind():
                plan.settle_all()
        return plan

    def take_back(self, edit: HandEdit) -> Path | None:
        """Write a tool's file as the library has it, and lay aside what stood there.

        The caller holds the lock of the folder.

        Returns:
            Where the text lies now; None when there was none.
        """
        self.settle()
        while True:
            with suppress(OvertakenError):  # what an editor wrote meanwhile is laid aside too
                return self._taken_back(edit)

    def _taken_back(self, edit: HandEdit) -> Path | None:
        past, _ = self._history.refresh()
        plan = Plan(self._folder, self.form, self._history, past, self.index())
        content = self._folder.content(edit.file)
        aside = None if content is None else self._folder.lay_aside(edit.file, content)
        if not edit.file.exists():
            content = None  # what is no plain file was moved
        written = plan.tools.get(edit.name)
        newest = past.definitions.get(edit.name)
        if written is None or written.file != edit.file.name:  # a file beside those of tools
            plan.delete(edit.file, content)
        elif newest is None:
            del plan.tools[edit.name]
            plan.delete(edit.file, content)
        else:
            plan.write(newest, edit.file, content)
        self._carry_out(plan)
        return aside

    def _carry_out(self, plan: Plan) -> None:
        self._folder.make()
        self._folder.put(
            plan.writes,
            gone=plan.deletes,
            last=(self._folder.index, plan.reached.encoded()),
            is_as_planned=plan.is_as_seen,
        )
