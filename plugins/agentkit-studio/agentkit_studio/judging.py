"""What a person makes of an episode: a verdict, a task, a look at what would happen now."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from agentkit.agent.session import conversation, happened
from agentkit.episodes import Episode, Evidence, EvidenceKind, Verdict
from agentkit.episodes.labels import VIEW_OF
from agentkit.evaluation.expectations import ExactCalls, Expectation, GoldCall, TextAnswer
from agentkit.evaluation.task import Task
from agentkit.evaluation.task_files import task_to_json
from agentkit.evolution.learning import PERSON
from agentkit.evolution.observers import judged
from agentkit.library.store import EpisodeFilter
from agentkit.messages import Message, ToolCall
from agentkit.reading import read_json
from agentkit.tools.schema_validator import fits
from agentkit_studio.episodes import KINDS_BY_HAND, REPLAY, episode_of, verdicts_on
from agentkit_studio.inbox import typed_reason
from agentkit_studio.pages import Asked, BadRequestError, Goto, Place, whole

_LONGEST = 2_000
_MOST_BEFORE = 200
_OFFERED_WHOLE = 32
"""Libraries of so many tools are offered whole, so that no trace names what was offered."""

_ABOUT_ARGUMENTS = {"wrong_value", "missing_argument", "unexpected_argument"}


def verdict(asked: Asked) -> Goto:
    """A person's verdict, kept beside the episode; the next round learns from it."""
    one = episode_of(asked)
    said, reason = asked.form.get("verdict", ""), typed_reason(asked)
    if said not in {"passed", "failed"}:
        raise BadRequestError("Say whether the answer was right.")
    passed = said == "passed"
    found = Verdict(
        passed=passed,
        score=float(passed),
        evidence=() if passed else (_evidence(asked, one, reason),),
        verifier=PERSON,
        details={"person": asked.user.name} | ({"reason": reason} if reason else {}),
    )
    asked.studio.store.append(judged(one, found))
    notice = "your verdict is kept beside the episode; the next round learns from it"
    return Goto(route="episode", values={"episode_id": one.episode_id}, notice=notice)


def _evidence(asked: Asked, one: Episode, reason: str) -> Evidence:
    """What was wrong, as a verifier would tell it."""
    kind, who = asked.form.get("kind", ""), asked.user.name
    if not kind:
        message = reason or f"{who} says that the answer is wrong"
        return Evidence(kind="criterion_failed", message=message)
    if kind not in KINDS_BY_HAND:
        raise BadRequestError(f"Nothing can be wrong in the way of {kind[:60]!r}.")
    call_id, parameter = asked.form.get("call", ""), asked.form.get("parameter", "").strip()[:200]
    typed = asked.form.get("expected", "").strip()[:_LONGEST]
    message = reason or f"{who} says: {KINDS_BY_HAND[kind]}{f' ({parameter})' if parameter else ''}"
    told = Evidence(kind=cast("EvidenceKind", kind), message=message)
    if kind in {"wrong_answer", "missing_call"}:
        return Evidence(
            kind=told.kind, message=message, tool=typed if kind == "missing_call" else ""
        )
    found = [(at, call) for at, turn in enumerate(one.turns) for call, _ in turn.steps()]
    turn, call = next((pair for pair in found if pair[1].call_id == call_id), (-1, None))
    if call is None:
        raise BadRequestError("Say which call it is about.")
    if kind in _ABOUT_ARGUMENTS and not parameter:
        raise BadRequestError("Say which argument it is about.")
    if kind in {"wrong_value", "missing_argument", "wrong_tool"} and not typed:
        raise BadRequestError("Say what would have been right.")
    due = typed if kind == "wrong_tool" else call.name
    expected: Any = typed if kind == "wrong_tool" else None
    if kind in {"wrong_value", "missing_argument"}:
        expected = _value(asked, one, call, parameter, typed)
    return replace(
        told,
        turn=turn,
        call_id=call_id,
        tool=due,
        parameter=parameter if kind in _ABOUT_ARGUMENTS else "",
        expected=expected,
        actual=call.name if kind == "wrong_tool" else call.arguments.get(parameter),
    )


def _value(asked: Asked, one: Episode, call: ToolCall, parameter: str, typed: str) -> Any:
    """A value as it was typed: JSON, or a text where the schema or the call has one."""
    try:
        parsed = read_json(typed)
    except ValueError:
        return typed
    known = asked.studio.manager.library.get(one.library_names.get(call.name, call.name))
    schema = {} if known is None else known.definition.signature.parameters
    wanted = schema.get("properties", {}).get(parameter, {})
    is_text = fits(parsed, wanted, root=schema) is False and fits(typed, wanted, root=schema)
    return typed if is_text or isinstance(call.arguments.get(parameter), str) else parsed


# --- A task of it ---------------------------------------------------------------------------------


def as_task(asked: Asked) -> Response:
    """The episode as a task of your own, in the form that ``agentkit eval`` reads.

    What was called and went well is what the task expects, corrected by what people said of it.
    """
    one = episode_of(asked)
    said = [record.verdict for record in verdicts_on(asked, one) if record.verdict is not None]
    evidence = said[0].evidence if said else one.verdict.evidence if one.verdict else ()
    calls = tuple(_gold(one, evidence))
    if not calls and not one.output:
        raise BadRequestError("nothing went well and nothing was answered, so nothing is expected")
    expected: Expectation = ExactCalls(calls=calls)
    if not calls:
        expected = TextAnswer(text=str(one.output or "")[:200], match="contains")
    task = Task(
        task_id=one.episode_id,
        category="studio",
        request=one.request,
        offered=_offered(asked, one),
        history=before(asked, one),
        expects=(expected,),
    )
    return Response(
        json.dumps(task_to_json(task), ensure_ascii=False) + "\n",
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="task-{_filed(one)}.jsonl"'},
    )


def _filed(one: Episode) -> str:
    """An id as part of a file's name."""
    return re.sub(r"[^\w.-]", "-", one.episode_id, flags=re.ASCII)[:80]


def _gold(one: Episode, evidence: tuple[Evidence, ...]) -> Iterator[GoldCall]:
    """The calls that were right, or would have been."""
    for turn in one.turns:
        for call, result in turn.steps():
            about = [item for item in evidence if item.call_id == call.call_id]
            if any(item.kind in {"wrong_tool", "unexpected_call"} for item in about):
                continue
            arguments = dict(call.arguments)
            mended = [item for item in about if item.parameter and item.expected is not None]
            arguments |= {item.parameter: item.expected for item in mended}
            for item in about:
                if item.kind == "unexpected_argument":
                    arguments.pop(item.parameter, None)
            if mended or (result is not None and result.status == "ok"):
                name = one.library_names.get(call.name, call.name)
                yield GoldCall(name=name, arguments=arguments)


def _offered(asked: Asked, one: Episode) -> tuple[str, ...]:
    traces = [turn.retrieval.offered for turn in one.turns if turn.retrieval is not None]
    if traces:
        return tuple(dict.fromkeys(name for names in traces for name in names))
    library = asked.studio.manager.library
    if len(library) <= _OFFERED_WHOLE:
        return tuple(library.tools)
    return tuple(dict.fromkeys(one.library_names.get(call.name, call.name) for call in one.calls))


def before(asked: Asked, one: Episode) -> tuple[Message, ...]:
    """What was said in the conversation before an episode."""
    if not one.session_id:
        return ()
    kept = asked.studio.store.select(EpisodeFilter(session_id=one.session_id))
    newest_first = (earlier for earlier in kept if earlier.episode_id < one.episode_id)
    earlier = reversed(list(islice(newest_first, _MOST_BEFORE)))
    return conversation(happened(earlier))


# --- What would happen now ------------------------------------------------------------------------


async def replay(asked: Asked) -> Goto:
    """Ask again, with another library or model. Calls are checked and left; nothing is run."""
    one = await run_in_threadpool(episode_of, asked)
    version, model = whole(asked.form.get("version", "")), asked.form.get("model", "")
    agent = await run_in_threadpool(asked.studio.agent_at, version, model, replays=True)
    history = await run_in_threadpool(before, asked, one)
    labels = {VIEW_OF: one.episode_id, "source": REPLAY, "user": asked.user.name}
    result = await agent.run(one.request, history=history, metadata=labels)
    return Goto(
        route="episode",
        values={"episode_id": one.episode_id},
        query={"replay": result.episode.episode_id},
        notice="",
    )


_ONE = "/episodes/{episode_id}"
PLACES = (
    Place(path=f"{_ONE}/task", name="as_task", view=as_task),
    Place(path=f"{_ONE}/verdict", name="verdict", view=verdict, role="reviewer", acts=True),
    Place(path=f"{_ONE}/replay", name="replay", view=replay, role="operator", acts=True),
)
