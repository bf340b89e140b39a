"""``agentkit rollback``: take a change back, go back to a version, or hold one."""

from __future__ import annotations

import sys
from typing import Annotated

import click

from agentkit.cli.options import FromZero, Reason, StoreUrl, argument, command
from agentkit.cli.output import Output, plural, say
from agentkit.cli.review import print_served
from agentkit.cli.stores import managed, person
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.differences import library_changes
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.review import pin_words, review_of
from agentkit.evolution.rollback import Undoable

_NAMED = 5
"""Tools of a change that are named; of more there is the count."""


@command()
def rollback(
    which: Annotated[str, argument("[TOOL|ID]")] = "",
    *,
    to: FromZero | None = None,
    pin: int | None = None,
    unpin: bool = False,
    tool: str = "",
    yes: bool = False,
    reason: Reason,
    store_url: StoreUrl,
) -> Output:
    """Take back the last change, the last one of TOOL, or the proposal or change ID.

    Any change can be taken back: a promotion, 'tools add', an import, registered code, mining, an
    edit. Tools get their earlier definitions, as a new library version, and new tools are removed;
    the history keeps everything. Later promotions of the same tool are taken back too. Prints what
    models see afterwards.

    Args:
        to (VERSION): Give TOOL the definition it had at this library version.
        pin (VERSION): Pin runs to this library version.
        unpin: Let runs use the newest version again.
        tool (NAME): With --pin: only this tool.
        yes: Do not ask.

    Examples:
      agentkit rollback                              the last change
      agentkit rollback loan_offer --reason 'customers were sent away'
      agentkit rollback loan_offer --to 3            as at library version 3
      agentkit rollback --pin 12                     the kill switch, until --unpin
    """
    holds = pin is not None or unpin
    if (pin is not None) + unpin + (to is not None) > 1:
        raise UsageError("--to, --pin and --unpin exclude each other; give one")
    if to is not None and not which:
        raise UsageError(f"which tool? Type: agentkit rollback TOOL --to {to}")
    if which if holds else tool:
        raise UsageError("--tool NAME belongs to --pin and --unpin, and TOOL to the others")
    with managed(store_url) as manager:
        before = manager.served
        taken: list[str] = []
        if holds:
            _hold(manager, tool, pin, reason)
        elif to is not None:
            manager.restore(which, to_version=to, author=person(), reason=reason)
        else:
            taken = _take_back(manager, which, reason, is_sure=yes)
        after = manager.served
        pins = dict(manager.ledger.pins)
        version = manager.library.version
    changed = library_changes(before, after)
    seen = {name: [one.to_json() for one in some] for name, some in changed.items()}
    record = {"taken_back": taken, "pins": pins, "library_version": version}

    def view() -> None:
        for name, held in pins.items():
            click.echo(shown(pin_words(name, held)))
        if unpin and not pins:
            click.echo("nothing is pinned; runs use the newest version")
        print_served(before, after)

    return Output(record=record | {"served": after.version, "changes": seen}, view=view)


def _hold(manager: ToolManager, tool_name: str, version: int | None, reason: str) -> None:
    """Pin a tool, or all, to a version; without one take the pin off."""
    if version is not None:
        manager.pin(version, tool_name, reason=reason, author=person())
        return
    if tool_name not in manager.ledger.pins:
        raise UsageError(f"{repr(tool_name) if tool_name else 'the whole library'} is not pinned")
    manager.unpin(tool_name, reason=reason, author=person())


def _take_back(manager: ToolManager, which: str, reason: str, *, is_sure: bool) -> list[str]:
    """The ids of the proposals, or the version, that were taken back, said before and after."""
    trial = manager.ledger.experiment(which) if which else None
    is_tried = trial is not None and trial.state == "canary"
    change = None if is_tried else manager.last_change(which)
    if change is not None and not change.proposal_id:
        return [_undo(manager, change, reason, is_sure=is_sure)]
    if change is None and not is_tried and (not which or which in manager.library):
        raise UsageError(
            f"nothing is left to take back; type 'agentkit rollback {which or 'TOOL'} --to VERSION'"
        )
    if not which and change is not None:
        told = review_of(manager, change.proposal_id)
        what = f"the promotion of {shown(told.proposal_id)} of {shown(told.tool)}"
        _confirm(f"the last change is {what}: {shown(told.summary)}", is_sure=is_sure)
    named = _named(manager, which) if change is None else change.proposal_id
    taken = manager.roll_back(named, reason=reason, author=person())
    if not is_sure or taken:
        say(f"taken back: {', '.join(map(shown, taken)) or 'nothing, it was done already'}")
    return list(taken)


def _undo(manager: ToolManager, change: Undoable, reason: str, *, is_sure: bool) -> str:
    """Take back what no proposal made; the words for what it was."""
    names = ", ".join(map(shown, change.names[:_NAMED]))
    rest = len(change.names) - _NAMED
    what = f"library version {change.version} ({names}{f', {rest:,} more' if rest > 0 else ''})"
    why = shown(change.reason) or "no reason was given"
    _confirm(f"{what} changed {plural(len(change.names), 'tool')}: {why}", is_sure=is_sure)
    manager.undo(change, reason=reason, author=person())
    say(f"taken back: {what}")
    return f"version {change.version}"


def _confirm(what: str, *, is_sure: bool) -> None:
    say(what)
    if not is_sure and sys.stdin.isatty() and sys.stdout.isatty():
        click.confirm("Take it back?", abort=True, err=True)


def _named(manager: ToolManager, which: str) -> str:
    """A tool that is there is meant as a tool, with its canary first; else a proposal is."""
    ledger = manager.ledger
    if which in manager.library or ledger.promoted.get(which):
        return which
    return ledger.find(which).proposal_id
