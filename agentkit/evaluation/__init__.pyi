from .environments import EnvironmentFactory as EnvironmentFactory
from .environments import (
    ToolsEnvironment as ToolsEnvironment,
)
from .environments import (
    environment_from as environment_from,
)
from .environments import (
    with_tools as with_tools,
)
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
from .loading import NamedBenchmark as NamedBenchmark
from .loading import (
    load_benchmark as load_benchmark,
)
from .loading import named_benchmarks as named_benchmarks
from .recorded import RecordedAnswers as RecordedAnswers
from .recorded import episodes_of_run as episodes_of_run
from .results.comparison import (
    Comparison as Comparison,
)
from .results.comparison import (
    compare as compare,
)
from .results.records import EvaluationReport as EvaluationReport
from .results.summary import summarise as summarise
from .runner import (
    RunOutcome as RunOutcome,
)
from .runner import (
    evaluate as evaluate,
)
from .scoring import (
    Score as Score,
)
from .scoring import (
    score_calls as score_calls,
)
from .settings import (
    EvaluationProgress as EvaluationProgress,
)
from .settings import (
    EvaluationSettings as EvaluationSettings,
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
from .task import import_catalogue as import_catalogue
from .task import stratified as stratified
from .task_files import (
    dump_tasks as dump_tasks,
)
from .task_files import (
    load_tasks as load_tasks,
)
from .verifiers.making import (
    Scene as Scene,
)
from .verifiers.making import (
    verifier_for as verifier_for,
)
