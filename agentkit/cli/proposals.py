"""``agentkit proposals``: look at suggested changes, decide on them, take them back."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentkit.cli.lazy import LazyCommands
from agentkit.cli.managing import managed, targets_option
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import print_json, say
from agentkit.cli.proposal_view import (
    brief,
    print_counts,
    print_decided,
    print_differences,
    print_heading,
    print_proposals,
    print_record,
)
from agentkit.cli.stores import person
from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.consenting import record_of
from agentkit.evolution.lifecycle.differences import Difference, differences
from agentkit.evolution.lifecycle.ledger import WHOLE_LIBRARY
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposals.proposal import NEXT
from agentkit.tools.definition import ToolDefinition

reason_option = click.option("--reason", default="", help="Why, for the chain of events.")
proposal_argument = click.argument("proposal_id", metavar="PROPOSAL")


@click.group(
    cls=LazyCommands,
    places={
        "overrule": "agentkit.cli.overruling:overrule",
        "revalidate": "agentkit.cli.revalidating:revalidate",
    },
)
def proposals() -> None:
    """Look at suggested changes of tools, decide on them, and take them back.

    PROPOSAL is an id from 'proposals list', or the beginning of one. Every decision is an event
    with your name; see 'agentkit audit'.
    """


@proposals.command(
    "list",
    epilog="""\b
Examples:
  agentkit proposals list
  agentkit proposals list --state validated --state proposed
  agentkit proposals list --tool loan_offer --json""",
)
@click.option(
    "--state",
    "states",
    type=click.Choice(list(NEXT)),
    metavar="STATE",
    multiple=True,
    help=f"Only in this state: {', '.join(NEXT)}.",
)
@click.option("--open", "only_open", is_flag=True, help="Only those that are not decided yet.")
@click.option("--tool", "tool_name", default="", metavar="NAME", help="Only for this tool.")
@store_option
@json_option
def list_(
    states: Sequence[str], *, only_open: bool, tool_name: str, store_url: str, as_json: bool
) -> None:
    """List proposals, oldest first."""
    with managed(store_url) as manager:
        ledger = manager.ledger
    found = [
        record
        for record in ledger.proposals.values()
        if (not states or record.state in states)
        and (record.is_open or not only_open)
        and tool_name in {"", record.tool_name}
    ]
    told = [(record, manager.standing(record.proposal_id)) for record in found]
    if as_json:
        print_json([brief(record, stands) for record, stands in told])
        return
    print_proposals(told)
    print_counts(ledger.counts())
    for proposer in ledger.proposers.values():
        if proposer.is_quarantined:
            say(f"nothing is taken from {proposer.name!r} ('agentkit proposals release')")
    for name, version in ledger.pins.items():
        say(f"{name or 'the whole library'} is pinned to version {version}")
    for name, why in ledger.marked.items():
        say(f"{name} waits for re-validation ('agentkit proposals revalidate'): {why}")


@proposals.command(
    short_help="Show all about PROPOSAL, and what is wrong with it.",
    epilog="""\b
Example:
  agentkit proposals show evidence-3f2a""",
)
@proposal_argument
@store_option
@json_option
def show(proposal_id: str, store_url: str, as_json: bool) -> None:
    """Show all about PROPOSAL: what it changes, what is wrong with it, what happened to it."""
    with managed(store_url) as manager:
        record = record_of(manager.ledger, proposal_id)
        stands = manager.standing(record.proposal_id)
        changes = _changes(manager, record)
    if as_json:
        now = {"why": stands.why, "next": list(stands.commands)}
        print_json({**record.to_json(), **now, "changes": [one.to_json() for one in changes]})
        return
    print_record(record, stands, changes)


@proposals.command(
    epilog="""\b
Examples:
  agentkit proposals diff evidence-3f2a
  agentkit proposals diff evidence-3f2a --json"""
)
@proposal_argument
@store_option
@json_option
def diff(proposal_id: str, store_url: str, as_json: bool) -> None:
    """Show what PROPOSAL changes, field by field and word by word.

    On a terminal what goes is red and struck through, and what comes is green; elsewhere they
    stand as [-gone-] and {+new+}. Characters that nobody sees are written out.
    """
    with managed(store_url) as manager:
        record = record_of(manager.ledger, proposal_id)
        changes = _changes(manager, record)
        newest = manager.library.get(record.tool_name)
    if as_json:
        print_json(
            {
                "proposal_id": record.proposal_id,
                "tool": record.tool_name,
                "state": record.state,
                "base": record.base,
                "changes": [one.to_json() for one in changes],
            }
        )
        return
    print_heading(record, manager.standing(record.proposal_id))
    click.echo()
    print_differences(changes)
    if record.is_open and newest is not None and newest.definition.digest != record.base:
        say("the tool has changed since; the proposal is moved onto that when it goes on")


def _changes(manager: ToolManager, record: ProposalRecord) -> tuple[Difference, ...]:
    """What a proposal changes; nothing for an answer that could not be read."""
    candidate = record.candidate
    if candidate is None:
        return ()
    if not record.base:  # a tool that is new: all of it is
        return differences(ToolDefinition(name=record.tool_name), candidate)
    base = manager.revision(record.tool_name, record.base)
    if base is None:
        return ()
    return differences(base, candidate)


@proposals.command(
    epilog="""\b
Example:
  agentkit proposals approve evidence-3f2a --reason 'the terms are those of the contract'"""
)
@proposal_argument
@reason_option
@store_option
@json_option
def approve(proposal_id: str, reason: str, store_url: str, as_json: bool) -> None:
    """Agree to PROPOSAL, as a person. 'proposals advance' then brings it on."""
    with managed(store_url) as manager:
        record = manager.approve(proposal_id, person=person(), reason=reason)
        stands = manager.standing(proposal_id)
    print_decided(record, stands, as_json=as_json)


@proposals.command(
    epilog="""\b
Example:
  agentkit proposals reject evidence-3f2a --reason 'we do offer 24 months'"""
)
@proposal_argument
@click.option("--reason", required=True, help="Why, for the chain of events.")
@store_option
@json_option
def reject(proposal_id: str, reason: str, store_url: str, as_json: bool) -> None:
    """Say no to PROPOSAL, as a person. What is active is taken back with 'agentkit rollback'."""
    with managed(store_url) as manager:
        record = manager.reject(proposal_id, person=person(), reason=reason)
        stands = manager.standing(proposal_id)
    print_decided(record, stands, as_json=as_json)


@proposals.command(
    short_help="Bring PROPOSAL, or all open ones, on by one stage.",
    epilog="""\b
Examples:
  agentkit proposals advance
  agentkit proposals advance evidence-3f2a
  agentkit proposals advance --canary --tools my_package.loans""",
)
@click.argument("proposal_ids", metavar="[PROPOSAL]...", nargs=-1)
@click.option("--shadow", is_flag=True, help="Run candidates unseen beside the answers first.")
@click.option("--canary", is_flag=True, help="Let candidates serve a share of the sessions first.")
@click.option(
    "--judge",
    default="",
    metavar="MODEL",
    help="Let this model read the changes that need a judge; without one they wait.",
)
@targets_option
@store_option
@json_option
def advance(
    proposal_ids: Sequence[str],
    targets: Sequence[str],
    *,
    judge: str,
    shadow: bool,
    canary: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Bring PROPOSAL, or all that are open, on by one stage each, as far as they are allowed.

    A proposal in shadow or canary is judged by the episodes in the store. One that is validated
    waits for the numbers of an offline comparison or for 'proposals approve'.
    """
    policy = LifecyclePolicy(shadow=shadow, canary=canary)
    with managed(store_url, targets, lifecycle=policy, judge=judge) as manager:
        wanted: Sequence[str | None] = proposal_ids or (None,)
        outcomes = [outcome for one in wanted for outcome in manager.advance(one)]
        version = manager.library.version
    if as_json:
        done = [outcome.to_json() for outcome in outcomes]
        print_json({"library_version": version, "proposals": done})
        return
    for outcome in outcomes:
        click.echo(str(outcome))
    moved = sum(outcome.has_moved for outcome in outcomes)
    say(f"{moved:,} of {len(outcomes):,} moved; library version {version}")


@click.command(
    short_help="Take a promoted proposal back.",
    epilog="""\b
Examples:
  agentkit rollback loan_offer --reason 'customers were sent away'
  agentkit rollback evidence-3f2a""",
)
@click.argument("which", metavar="TOOL|PROPOSAL")
@reason_option
@store_option
@json_option
def rollback(which: str, reason: str, store_url: str, as_json: bool) -> None:
    """Take a promoted proposal back: the tool gets the definition that it had before.

    For a TOOL it is its canary, or else the last proposal that became active. For a PROPOSAL, what
    became active on the same tool after it is taken back too. Nothing is deleted.
    """
    with managed(store_url) as manager:
        taken = manager.roll_back(which, reason=reason, author=person())
        version = manager.library.version
    if as_json:
        print_json({"taken_back": list(taken), "library_version": version})
        return
    click.echo(f"taken back: {', '.join(taken) or 'nothing, it was done already'}")
    say(f"library version {version}")


proposals.add_command(rollback)


@proposals.command(
    epilog="""\b
Example:
  agentkit proposals release feedback:small-model --reason 'its prompt was mended'"""
)
@click.argument("proposer")
@reason_option
@store_option
@json_option
def release(proposer: str, reason: str, store_url: str, as_json: bool) -> None:
    """Take from PROPOSER again, which was rejected too often in a row."""
    with managed(store_url) as manager:
        record = manager.release(proposer, person=person(), reason=reason)
    if as_json:
        print_json({"proposer": record.name, "is_quarantined": record.is_quarantined})
    else:
        click.echo(f"proposals of {record.name} are taken again")


tool_option = click.option(
    "--tool", "tool_name", default=WHOLE_LIBRARY, metavar="NAME", help="Only this tool."
)


@proposals.command(
    short_help="The kill switch: runs use library VERSION.",
    epilog="""\b
Examples:
  agentkit proposals pin 12                    the whole library
  agentkit proposals pin 12 --tool loan_offer""",
)
@click.argument("version", type=click.IntRange(min=1))
@tool_option
@reason_option
@store_option
@json_option
def pin(version: int, tool_name: str, reason: str, store_url: str, as_json: bool) -> None:
    """The kill switch: runs use library VERSION, whatever happens, until 'proposals unpin'.

    The library itself stays as it is, and nothing that is pinned is brought on meanwhile.
    """
    with managed(store_url) as manager:
        manager.pin(version, tool_name, reason=reason, author=person())
        pins = dict(manager.ledger.pins)
    _tell_pins(pins, as_json=as_json)


@proposals.command(
    epilog="""\b
Examples:
  agentkit proposals unpin
  agentkit proposals unpin --tool loan_offer"""
)
@tool_option
@reason_option
@store_option
@json_option
def unpin(tool_name: str, reason: str, store_url: str, as_json: bool) -> None:
    """Let runs use the newest version again."""
    with managed(store_url) as manager:
        if tool_name not in manager.ledger.pins:
            what = repr(tool_name) if tool_name else "the whole library"
            raise UsageError(f"{what} is not pinned")
        manager.unpin(tool_name, reason=reason, author=person())
        pins = dict(manager.ledger.pins)
    _tell_pins(pins, as_json=as_json)


def _tell_pins(pins: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json([{"tool": name or None, "version": pins[name]} for name in pins])
        return
    for name, version in pins.items():
        click.echo(f"{name or 'the whole library'} is pinned to version {version}")
    if not pins:
        click.echo("nothing is pinned; runs use the newest version")
