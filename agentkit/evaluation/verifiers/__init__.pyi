from .answers import (
    AllOf as AllOf,
    TextAnswerVerifier as TextAnswerVerifier,
)
from .calls import (
    AllowedCallsVerifier as AllowedCallsVerifier,
    AnyCallVerifier as AnyCallVerifier,
    ExactCallsVerifier as ExactCallsVerifier,
    NoCallVerifier as NoCallVerifier,
)
from .making import (
    Scene as Scene,
    verifier_for as verifier_for,
)
from .numbers import (
    NumberAnswerVerifier as NumberAnswerVerifier,
    final_number as final_number,
    read_number as read_number,
)
from .python_tests import (
    CodeLimits as CodeLimits,
    PythonTestsVerifier as PythonTestsVerifier,
)
from .rubric import RubricVerifier as RubricVerifier
from .state import (
    FinalStateVerifier as FinalStateVerifier,
)
from .verdicts import guarded as guarded
