from ._version import __version__ as __version__
from .abstraction import Abstraction as Abstraction
from .benchmarks import BENCHMARKS as BENCHMARKS
from .bfcl import fetch_bfcl as fetch_bfcl, load_bfcl as load_bfcl
from .bfcl_multi_turn import (
    ADDED_FUNCTIONS_REQUEST as ADDED_FUNCTIONS_REQUEST,
    SIMULATORS as SIMULATORS,
    fetch_bfcl_multi_turn as fetch_bfcl_multi_turn,
    installed_bfcl as installed_bfcl,
    load_bfcl_multi_turn as load_bfcl_multi_turn,
)
from .bfcl_simulators import BfclEnvironment as BfclEnvironment, BfclWorlds as BfclWorlds
from .bfcl_values import JAVA as JAVA, JAVASCRIPT as JAVASCRIPT
from .gsm8k import (
    gsm8k_benchmark as gsm8k_benchmark,
    gsm8k_episodes as gsm8k_episodes,
    load_gsm8k as load_gsm8k,
    replay_solution as replay_solution,
)
from .humaneval import (
    fetch_humaneval as fetch_humaneval,
    humaneval_benchmark as humaneval_benchmark,
)
from .nestful import (
    Nestful as Nestful,
    NestfulQuestion as NestfulQuestion,
    fetch_nestful as fetch_nestful,
    load_nestful as load_nestful,
)
from .nestful_benchmark import (
    DataFlow as DataFlow,
    RecordedWorld as RecordedWorld,
    nestful_benchmark as nestful_benchmark,
)
from .opaque_tools import OpaqueTools as OpaqueTools
from .paper_judge import ModelJudge as ModelJudge
from .paper_retrieval import (
    Cascade as Cascade,
    Level as Level,
    TypedDagRetriever as TypedDagRetriever,
)
from .python_tests import CodeLimits as CodeLimits, PythonTests as PythonTests
from .retrieval_variants import (
    VARIANTS as VARIANTS,
    Flat as Flat,
    FlatLibrary as FlatLibrary,
    variant as variant,
)
from .text_hierarchy import Hierarchy as Hierarchy, TextTree as TextTree
