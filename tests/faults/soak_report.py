"""What came of a soak: effects, answers, episodes and logs side by side, and the figures."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil
from pathlib import Path

from soak_load import KINDS

from agentkit import Episode, open_store
from agentkit.episodes.files import read_episodes

HEALTH_SECONDS = 0.25
READY_SECONDS = 1.0
_RUN_SECONDS = 15.0
"""The longest that a run takes; see the server's ``--timeout``."""

_GRACE_SECONDS = {"full disk": 3.0, "locked store": 12.0}
"""How long a server may need to see that it can keep nothing: a wait for a lock ends then."""

_WATCHERS = 4
_LINES_A_MINUTE = 60
"""Room for one traceback a minute, and for a line or two beside it."""

_UNREAD = frozenset({"refused", "cut", "stopping", "overloaded", "store_unavailable"})
"""Codes of requests whose body nobody looked at."""


@dataclass(kw_only=True)
class Life:
    """One process of the server.

    Attributes:
        log: What it wrote to stderr.
        began, ready, told, ended: When it was started, listened, was told to end, had ended.
        how: Why it ended.
    """

    log: Path
    began: float
    ready: float | None = None
    told: float | None = None
    ended: float | None = None
    how: str = ""


@dataclass(kw_only=True)
class Phase:
    """A time in which one thing was wrong, or nothing, and how many lines were logged in it."""

    name: str
    began: float
    ended: float = 0.0
    logged: int = 0


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Something that has to hold, and what was found."""

    says: str
    holds: bool
    found: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of a soak."""

    title: str
    counts: dict[str, object]
    figures: Sequence[Figure]

    @property
    def holds(self) -> bool:
        """Whether every figure is met."""
        return all(figure.holds for figure in self.figures)

    def to_json(self) -> dict:
        """For programs."""
        return {"holds": self.holds, **asdict(self)}


@dataclass(kw_only=True)
class Records:
    """Everything that was written in a soak, and what it says.

    Attributes:
        title: What was soaked.
        folder: Where everything is.
        store_url: The store.
        lives: The processes of the server, in order.
        phases: The times of the soak.
        at_rest: The metrics of the last process that was under load, once nobody asked any more.
        left_open: Connections to that process then; four are those of the watcher.
        slack: What the bounds on times are multiplied by, for a busy machine.
    """

    title: str
    folder: Path
    store_url: str
    lives: list[Life]
    phases: list[Phase]
    at_rest: str
    left_open: int
    slack: float = 1.0

    @cached_property
    def replies(self) -> dict[str, dict]:
        """What users read, by the id of the request."""
        return {reply["id"]: reply for reply in lines_of(self.folder / "replies.jsonl")}

    @cached_property
    def effects(self) -> dict[str, list[float]]:
        """When each ticket was booked."""
        found = defaultdict(list)
        for line in (self.folder / "effects").read_text().splitlines():
            ticket, at = line.split()
            found[ticket].append(float(at))
        return found

    @cached_property
    def kept(self) -> list[Episode]:
        """The episodes of the store."""
        store = open_store(self.store_url)
        try:
            return list(store.select())
        finally:
            store.close()

    @cached_property
    def left_over(self) -> list[Episode]:
        """Those that a server could not keep when it stopped, and wrote into a file."""
        files = self.folder.rglob("*-unkept-*.jsonl")
        return [episode for path in files for episode in read_episodes(path)]

    @cached_property
    def by_request(self) -> dict[str, list[Episode]]:
        """Episodes of each request, in the store or in a file."""
        each = {episode.episode_id: episode for episode in [*self.left_over, *self.kept]}
        found = defaultdict(list)
        for episode in each.values():
            found[episode.metadata.get("request_id", "")].append(episode)
        return found

    @cached_property
    def good(self) -> list[dict]:
        """Answers with status 200, of which all came."""
        return [one for one in self.replies.values() if one["status"] == 200 and one["whole"]]

    def is_up(self, began: float, ended: float) -> bool:
        """Whether one process of the server listened all the time and was not told to end."""
        return any(
            life.ready is not None
            and life.ready <= began
            and ended <= min(life.told or ended, life.ended or ended)
            for life in self.lives
        )

    def record_of(self, ticket: str) -> str:
        """Where it is said that a ticket was booked."""
        request = ticket.rstrip("+")
        reply, episodes = self.replies.get(request), self.by_request.get(request, ())
        if any(call.arguments.get("ticket") == ticket for one in episodes for call in one.calls):
            return "episode"
        if episodes:
            return "hidden"
        if reply and not reply.get("is_kept", True):
            return "told"
        if reply and reply["code"] == "store_unavailable":
            return "unclear"
        if self.was_killed(self.effects[ticket][0], reply):
            return "killed"
        return "log" if request in self.logged else "nothing"

    def was_killed(self, at: float, reply: dict | None) -> bool:
        """Whether the server was killed while the run was under way."""
        kills = [life.told for life in self.lives if life.how == "kill"]
        ended = reply["ended"] if reply else float("inf")
        latest = ended + self.slack  # until a run whose client has left is kept
        return any(at <= kill <= min(at + _RUN_SECONDS, latest) for kill in kills)

    @cached_property
    def logged(self) -> set[str]:
        """Requests that a log names."""
        names = re.compile(r"\bu\d+-\d+\b")
        return {name for life in self.lives for name in names.findall(life.log.read_text())}


def lines_of(path: Path) -> list[dict]:
    """The records of a file; the last line of a process that was killed may be half a line."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def report(records: Records) -> Report:
    """The figures of a soak."""
    booked = Counter(records.record_of(ticket) for ticket in records.effects)
    figures = [
        *acknowledged(records),
        *effects_recorded(records, booked),
        *requests_refused(records),
        *counted(records),
        *Watched(records).figures(),
        *stops_told(records, booked),
    ]
    counts = {
        "answers with status 200": len(records.good),
        "episodes": len(records.kept),
        "episodes in files": len(records.left_over),
        "effects": f"{len(records.effects)} ({dict(booked)})",
        "lines in logs": {life.log.name: _log_size(life.log) for life in records.lives},
    }
    return Report(
        title=records.title,
        counts=counts,
        figures=figures,
    )


def acknowledged(records: Records) -> Iterator[Figure]:
    """Nothing that was acknowledged is lost or doubled."""
    by_id = {one.episode_id: one for some in records.by_request.values() for one in some}
    lost = [one for one in records.good if one["episode"] not in by_id]
    strangers = [
        one
        for one in records.good
        if one["episode"] in by_id and by_id[one["episode"]].metadata["request_id"] != one["id"]
    ]
    doubled = [name for name, some in records.by_request.items() if len(some) > 1]
    yield Figure(
        says="each answer with status 200 has exactly one episode",
        holds=not (lost or strangers or doubled),
        found=f"{len(records.good)} answers; {len(lost)} without, {len(doubled)} with two, "
        f"{len(strangers)} with that of another request",
    )
    booked = (one for one in records.good if not one["is_refused"])
    tickets = [ticket for one in booked for ticket in one["tickets"]]
    times = Counter(len(records.effects.get(ticket, ())) for ticket in tickets)
    yield Figure(
        says="each effect happened exactly once per acknowledged call",
        holds=set(times) <= {1},
        found=f"{len(tickets)} calls; not at all {times[0]}, "
        f"twice or more {sum(times.values()) - times[0] - times[1]}",
    )
    twice = [ticket for ticket, at in records.effects.items() if len(at) > 1]
    yield Figure(says="no effect is doubled", holds=not twice, found=f"{len(twice)} doubled")
    named = [
        one
        for one in records.replies.values()
        if not one.get("whole") and one.get("episode") and one.get("is_kept", True)
    ]
    absent = [one for one in named if one["episode"] not in by_id]
    yield Figure(
        says="each error that names an episode has it, unless it says that it is not kept",
        holds=not absent,
        found=f"{len(named)} errors; {len(absent)} without: "
        f"{dict(Counter(one['code'] for one in absent))}",
    )


def effects_recorded(records: Records, booked: Counter[str]) -> Iterator[Figure]:
    """No effect without a record that says so."""
    yield Figure(
        says="no effect without a record that says so",
        holds=booked.keys() <= {"episode", "told", "killed"},
        found=f"{booked['episode']} in an episode, {booked['told']} told to the client as not kept, "
        f"{booked['killed']} under way when the server was killed; "
        f"{booked['hidden']} hidden by an episode without the call, {booked['unclear']} with an "
        f"answer that says only that the store is away, {booked['log']} in the log alone, "
        f"{booked['nothing']} without any record",
    )


def requests_refused(records: Records) -> Iterator[Figure]:
    """What cannot be answered is refused, whatever else goes on."""
    wrong = Counter(
        (one["kind"], one["status"], one["code"])
        for one in records.replies.values()
        if KINDS[one["kind"]].status not in {200, one["status"]} and one["code"] not in _UNREAD
    )
    yield Figure(
        says="broken requests are refused with their own status",
        holds=not wrong,
        found=f"otherwise: {dict(wrong)}",
    )


def counted(records: Records) -> Iterator[Figure]:
    """The server's own numbers, once it is at rest."""
    pairs = (line.split() for line in records.at_rest.splitlines() if "{" not in line)
    numbers = {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2}
    started, kept, late, running = (
        numbers.get(f"agentkit_{name}", -1.0)
        for name in (
            "runs_started_total",
            "episodes_kept_total",
            "episodes_not_kept_total",
            "runs_in_flight",
        )
    )
    yield Figure(
        says="once all is well again, each run that began is kept",
        holds=started == kept > 0 and not running,
        found=f"{started:g} began, {kept:g} kept, {running:g} under way; "
        f"{late:g} times an episode was not kept when it should be",
    )
    yield Figure(
        says="connections of clients that are gone are closed",
        holds=records.left_open <= _WATCHERS,
        found=f"{records.left_open} open at rest, up to {_WATCHERS} of them the watcher's",
    )
    refusals = [
        one
        for one in records.replies.values()
        if one["status"] == 503 and not one.get("episode")  # others are not to be sent again
    ]
    silent = [one for one in refusals if not one.get("retry_after")]
    yield Figure(
        says="each refusal with 503 says when to come back",
        holds=not silent,
        found=f"{len(refusals)} refusals, {len(silent)} of them without Retry-After",
    )
    full = [phase for phase in records.phases if phase.name == "full disk"]
    minutes = sum(ceil((phase.ended - phase.began) / 60) for phase in full)
    lines = sum(phase.logged for phase in full)
    yield Figure(
        says=f"a full disk logs at most {_LINES_A_MINUTE} lines a minute",
        holds=lines <= _LINES_A_MINUTE * minutes,
        found=f"{lines} lines in {sum(phase.ended - phase.began for phase in full):.0f} s",
    )


def stops_told(records: Records, booked: Counter[str]) -> Iterator[Figure]:
    """What a server says when it stops is true."""
    stopped = [life for life in records.lives if life.how not in {"kill", "did not start"}]
    said, wrong = [], []
    for life in stopped:
        text = life.log.read_text()
        last = next((one for one in text.splitlines()[::-1] if one.startswith("Stopped")), life.how)
        lost = unrecorded(records, life)
        said.append(f"{life.log.stem}: {last!r}, {lost} runs without an episode")
        number = re.search(r"\d+", last)
        admitted = int(number[0]) if number else 0
        if lost > admitted or not last.startswith("Stopped"):
            wrong.append(life)
    yield Figure(
        says="what a server says when it stops is true", holds=not wrong, found="; ".join(said)
    )


def unrecorded(records: Records, life: Life) -> int:
    """How many runs began in this process and left no episode that tells of what they did."""
    end = life.ended or float("inf")
    runs = {
        ticket.rstrip("+")
        for ticket, at in records.effects.items()
        if life.began <= at[0] < end and records.record_of(ticket) not in {"episode", "killed"}
    }
    runs |= {
        one["id"]
        for one in records.replies.values()
        if life.began <= one["began"] < end
        and one.get("episode")
        and one["id"] not in records.by_request
    }
    return len(runs)


def _log_size(path: Path) -> str:
    text = path.read_text()
    return f"{text.count(chr(10))} ({text.count('Traceback')} tracebacks)"


class Watched:
    """What the watcher heard."""

    def __init__(self, records: Records) -> None:
        self._records = records
        heard = lines_of(records.folder / "watched.jsonl")
        up = [one for one in heard if records.is_up(one["began"], one["began"] + one["seconds"])]
        self._health = [one for one in up if one["path"] == "/healthz"]
        self._ready = [one for one in up if one["path"] == "/readyz"]

    def figures(self) -> Iterator[Figure]:
        """How fast, and whether it was true."""
        times = {
            "/healthz": (HEALTH_SECONDS, self._health),
            "/readyz": (READY_SECONDS, self._ready),
        }
        for path, (bound, heard) in times.items():
            longest = self._records.slack * bound
            slow = [one for one in heard if one["seconds"] > longest]
            # While it could have run but had no core, others were using them all.
            ours = [one for one in slow if one["seconds"] - one["no_core"] > longest]
            slowest = max((one["seconds"] for one in heard), default=0.0)
            yield Figure(
                says=f"{path} never above {1000 * longest:.0f} ms",
                holds=bool(heard) and not ours,
                found=f"{len(heard)} asked, slowest {1000 * slowest:.0f} ms, {len(slow)} above, "
                f"{len(ours)} of them also without the time in which it had no core",
            )
        failed = [one for one in self._health if one["status"] != 200]
        yield Figure(
            says="/healthz always answers",
            holds=not failed,
            found=f"{len(failed)} times it did not",
        )
        yield from self._says_no()

    def _says_no(self) -> Iterator[Figure]:
        for name, grace in _GRACE_SECONDS.items():
            times = [phase for phase in self._records.phases if phase.name == name]
            asked = [
                one
                for phase in times
                for one in self._ready
                if phase.began + grace <= one["began"] < phase.ended
            ]
            if asked:
                yes = sum(one["status"] == 200 for one in asked)
                yield Figure(
                    says=f"/readyz says no: {name}",
                    holds=yes == 0,
                    found=f"{yes} of {len(asked)} said yes, {grace:g} s after it began or later",
                )
