"""A planner model without a model: it plans one step a question and ranks by shared words.

Paper mode asks a language model to plan and to judge. What that costs depends on the prompts, not on
who answers them, so cost can be measured with answers made here: deterministic, at no price. How
well a real model would rank is another question; word overlap is a weak judge, and the recall of
paper mode in these tables is that of the weak judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from agentkit.messages import AssistantMessage, Usage
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.retrieval.cards import estimate_tokens
from agentkit.retrieval.planner import PLANNER_PROMPT
from agentkit.retrieval.words import terms
from agentkit.testing import FunctionModel
from agentkit.tools.definition import ToolDefinition

_STEP = re.compile(r"# Step\n(?P<step>.*?)\n\n# Tools\n(?P<tools>.*)", re.DOTALL)
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_PLANNER = PLANNER_PROMPT.partition("\n")[0].partition("{limit}")[0]


def overlap_model(plans: Mapping[str, str] | None = None) -> FunctionModel:
    """A model that plans as ``plans`` says and judges by shared words.

    Args:
        plans: Answers of the planner by request; without one the request is its only step.
    """
    known = plans or {}

    def answer(request: ModelRequest) -> ModelResponse:
        system, user = (message.text for message in request.messages)
        text = (
            known.get(user, json.dumps([{"intent": user}]))
            if system.startswith(_PLANNER)
            else _judged(user)
        )
        usage = Usage(
            requests=1,
            prompt_tokens=estimate_tokens(system) + estimate_tokens(user),
            completion_tokens=estimate_tokens(text),
        )
        return ModelResponse(message=AssistantMessage(text=text), usage=usage)

    return FunctionModel(answer, name="word overlap")


def typed_plan(request: str, gold: Iterable[ToolDefinition]) -> str:
    """The answer of a planner that knows the types of the right tools: one step for each of them.

    Its types prune as much as any correct guess can, so it bounds what hard types save.
    """
    steps = [
        {
            "intent": request,
            "inputs": {
                name: definition.signature.properties[name].get("type", "any")
                for name in definition.signature.required
                if isinstance(definition.signature.properties.get(name), Mapping)
            },
        }
        for definition in gold
    ]
    return json.dumps(steps, default=list)


def _judged(user: str) -> str:
    """Numbers of the 32 tools that share most words with the step, those in front first."""
    found = _STEP.search(user)
    if found is None:
        return "[]"
    wanted = frozenset(terms(found["step"]))
    numbers = [
        (-len(wanted & _terms(line)), int(number))
        for number, line in _NUMBERED.findall(found["tools"])
    ]
    return json.dumps([number for _, number in sorted(numbers)[:32]])


@lru_cache(maxsize=50_000)
def _terms(line: str) -> frozenset[str]:
    return frozenset(terms(line))
