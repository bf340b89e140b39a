"""Keeping the files of tools in step with the history, around what people edit meanwhile.

A file is overwritten or deleted only when it is as the store wrote it. One that somebody edited is
left alone, and the index goes on naming the definition that the edit began with. So neither the
edit nor the change of the library is lost, and whoever looks sees both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agentkit.errors import StoreFormatError, UsageError
from agentkit.library.directory.folder import Folder, OvertakenError
from agentkit.library.directory.hand_edits import HandEdit
from agentkit.library.directory.index import Index, decoded
from agentkit.library.directory.log import Log
from agentkit.library.directory.planning import Plan, Planner
from agentkit.library.directory.texts import FORMS, TextForm, form_named


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

    def check_not_ahead(self) -> None:
        """Refuse to go on where the index tells of changes that the history lacks.

        Raises:
            StoreFormatError: It does.
        """
        index = self.index()  # first: what a writer adds meanwhile is in the history before
        past, _ = self._log.refresh()
        if index is not None and index.place > past.length:
            raise StoreFormatError(
                f"{self._folder.index} tells of {index.place} changes, and the history holds "
                f"{past.length}. Nothing was changed; restore the folder 'history' ('git "
                "checkout', or a backup), or delete the index where the history is right"
            )

    def is_behind(self) -> bool:
        """Whether the files do not show the newest version yet."""
        index = self.index()
        past, _ = self._log.refresh()
        if index is None:
            return past.version > 0
        return (index.place, index.head) != past.shown

    def settle(self) -> None:
        """Make the files show the newest library. The caller holds the lock of the folder.

        Raises:
            StoreError: A file can not be written. The next call goes on where this one ended.
        """
        while self.is_behind():
            plan, reached = self.planned()
            with suppress(OvertakenError):  # an editor was faster: plan again around the edit
                self._carry_out(plan, reached)

    def planned(self) -> tuple[Plan, Index]:
        """What settling would do now, and the index that it would come to."""
        with self._log.lock:
            self.check_not_ahead()
            index = self.index()
            past, _ = self._log.refresh()
            if index is not None and not self.is_behind():
                return Plan.after(index), index
            planner = Planner(
                folder=self._folder, form=self.form, log=self._log, past=past, index=index
            )
            plan = planner.plan()
        reached = Index(
            form=self.form.name,
            place=past.shown[0],
            head=past.shown[1],
            version=past.version,
            tools=plan.tools,
        )
        return plan, reached

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
        past, _ = self._log.refresh()
        index = self.index() or Index(form=self.form.name)
        plan = Plan.after(index)
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
            plan.write(self.form, newest, edit.file, content)
        self._carry_out(plan, replace(index, tools=plan.tools))
        return aside

    def _carry_out(self, plan: Plan, reached: Index) -> None:
        self._folder.make()
        last = (self._folder.index, reached.encoded())
        self._folder.put(
            plan.writes,
            gone=plan.deletes,
            last=last,
            is_as_planned=lambda path: plan.is_as_seen(path, self._folder.content(path)),
        )
