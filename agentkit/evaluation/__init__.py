"""8. How good it is: tasks, verifiers, benchmarks, runs and their reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.benchmarks.environments import (
        ToolsEnvironment,
        environment_from,
        with_tools,
    )
    from agentkit.evaluation.benchmarks.loading import (
        BENCHMARKS,
        load_benchmark,
    )
    from agentkit.evaluation.benchmarks.task_files import (
        dump_tasks,
        load_tasks,
    )
    from agentkit.evaluation.bfcl import (
        fetch_bfcl,
        load_bfcl,
    )
    from agentkit.evaluation.catalogue import (
        import_catalogue,
    )
    from agentkit.evaluation.expectations import (
        AllowedCalls,
        AnyCall,
        DataFlow,
        ExactCalls,
        Expectation,
        FinalState,
        GoldCall,
        NoCall,
        NumberAnswer,
        PythonTests,
        Rubric,
        TextAnswer,
    )
    from agentkit.evaluation.gsm8k import (
        gsm8k_episodes,
        load_gsm8k,
        replay_solution,
    )
    from agentkit.evaluation.nestful import (
        Nestful,
        NestfulQuestion,
        fetch_nestful,
        load_nestful,
    )
    from agentkit.evaluation.results.comparison import (
        Comparison,
        compare,
    )
    from agentkit.evaluation.results.records import (
        EvaluationReport,
    )
    from agentkit.evaluation.results.summary import (
        summarise,
    )
    from agentkit.evaluation.running.evaluation import (
        RunOutcome,
        evaluate,
    )
    from agentkit.evaluation.running.replaying import (
        RecordedAnswers,
    )
    from agentkit.evaluation.running.resuming import (
        episodes_of_run,
    )
    from agentkit.evaluation.running.settings import (
        EvaluationProgress,
        EvaluationSettings,
    )
    from agentkit.evaluation.sampling import (
        stratified,
    )
    from agentkit.evaluation.scoring import (
        Score,
        score_calls,
    )
    from agentkit.evaluation.task import (
        Benchmark,
        Environment,
        LeftOut,
        Task,
        UserTurn,
    )
    from agentkit.evaluation.verifiers.making import (
        Scene,
        verifier_for,
    )

__all__ = [
    "BENCHMARKS",
    "AllowedCalls",
    "AnyCall",
    "Benchmark",
    "Comparison",
    "DataFlow",
    "Environment",
    "EvaluationProgress",
    "EvaluationReport",
    "EvaluationSettings",
    "ExactCalls",
    "Expectation",
    "FinalState",
    "GoldCall",
    "LeftOut",
    "Nestful",
    "NestfulQuestion",
    "NoCall",
    "NumberAnswer",
    "PythonTests",
    "RecordedAnswers",
    "Rubric",
    "RunOutcome",
    "Scene",
    "Score",
    "Task",
    "TextAnswer",
    "ToolsEnvironment",
    "UserTurn",
    "compare",
    "dump_tasks",
    "environment_from",
    "episodes_of_run",
    "evaluate",
    "fetch_bfcl",
    "fetch_nestful",
    "gsm8k_episodes",
    "import_catalogue",
    "load_benchmark",
    "load_bfcl",
    "load_gsm8k",
    "load_nestful",
    "load_tasks",
    "replay_solution",
    "score_calls",
    "stratified",
    "summarise",
    "verifier_for",
    "with_tools",
]

_MODULES = {
    "AllowedCalls": "agentkit.evaluation.expectations",
    "AnyCall": "agentkit.evaluation.expectations",
    "BENCHMARKS": "agentkit.evaluation.benchmarks.loading",
    "Benchmark": "agentkit.evaluation.task",
    "Comparison": "agentkit.evaluation.results.comparison",
    "DataFlow": "agentkit.evaluation.expectations",
    "Environment": "agentkit.evaluation.task",
    "EvaluationProgress": "agentkit.evaluation.running.settings",
    "EvaluationReport": "agentkit.evaluation.results.records",
    "EvaluationSettings": "agentkit.evaluation.running.settings",
    "ExactCalls": "agentkit.evaluation.expectations",
    "Expectation": "agentkit.evaluation.expectations",
    "FinalState": "agentkit.evaluation.expectations",
    "GoldCall": "agentkit.evaluation.expectations",
    "LeftOut": "agentkit.evaluation.task",
    "Nestful": "agentkit.evaluation.nestful",
    "NestfulQuestion": "agentkit.evaluation.nestful",
    "NoCall": "agentkit.evaluation.expectations",
    "NumberAnswer": "agentkit.evaluation.expectations",
    "PythonTests": "agentkit.evaluation.expectations",
    "RecordedAnswers": "agentkit.evaluation.running.replaying",
    "Rubric": "agentkit.evaluation.expectations",
    "RunOutcome": "agentkit.evaluation.running.evaluation",
    "Scene": "agentkit.evaluation.verifiers.making",
    "Score": "agentkit.evaluation.scoring",
    "Task": "agentkit.evaluation.task",
    "TextAnswer": "agentkit.evaluation.expectations",
    "ToolsEnvironment": "agentkit.evaluation.benchmarks.environments",
    "UserTurn": "agentkit.evaluation.task",
    "compare": "agentkit.evaluation.results.comparison",
    "dump_tasks": "agentkit.evaluation.benchmarks.task_files",
    "environment_from": "agentkit.evaluation.benchmarks.environments",
    "episodes_of_run": "agentkit.evaluation.running.resuming",
    "evaluate": "agentkit.evaluation.running.evaluation",
    "fetch_bfcl": "agentkit.evaluation.bfcl",
    "fetch_nestful": "agentkit.evaluation.nestful",
    "gsm8k_episodes": "agentkit.evaluation.gsm8k",
    "import_catalogue": "agentkit.evaluation.catalogue",
    "load_benchmark": "agentkit.evaluation.benchmarks.loading",
    "load_bfcl": "agentkit.evaluation.bfcl",
    "load_gsm8k": "agentkit.evaluation.gsm8k",
    "load_nestful": "agentkit.evaluation.nestful",
    "load_tasks": "agentkit.evaluation.benchmarks.task_files",
    "replay_solution": "agentkit.evaluation.gsm8k",
    "score_calls": "agentkit.evaluation.scoring",
    "stratified": "agentkit.evaluation.sampling",
    "summarise": "agentkit.evaluation.results.summary",
    "verifier_for": "agentkit.evaluation.verifiers.making",
    "with_tools": "agentkit.evaluation.benchmarks.environments",
}

__getattr__ = lazy_door(__name__, _MODULES)
