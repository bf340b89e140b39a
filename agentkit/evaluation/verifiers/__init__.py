"""Ready verifiers: each judges an episode against one kind of expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.verifiers.allowed_calls import AllowedCallsVerifier
    from agentkit.evaluation.verifiers.answer_shape import PatternVerifier, SchemaVerifier
    from agentkit.evaluation.verifiers.any_call import AnyCallVerifier, NoCallVerifier
    from agentkit.evaluation.verifiers.code_reading import code_readings
    from agentkit.evaluation.verifiers.combining import AllOf, AnyOf
    from agentkit.evaluation.verifiers.data_flow_verifier import DataFlowVerifier
    from agentkit.evaluation.verifiers.exact_calls import ExactCallsVerifier
    from agentkit.evaluation.verifiers.final_state import FinalStateVerifier
    from agentkit.evaluation.verifiers.functions import FunctionVerifier
    from agentkit.evaluation.verifiers.guard import guarded
    from agentkit.evaluation.verifiers.making import Scene, verifier_for
    from agentkit.evaluation.verifiers.number_answer import NumberAnswerVerifier
    from agentkit.evaluation.verifiers.numbers_in_text import (
        NumberInText,
        final_number,
        read_number,
    )
    from agentkit.evaluation.verifiers.python_tests import PythonTestsVerifier
    from agentkit.evaluation.verifiers.rubric_judge import RubricVerifier
    from agentkit.evaluation.verifiers.sandbox.limits import CodeLimits
    from agentkit.evaluation.verifiers.sandbox.running import CodeRun, run_tests
    from agentkit.evaluation.verifiers.state import StateDifference, state_differences
    from agentkit.evaluation.verifiers.text_answer import TextAnswerVerifier

__all__ = [
    "AllOf",
    "AllowedCallsVerifier",
    "AnyCallVerifier",
    "AnyOf",
    "CodeLimits",
    "CodeRun",
    "DataFlowVerifier",
    "ExactCallsVerifier",
    "FinalStateVerifier",
    "FunctionVerifier",
    "NoCallVerifier",
    "NumberAnswerVerifier",
    "NumberInText",
    "PatternVerifier",
    "PythonTestsVerifier",
    "RubricVerifier",
    "Scene",
    "SchemaVerifier",
    "StateDifference",
    "TextAnswerVerifier",
    "code_readings",
    "final_number",
    "guarded",
    "read_number",
    "run_tests",
    "state_differences",
    "verifier_for",
]

_MODULES = {
    "AllOf": "agentkit.evaluation.verifiers.combining",
    "AllowedCallsVerifier": "agentkit.evaluation.verifiers.allowed_calls",
    "AnyCallVerifier": "agentkit.evaluation.verifiers.any_call",
    "AnyOf": "agentkit.evaluation.verifiers.combining",
    "CodeLimits": "agentkit.evaluation.verifiers.sandbox.limits",
    "CodeRun": "agentkit.evaluation.verifiers.sandbox.running",
    "DataFlowVerifier": "agentkit.evaluation.verifiers.data_flow_verifier",
    "ExactCallsVerifier": "agentkit.evaluation.verifiers.exact_calls",
    "FinalStateVerifier": "agentkit.evaluation.verifiers.final_state",
    "FunctionVerifier": "agentkit.evaluation.verifiers.functions",
    "NoCallVerifier": "agentkit.evaluation.verifiers.any_call",
    "NumberAnswerVerifier": "agentkit.evaluation.verifiers.number_answer",
    "NumberInText": "agentkit.evaluation.verifiers.numbers_in_text",
    "PatternVerifier": "agentkit.evaluation.verifiers.answer_shape",
    "PythonTestsVerifier": "agentkit.evaluation.verifiers.python_tests",
    "RubricVerifier": "agentkit.evaluation.verifiers.rubric_judge",
    "Scene": "agentkit.evaluation.verifiers.making",
    "SchemaVerifier": "agentkit.evaluation.verifiers.answer_shape",
    "StateDifference": "agentkit.evaluation.verifiers.state",
    "TextAnswerVerifier": "agentkit.evaluation.verifiers.text_answer",
    "code_readings": "agentkit.evaluation.verifiers.code_reading",
    "final_number": "agentkit.evaluation.verifiers.numbers_in_text",
    "guarded": "agentkit.evaluation.verifiers.guard",
    "read_number": "agentkit.evaluation.verifiers.numbers_in_text",
    "run_tests": "agentkit.evaluation.verifiers.sandbox.running",
    "state_differences": "agentkit.evaluation.verifiers.state",
    "verifier_for": "agentkit.evaluation.verifiers.making",
}

__getattr__ = lazy_door(__name__, _MODULES)
