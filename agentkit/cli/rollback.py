"""``agentkit rollback``: take a change back, go back to a version, or hold one."""

from __future__ import annotations

import sys

import click

from agentkit.cli.managing import managed
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.review import print_served, reason_option
from agentkit.cli.stores import person
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.differences import library_changes
from agentkit.evolution.ledger import WHOLE_LIBRARY
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.review import pin_words, review_of
from agentkit.evolution.rollback import Undoable

_NOTHING = "nothing is left to take back"
_NAMED = 5
"""Tools of a change that are named; of more there is the count."""


@click.command(
    short_help="Take a change back, or hold a library version.",
    epilog="""\b
Examples:
  agentkit rollback                              the last change
  agentkit rollback loan_offer --reason 'customers were sent away'
  agentkit rollback loan_offer --to 3            as at library version 3
  agentkit rollback --pin 12                     the kill switch, until --unpin""",
)
@click.argument("which", metavar="[TOOL|ID]", default="")
@click.option(
    "--to",
    type=click.IntRange(min=0),
    metavar="VERSION",
    help="Give TOOL the definition that it had at this library version.",
)
@click.option(
    "--pin",
    type=click.IntRange(min=1),
    metavar="VERSION",
    help="Hold runs at this library version, whatever is promoted.",
)
@click.option("--unpin", is_flag=True, help="Let runs use the newest version again.")
@click.option("--tool", "tool_name", default=WHOLE_LIBRARY, metavar="NAME", help="Pin only this.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@reason_option
@store_option
@json_option
def rollback(
    which: str,
    to: int | None,
    pin: int | None,
    tool_name: str,
    *,
    unpin: bool,
    yes: bool,
    reason: str,
    store_url: str,
    as_json: bool,
) -> None:
    """Take the last change back, or that of TOOL, or the proposal or change ID.

    Whoever made it: a promotion, 'tools add', an import, code that registered its tools, mining,
    an edit. Tools get the definitions that they had before, as a new library version, and those
    that were new are removed; the history keeps everything. What was promoted on the same tool
    after a proposal is taken back too. Tells what models see afterwards.
    """
    _check(which, to, pin, tool_name, unpin=unpin)
    with managed(store_url) as manager:
        before = manager.served
        if pin is not None or unpin:
            _hold(manager, tool_name, pin, reason)
            told: dict[str, object] = {"pins": dict(manager.ledger.pins)}
        elif to is not None:
            manager.restore(which, to_version=to, author=person(), reason=reason)
            told = {"tool": which, "restored_from": to}
        else:
            told = {"taken_back": _take_back(manager, which, reason, is_sure=yes or as_json)}
        after = manager.served
        if as_json:
            changed = library_changes(before, after)
            seen = {name: [one.to_json() for one in some] for name, some in changed.items()}
            told |= {"library_version": manager.library.version, "served": after.version}
            print_json({**told, "changes": seen})
            return
        for name, version in manager.ledger.pins.items():
            click.echo(shown(pin_words(name, version)))
        if unpin and not manager.ledger.pins:
            click.echo("nothing is pinned; runs use the newest version")
        print_served(before, after)


def _check(which: str, to: int | None, pin: int | None, tool_name: str, *, unpin: bool) -> None:
    """One thing at a time.

    Raises:
        UsageError: Options do not go together.
    """
    holds = pin is not None or unpin
    if (pin is not None) + unpin + (to is not None) > 1:
        raise UsageError("--to, --pin and --unpin exclude each other; give one")
    if to is not None and not which:
        raise UsageError(f"which tool? Type: agentkit rollback TOOL --to {to}")
    if holds and which:
        raise UsageError(
            f"name the tool of a pin with --tool {which}; --pin alone holds everything"
        )
    if tool_name and not holds:
        raise UsageError(
            f"--tool belongs to --pin and --unpin; type: agentkit rollback {tool_name}"
        )


def _hold(manager: ToolManager, tool_name: str, version: int | None, reason: str) -> None:
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
        which = which or "TOOL"
        raise UsageError(f"{_NOTHING}; type 'agentkit rollback {which} --to VERSION'")
    if not which and change is not None:
        told = review_of(manager, change.proposal_id)
        _confirm(
            f"the last change is the promotion of {shown(told.proposal_id)} of {shown(told.tool)}: "
            f"{shown(told.summary)}",
            is_sure=is_sure,
        )
    taken = manager.roll_back(_named(manager, which, change), reason=reason, author=person())
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


def _named(manager: ToolManager, which: str, change: Undoable | None) -> str:
    """A tool that is there is meant as a tool, with its canary first; else a proposal is."""
    if change is not None:
        return change.proposal_id
    ledger = manager.ledger
    if which in manager.library or ledger.promoted.get(which):
        return which
    return ledger.find(which).proposal_id
