"""What events cost: ``python tests/benchmarks/bench_events.py``.

Commits with and without events take turns, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from agentkit import ToolDefinition, open_store
from agentkit.library import Author, LibraryChange, LibraryEvent, Store
from agentkit.library.chain_check import verify_chain
from agentkit.library.changes import now
from agentkit.library.event_chain import EventDraft, Signer, chained
from agentkit.library.signing import read_signer
from agentkit.testing import sample_library
from agentkit.tools.definition import Description

SECRET = "0123456789abcdef0123456789abcdef"
MANAGER = Author(kind="program", name="manager")
EVENTS_A_PROPOSAL = 7


def proposal_drafts(number: int, tool: ToolDefinition, version: int) -> list[EventDraft]:
    """The events of a proposal that goes all the way; the first holds the whole definition."""
    about = {"author": MANAGER, "proposal_id": f"evidence-{number:020}", "tool_name": tool.name}
    evidence = tuple(f"0197b3c2-{number:04x}-7000-8000-{place:012x}" for place in range(12))
    numbers = {"e_value": 24.125, "pairs": 61, "better": 14, "worse": 2, "threshold": 20.0}
    kinds = ("validated", "approved", "shadow", "assessed", "canary", "active")
    first = EventDraft(
        kind="proposed",
        reason="12 of 14 failed calls gave a word where the tool wants YYYY-MM",
        library_version=version,
        evidence=evidence,
        facts={"proposal": {"candidate": tool.to_json(), "evidence": list(evidence)}},
        **about,
    )
    rest = [
        EventDraft(
            kind=kind,
            reason="14 of 61 pairs better, 2 worse: e-value 24.1 over 20",
            library_version=version,
            facts=numbers if kind == "assessed" else {},
            digest_after=tool.digest if kind == "active" else "",
            **about,
        )
        for kind in kinds
    ]
    return [first, *rest]


class Committer:
    """Commits one tool after the other to a store, with a number of events each."""

    def __init__(self, store: Store, events: int, signer: Signer | None = None) -> None:
        self._store, self._events, self._signer = store, events, signer
        self._last: LibraryEvent | None = None
        self._tools = sample_library().definitions
        store.commit(LibraryChange(proposal_id="0", upserts=self._tools), expected_version=0)

    def commit(self, number: int) -> tuple[float, float]:
        """Milliseconds of one commit with the chaining of its events: of the clock, of the CPU."""
        tool = replace(
            self._tools[number % len(self._tools)], description=Description(summary=str(number))
        )
        version = self._store.load().version
        drafts = proposal_drafts(number, tool, version + 1)
        drafts = drafts[len(drafts) - self._events :]
        started, used = time.perf_counter(), time.process_time()
        events = chained(self._last, drafts, at=now(), signer=self._signer)
        change = LibraryChange(proposal_id=f"p{number}", upserts=(tool,), events=events)
        self._store.commit(change, expected_version=version)
        took, spent = time.perf_counter() - started, time.process_time() - used
        self._last = events[-1] if events else None
        return took * 1000, spent * 1000


def compare(scheme: str, folder: Path, rounds: int) -> Iterator[str]:
    """Medians of commits without and with events, and their ratios."""
    variants = {
        "no event": (0, None),
        "1 event": (1, None),
        "1 event, HMAC": (1, read_signer(SECRET)),
        f"{EVENTS_A_PROPOSAL} events": (EVENTS_A_PROPOSAL, None),
    }
    committers = {
        name: Committer(open_store(_url(scheme, folder / f"{at}.db")), events, signer)
        for at, (name, (events, signer)) in enumerate(variants.items())
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in committers}
    for number in range(1, rounds + 1):
        for name, committer in committers.items():
            times[name].append(committer.commit(number))
    base = [median(taken) for taken in zip(*times["no event"], strict=True)]
    for name, taken in times.items():
        clock, cpu = (median(some) for some in zip(*taken, strict=True))
        yield (
            f"{scheme:8}{name:15}{clock:8.2f} ms ({clock / base[0]:5.2f} times)"
            f"{cpu:8.2f} ms of CPU ({cpu / base[1]:5.2f} times)"
        )


def year(folder: Path, proposals_a_day: int) -> Iterator[str]:
    """Size of a year of events, and what reading and verifying them takes."""
    path = folder / "year.db"
    store, tools = open_store(_url("sqlite", path)), sample_library().definitions
    signer, last = read_signer(SECRET), None
    for day in range(365):
        numbers = range(day * proposals_a_day, (day + 1) * proposals_a_day)
        drafts = [d for n in numbers for d in proposal_drafts(n, tools[n % len(tools)], 0)]
        events = chained(last, drafts, at=now(), signer=signer)
        store.commit(LibraryChange(proposal_id=f"{day}", events=events), expected_version=0)
        last = events[-1]
    store.close()
    size = path.stat().st_size
    store = open_store(_url("sqlite", path))
    seconds, kept = _timed(store.events)
    plain, _ = _timed(lambda: verify_chain(store.events()))
    signed, faults = _timed(lambda: verify_chain(store.events(), verifier=signer))
    newest, _ = _timed(lambda: store.events(after=len(kept) - EVENTS_A_PROPOSAL))
    store.close()
    yield f"{proposals_a_day} proposals a day: {len(kept):,} events, {size / 1e6:.1f} MB in a year"
    yield f"CPU time: reading all {seconds:.2f} s, the last {EVENTS_A_PROPOSAL} {newest * 1000:.2f} ms"
    yield f"reading and verifying {plain:.2f} s, with signatures {signed:.2f} s, {len(faults)} faults"


def _timed(work: Callable[[], Iterable[object]]) -> tuple[float, list[object]]:
    started = time.process_time()
    found = list(work())
    return time.process_time() - started, found


def _url(scheme: str, path: Path) -> str:
    return f"sqlite:///{path}" if scheme == "sqlite" else "memory:"


def main() -> None:
    """Print what events cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--proposals-a-day", type=int, default=10)
    options = parser.parse_args()
    for scheme in ("sqlite", "memory"):
        with tempfile.TemporaryDirectory() as folder:
            for line in compare(scheme, Path(folder), options.rounds):
                sys.stdout.write(f"{line}\n")
    with tempfile.TemporaryDirectory() as folder:
        for line in year(Path(folder), options.proposals_a_day):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
