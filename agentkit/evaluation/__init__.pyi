from .benchmarks.environments import (
    ToolsEnvironment as ToolsEnvironment,
)
from .benchmarks.environments import (
    environment_from as environment_from,
)
from .benchmarks.environments import (
    with_tools as with_tools,
)
from .benchmarks.loading import (
    BENCHMARKS as BENCHMARKS,
)
from .benchmarks.loading import (
    load_benchmark as load_benchmark,
)
from .benchmarks.task_files import (
    dump_tasks as dump_tasks,
)
from .benchmarks.task_files import (
    load_tasks as load_tasks,
)
from .bfcl import (
    fetch_bfcl as fetch_bfcl,
)
from .bfcl import (
    load_bfcl as load_bfcl,
)
from .catalogue import import_catalogue as import_catalogue
from .expectations import (
    AllowedCalls as AllowedCalls,
)
from .expectations import (
    AnyCall as AnyCall,
)
from .expectations import (
    DataFlow as DataFlow,
)
from .expectations import (
    ExactCalls as ExactCalls,
)
from .expectations import (
    Expectation as Expectation,
)
from .expectations import (
    FinalState as FinalState,
)
from .expectations import (
    GoldCall as GoldCall,
)
from .expectations import (
    NoCall as NoCall,
)
from .expectations import (
    NumberAnswer as NumberAnswer,
)
from .expectations import (
    PythonTests as PythonTests,
)
from .expectations import (
    Rubric as Rubric,
)
from .expectations import (
    TextAnswer as TextAnswer,
)
from .gsm8k import (
    gsm8k_episodes as gsm8k_episodes,
)
from .gsm8k import (
    load_gsm8k as load_gsm8k,
)
from .gsm8k import (
    replay_solution as replay_solution,
)
from .nestful import (
    Nestful as Nestful,
)
from .nestful import (
    NestfulQuestion as NestfulQuestion,
)
from .nestful import (
    fetch_nestful as fetch_nestful,
)
from .nestful import (
    load_nestful as load_nestful,
)
from .results.comparison import (
    Comparison as Comparison,
)
from .results.comparison import (
    compare as compare,
)
from .results.records import EvaluationReport as EvaluationReport
from .results.summary import summarise as summarise
from .running.evaluation import (
    RunOutcome as RunOutcome,
)
from .running.evaluation import (
    evaluate as evaluate,
)
from .running.replaying import RecordedAnswers as RecordedAnswers
from .running.resuming import episodes_of_run as episodes_of_run
from .running.settings import (
    EvaluationProgress as EvaluationProgress,
)
from .running.settings import (
    EvaluationSettings as EvaluationSettings,
)
from .sampling import stratified as stratified
from .scoring import (
    Score as Score,
)
from .scoring import (
    score_calls as score_calls,
)
from .task import (
    Benchmark as Benchmark,
)
from .task import (
    Environment as Environment,
)
from .task import (
    LeftOut as LeftOut,
)
from .task import (
    Task as Task,
)
from .task import (
    UserTurn as UserTurn,
)
from .verifiers.making import (
    Scene as Scene,
)
from .verifiers.making import (
    verifier_for as verifier_for,
)
