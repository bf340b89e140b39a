"""Calls of running agents that wait for a person: refunds, deletions, whatever needs approval."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool

from agentkit.agent.session import pending_approvals
from agentkit.agent.types import Approval, deferred_calls
from agentkit.cli.episodes import call_line
from agentkit_studio.pages import Asked, BadRequestError, Goto, NotThereError, Page, Place

_PAGE = 50
_LONGEST_CALL = 20_000


def waiting(asked: Asked) -> Page:
    """The runs that wait longest come first."""
    runs = pending_approvals(
        asked.studio.store, limit=_PAGE + 1, after=asked.query.get("after", "")
    )
    listed = [
        (one, [_cut(call_line(call)) for call in deferred_calls(one)]) for one in runs[:_PAGE]
    ]
    more = runs[_PAGE - 1].episode_id if len(runs) > _PAGE else ""
    values = {"listed": listed, "more": more, "can_decide": asked.studio.agents is not None}
    return Page(template="calls.html", section="calls", values=values)


def _cut(line: str) -> str:
    """A call for the page, of which its arguments must not make a page of megabytes."""
    if len(line) <= _LONGEST_CALL:
        return line
    return (
        f"{line[:_LONGEST_CALL]}… (cut; 'agentkit episodes show' has its {len(line):,} characters)"
    )


async def decide(asked: Asked) -> Goto:
    """Let the calls of a run run, or refuse them; it goes on here, and its episode is kept."""
    which, reason = asked.path["episode_id"], asked.form.get("reason", "").strip()[:2_000]
    run = await run_in_threadpool(asked.studio.store.get, which)
    if run is None or not deferred_calls(run):
        raise NotThereError(f"No run {which[:60]!r} waits for a person.")
    yes = decided(asked)
    decision = Approval(approved=yes, reason="" if yes else reason)
    agent = await run_in_threadpool(asked.studio.agent_at)
    approvals = {call.call_id: decision for call in deferred_calls(run)}
    result = await agent.resume(run, approvals=approvals)
    done = "approved" if yes else "refused"
    return Goto(route="calls", notice=f"{done}: {result.output or result.stop_reason}")


def decided(asked: Asked) -> bool:
    """Whether the form lets calls run.

    Raises:
        BadRequestError: It says neither yes nor no.
    """
    said = asked.form.get("decision")
    if said not in {"approve", "reject"}:
        raise BadRequestError("Say whether the calls may run: approve or reject.")
    return said == "approve"


PLACES = (
    Place(path="/calls", name="calls", view=waiting, title="Calls"),
    Place(path="/calls/{episode_id}", name="decide", view=decide, role="operator", acts=True),
)
