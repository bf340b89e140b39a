"""The playground: talk to the project's agent, at one library version or two; and waiting calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from agentkit.agent.agent import Agent
from agentkit.agent.session import new_episode_id, pending_approvals
from agentkit.agent.types import (
    Approval,
    CallsRefined,
    RunEvent,
    RunFinished,
    RunResult,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    ToolsRetrieved,
    deferred_calls,
)
from agentkit.cli.episodes import call_line
from agentkit.errors import AgentKitError
from agentkit.evaluation.results.texts import shown, visible
from agentkit.messages import ToolCall
from agentkit.models.base import ReasoningDelta, TextDelta
from agentkit_studio.pages import Asked, BadRequestError, Goto, NotThereError, Page, Place, whole

_MOST_VERSIONS = 30
_LONGEST = 20_000
"""Characters of one message."""

_LONGEST_RESULT = 4_000
_MOST_NAMED = 32
_LONGEST_CALL = 20_000
_CUT = "… (cut;"
_WAITING = 50


def chat(asked: Asked) -> Page:
    """One conversation, or two with different versions or models."""
    manager = asked.studio.manager
    manager.refresh()
    newest = manager.library.version
    versions = list(range(newest, max(newest - _MOST_VERSIONS, -1), -1))
    both = asked.query.get("compare") == "1"
    values = {
        "versions": versions,
        "sides": [new_episode_id() for _ in range(2 if both else 1)],
        "both": both,
        "has_agent": asked.studio.agents is not None,
        "longest": _LONGEST,
        "models": asked.studio.models,
    }
    return Page(template="playground.html", section="playground", values=values)


async def say(asked: Asked) -> Response:
    """What happens when the agent answers, a JSON object a line."""
    text = asked.form.get("text", "").strip()
    if not text or len(text) > _LONGEST:
        raise BadRequestError(f"A message has 1 to {_LONGEST:,} characters.")
    agent = await _agent(asked)
    events = agent.stream(
        text,
        session_id=_session(asked),
        metadata={"user": asked.user.name, "source": "playground"},
    )
    return _streamed(events, agent)


async def go_on(asked: Asked) -> Response:
    """The same, of a run whose calls the person has decided on."""
    run = await run_in_threadpool(asked.studio.store.get, asked.form.get("run", ""))
    if run is None or run.metadata.get("user") != asked.user.name:
        raise NotThereError("That run is not one of yours, or its episode is not kept yet.")
    decision = Approval(approved=decided(asked), reason="")
    agent = await _agent(asked)
    approvals = {call.call_id: decision for call in deferred_calls(run)}
    return _streamed(agent.stream_resume(run, approvals=approvals))


async def _agent(asked: Asked) -> Agent[Any, Any]:
    """The agent of the version and the model that the form names."""
    version = whole(asked.form.get("version", ""))
    model = asked.form.get("model", "").strip()[:200]
    return await run_in_threadpool(asked.studio.agent_at, version, model)


def _session(asked: Asked) -> str:
    """A conversation of this user: nobody reaches that of another."""
    return f"studio/{asked.user.name}/{asked.form.get('session', '')[:64].replace('/', '-')}"


def _streamed(events: AsyncIterator[RunEvent], begins: Agent[Any, Any] | None = None) -> Response:
    return StreamingResponse(_lines(events, begins), media_type="application/x-ndjson")


async def _lines(events: Any, begins: Agent[Any, Any] | None) -> AsyncIterator[bytes]:
    """Each event as a line; of a run without retrieval first the tools, which are offered whole."""
    try:
        async with aclosing(events):
            async for event in events:
                for record in told(event):
                    if begins is not None and record["kind"] != "offered":
                        yield _line(_offered_whole(begins))
                    begins = None
                    yield _line(record)
    except AgentKitError as error:
        yield _line({"kind": "error", "text": shown(str(error), 1_000)})


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _offered_whole(agent: Agent[Any, Any]) -> dict[str, Any]:
    names = ", ".join(islice(agent.library.tools, _MOST_NAMED))
    return {"kind": "offered", "text": f"all {len(agent.library)} tools: {names}"}


def told(event: RunEvent) -> Iterator[dict[str, Any]]:
    """What a page shows of an event."""
    match event:
        case ToolsRetrieved(trace=trace):
            yield {"kind": "offered", "text": ", ".join(trace.offered), "query": trace.query}
        case ReasoningDelta(text=text):
            yield {"kind": "thought", "text": visible(text)}
        case TextDelta(text=text):
            yield {"kind": "text", "text": visible(text)}
        case CallsRefined(trace=trace):
            agreed = "agreed" if trace.converged else "did not agree"
            text = f"refined in {trace.iterations} rounds: the last two answers {agreed}"
            yield {"kind": "note", "text": text}
        case ToolCallStarted(call=call):
            yield {"kind": "call", "text": _call(call)}
        case ToolProgress(tool_name=name, text=text):
            yield {"kind": "note", "text": shown(f"{name}: {text}")}
        case ToolCallFinished(result=result) if result.status != "deferred":
            text = result.failure.rule if result.failure is not None else result.text
            ok = result.status == "ok"
            yield {"kind": "result", "ok": ok, "text": visible(text[:_LONGEST_RESULT])}
        case RunFinished(result=found):
            yield _ended(found)


def _ended(result: RunResult) -> dict[str, Any]:
    episode = result.episode
    return {
        "kind": "end",
        "run": episode.episode_id,
        "stop_reason": result.stop_reason.replace("_", " "),
        "tokens": result.usage.total_tokens,
        "cost": result.usage.cost_usd,
        "seconds": round(episode.seconds, 2),
        "version": episode.library_version,
        "waits": list(map(_call, result.deferred)),
    }


# --- Calls of running agents that wait for a person -----------------------------------------------


def waiting(asked: Asked) -> Page:
    """The runs that wait longest come first."""
    runs = pending_approvals(
        asked.studio.store, limit=_WAITING + 1, after=asked.query.get("after", "")
    )
    listed = [(one, list(map(_call, deferred_calls(one)))) for one in runs[:_WAITING]]
    more = runs[_WAITING - 1].episode_id if len(runs) > _WAITING else ""
    values = {
        "listed": listed,
        "more": more,
        "after": asked.query.get("after", ""),
        "can_decide": asked.studio.agents is not None,
        "cut": _CUT,
    }
    return Page(template="calls.html", section="calls", values=values)


def _call(call: ToolCall) -> str:
    """A call for a page, of which its arguments must not make a page of megabytes."""
    line = call_line(call)
    if len(line) <= _LONGEST_CALL:
        return line
    return (
        f"{line[:_LONGEST_CALL]}{_CUT} 'agentkit episodes show' has its {len(line):,} characters)"
    )


def whole_calls(asked: Asked) -> Response:
    """All that the calls of a run that waits are to do, however long."""
    run = asked.studio.store.get(asked.path["episode_id"])
    lines = () if run is None else map(call_line, deferred_calls(run))
    text = "\n\n".join(map(visible, lines))
    return Response(text.encode(errors="replace"), media_type="text/plain")


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
    Place(path="/playground", name="playground", view=chat, title="Playground"),
    Place(path="/playground/say", name="say", view=say, role="operator", acts=True),
    Place(path="/playground/decide", name="go_on", view=go_on, role="operator", acts=True),
    Place(path="/calls", name="calls", view=waiting, title="Calls"),
    Place(path="/calls/{episode_id}/whole", name="whole_calls", view=whole_calls),
    Place(path="/calls/{episode_id}", name="decide", view=decide, role="operator", acts=True),
)
