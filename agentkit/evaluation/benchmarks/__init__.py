"""Benchmarks: public ones as ``Benchmark``, tasks of one's own, and the one door to all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.benchmarks.environments import (
        EnvironmentFactory,
        ToolsEnvironment,
        environment_from,
        with_tools,
    )
    from agentkit.evaluation.benchmarks.gsm8k import gsm8k_benchmark
    from agentkit.evaluation.benchmarks.humaneval import fetch_humaneval, humaneval_benchmark
    from agentkit.evaluation.benchmarks.loading import BENCHMARKS, load_benchmark
    from agentkit.evaluation.benchmarks.nestful import nestful_benchmark
    from agentkit.evaluation.benchmarks.recorded_world import RecordedWorld
    from agentkit.evaluation.benchmarks.task_files import dump_tasks, load_tasks

__all__ = [
    "BENCHMARKS",
    "EnvironmentFactory",
    "RecordedWorld",
    "ToolsEnvironment",
    "dump_tasks",
    "environment_from",
    "fetch_humaneval",
    "gsm8k_benchmark",
    "humaneval_benchmark",
    "load_benchmark",
    "load_tasks",
    "nestful_benchmark",
    "with_tools",
]

_MODULES = {
    "BENCHMARKS": "agentkit.evaluation.benchmarks.loading",
    "EnvironmentFactory": "agentkit.evaluation.benchmarks.environments",
    "RecordedWorld": "agentkit.evaluation.benchmarks.recorded_world",
    "ToolsEnvironment": "agentkit.evaluation.benchmarks.environments",
    "dump_tasks": "agentkit.evaluation.benchmarks.task_files",
    "environment_from": "agentkit.evaluation.benchmarks.environments",
    "fetch_humaneval": "agentkit.evaluation.benchmarks.humaneval",
    "gsm8k_benchmark": "agentkit.evaluation.benchmarks.gsm8k",
    "humaneval_benchmark": "agentkit.evaluation.benchmarks.humaneval",
    "load_benchmark": "agentkit.evaluation.benchmarks.loading",
    "load_tasks": "agentkit.evaluation.benchmarks.task_files",
    "nestful_benchmark": "agentkit.evaluation.benchmarks.nestful",
    "with_tools": "agentkit.evaluation.benchmarks.environments",
}

__getattr__ = lazy_door(__name__, _MODULES)
