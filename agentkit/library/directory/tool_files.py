"""Keeping the files of tools in step with the history, around what people edit meanwhile.

A file is overwritten or deleted only when it is as the store wrote it. One that somebody edited is
left alone, and the index goes on naming the definition that the edit began with. So neither the
edit nor the change of the library is lost, and whoever looks sees both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentkit.errors import DefinitionError, StoreFormatError, UsageError
from agentkit.library.directory.entries import digest_of
from agentkit.library.directory.folder import Folder
from agentkit.library.directory.hand_edits import (
    EditFinder,
    HandEdit,
    is_same,
    read_definition,
)
from agentkit.library.directory.index import Index, Written, decoded
from agentkit.library.directory.log import Log
from agentkit.library.directory.names import digest_suffix, file_stem
from agentkit.library.directory.past import Past
from agentkit.library.directory.texts import FORMS, TextForm, form_named
from agentkit.tools.definition import ToolDefinition

_MOST_STRANGERS = 1_000


@dataclass(kw_only=True, slots=True)
class _Plan:
    """What one round of writing does."""

    tools: dict[str, Written]
    taken: set[str] = field(default_factory=set)
    writes: dict[Path, bytes] = field(default_factory=dict)
    deletes: list[Path] = field(default_factory=list)

    @classmethod
    def after(cls, index: Index) -> _Plan:
        """A round that begins where the last one ended."""
        taken = {one.file.casefold() for one in index.tools.values()}
        return cls(tools=dict(index.tools), taken=taken)

    def file_for(self, name: str, suffix: str) -> str:
        """The name of a tool's file: the one that it has, else one that no other tool has."""
        if name in self.tools:
            return self.tools[name].file
        stem = file_stem(name)
        if f"{stem}{suffix}".casefold() in self.taken:  # a person gave it to another tool's file
            stem = f"{stem}--{digest_suffix(name)}"
        self.taken.add(f"{stem}{suffix}".casefold())
        return f"{stem}{suffix}"


class ToolFiles:
    """The folder ``tools/`` and the index beside it.

    Args:
        folder: Of the store.
        log: The history.
        form: The form that was asked for; empty for the one that the store has, else YAML.
    """

    def __init__(self, folder: Folder, log: Log, *, form: str = "") -> None:
        self._folder = folder
        self._log = log
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
        with self._folder.translated(path):
            try:
                found = path.stat()
                signature = (found.st_mtime_ns, found.st_ino, found.st_size)
                if self._known is None or self._known[0] != signature:
                    self._known = (signature, decoded(path.read_bytes(), path))
            except FileNotFoundError:
                return None
        return self._known[1]

    def check_not_ahead(self, past: Past) -> None:
        """Refuse to go on where the index tells of changes that the history lacks.

        Raises:
            StoreFormatError: It does.
        """
        index = self.index()
        if index is not None and index.place > past.length:
            raise StoreFormatError(
                f"{self._folder.index} tells of {index.place} changes, and the history holds "
                f"{past.length}. Nothing was changed; restore the folder 'history' ('git "
                "checkout', or a backup), or delete the index where the history is right"
            )

    def is_behind(self) -> bool:
        """Whether the files do not show the newest version yet."""
        past, _ = self._log.refresh()
        index = self.index()
        if index is None:
            return past.version > 0
        return (index.place, index.head) != past.shown

    def settle(self) -> None:
        """Make the files show the newest library. The caller holds the lock of the folder.

        Raises:
            StoreError: A file can not be written. The next call goes on where this one ended.
        """
        while self.is_behind():
            with self._log.lock:
                past, _ = self._log.refresh()
                index = self.index()
                self.check_not_ahead(past)
                plan = self._plan(past, index)
                reached = Index(
                    form=self.form.name,
                    place=past.shown[0],
                    head=past.shown[1],
                    version=past.version,
                    tools=plan.tools,
                )
            self._carry_out(plan, reached)

    def take_back(self, edit: HandEdit) -> Path | None:
        """Write a tool's file as the library has it, and lay aside what stood there.

        The caller holds the lock of the folder.

        Returns:
            Where the text lies now; None when there was none.
        """
        self.settle()
        past, _ = self._log.refresh()
        index = self.index() or Index(form=self.form.name)
        plan = _Plan.after(index)
        content = self._folder.content(edit.file)
        aside = None if content is None else self._folder.lay_aside(edit.file, content)
        written = plan.tools.get(edit.name)
        newest = past.definitions.get(edit.name)
        if written is None or written.file != edit.file.name:  # a file beside those of tools
            plan.deletes.append(edit.file)
        elif newest is None:
            del plan.tools[edit.name]
            plan.deletes.append(edit.file)
        else:
            self._write(plan, newest, written.file)
        self._carry_out(plan, replace(index, tools=plan.tools))
        return aside

    def _carry_out(self, plan: _Plan, reached: Index) -> None:
        self._folder.make()
        last = (self._folder.index, reached.encoded())
        self._folder.put(plan.writes, gone=plan.deletes, last=last)

    def _plan(self, past: Past, index: Index | None) -> _Plan:
        held = Index(form=self.form.name) if index is None else index
        plan = _Plan.after(held)
        changed, removed = self._changed(past, index)
        homes = self._homes(past, index, changed)
        for name in changed:
            newest, written = past.definitions.get(name), held.tools.get(name)
            if newest is None:
                self._take_out(plan, name, written)
            elif written is None:
                home = homes.get(name) or plan.file_for(name, self.form.suffix)
                self._add(plan, newest, home, is_new=index is not None)
            else:
                self._bring_up(plan, newest, written, was_removed=name in removed)
        return plan

    def _changed(self, past: Past, index: Index | None) -> tuple[list[str], set[str]]:
        """The tools that changed since the index was written, and those that were taken out."""
        if index is not None and self._is_ours(index, past):
            entries = list(self._log.entries(index.place + 1, past.shown[0]))
            removed = {name for entry in entries for name in entry.removals}
            return list(dict.fromkeys(name for entry in entries for name in entry.names)), removed
        known = {} if index is None else index.tools
        return list(dict.fromkeys([*past.definitions, *known])), set()

    def _is_ours(self, index: Index, past: Past) -> bool:
        """Whether the index was written for this history."""
        if index.place in {0, past.shown[0]}:
            return index.head == (past.shown[1] if index.place else "")
        content = self._folder.content(self._folder.entry(index.place))
        return content is not None and digest_of(content) == index.head

    def _take_out(self, plan: _Plan, name: str, written: Written | None) -> None:
        if written is None:
            return
        path = self._folder.tools / written.file
        content = self._folder.content(path)
        if content is not None and not self._is_untouched(content, name, written):
            return  # somebody edited it, and is to hear that the tool is gone
        del plan.tools[name]
        if content is not None:
            plan.deletes.append(path)

    def _add(self, plan: _Plan, newest: ToolDefinition, file: str, *, is_new: bool) -> None:
        """A tool that the index does not know; what stands in its place was not written for it."""
        content = self._folder.content(self._folder.tools / file)
        if content is None or self._is_earlier(content, newest, is_new=is_new):
            self._write(plan, newest, file)
        elif self._shows(content, newest):
            plan.tools[newest.name] = _written(file, newest, content)
        else:
            began = "" if is_new else newest.digest
            plan.tools[newest.name] = Written(file=file, digest=began, content="")

    def _bring_up(
        self, plan: _Plan, newest: ToolDefinition, written: Written, *, was_removed: bool
    ) -> None:
        content = self._folder.content(self._folder.tools / written.file)
        if content is None:
            is_clean = was_removed  # otherwise somebody deleted the file, to take the tool out
        else:
            is_clean = self._is_untouched(content, newest.name, written)
        if is_clean:
            self._write(plan, newest, written.file)
        elif content is not None and self._shows(content, newest):
            plan.tools[newest.name] = _written(written.file, newest, content)

    def _write(self, plan: _Plan, definition: ToolDefinition, file: str) -> None:
        content = self.form.text_of(definition)
        plan.tools[definition.name] = _written(file, definition, content)
        plan.writes[self._folder.tools / file] = content

    def _is_untouched(self, content: bytes, name: str, written: Written) -> bool:
        """Whether a file says what it was written from, in whatever words of YAML."""
        if digest_of(content) == written.content:
            return True
        before = self._log.revision(name, written.digest) if written.digest else None
        return before is not None and self._shows(content, before)

    def _shows(self, content: bytes, definition: ToolDefinition) -> bool:
        """Whether a file says what a definition says, in whatever words of YAML."""
        if content == self.form.text_of(definition):
            return True
        try:
            return is_same(read_definition(content, self.form), definition)
        except DefinitionError:
            return False

    def _is_earlier(self, content: bytes, newest: ToolDefinition, *, is_new: bool) -> bool:
        """Whether a file shows what the tool was once, where the index that knew it is lost."""
        if is_new:
            return False
        try:
            found = read_definition(content, self.form)
        except DefinitionError:
            return False
        is_it = found.name == newest.name and found.digest != newest.digest
        return is_it and self._log.revision(newest.name, found.digest) is not None

    def _homes(self, past: Past, index: Index | None, changed: Iterable[str]) -> Mapping[str, str]:
        """Files that people made for tools that came into the library with what these say."""
        held = Index(form=self.form.name) if index is None else index
        new = {name for name in changed if name in past.definitions and name not in held.tools}
        if not new:
            return {}
        finder = EditFinder(
            folder=self._folder, form=self.form, past=past, revision=self._log.revision
        )
        suffix = self.form.suffix
        ours = {f"{file_stem(name)}{suffix}" for name in new}
        strangers = [
            path
            for path in finder.strangers(held)
            if path.suffix == suffix and path.name not in ours
        ]
        homes: dict[str, str] = {}
        for path in strangers[:_MOST_STRANGERS]:
            content = self._folder.content(path)
            try:
                found = read_definition(content or b"", self.form)
            except DefinitionError:
                continue
            if found.name in new and is_same(found, past.definitions[found.name]):
                homes.setdefault(found.name, path.name)
        return homes


def _written(file: str, definition: ToolDefinition, content: bytes) -> Written:
    return Written(file=file, digest=definition.digest, content=digest_of(content))
