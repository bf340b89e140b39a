"""Stage 8, evaluation: what ``agentkit eval`` does, on two questions of our own.

Asks with the tools that each question names and with retrieved ones, compares the calls with the
gold calls, keeps the episodes and counts. A function stands in for the model; pass another name to
``resolve_model`` for a real one. Run it: python examples/06_evaluate.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentkit import ToolDefinition, open_store
from agentkit.evaluation import (
    AllowedCalls,
    Benchmark,
    EvaluationSettings,
    Task,
    episodes_of_run,
    evaluate,
    import_catalogue,
    summarise,
)
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall
from agentkit.models.base import ModelRequest
from agentkit.testing import FunctionModel

STRING = {"type": "string"}
LAMP = ToolDefinition.from_schema(
    "set_lamp",
    "Switch a lamp in a room on or off.",
    {"type": "object", "properties": {"room": STRING, "state": STRING}, "required": ["room"]},
)
TIDE = ToolDefinition.from_schema(
    "tide_table",
    "High and low water at a harbour.",
    {"type": "object", "properties": {"harbour": STRING}, "required": ["harbour"]},
)
LAMP_OFF = AllowedCall(name="set_lamp", allowed={"room": ["kitchen"], "state": ["off"]})
AT_AKER = AllowedCall(name="tide_table", allowed={"harbour": ["Aker", "Aker, Oslo"]})
TASKS = (
    Task(
        task_id="lamp",
        category="simple",
        request="Switch the lamp in the kitchen off.",
        offered=("set_lamp",),
        expects=(AllowedCalls(calls=(LAMP_OFF,)),),
    ),
    Task(
        task_id="tide",
        category="multiple",
        request="When is high water at Aker?",
        offered=("set_lamp", "tide_table"),
        expects=(AllowedCalls(calls=(AT_AKER,)),),
    ),
)


def answer(request: ModelRequest) -> Sequence[ToolCall]:
    """A model that knows one kitchen and one harbour, and always thinks of the first tool."""
    arguments = {"set_lamp": {"room": "kitchen", "state": "off"}, "tide_table": {"harbour": "Oslo"}}
    name = request.tools[0].name
    return [ToolCall(call_id="1", name=name, arguments=arguments[name])]


async def main() -> None:
    """Import the catalogue, ask in both ways, print what happened."""
    store = open_store("memory:")
    benchmark = Benchmark(name="two questions", tasks=TASKS, definitions=(LAMP, TIDE))
    library = import_catalogue(store, benchmark)
    model = FunctionModel(answer)
    for settings in (EvaluationSettings(), EvaluationSettings(tools="retrieved")):
        run = settings.tools
        await evaluate(
            benchmark, model=model, store=store, run=run, library=library, settings=settings
        )
        total = summarise(episodes_of_run(store, run)).total
        print(f"{run}: {total.passed} of {total.attempts} right")
        for episode in episodes_of_run(store, run):
            for found in episode.verdict.evidence if episode.verdict else ():
                print(f"{run}, {episode.metadata['task']}: {found}")


if __name__ == "__main__":
    asyncio.run(main())
