"""8. How good it is: tasks, scores, the public benchmark, the main job and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
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
    from agentkit.evaluation.job import (
        JobProgress,
        MainJob,
    )
    from agentkit.evaluation.main_job import (
        run_main_job,
    )
    from agentkit.evaluation.nestful import (
        Nestful,
        NestfulQuestion,
        fetch_nestful,
        load_nestful,
    )
    from agentkit.evaluation.recall import (
        measure_recall,
    )
    from agentkit.evaluation.report import (
        Answer,
        CategoryReport,
        ConditionReport,
        MainJobReport,
        NotScored,
        RetrievalReport,
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

__all__ = [
    "AllowedCalls",
    "Answer",
    "AnyCall",
    "Benchmark",
    "CategoryReport",
    "ConditionReport",
    "DataFlow",
    "Environment",
    "ExactCalls",
    "Expectation",
    "FinalState",
    "GoldCall",
    "JobProgress",
    "LeftOut",
    "MainJob",
    "MainJobReport",
    "Nestful",
    "NestfulQuestion",
    "NoCall",
    "NotScored",
    "NumberAnswer",
    "PythonTests",
    "RetrievalReport",
    "Rubric",
    "Score",
    "Task",
    "TextAnswer",
    "UserTurn",
    "fetch_bfcl",
    "fetch_nestful",
    "gsm8k_episodes",
    "import_catalogue",
    "load_bfcl",
    "load_gsm8k",
    "load_nestful",
    "measure_recall",
    "replay_solution",
    "run_main_job",
    "score_calls",
    "stratified",
]

_MODULES = {
    "AllowedCalls": "agentkit.evaluation.expectations",
    "Answer": "agentkit.evaluation.report",
    "AnyCall": "agentkit.evaluation.expectations",
    "Benchmark": "agentkit.evaluation.task",
    "CategoryReport": "agentkit.evaluation.report",
    "ConditionReport": "agentkit.evaluation.report",
    "DataFlow": "agentkit.evaluation.expectations",
    "Environment": "agentkit.evaluation.task",
    "ExactCalls": "agentkit.evaluation.expectations",
    "Expectation": "agentkit.evaluation.expectations",
    "FinalState": "agentkit.evaluation.expectations",
    "GoldCall": "agentkit.evaluation.expectations",
    "JobProgress": "agentkit.evaluation.job",
    "LeftOut": "agentkit.evaluation.task",
    "MainJob": "agentkit.evaluation.job",
    "MainJobReport": "agentkit.evaluation.report",
    "Nestful": "agentkit.evaluation.nestful",
    "NestfulQuestion": "agentkit.evaluation.nestful",
    "NoCall": "agentkit.evaluation.expectations",
    "NotScored": "agentkit.evaluation.report",
    "NumberAnswer": "agentkit.evaluation.expectations",
    "PythonTests": "agentkit.evaluation.expectations",
    "RetrievalReport": "agentkit.evaluation.report",
    "Rubric": "agentkit.evaluation.expectations",
    "Score": "agentkit.evaluation.scoring",
    "Task": "agentkit.evaluation.task",
    "TextAnswer": "agentkit.evaluation.expectations",
    "UserTurn": "agentkit.evaluation.task",
    "fetch_bfcl": "agentkit.evaluation.bfcl",
    "fetch_nestful": "agentkit.evaluation.nestful",
    "gsm8k_episodes": "agentkit.evaluation.gsm8k",
    "import_catalogue": "agentkit.evaluation.catalogue",
    "load_bfcl": "agentkit.evaluation.bfcl",
    "load_gsm8k": "agentkit.evaluation.gsm8k",
    "load_nestful": "agentkit.evaluation.nestful",
    "measure_recall": "agentkit.evaluation.recall",
    "replay_solution": "agentkit.evaluation.gsm8k",
    "run_main_job": "agentkit.evaluation.main_job",
    "score_calls": "agentkit.evaluation.scoring",
    "stratified": "agentkit.evaluation.sampling",
}

__getattr__ = lazy_door(__name__, _MODULES)
