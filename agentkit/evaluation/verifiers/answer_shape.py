"""The form of the final answer: a pattern that it holds, a schema that it fits."""

from __future__ import annotations

import json
import re
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.errors import UsageError
from agentkit.evaluation.verifiers.answers import answer_text, answer_turn, without_answer
from agentkit.evaluation.verifiers.verdicts import clipped, judged
from agentkit.messages import JsonObject
from agentkit.tools.bounded import BoundedValidator, UncheckableError, schema_fault

_MOST_PROBLEMS = 20


class PatternVerifier:
    """Passes when a regular expression is found in the final answer.

    The pattern is the author's own and is applied as it is: Python's ``re`` has no time limit, so
    do not repeat a group that itself repeats.

    Args:
        pattern: The pattern, for ``re.search``; anchor it to match the whole answer.

    Raises:
        UsageError: It is no regular expression.
    """

    name = "pattern"

    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from error

    async def verify(self, episode: Episode) -> Verdict:
        """Search the final answer."""
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        if self._pattern.search(answer):
            return judged(self.name, ())
        finding = Evidence(
            kind="wrong_answer",
            message=f"the answer does not hold {self._pattern.pattern!r}",
            turn=answer_turn(episode),
            expected=self._pattern.pattern,
            actual=clipped(answer),
        )
        return judged(self.name, [finding])


class SchemaVerifier:
    """Passes when the final answer fits a JSON Schema (2020-12).

    Structured output is taken as it is, text is read as JSON. Nothing is fetched for a ``$ref``.

    Args:
        schema: The schema.

    Raises:
        UsageError: It is no schema.
    """

    name = "schema"

    def __init__(self, schema: JsonObject) -> None:
        if fault := schema_fault(dict(schema)):
            raise UsageError(f"not a JSON Schema, {fault}")
        self._validator = BoundedValidator(dict(schema))

    async def verify(self, episode: Episode) -> Verdict:
        """Check the final answer against the schema."""
        output: Any = episode.output
        turn = answer_turn(episode)
        if answer_text(episode) is None:
            return without_answer(self.name, episode)
        if isinstance(output, str):
            try:
                output = json.loads(output)
            except (ValueError, RecursionError) as error:
                message = f"the answer is not JSON: {error}"
                finding = Evidence(kind="wrong_answer", message=message, turn=turn)
                return judged(self.name, [finding])
        try:
            problems = self._validator.errors(output, limit=_MOST_PROBLEMS)
        except UncheckableError as error:
            message = f"the answer can not be checked: {error}"
            return judged(self.name, [Evidence(kind="wrong_answer", message=message, turn=turn)])
        return judged(
            self.name,
            [
                Evidence(
                    kind="wrong_answer",
                    message=f"the answer does not fit at {one.json_path}: {clipped(one.message)}",
                    turn=turn,
                    parameter=one.json_path,
                )
                for one in sorted(problems, key=lambda one: one.json_path)
            ],
        )
