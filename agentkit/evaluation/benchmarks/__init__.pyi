from .environments import (
    EnvironmentFactory as EnvironmentFactory,
)
from .environments import (
    ToolsEnvironment as ToolsEnvironment,
)
from .environments import (
    environment_from as environment_from,
)
from .environments import (
    with_tools as with_tools,
)
from .gsm8k import gsm8k_benchmark as gsm8k_benchmark
from .humaneval import (
    fetch_humaneval as fetch_humaneval,
)
from .humaneval import (
    humaneval_benchmark as humaneval_benchmark,
)
from .loading import (
    BENCHMARKS as BENCHMARKS,
)
from .loading import (
    load_benchmark as load_benchmark,
)
from .nestful import nestful_benchmark as nestful_benchmark
from .recorded_world import RecordedWorld as RecordedWorld
from .task_files import (
    dump_tasks as dump_tasks,
)
from .task_files import (
    load_tasks as load_tasks,
)
