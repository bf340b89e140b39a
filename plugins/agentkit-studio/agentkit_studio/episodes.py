"""The episodes: found by what happened, and one of them as a timeline with what went wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agentkit.cli.episodes import call_line, result_line
from agentkit.diagnosis import diagnose
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Diagnosis, Episode, Turn
from agentkit.episodes.labels import VIEW_OF, is_extra_record, is_late_verdict
from agentkit.evaluation.results.texts import LABELS, label_name
from agentkit.evolution.learning import feedback_on
from agentkit.library.store import EpisodeFilter
from agentkit_studio.pages import Asked, NotThereError, Page, Place, whole

_PAGE = 50
_SECONDS, _AT_LEAST = 0.1, 100
"""How long one page looks for episodes that match, and how many it looks at in any case; the next
page goes on from there."""

FILTERS = ("tool", "session", "label", "version", "verdict", "wrong", "text")

_LONGEST_SEARCHED = 20_000
_MOST_OF_SESSION = 200


REPLAY = "replay"
"""The label ``source`` of a run that asks what would happen now."""

KINDS_BY_HAND: Mapping[str, str] = {
    "wrong_value": "an argument has the wrong value",
    "missing_argument": "an argument is missing",
    "unexpected_argument": "an argument should not be there",
    "wrong_tool": "another tool was due",
    "unexpected_call": "the call should not have been made",
    "missing_call": "a call is missing",
    "wrong_answer": "the answer is wrong",
}
"""What a person can say of an episode, by the kind of evidence that it becomes."""


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
    whole(chosen["version"])
    health = asked.studio.health
    health.update()
    found = _found(asked, chosen)
    values = {
        "found": found,
        "judged": {one.episode_id: health.verdict_of(one) for one in found.episodes},
        "labels": {one.episode_id: health.label_of(one) for one in found.episodes},
        "chosen": chosen,
        "is_filtered": any(chosen.values()),
        "all_labels": [one for one in LABELS if one not in NOT_FAILURES],
        "label_name": label_name,
    }
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
        if not is_extra_record(one.metadata) and _matches(asked, one, chosen):
            episodes.append(one)
        if len(episodes) == _PAGE or (looked_at >= _AT_LEAST and time.monotonic() > until):
            return Found(episodes=episodes, last=one.episode_id, looked_at=looked_at)
    return Found(episodes=episodes, looked_at=looked_at)


def _matches(asked: Asked, one: Episode, chosen: Mapping[str, str]) -> bool:
    if chosen["version"] and str(one.library_version) != chosen["version"]:
        return False
    wanted = chosen["text"].casefold()
    if wanted and not any(wanted in text[:_LONGEST_SEARCHED].casefold() for text in _texts(one)):
        return False
    if chosen["wrong"] and asked.studio.health.label_of(one) != chosen["wrong"]:
        return False
    if chosen["verdict"] == "refused":
        return any(result.status == "failed" for result in one.results)
    passed = {"passed": True, "failed": False}.get(chosen["verdict"])
    return passed is None or asked.studio.health.verdict_of(one) is passed


def _texts(one: Episode) -> Iterator[str]:
    """What was asked, called and answered."""
    yield one.request
    yield one.output if isinstance(one.output, str) else ""
    yield from map(call_line, one.calls)
    yield from (result.text for result in one.results)


def episode(asked: Asked) -> Page:
    """One episode, from the request to the verdict."""
    one = episode_of(asked)
    said = verdicts_on(asked, one)
    judged = next((record.verdict for record in said if record.verdict), one.verdict)
    library = asked.studio.health.library(one.library_version)
    diagnosis = (one.diagnosis if judged is one.verdict else None) or diagnose(one, library, judged)
    again = (
        asked.studio.store.get(asked.query.get("replay", "")) if "replay" in asked.query else None
    )
    if again is not None and again.metadata.get(VIEW_OF) != one.episode_id:
        again = None
    values = {
        "one": one,
        "steps": list(steps_of(one, diagnosis)),
        "diagnosis": diagnosis,
        "label": label_name(diagnosis.label),
        "is_failure": diagnosis.label not in NOT_FAILURES,
        "labels": {name: text for name, text in one.metadata.items() if name != "settings"},
        "output": _written(one.output),
        "said": said,
        "verdict": judged,
        "evidence": list(judged.evidence) if judged is not None else [],
        "calls": list(_numbered(one)),
        "kinds": KINDS_BY_HAND,
        "again": again,
        "again_steps": [] if again is None else list(steps_of(again, Diagnosis(label="unjudged"))),
        "can_replay": asked.studio.replays is not None,
        "models": asked.studio.models,
    }
    return Page(template="episode.html", section="episodes", values=values)


def _written(output: object) -> str:
    return output if isinstance(output, str) else json.dumps(output, default=repr)


def episode_of(asked: Asked) -> Episode:
    """The episode that the address names."""
    which = asked.path["episode_id"]
    found = asked.studio.store.get(which)
    if found is None:
        raise NotThereError(f"No episode {which[:60]!r} is kept.")
    return found


def verdicts_on(asked: Asked, one: Episode) -> list[Episode]:
    """What users and persons said of an episode afterwards, the newest first."""
    asked.studio.health.update()
    store, found = asked.studio.store, list(feedback_on(asked.studio.store, one.episode_id))
    known = asked.studio.health.judged_by(one)
    if known is None and one.session_id:
        found += store.select(EpisodeFilter(session_id=one.session_id, limit=_MOST_OF_SESSION))
    elif known and (latest := store.get(known)) is not None:
        found.append(latest)
    late = {
        record.episode_id: record
        for record in found
        if is_late_verdict(record) and record.metadata[VIEW_OF] == one.episode_id
    }
    return sorted(late.values(), key=lambda record: record.episode_id, reverse=True)


def _numbered(one: Episode) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The calls, each with its id for forms and the names of its arguments."""
    for call in one.calls:
        yield call.call_id, call_line(call), tuple(call.arguments)


def steps_of(one: Episode, diagnosis: Diagnosis) -> Iterator[Step]:
    """The turns of an episode, each with what is wrong with it."""
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
            lines=tuple(_lines(turn, is_replay=one.metadata.get("source") == REPLAY)),
            diagnosis=told,
        )


def _lines(turn: Turn, *, is_replay: bool) -> Iterator[Line]:
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
            is_left = is_replay and result.status == "deferred"
            text = "valid by its definition; nothing is run" if is_left else result_line(result)
            yield Line(kind="gives", text=text, ok=result.status in {"ok", "deferred"})
    if turn.correction:
        yield Line(kind="corrected", text=turn.correction, ok=False)


_ONE = "/episodes/{episode_id}"
PLACES = (
    Place(path="/episodes", name="episodes", view=listed, title="Episodes"),
    Place(path=_ONE, name="episode", view=episode),
)
