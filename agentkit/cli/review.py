"""``agentkit review`` and ``agentkit rollback``: decide on proposals, and take changes back."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import click

from agentkit._waiting import wait_for
from agentkit.agent.session import pending_approvals
from agentkit.agent.types import Approval, RunResult, deferred_calls
from agentkit.cli.boundary import ListsWhenAlone
from agentkit.cli.episodes import call_line
from agentkit.cli.loading import load_deps
from agentkit.cli.options import (
    Answers,
    FromZero,
    Reason,
    StoreUrl,
    Targets,
    argument,
    command,
    option,
)
from agentkit.cli.output import Output, fold, listing, one_line, say
from agentkit.cli.review_view import print_diff, print_review
from agentkit.cli.run import AgentOptions, make_agent, print_outcome
from agentkit.cli.stores import (
    managed,
    manager_of,
    opened,
    opened_if_there,
    opened_to_read,
    person,
    tool_traffic,
)
from agentkit.episodes import Episode
from agentkit.episodes.labels import KEY_LABEL, WAITING_AGENT
from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import listed
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.differences import library_changes
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.review import Review, pin_words, review_of
from agentkit.evolution.rollback import Undoable
from agentkit.library.library import Library
from agentkit.library.store import Store
from agentkit.tools.error_messages import plural
from agentkit.tools.invocation import made_deps

_LONGEST = 300

Which = Annotated[str, argument("ID|TOOL|last")]


@click.group(cls=ListsWhenAlone)
def review() -> None:
    """Read proposals, and approve, try or reject them.

    Name a proposal by its id, a prefix of it, its tool, or 'last'. Without a command, the open
    proposals are listed.
    """


@command("list", group=review)
def list_(
    *, shows_all: Annotated[bool, option("--all")] = False, tool: str = "", store_url: StoreUrl
) -> Output:
    """List open proposals, oldest first, and what they wait for.

    Args:
        shows_all: Also decided ones.
        tool (NAME): Only this tool.

    Examples:
      agentkit review list
      agentkit review list --all --tool loan_offer --json
    """
    with managed(store_url) as manager:
        ledger = manager.ledger
        reviews = [
            review_of(manager, record.proposal_id)
            for record in ledger.proposals.values()
            if (shows_all or record.is_open) and tool in {"", record.tool_name}
        ]

    pins = [
        f"{shown(pin_words(name, version))} (agentkit rollback --unpin)"
        for name, version in ledger.pins.items()
    ]
    note = f"'agentkit review show ID' explains one; {plural(len(reviews), 'proposal')}"
    return listing(
        [one.to_json() for one in reviews],
        ["id", *map(fold, ("tool", "what changes", "state", "reason"))],
        map(_row, reviews),
        note="\n".join([note, *pins]),
        nothing="\n".join(["nothing waits for you", *pins]),
    )


def _row(one: Review) -> tuple[object, ...]:
    texts = (one.summary, one.state.replace("_", " "), one.waits_for.removeprefix("waits for "))
    return one.proposal_id, one.tool, *(one_line(shown(text, _LONGEST)) for text in texts)


@command(short_help="Show all about one: the change, why, and the numbers.", group=review)
def show(which: Which, *, answers: Answers, store_url: StoreUrl) -> Output:
    """Show what models would see, why it was proposed, how it did, and what to type next.

    Conversations are shown without personal data of known formats.

    Examples:
      agentkit review show last
      agentkit review show loan_offer --json
    """
    with opened_to_read(store_url) as store, opened_if_there(answers) as evaluations:

        def find(episode_id: str) -> Episode | None:
            found = store.get(episode_id)
            return found if evaluations is None or found else evaluations.get(episode_id)

        traffic = tool_traffic(store, evaluations)
        found = review_of(manager_of(store), which, find=find, traffic=traffic)
    return Output(record=found.to_json(), view=lambda: print_review(found))


@command(short_help="Approve, and promote.", group=review)
def approve(
    which: Which, *, reason: Reason, judge: str = "", targets: Targets, store_url: StoreUrl
) -> Output:
    """Approve a proposal as a person, and advance it as far as the policy allows.

    Prints the library version that serves afterwards, and what models see.

    Args:
        judge (MODEL): Ask this model where a judge must agree.

    Examples:
      agentkit review approve loan_offer --reason 'the terms are those of the contract'
    """
    with managed(store_url, targets, judge=judge) as manager:
        proposal_id = manager.ledger.find(which).proposal_id
        before = manager.served
        manager.approve(proposal_id, person=person(), reason=reason)
        manager.advance_until(proposal_id)
        return _outcome(manager, proposal_id, before)


@command(short_help="Reject a proposal.", group=review)
def reject(
    which: Which, *, reason: Annotated[str, option(required=True)], store_url: StoreUrl
) -> Output:
    """Reject a proposal that is not in use; 'rollback' takes back one that is.

    Args:
        reason (TEXT): Why, for the log.

    Examples:
      agentkit review reject loan_offer --reason 'we do offer 24 months'
    """
    with managed(store_url) as manager:
        before = manager.served
        proposal_id = manager.ledger.find(which).proposal_id
        manager.reject(proposal_id, person=person(), reason=reason)
        return _outcome(manager, proposal_id, before)


@command(short_help="Serve a share of the sessions first.", group=review)
def canary(
    which: Which,
    *,
    share: Annotated[float, option(type=click.FloatRange(0, 100, min_open=True))] = 10.0,
    reason: Reason,
    store_url: StoreUrl,
) -> Output:
    """Let a proposal serve a share of the sessions until its numbers decide.

    'agentkit serve' and its replicas route by it. A session keeps the definitions it began with.
    The change is taken back automatically if it does worse; otherwise 'agentkit evolve' promotes
    it.

    Args:
        share (PERCENT): How much of the new sessions the change serves.

    Examples:
      agentkit review canary loan_offer --share 30
    """
    policy = LifecyclePolicy(canary=True, canary_share=share / 100)
    with managed(store_url, lifecycle=policy) as manager:
        before = manager.served
        record = manager.ledger.find(which)
        if "person" in record.awaits:
            manager.approve(record.proposal_id, person=person(), reason=reason)
        manager.advance_until(record.proposal_id, "canary")
        return _outcome(manager, record.proposal_id, before)


def _outcome(manager: ToolManager, proposal_id: str, before: Library) -> Output:
    """Report a proposal's status after a decision, and what models see now."""
    found = review_of(manager, proposal_id)
    served = manager.served

    def view() -> None:
        click.echo(f"{shown(found.tool)}: {found.status} ({shown(found.proposal_id)})")
        _print_served(before, served)
        if found.state != "active":
            say(shown(found.waits_for, _LONGEST))
            for line in found.commands:
                say(f"  {shown(line, _LONGEST)}")

    record = {**found.to_json(), "library_version": manager.library.version}
    return Output(record=record, view=view)


@command(short_help="List the calls of running agents that wait, and decide.", group=review)
def calls(
    run: Annotated[str, argument("[RUN]")] = "",
    *,
    decide: Literal["approve", "reject"] | None = None,
    reason: Reason,
    options: AgentOptions,
    store_url: StoreUrl,
) -> Output:
    """List the calls of agents that wait for a person, or decide on those of RUN.

    With --decide RUN goes on in this process as the agent that asked, so name its model and its
    tools, as for 'agentkit run'. A decision counts once, also where a server shares the store.

    Args:
        decide: Let the calls of RUN run, or refuse them; the model reads --reason then.

    Examples:
      agentkit review calls
      agentkit review calls 019a5c2b7d10 --decide approve --tools shop.py --model openai:gpt-5
      agentkit review calls 019a5c2b7d10 --decide reject --reason 'too much' --tools shop.py
    """
    with opened(store_url) as store:
        found = [one for one in pending_approvals(store) if one.episode_id.startswith(run)]
        if decide is None:
            return listing(
                [_waiting(one) for one in found],
                ["run", "since", "agent", "key", "user", fold("calls")],
                (
                    (
                        one.episode_id,
                        one.started_at[:16].replace("T", " "),
                        *(
                            one_line(shown(one.metadata.get(label, ""), _LONGEST))
                            for label in (WAITING_AGENT, KEY_LABEL, "user")
                        ),
                        "; ".join(map(call_line, deferred_calls(one))),
                    )
                    for one in found
                ),
                note="decide: agentkit review calls RUN --decide approve --tools FILE.py",
                nothing="no call waits for you",
            )
        if len(found) != 1 or not run:
            raise UsageError(
                f"{len(found)} waiting runs begin with {run!r}; name one of 'agentkit review calls'"
            )
        approved = decide == "approve"
        decision = Approval(approved=approved, reason="" if approved else reason)
        return _resumed(found[0], decision, options, store)


def _resumed(waiting: Episode, decision: Approval, options: AgentOptions, store: Store) -> Output:
    """What becomes of a run that goes on."""

    async def go_on() -> RunResult:
        try:
            deps = await made_deps(load_deps(options.deps)[0], None)
            approvals = {call.call_id: decision for call in deferred_calls(waiting)}
            return await agent.resume(waiting, approvals=approvals, deps=deps)
        finally:
            await agent.close()

    name = waiting.metadata.get(WAITING_AGENT, "agent")
    agent = make_agent(options, store, name=name)
    result = wait_for(go_on())

    def view() -> None:
        click.echo(shown(str(result.output or "")))
        print_outcome(result)

    record = {"run": result.episode.episode_id, "stop_reason": result.stop_reason}
    return Output(record=record | {"output": result.episode.output}, view=view)


def _waiting(one: Episode) -> dict[str, Any]:
    return {
        "run": one.episode_id,
        "since": one.started_at,
        "agent": one.metadata.get(WAITING_AGENT, ""),
        "key": one.metadata.get(KEY_LABEL, ""),
        "user": one.metadata.get("user", ""),
        "request": one.request,
        "calls": [call.to_json() for call in deferred_calls(one)],
    }


def _print_served(before: Library, after: Library) -> None:
    """Which version serves after a decision, and what models see otherwise."""
    click.echo(f"library version {after.version}")
    for name, changes in library_changes(before, after).items():
        if name in after:
            print_diff(changes, title=f"What models see of {shown(name)} now")
        else:
            click.echo(f"{shown(name)} is removed")


@command()
def rollback(
    which: Annotated[str, argument("[TOOL|ID]")] = "",
    *,
    to: FromZero | None = None,
    pin: int | None = None,
    unpin: bool = False,
    vectors: bool = False,
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
        vectors: Take back the word vectors that were promoted last.
        tool (NAME): With --pin: only this tool.
        yes: Do not ask.

    Examples:
      agentkit rollback                              the last change
      agentkit rollback loan_offer --reason 'customers were sent away'
      agentkit rollback loan_offer --to 3            as at library version 3
      agentkit rollback --pin 12                     the kill switch, until --unpin
    """
    holds = pin is not None or unpin
    if (pin is not None) + unpin + vectors + (to is not None) > 1:
        raise UsageError("--to, --pin, --unpin and --vectors exclude each other; give one")
    if to is not None and not which:
        raise UsageError(f"which tool? Type: agentkit rollback TOOL --to {to}")
    if which if holds else tool:
        raise UsageError("--tool NAME belongs to --pin and --unpin, and TOOL to the others")
    with managed(store_url) as manager:
        if vectors:
            return _take_back_vectors(manager, reason)
        before, taken = manager.served, list[str]()
        if holds:
            _hold(manager, tool, pin, reason)
        elif to is not None:
            manager.restore(which, to_version=to, author=person(), reason=reason)
        else:
            taken = _take_back(manager, which, reason, is_sure=yes)
        after, pins, version = manager.served, dict(manager.ledger.pins), manager.library.version
    changed = library_changes(before, after)

    def view() -> None:
        for name, held in pins.items():
            click.echo(shown(pin_words(name, held)))
        if unpin and not pins:
            click.echo("nothing is pinned; runs use the newest version")
        _print_served(before, after)

    return Output(
        record={
            "taken_back": taken,
            "pins": pins,
            "library_version": version,
            "served": after.version,
            "changes": {name: [one.to_json() for one in some] for name, some in changed.items()},
        },
        view=view,
    )


def _take_back_vectors(manager: ToolManager, reason: str) -> Output:
    left = manager.take_back_vectors(reason=reason, author=person())
    words = f"retrieval reads the vectors {left[:16]} again" if left else "no vectors are promoted"
    return Output(record={"vectors": left or None}, view=lambda: click.echo(words))


def _hold(manager: ToolManager, tool: str, version: int | None, reason: str) -> None:
    """Pin a tool, or all, to a version; without one take the pin off."""
    if version is not None:
        manager.pin(version, tool, reason=reason, author=person())
    elif tool in manager.ledger.pins:
        manager.unpin(tool, reason=reason, author=person())
    else:
        raise UsageError(f"{repr(tool) if tool else 'the whole library'} is not pinned")


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
        last = review_of(manager, change.proposal_id)
        what = f"the promotion of {shown(last.proposal_id)} of {shown(last.tool)}"
        _confirm(f"the last change is {what}: {shown(last.summary)}", is_sure=is_sure)
    named = which if change is None else change.proposal_id
    if change is None and not (which in manager.library or manager.ledger.promoted.get(which)):
        named = manager.ledger.find(which).proposal_id
    taken = manager.roll_back(named, reason=reason, author=person())
    if not is_sure or taken:
        say(f"taken back: {', '.join(map(shown, taken)) or 'nothing, it was done already'}")
    return list(taken)


def _undo(manager: ToolManager, change: Undoable, reason: str, *, is_sure: bool) -> str:
    """Take back what no proposal made; the words for what it was."""
    what = f"library version {change.version} ({listed([*map(shown, change.names)])})"
    why = shown(change.reason) or "no reason was given"
    _confirm(f"{what} changed {plural(len(change.names), 'tool')}: {why}", is_sure=is_sure)
    manager.undo(change, reason=reason, author=person())
    say(f"taken back: {what}")
    return f"version {change.version}"


def _confirm(what: str, *, is_sure: bool) -> None:
    say(what)
    if not is_sure and sys.stdin.isatty() and sys.stdout.isatty():
        click.confirm("Take it back?", abort=True, err=True)
