from .answers import (
    NumberAnswerVerifier as NumberAnswerVerifier,
    RubricVerifier as RubricVerifier,
    TextAnswerVerifier as TextAnswerVerifier,
)
from .calls import (
    AllowedCallsVerifier as AllowedCallsVerifier,
    AnyCallVerifier as AnyCallVerifier,
    ExactCallsVerifier as ExactCallsVerifier,
    NoCallVerifier as NoCallVerifier,
)
from .making import (
    AllOf as AllOf,
    Scene as Scene,
    verifier_for as verifier_for,
)
from .state import (
    FinalStateVerifier as FinalStateVerifier,
)
from .verdicts import guarded as guarded
