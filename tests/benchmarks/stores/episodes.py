"""How fast episodes are kept, and how much memory it takes to read many of them.

``python tests/benchmarks/stores/episodes.py`` prints tables and, with ``--json FILE``, writes what
it measured. Ratios are of one run: everything in it met the same machine. ``--stream 1000000`` keeps
so many small episodes and reads and exports them, each in a process of its own whose peak of memory
is told.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

from agentkit import Episode
from agentkit.episodes import Turn
from agentkit.episodes.files import export_episodes, import_episodes
from agentkit.episodes.jsonl import encode_episode
from agentkit.episodes.redaction import Redaction
from agentkit.library import EpisodeFilter
from agentkit.library.capabilities import Retention
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.sqlite import SQLiteStore
from agentkit.messages import AssistantMessage, ToolCall, ToolResult, Usage

BATCH = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One line of a table.

    Attributes:
        name: What was done.
        count: To how many episodes.
        seconds: Wall time.
    """

    name: str
    count: int
    seconds: float

    @property
    def rate(self) -> float:
        """Episodes a second."""
        return self.count / self.seconds if self.seconds else 0.0


def episode(number: int, *, size: int) -> Episode:
    """An episode with a call, its result and a text of a given size."""
    call = ToolCall(
        call_id="c1", name=f"tool_{number % 20}", arguments={"city": "Rome", "n": number}
    )
    result = ToolResult(call_id="c1", name=call.name, status="ok", value={"t": 21.5}, text="21.5")
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    return Episode(
        episode_id=f"{number:012}",
        request=f"What is the weather? {'x' * size}",
        turns=(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)),),
        output="Warm.",
        session_id=f"s{number // 5}",
        started_at=began.isoformat(),
        usage=Usage(requests=2, prompt_tokens=900, completion_tokens=40),
    )


def timed(name: str, count: int, work: Callable[[], object]) -> Measured:
    """How long something takes."""
    began = time.perf_counter()
    work()
    return Measured(name=name, count=count, seconds=time.perf_counter() - began)


def writing(folder: Path, count: int, size: int) -> Iterator[Measured]:
    """Keep the same episodes one by one, in batches, and through a writer."""
    told = [episode(number, size=size) for number in range(count)]
    one = SQLiteStore(folder / "one.db")
    yield timed("append, one by one", count, lambda: [one.append(each) for each in told])
    many = SQLiteStore(folder / "many.db")
    groups = [told[start : start + BATCH] for start in range(0, count, BATCH)]
    yield timed(
        "append_many, 256 each", count, lambda: [many.append_many(group) for group in groups]
    )
    settings = WriterSettings(max_count=2_000)
    store = SQLiteStore(folder / "written.db")
    writer = EpisodeWriter(store, spill=folder / "spill", settings=settings)
    yield timed("writer: append alone", count, lambda: [writer.append(each) for each in told])
    rest = writer.state.pending
    yield timed("writer: flush of the rest", rest, writer.flush)
    one.close()
    many.close()
    writer.close()


def reading(folder: Path, count: int, size: int) -> Iterator[Measured]:
    """Read, redact, export and prune what was kept."""
    store = SQLiteStore(folder / "many.db")
    oldest = EpisodeFilter(oldest_first=True)
    yield timed("select all", count, lambda: sum(1 for _ in store.select(oldest)))
    redact, told = Redaction(), [episode(number, size=size) for number in range(count)]
    yield timed("redact", count, lambda: [redact(each) for each in told])
    for form in FORMS:
        path = folder / f"episodes.{form}"
        yield timed(
            f"export {form}", count, lambda p=path: export_episodes(p, store.select(oldest))
        )
        yield timed(f"read {form}", count, lambda p=path: sum(1 for _ in import_episodes(p)))
    half = Retention(max_count=count // 2)
    yield timed("prune half", count // 2, lambda: store.prune(half))
    store.close()


FORMS = ("jsonl", "jsonl.gz", *(("parquet",) if find_spec("pyarrow") else ()))


def streaming(folder: Path, count: int) -> Iterator[dict[str, object]]:
    """Peaks of memory of processes that read ``count`` small episodes, and of ones that read none."""
    path = folder / "big.db"
    for step in ("fill", "select", "select-newest", *(f"export-{form}" for form in FORMS)):
        for some in (0, count) if step != "fill" else (count,):
            yield in_a_process(step, path, some)
    for form in FORMS:
        yield in_a_process(f"read-{form}", path, count)
    yield in_a_process("volume", path, count)


def in_a_process(step: str, path: Path, count: int) -> dict[str, object]:
    """Run one step in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--path", str(path), "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def run_step(step: str, path: Path, count: int) -> None:
    """One step of ``streaming``; prints how long it took and its peak of memory."""
    began = time.perf_counter()
    verb, _, rest = step.partition("-")
    if verb == "read":
        done = sum(1 for _ in import_episodes(path.with_suffix(f".{rest}")))
    else:
        done = with_store(verb, rest, path, count)
    peak = peak_mib()
    seconds = time.perf_counter() - began
    print(json.dumps({"step": step, "count": done, "seconds": seconds, "peak_mib": peak}))


def peak_mib() -> float:
    """The peak of memory of this program; ``getrusage`` tells that of its parent where it is more."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [one for one in status.read_text().splitlines() if one.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def with_store(verb: str, rest: str, path: Path, count: int) -> int:
    """The part of a step that needs the store; how many episodes it met."""
    store = SQLiteStore(path)
    wanted = EpisodeFilter(oldest_first=rest != "newest", limit=count)
    try:
        if verb == "fill":
            for start in range(0, count, BATCH):
                numbers = range(start, min(start + BATCH, count))
                store.append_many([episode(number, size=0) for number in numbers])
            return count
        if verb == "export":
            return export_episodes(path.with_suffix(f".{rest}"), store.select(wanted))
        if verb == "volume":
            return store.volume().count
        return sum(1 for _ in store.select(wanted))
    finally:
        store.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--size", type=int, default=1_000, help="extra characters of an episode")
    parser.add_argument("--stream", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, help="where the files are made")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        run_step(given.step, given.path, given.count)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        report(Path(name), given.count, given.size, given.stream, given.json)


def report(folder: Path, count: int, size: int, stream: int, target: Path | None) -> None:
    """Print tables, and write JSON."""
    body = len(encode_episode(episode(0, size=size)))
    print(
        f"{count:,} episodes of {body:,} bytes; {platform.machine()}, Python {platform.python_version()}"
    )
    rows: list[Measured] = []
    for measured in (*writing(folder, count, size), *reading(folder, count, size)):
        rows.append(measured)
        times = measured.rate / rows[0].rate
        print(f"{measured.name:26} {measured.rate:12,.0f}/s  {times:6.2f} x one by one")
    steps = []
    for step in streaming(folder, stream) if stream else ():
        steps.append(step)
        print(
            f"{step['step']:18} {step['count']:>10,} {step['seconds']:8.1f} s {step['peak_mib']:8.1f} MiB"
        )
    if target is not None:
        found = [{"name": one.name, "count": one.count, "seconds": one.seconds} for one in rows]
        record = {"bytes": body, "measured": found, "streaming": steps}
        target.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
