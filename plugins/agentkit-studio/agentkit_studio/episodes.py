"""The episodes: found by what happened, and one of them as a timeline with what went wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from agentkit.cli.episodes import call_line, result_line
from agentkit.diagnosis import diagnose
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Diagnosis, Episode, Evidence, Turn, Verdict
from agentkit.episodes.labels import is_extra_record
from agentkit.errors import StoreLookupError
from agentkit.evaluation.results.texts import label_name
from agentkit.evolution.learning import feedback_on
from agentkit.evolution.observers import judged
from agentkit.library.store import EpisodeFilter
from agentkit_studio.pages import Asked, BadRequestError, Goto, Page, Place

_PAGE = 50
_SECONDS = 0.1
"""How long one page looks for episodes that match; the next page goes on from there."""

FILTERS = ("tool", "session", "label", "version", "verdict", "text")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One thing that happened in a turn.

    Attributes:
        kind: ``offered``, ``refined``, ``says``, ``call``, ``gives``, ``corrected`` or ``wrong``.
        text: What, in words.
        ok: Whether it went well.
    """

    kind: str
    text: str
    ok: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One turn of a timeline.

    Attributes:
        number: From 1.
        seconds: Wall time.
        share: Percentage of the run's time.
        tokens: All of them.
        lines: What happened, in order.
        diagnosis: What was found wrong, in words; empty for nothing.
    """

    number: int
    seconds: float
    share: float
    tokens: int
    lines: tuple[Line, ...]
    diagnosis: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One page of a search.

    Attributes:
        episodes: Those that match, the newest first.
        last: The last one that was looked at, to go on behind; empty at the end.
        looked_at: How many were looked at.
    """

    episodes: list[Episode] = field(default_factory=list)
    last: str = ""
    looked_at: int = 0


def listed(asked: Asked) -> Page:
    """Episodes that match, the newest first."""
    chosen = {name: asked.query.get(name, "").strip()[:200] for name in FILTERS}
    found = _found(asked, chosen)
    values = {"found": found, "chosen": chosen, "is_filtered": any(chosen.values())}
    return Page(template="episodes.html", section="episodes", values=values)


def _found(asked: Asked, chosen: Mapping[str, str]) -> Found:
    name, _, value = chosen["label"].partition("=")
    matching = EpisodeFilter(
        session_id=chosen["session"] or None,
        tool_name=chosen["tool"] or None,
        labels={name: value} if value else {},
    )
    after, until = asked.query.get("after", ""), time.monotonic() + _SECONDS
    episodes: list[Episode] = []
    looked_at, behind = 0, not after
    for one in asked.studio.store.select(matching):
        if not behind:
            behind = one.episode_id <= after  # ids begin with the time, and the newest comes first
            if one.episode_id == after or not behind:
                continue
        looked_at += 1
        if not is_extra_record(one.metadata) and _matches(one, chosen):
            episodes.append(one)
        if len(episodes) == _PAGE or time.monotonic() > until:
            return Found(episodes=episodes, last=one.episode_id, looked_at=looked_at)
    return Found(episodes=episodes, looked_at=looked_at)


def _matches(one: Episode, chosen: Mapping[str, str]) -> bool:
    if chosen["version"] and str(one.library_version) != chosen["version"]:
        return False
    if chosen["text"] and chosen["text"].casefold() not in one.request.casefold():
        return False
    match chosen["verdict"]:
        case "passed":
            return one.verdict is not None and one.verdict.passed
        case "failed":
            return one.verdict is not None and not one.verdict.passed
        case "refused":
            return any(result.status == "failed" for result in one.results)
        case _:
            return True


def episode(asked: Asked) -> Page:
    """One episode, from the request to the verdict."""
    one = _episode(asked)
    library = asked.studio.store.load(one.library_version or None)
    diagnosis = one.diagnosis or diagnose(one, library, one.verdict)
    said = list(feedback_on(asked.studio.store, one.episode_id))
    values = {
        "one": one,
        "steps": list(_steps(one, diagnosis)),
        "diagnosis": diagnosis,
        "label": label_name(diagnosis.label),
        "is_failure": diagnosis.label not in NOT_FAILURES,
        "labels": {name: text for name, text in one.metadata.items() if name != "settings"},
        "output": one.output
        if isinstance(one.output, str)
        else json.dumps(one.output, default=repr),
        "feedback": said,
        "evidence": list(one.verdict.evidence) if one.verdict is not None else [],
    }
    return Page(template="episode.html", section="episodes", values=values)


def _episode(asked: Asked) -> Episode:
    which = asked.path["episode_id"]
    found = asked.studio.store.get(which)
    if found is None:
        raise StoreLookupError(f"no episode {which[:60]!r} is kept")
    return found


def _steps(one: Episode, diagnosis: Diagnosis) -> Iterator[Step]:
    wrong = {turn.turn: turn for turn in diagnosis.turns if turn.label not in NOT_FAILURES}
    whole = sum(turn.seconds for turn in one.turns) or 1.0
    for at, turn in enumerate(one.turns):
        found = wrong.get(at)
        told: tuple[str, ...] = ()
        if found is not None:
            labels = dict.fromkeys((found.label, *found.labels))
            messages = dict.fromkeys(finding.message for finding in found.evidence)
            told = (", ".join(map(label_name, labels)), *messages, *filter(None, [found.hint]))
        yield Step(
            number=at + 1,
            seconds=turn.seconds,
            share=100 * turn.seconds / whole,
            tokens=turn.usage.total_tokens,
            lines=tuple(_lines(turn)),
            diagnosis=told,
        )


def _lines(turn: Turn) -> Iterator[Line]:
    if turn.retrieval is not None:
        yield Line(kind="offered", text=", ".join(turn.retrieval.offered) or "nothing")
    if (trace := turn.refine) is not None:
        for at, calls in enumerate(trace.proposals):
            chosen = "chosen" if at == trace.chosen else "not chosen"
            text = f"{'; '.join(map(call_line, calls)) or 'no call'} ({chosen})"
            yield Line(kind="refined", text=text, ok=at == trace.chosen)
    if turn.message.text:
        yield Line(kind="says", text=turn.message.text)
    for call, result in turn.steps():
        yield Line(kind="call", text=call_line(call))
        if result is not None:
            yield Line(
                kind="gives", text=result_line(result), ok=result.status in {"ok", "deferred"}
            )
    if turn.correction:
        yield Line(kind="corrected", text=turn.correction, ok=False)


def verdict(asked: Asked) -> Goto:
    """A person's verdict, kept beside the episode; the next round learns from it."""
    one = _episode(asked)
    said, reason = asked.form.get("verdict", ""), asked.form.get("reason", "").strip()[:2_000]
    if said not in {"passed", "failed"}:
        raise BadRequestError("Say whether the answer was right.")
    passed = said == "passed"
    message = reason or f"{asked.user.name} says that the answer is wrong"
    evidence = () if passed else (Evidence(kind="criterion_failed", message=message),)
    found = Verdict(
        passed=passed,
        score=float(passed),
        evidence=evidence,
        verifier="person",
        details={"person": asked.user.name} | ({"reason": reason} if reason else {}),
    )
    asked.studio.store.append(judged(one, found))
    notice = "your verdict is kept beside the episode; the next round learns from it"
    return Goto(route="episode", values={"episode_id": one.episode_id}, notice=notice)


def as_task(asked: Asked) -> Response:
    """The episode as a task of your own, in the form that ``agentkit eval`` reads.

    What was called and went well is what the task expects; correct it where it was wrong.
    """
    one = _episode(asked)
    calls = [
        {"name": call.name, "arguments": dict(call.arguments)}
        for turn in one.turns
        for call, result in turn.steps()
        if result is not None and result.status == "ok"
    ]
    expects = {"calls": calls} if calls else {"contains": str(one.output or "")[:200]}
    record = {"id": one.episode_id, "request": one.request, "expects": expects}
    return Response(
        json.dumps(record, ensure_ascii=False) + "\n",
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="task-{one.episode_id}.jsonl"'},
    )


_ONE = "/episodes/{episode_id}"
PLACES = (
    Place(path="/episodes", name="episodes", view=listed, title="Episodes"),
    Place(path=_ONE, name="episode", view=episode),
    Place(path=f"{_ONE}/task", name="as_task", view=as_task),
    Place(path=f"{_ONE}/verdict", name="verdict", view=verdict, role="reviewer", acts=True),
)
