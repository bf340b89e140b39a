from .benchmarks.environments import (
    ToolsEnvironment as ToolsEnvironment,
    environment_from as environment_from,
    with_tools as with_tools,
)
from .benchmarks.loading import (
    BENCHMARKS as BENCHMARKS,
    load_benchmark as load_benchmark,
)
from .benchmarks.task_files import (
    dump_tasks as dump_tasks,
    load_tasks as load_tasks,
)
from .bfcl import (
    fetch_bfcl as fetch_bfcl,
    load_bfcl as load_bfcl,
)
from .catalogue import import_catalogue as import_catalogue
from .expectations import (
    AllowedCalls as AllowedCalls,
    AnyCall as AnyCall,
    DataFlow as DataFlow,
    ExactCalls as ExactCalls,
    Expectation as Expectation,
    FinalState as FinalState,
    GoldCall as GoldCall,
    NoCall as NoCall,
    NumberAnswer as NumberAnswer,
    PythonTests as PythonTests,
    Rubric as Rubric,
    TextAnswer as TextAnswer,
)
from .gsm8k import (
    gsm8k_episodes as gsm8k_episodes,
    load_gsm8k as load_gsm8k,
    replay_solution as replay_solution,
)
from .nestful import (
    Nestful as Nestful,
    NestfulQuestion as NestfulQuestion,
    fetch_nestful as fetch_nestful,
    load_nestful as load_nestful,
)
from .results.comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .results.records import EvaluationReport as EvaluationReport
from .results.summary import summarise as summarise
from .running.evaluation import (
    RunOutcome as RunOutcome,
    evaluate as evaluate,
)
from .running.replaying import RecordedAnswers as RecordedAnswers
from .running.resuming import episodes_of_run as episodes_of_run
from .running.settings import (
    EvaluationProgress as EvaluationProgress,
    EvaluationSettings as EvaluationSettings,
)
from .sampling import stratified as stratified
from .scoring import (
    Score as Score,
    score_calls as score_calls,
)
from .task import (
    Benchmark as Benchmark,
    Environment as Environment,
    LeftOut as LeftOut,
    Task as Task,
    UserTurn as UserTurn,
)
from .verifiers.making import (
    Scene as Scene,
    verifier_for as verifier_for,
)
