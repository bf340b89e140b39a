from .allowed_calls import AllowedCallsVerifier as AllowedCallsVerifier
from .answer_shape import (
    PatternVerifier as PatternVerifier,
    SchemaVerifier as SchemaVerifier,
)
from .any_call import (
    AnyCallVerifier as AnyCallVerifier,
    NoCallVerifier as NoCallVerifier,
)
from .code_reading import code_readings as code_readings
from .combining import (
    AllOf as AllOf,
    AnyOf as AnyOf,
)
from .data_flow_verifier import DataFlowVerifier as DataFlowVerifier
from .exact_calls import ExactCallsVerifier as ExactCallsVerifier
from .final_state import FinalStateVerifier as FinalStateVerifier
from .functions import FunctionVerifier as FunctionVerifier
from .guard import guarded as guarded
from .making import (
    Scene as Scene,
    verifier_for as verifier_for,
)
from .number_answer import NumberAnswerVerifier as NumberAnswerVerifier
from .numbers_in_text import (
    NumberInText as NumberInText,
    final_number as final_number,
    read_number as read_number,
)
from .python_tests import PythonTestsVerifier as PythonTestsVerifier
from .rubric_judge import RubricVerifier as RubricVerifier
from .sandbox.limits import CodeLimits as CodeLimits
from .sandbox.running import (
    CodeRun as CodeRun,
    run_tests as run_tests,
)
from .state import (
    StateDifference as StateDifference,
    state_differences as state_differences,
)
from .text_answer import TextAnswerVerifier as TextAnswerVerifier
