from .answers import (
    AllOf as AllOf,
    AnyOf as AnyOf,
    FunctionVerifier as FunctionVerifier,
    PatternVerifier as PatternVerifier,
    SchemaVerifier as SchemaVerifier,
    TextAnswerVerifier as TextAnswerVerifier,
)
from .calls import (
    AllowedCallsVerifier as AllowedCallsVerifier,
    AnyCallVerifier as AnyCallVerifier,
    ExactCallsVerifier as ExactCallsVerifier,
    NoCallVerifier as NoCallVerifier,
)
from .data_flow import DataFlowVerifier as DataFlowVerifier
from .making import (
    Scene as Scene,
    verifier_for as verifier_for,
)
from .numbers import (
    NumberAnswerVerifier as NumberAnswerVerifier,
    NumberInText as NumberInText,
    final_number as final_number,
    read_number as read_number,
)
from .python_tests import (
    CodeLimits as CodeLimits,
    CodeRun as CodeRun,
    PythonTestsVerifier as PythonTestsVerifier,
    code_readings as code_readings,
    run_tests as run_tests,
)
from .rubric import RubricVerifier as RubricVerifier
from .state import (
    FinalStateVerifier as FinalStateVerifier,
    StateDifference as StateDifference,
    state_differences as state_differences,
)
from .verdicts import guarded as guarded
