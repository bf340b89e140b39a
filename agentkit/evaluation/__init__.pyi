from .environments import (
    EnvironmentFactory as EnvironmentFactory,
    ToolsEnvironment as ToolsEnvironment,
    environment_from as environment_from,
    with_tools as with_tools,
)
from .expectations import (
    AllowedCalls as AllowedCalls,
    AnyCall as AnyCall,
    CustomExpectation as CustomExpectation,
    ExactCalls as ExactCalls,
    Expectation as Expectation,
    FinalState as FinalState,
    GoldCall as GoldCall,
    NoCall as NoCall,
    NumberAnswer as NumberAnswer,
    Rubric as Rubric,
    TextAnswer as TextAnswer,
)
from .results.report import (
    Comparison as Comparison,
    EvaluationReport as EvaluationReport,
    compare as compare,
)
from .results.summary import summarise as summarise
from .runner import (
    RunOutcome as RunOutcome,
    evaluate as evaluate,
)
from .settings import (
    EvaluationProgress as EvaluationProgress,
    EvaluationSettings as EvaluationSettings,
    episodes_of_run as episodes_of_run,
)
from .task import (
    Benchmark as Benchmark,
    Environment as Environment,
    LeftOut as LeftOut,
    Task as Task,
    UserTurn as UserTurn,
    import_catalogue as import_catalogue,
    stratified as stratified,
)
from .task_files import (
    NamedBenchmark as NamedBenchmark,
    dump_tasks as dump_tasks,
    load_benchmark as load_benchmark,
    load_tasks as load_tasks,
    named_benchmarks as named_benchmarks,
)
from .verifiers.making import (
    Scene as Scene,
    verifier_for as verifier_for,
)
