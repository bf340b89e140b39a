"""Python code in the final answer that passes tests (HumanEval)."""

from __future__ import annotations

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import PythonTests
from agentkit.evaluation.verifiers.answers import answer_text, answer_turn, without_answer
from agentkit.evaluation.verifiers.code_reading import code_readings
from agentkit.evaluation.verifiers.sandbox.limits import CodeLimits
from agentkit.evaluation.verifiers.sandbox.running import CodeRun, run_tests
from agentkit.evaluation.verifiers.verdicts import clipped, faulty, judged, shown


class PythonTestsVerifier:
    """Passes when the code in the final answer passes the tests.

    The code is found by ``code_readings`` and run by ``run_tests``: in a process of its own, under
    limits. Read there what is contained and what is not.

    Args:
        expected: The prompt that the code may continue, the tests, and what they test.
        limits: What the process may use.
    """

    name = "python_tests"

    def __init__(self, expected: PythonTests, *, limits: CodeLimits | None = None) -> None:
        self._expected = expected
        self._limits = limits or CodeLimits()

    async def verify(self, episode: Episode) -> Verdict:
        """Run the code of the answer and its tests."""
        expected = self._expected
        if problem := _gold_problem(expected.prompt, expected.tests, expected.entry_point):
            return faulty(self.name, "gold_error", problem)
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        readings = code_readings(answer, expected.prompt, expected.entry_point)
        run = await run_tests(readings, expected.tests, expected.entry_point, limits=self._limits)
        if run.outcome == "broken_tests":
            return faulty(self.name, "gold_error", f"the tests can not be run: {run.message}")
        details = {"outcome": run.outcome, "confined": list(run.confined)}
        found = () if run.outcome == "passed" else (self._failure(run, answer, episode),)
        return judged(self.name, found, details=details)

    def _failure(self, run: CodeRun, answer: str, episode: Episode) -> Evidence:
        return Evidence(
            kind="test_failed",
            message=f"{self._expected.entry_point}: {run.message}",
            turn=answer_turn(episode),
            actual=clipped(answer),
        )


def _gold_problem(prompt: object, tests: object, entry_point: object) -> str:
    if not isinstance(prompt, str) or not isinstance(tests, str):
        return f"prompt and tests are {shown(prompt)} and {shown(tests)}, expected two texts"
    if not isinstance(entry_point, str) or not entry_point.isidentifier():
        return f"the entry point is {shown(entry_point)}, expected the name of a function"
    return ""
