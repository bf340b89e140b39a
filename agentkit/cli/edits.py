"""What people made of the files of a directory store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from agentkit import evolution
from agentkit.cli.loading import load_tools
from agentkit.cli.output import print_json, say
from agentkit.cli.stores import event_signer, opened_to_read, person
from agentkit.errors import UsageError
from agentkit.evolution.hand_edits import EditedStore, ProposedEdit, propose_edits
from agentkit.library import Store
from agentkit.library.directory import HandEdit


@contextmanager
def _edited(store_url: str) -> Iterator[tuple[Store, EditedStore]]:
    with opened_to_read(store_url) as store:
        if not isinstance(store, EditedStore):
            raise UsageError(
                f"the store {store_url} keeps no files that people edit; name one with "
                "--store dir:PATH"
            )
        yield store, store


def edit_words(edit: HandEdit) -> str:
    """``changed``, ``new`` or ``deleted``, and whether the library changed the tool too."""
    what = "deleted" if edit.is_deletion else "new" if edit.before is None else "changed"
    if edit.is_conflict and not (edit.before is None and edit.newest is None):
        what += "; the library changed it too"
    return what


def fault_words(edit: HandEdit) -> str:
    """Why the file can not be taken; empty when it can."""
    return f"{edit.file.name}: {'; '.join(edit.faults)}" if edit.faults else ""


def propose(
    store_url: str,
    names: Sequence[str] = (),
    targets: Sequence[str] = (),
    *,
    reason: str = "",
    removes: bool = False,
    as_json: bool = False,
) -> None:
    """Make proposals of the edits of some tools, or of all, in the name of the person here.

    Each edit is checked like any other suggestion, and moved onto the newest definition when the
    library changed meanwhile. 'agentkit review' then shows and decides.

    Args:
        store_url: A store of files.
        names: Which tools; none for all.
        targets: Python code of tools; see ``load_tools``.
        reason: Why, for the log.
        removes: Whether tools are taken out whose files were deleted.
        as_json: Whether to print JSON.

    Raises:
        UsageError: A file of that name was not edited.
        Exit: With status 1, where a file can not be taken, or its proposal is rejected.
    """
    with _edited(store_url) as (store, edited):
        found = [edit for edit in edited.edits() if not names or edit.name in names]
        unknown = sorted(set(names) - {edit.name for edit in found})
        if unknown:
            raise UsageError(f"no file of {', '.join(map(repr, unknown))} was edited by hand")
        manager = evolution.ToolManager(
            store, tools=load_tools(targets), author=person(), signer=event_signer()
        )
        came = asyncio.run(
            propose_edits(found, manager, person=person(), reason=reason, removes=removes)
        )
        for one in came:
            if one.outcome == "contained":
                edited.take_back(one.edit.name)
    if as_json:
        print_json([one.to_json() for one in came])
    else:
        _tell(came)
    if any(one.outcome == "faulty" or _is_rejected(one) for one in came):
        raise click.exceptions.Exit(1)


def _is_rejected(one: ProposedEdit) -> bool:
    return one.record is not None and one.record.state in {"rejected", "quarantined"}


def _tell(came: Sequence[ProposedEdit]) -> None:
    for one in came:
        click.echo(f"{one.edit.name}: {_outcome(one)}")
    if any(one.record is not None and one.record.is_open for one in came):
        say("'agentkit review' shows what waits, 'agentkit review approve ID' lets it in")
    if not came:
        say("no file was edited by hand")


def _outcome(one: ProposedEdit) -> str:
    if one.record is not None:
        why = "; ".join(check.message for check in one.record.failed)
        return f"{one.record.state} as {one.record.proposal_id}" + (f": {why}" if why else "")
    match one.outcome:
        case "faulty":
            return f"not taken: {fault_words(one.edit)}"
        case "deleted":
            if one.edit.is_conflict:
                return "its file is gone, and the library changed it; --discard brings it back"
            return "its file is gone; --remove takes the tool out, --discard brings it back"
        case "removed":
            return "taken out"
        case _:
            return "the library has it already; its file is up to date again"


def discard(store_url: str, name: str, *, as_json: bool = False) -> None:
    """Write the file of a tool as the library has it; the edited text goes to local/set-aside."""
    with _edited(store_url) as (_, edited):
        aside = edited.take_back(name)
    if as_json:
        print_json({"tool": name, "kept": None if aside is None else str(aside)})
    else:
        click.echo(f"{name} is as the library has it")
        if aside is not None:
            say(f"the edited text is kept in {aside}")
