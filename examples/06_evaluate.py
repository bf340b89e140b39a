"""Stage 8, evaluation: the main job of ``agentkit demo``, on two questions of our own.

Retrieves tools for each question, lets a model propose calls, compares them with the gold calls,
keeps the episodes and counts. A function stands in for the model; pass another name to
``resolve_model`` for a real one. Run it: python examples/06_evaluate.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentkit import ToolDefinition, open_store
from agentkit.evaluation import (
    AllowedCalls,
    Benchmark,
    MainJob,
    Task,
    import_catalogue,
    run_main_job,
)
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall
from agentkit.models.base import ModelRequest
from agentkit.retrieval import default_retriever
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
    """Import the catalogue, run the job, print what happened."""
    store = open_store("memory:")
    benchmark = Benchmark(name="two questions", tasks=TASKS, definitions=(LAMP, TIDE))
    report = await run_main_job(
        benchmark,
        import_catalogue(store, benchmark),
        model=FunctionModel(answer),
        store=store,
        retriever=default_retriever(),
        job=MainJob(questions=2),
    )
    for count in report.conditions:
        print(f"{count.condition}: {count.right_tools} right tools, {count.exact} exact")
    for episode in store.select():
        for found in episode.verdict.evidence if episode.verdict else ():
            print(f"{episode.metadata['task']}, {episode.metadata['condition']}: {found}")


if __name__ == "__main__":
    asyncio.run(main())
