"""Benchmarks: public ones as ``Benchmark``, tasks of one's own, and the one door to all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.benchmarks.environments import (
        EnvironmentFactory,
        ToolsEnvironment,
        environment_from,
    )
    from agentkit.evaluation.benchmarks.loading import benchmark_names, load_benchmark
    from agentkit.evaluation.benchmarks.task_files import dump_tasks, load_tasks

__all__ = [
    "EnvironmentFactory",
    "ToolsEnvironment",
    "benchmark_names",
    "dump_tasks",
    "environment_from",
    "load_benchmark",
    "load_tasks",
]

_MODULES = {
    "EnvironmentFactory": "agentkit.evaluation.benchmarks.environments",
    "ToolsEnvironment": "agentkit.evaluation.benchmarks.environments",
    "benchmark_names": "agentkit.evaluation.benchmarks.loading",
    "dump_tasks": "agentkit.evaluation.benchmarks.task_files",
    "environment_from": "agentkit.evaluation.benchmarks.environments",
    "load_benchmark": "agentkit.evaluation.benchmarks.loading",
    "load_tasks": "agentkit.evaluation.benchmarks.task_files",
}

__getattr__ = lazy_door(__name__, _MODULES)
