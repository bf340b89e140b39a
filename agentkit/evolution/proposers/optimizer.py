"""GEPA as a proposer: search over the texts of a tool, by an evaluation that the caller gives.

GEPA (Agrawal and others, 2025: reflective prompt evolution) changes one text at a time by asking a
model to reflect on what went wrong, keeps what is better on some case, and merges nothing here. It
needs many evaluations, so it is an option and never the default. The package ``gepa`` is loaded
when it is used; the extra ``gepa`` brings it.

What it finds is one proposal like any other. That its own evaluation says it is better is no reason
to believe so: the gates look at episodes that it has not seen.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from string import Template
from types import ModuleType
from typing import Any, Generic, TypeVar

from agentkit.errors import MissingExtraError, UsageError
from agentkit.evolution.proposal import Observations, Proposal
from agentkit.evolution.proposers.streams import (
    LONGEST_DEFINITION,
    PROPOSER_SETTINGS,
    Prompt,
    shown,
)
from agentkit.messages import Usage, UserMessage
from agentkit.models.base import ChatModel, MeteredModel, ModelRequest
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.patterns import json_line

Case = TypeVar("Case")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How one case went with a candidate.

    Attributes:
        value: From 0 to 1, the more the better.
        feedback: What went wrong and what would have been right, for the model that reflects.
    """

    value: float
    feedback: str = ""


_MINIBATCH = 3  # cases that one reflection looks at

Evaluate = Callable[[ToolDefinition, Sequence[Case]], Awaitable[Sequence[Score]]]
"""Runs cases with a candidate definition; one score a case, in their order."""


class GepaOptimizer(Generic[Case]):
    """Suggests the best texts that GEPA finds for a tool: the one asked for, or the worst.

    Args:
        model: Reflects and writes the texts.
        evaluate: Runs cases with a candidate.
        cases: What candidates are tried and compared on.
        held_out: What the best one is chosen on; the cases themselves when left out.
        max_evaluations: Cases that may be run for one tool, in all.

    Raises:
        UsageError: There are no cases.
    """

    def __init__(
        self,
        model: ChatModel,
        evaluate: Evaluate[Case],
        cases: Sequence[Case],
        *,
        held_out: Sequence[Case] = (),
        max_evaluations: int = 200,
    ) -> None:
        if not cases:
            raise UsageError("GepaOptimizer needs cases to try candidates on; got none")
        self._model = MeteredModel(model)
        self._evaluate = evaluate
        self._cases = list(cases)
        self._held_out = list(held_out) or list(cases)
        self._most_evaluations = max_evaluations

    @property
    def name(self) -> str:
        """``gepa``, with the model that reflects."""
        return f"gepa:{self._model.name}"

    @property
    def usage(self) -> Usage:
        """What the model that reflects has cost so far."""
        return self._model.usage

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """The best texts for the tool, where they are better than the present ones.

        Raises:
            MissingExtraError: The package ``gepa`` is not installed.
            ModelError: The model could not answer.
        """
        gepa = load_gepa()
        names = observations.tools or [one.tool for one in observations.profile.worst_tools(1)]
        name = next((one for one in names if one in observations.library), None)
        if name is None:
            return []
        base = observations.library[name].definition
        result = await self._optimised(gepa, base)
        seed, best = result.val_aggregate_scores[0], max(result.val_aggregate_scores)
        candidate = with_texts(base, result.best_candidate)
        if best <= seed or candidate.digest == base.digest:
            return []
        reason = (
            f"mean score {best:.3f} against {seed:.3f} on {len(self._held_out)} cases, after "
            f"{result.total_metric_calls} evaluations of {len(result.candidates)} candidates"
        )
        author = _prompt_for(base).author(self._model)
        return [Proposal.of(base, candidate, stream="optimizer", author=author, reason=reason)]

    async def _optimised(self, gepa: ModuleType, base: ToolDefinition) -> Any:
        """GEPA's result. It is synchronous: it runs in a thread and calls back into this loop."""
        loop = asyncio.get_running_loop()
        is_cancelled = threading.Event()

        def wait(work: Coroutine[Any, Any, T]) -> T:
            if is_cancelled.is_set():
                work.close()
                raise UsageError("the optimisation was cancelled")  # ends the thread, not the loop
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        adapter: _Adapter[Case] = _Adapter(
            base=base,
            run=lambda candidate, batch: wait(self._scored(candidate, batch)),
            ask=lambda text, cases: wait(self._reflected(_prompt_for(base), text, cases)),
            gepa=gepa,
        )
        try:
            return await asyncio.to_thread(
                gepa.optimize,
                seed_candidate=texts_of(base),
                trainset=self._cases,
                valset=self._held_out,
                adapter=adapter,
                reflection_minibatch_size=min(_MINIBATCH, len(self._cases)),
                max_metric_calls=self._most_evaluations,
                logger=_Silent(),
                seed=0,
                raise_on_exception=True,
            )
        finally:
            is_cancelled.set()

    async def _scored(self, candidate: ToolDefinition, batch: Sequence[Case]) -> list[Score]:
        scores = list(await self._evaluate(candidate, batch))
        if len(scores) != len(batch):
            raise UsageError(
                f"evaluate gave {len(scores)} scores for {len(batch)} cases; give one for each"
            )
        return scores

    async def _reflected(self, prompt: Prompt, text: str, cases: str) -> str:
        asked = Template(prompt.text).substitute(text=json_line(text), cases=cases)
        request = ModelRequest(messages=(UserMessage(text=asked),), settings=PROPOSER_SETTINGS)
        return (await self._model.complete(request)).message.text


def _prompt_for(definition: ToolDefinition) -> Prompt:
    is_of_agent = is_instructions(definition.name)
    return Prompt.shipped("instructions_optimizer_v1" if is_of_agent else "optimizer_v1")


def texts_of(definition: ToolDefinition) -> dict[str, str]:
    """The texts of a tool by their place, as GEPA's components; instructions are one text.

    Example:
        >>> texts_of(ToolDefinition.from_schema("wait", "Wait.", {
        ...     "properties": {"days": {"type": "integer", "description": "How long."}}}))
        {'summary': 'Wait.', 'usage_rules': '', 'parameters.days': 'How long.'}
    """
    words = definition.description
    if is_instructions(definition.name):
        return {"summary": words.summary}
    names = [*definition.signature.properties, *words.parameters]
    texts = {f"parameters.{name}": words.parameters.get(name, "") for name in dict.fromkeys(names)}
    return {"summary": words.summary, "usage_rules": "\n".join(words.usage_rules), **texts}


def with_texts(definition: ToolDefinition, texts: Mapping[str, str]) -> ToolDefinition:
    """The definition with other texts: the inverse of ``texts_of``."""
    words = definition.description
    parameters = {
        place.removeprefix("parameters."): text.strip()
        for place, text in texts.items()
        if place.startswith("parameters.") and text.strip()
    }
    rules = tuple(line.strip() for line in texts.get("usage_rules", "").splitlines())
    description = replace(
        words,
        summary=texts.get("summary", words.summary).strip(),
        usage_rules=tuple(rule for rule in rules if rule),
        parameters=parameters,
    )
    return replace(definition, description=description)


@dataclass(frozen=True, kw_only=True)
class _Adapter(Generic[Case]):
    """What GEPA asks of a system: to run a batch with texts, and to say how each case went."""

    base: ToolDefinition
    run: Callable[[ToolDefinition, Sequence[Case]], list[Score]]
    ask: Callable[[str, str], str]
    gepa: ModuleType

    def evaluate(
        self,
        batch: list[Case],
        candidate: dict[str, str],
        capture_traces: bool = False,  # noqa: FBT001, FBT002 - GEPA's signature
    ) -> Any:
        """Run a batch with the texts of a candidate."""
        scores = self.run(with_texts(self.base, candidate), batch)
        return self.gepa.EvaluationBatch(
            outputs=scores,
            scores=[score.value for score in scores],
            trajectories=list(zip(batch, scores, strict=True)) if capture_traces else None,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, str]]]:
        """What the model that reflects is shown of each case."""
        records = [
            {
                "Task": shown(str(case), most=LONGEST_DEFINITION),
                "Score": f"{score.value:g}",
                "Feedback": shown(score.feedback, most=LONGEST_DEFINITION),
            }
            for case, score in eval_batch.trajectories
        ]
        return dict.fromkeys(components_to_update, records)

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, str]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """What the model that reflects writes for each part: GEPA's own prompt quotes nothing."""
        read = self.gepa.strategies.instruction_proposal.InstructionProposalSignature
        found = {}
        for part in components_to_update:
            cases = (
                "\n".join(f"{title}: {said}" for title, said in record.items())
                for record in reflective_dataset[part]
            )
            answer = self.ask(candidate[part], "\n\n".join(cases))
            found[part] = read.output_extractor(answer.strip())["new_instruction"]
        return found


class _Silent:
    """GEPA prints its progress; a library does not."""

    def log(self, message: str) -> None:
        """Nothing: the result holds what matters."""


def load_gepa() -> ModuleType:
    """The package ``gepa``.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module("gepa")
    except ImportError as error:
        raise MissingExtraError(
            "GepaOptimizer", package="gepa", install='pip install "agentkit-evolve[gepa]"'
        ) from error
