"""The public benchmarks by name, as ``agentkit eval NAME`` finds them by entry point."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.errors import UsageError
from agentkit.evaluation.task import Benchmark
from agentkit.evaluation.task_files import BenchmarkRequest, NamedBenchmark
from agentkit_bench.bfcl import fetch_bfcl, load_bfcl
from agentkit_bench.bfcl_multi_turn import (
    fetch_bfcl_multi_turn,
    installed_bfcl,
    load_bfcl_multi_turn,
)
from agentkit_bench.gsm8k import gsm8k_benchmark
from agentkit_bench.humaneval import fetch_humaneval, humaneval_benchmark
from agentkit_bench.nestful import fetch_nestful
from agentkit_bench.nestful_benchmark import nestful_benchmark


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
