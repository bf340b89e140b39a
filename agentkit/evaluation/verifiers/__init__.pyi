from .answers import (
    AllOf as AllOf,
)
from .answers import (
    AnyOf as AnyOf,
)
from .answers import FunctionVerifier as FunctionVerifier
from .answers import (
    PatternVerifier as PatternVerifier,
)
from .answers import (
    SchemaVerifier as SchemaVerifier,
)
from .answers import TextAnswerVerifier as TextAnswerVerifier
from .calls import AllowedCallsVerifier as AllowedCallsVerifier
from .calls import (
    AnyCallVerifier as AnyCallVerifier,
)
from .calls import ExactCallsVerifier as ExactCallsVerifier
from .calls import (
    NoCallVerifier as NoCallVerifier,
)
from .data_flow import DataFlowVerifier as DataFlowVerifier
from .making import (
    Scene as Scene,
)
from .making import (
    verifier_for as verifier_for,
)
from .numbers import NumberAnswerVerifier as NumberAnswerVerifier
from .numbers import (
    NumberInText as NumberInText,
)
from .numbers import (
    final_number as final_number,
)
from .numbers import (
    read_number as read_number,
)
from .python_tests import CodeLimits as CodeLimits
from .python_tests import (
    CodeRun as CodeRun,
)
from .python_tests import PythonTestsVerifier as PythonTestsVerifier
from .python_tests import code_readings as code_readings
from .python_tests import (
    run_tests as run_tests,
)
from .rubric import RubricVerifier as RubricVerifier
from .state import FinalStateVerifier as FinalStateVerifier
from .state import (
    StateDifference as StateDifference,
)
from .state import (
    state_differences as state_differences,
)
from .verdicts import guarded as guarded
