from .environments import (
    EnvironmentFactory as EnvironmentFactory,
    ToolsEnvironment as ToolsEnvironment,
    environment_from as environment_from,
    with_tools as with_tools,
)
from .gsm8k import gsm8k_benchmark as gsm8k_benchmark
from .humaneval import (
    fetch_humaneval as fetch_humaneval,
    humaneval_benchmark as humaneval_benchmark,
)
from .loading import (
    BENCHMARKS as BENCHMARKS,
    load_benchmark as load_benchmark,
)
from .nestful import nestful_benchmark as nestful_benchmark
from .recorded_world import RecordedWorld as RecordedWorld
from .task_files import (
    dump_tasks as dump_tasks,
    load_tasks as load_tasks,
)
