"""A model as judge, with a closed rubric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.errors import ModelError
from agentkit.evaluation.expectations import Rubric
from agentkit.evaluation.verifiers.answers import answer_text, answer_turn, without_answer
from agentkit.evaluation.verifiers.judge_prompt import (
    Finding,
    findings_schema,
    judge_prompt,
    question_again,
    read_findings,
)
from agentkit.evaluation.verifiers.verdicts import clipped, described, faulty, judged, shown
from agentkit.messages import AssistantMessage, Message, SystemMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelSettings

_ATTEMPTS = 2


class RubricVerifier:
    """Passes when a model finds every criterion met.

    The judge says of each criterion ``met``, ``not_met`` or ``cannot_tell``, with a reason; the
    score is the share that is met. It sees the request, the calls with their results and the
    answer, quoted as data (``agentkit.evaluation.verifiers.judge_prompt``). An answer of the judge
    that can not be read is asked for once more; after that the verdict is a ``checker_error``.
    What judging cost is in the verdict's metrics.

    Take a judge of another family than the model that is judged: models favour what they would
    have written themselves (Panickssery et al., "LLM evaluators recognize and favor their own
    generations", 2024). A judge is an opinion; where an answer can be checked, check it.

    Args:
        expected: The criteria.
        judge: The model that judges.
        settings: How it generates; greedily by default.
    """

    name = "rubric"

    def __init__(
        self, expected: Rubric, judge: ChatModel | None, *, settings: ModelSettings | None = None
    ) -> None:
        self._expected = expected
        self._judge = judge
        self._settings = settings or ModelSettings(temperature=0.0)

    async def verify(self, episode: Episode) -> Verdict:
        """Ask the judge about every criterion."""
        if problem := _rubric_problem(self._expected.criteria):
            return faulty(self.name, "gold_error", problem)
        if self._judge is None:
            return faulty(self.name, "checker_error", "there is no model to judge by the rubric")
        if answer_text(episode) is None and not episode.calls:
            return without_answer(self.name, episode)
        examination = _Examination(self._judge, self._expected.criteria, self._settings)
        try:
            found = await examination.findings(episode)
        except ModelError as error:
            found = f"the judge failed with {described(error)}"
        costs = examination.costs()
        if isinstance(found, str):
            return faulty(self.name, "checker_error", found, metrics=costs)
        return self._verdict(found, episode, costs)

    def _verdict(
        self, found: Mapping[str, Finding], episode: Episode, costs: Mapping[str, float]
    ) -> Verdict:
        criteria = self._expected.criteria
        evidence = [
            Evidence(
                kind="criterion_failed",
                message=f"{name}: {one.judgement.replace('_', ' ')}. {one.reason}".strip(),
                turn=answer_turn(episode),
                parameter=name,
                expected=criteria[name],
            )
            for name, one in found.items()
            if one.judgement != "met"
        ]
        return judged(
            self.name,
            evidence,
            score=1 - len(evidence) / len(found),
            metrics=costs,
            details={
                "judge": self._judge.name if self._judge else "",
                "criteria": {name: one.judgement for name, one in found.items()},
            },
        )


class _Examination:
    """One episode before the judge."""

    def __init__(
        self, judge: ChatModel, criteria: Mapping[str, str], settings: ModelSettings
    ) -> None:
        self._judge = judge
        self._criteria = criteria
        self._settings = settings
        self._usage = Usage()

    async def findings(self, episode: Episode) -> Mapping[str, Finding] | str:
        """What the judge says about each criterion, or why that can not be known."""
        prompt = judge_prompt(episode, self._criteria)
        messages: tuple[Message, ...] = (
            SystemMessage(text=prompt.instructions),
            UserMessage(text=prompt.question),
        )
        request = ModelRequest(
            messages=messages,
            tool_choice="none",
            output_schema=findings_schema(self._criteria),
            settings=self._settings,
        )
        problem = ""
        for _ in range(_ATTEMPTS):
            response = await self._judge.complete(request)
            self._usage += response.usage
            text = response.message.text
            found = read_findings(text, self._criteria)
            if not isinstance(found, str):
                return found
            problem = found
            again = (AssistantMessage(text=text), UserMessage(text=question_again(found)))
            request = replace(request, messages=(*messages, *again))
        return clipped(f"the judge's answer could not be read, twice: {problem}")

    def costs(self) -> dict[str, float]:
        """What the judge was asked and what it cost, by name of the metric."""
        costs = {
            "judge_requests": float(self._usage.requests),
            "judge_prompt_tokens": float(self._usage.prompt_tokens),
            "judge_completion_tokens": float(self._usage.completion_tokens),
        }
        if self._usage.cost_usd is not None:
            costs["judge_cost_usd"] = self._usage.cost_usd
        return costs


def _rubric_problem(criteria: object) -> str:
    if not isinstance(criteria, Mapping) or not criteria:
        return f"the rubric has the criteria {shown(criteria)}, expected a sentence for each name"
    for name, text in criteria.items():
        if not (isinstance(name, str) and name.strip() and isinstance(text, str) and text.strip()):
            return f"the criterion {shown(name)} is {shown(text)}, expected a sentence"
    return ""
