"""A library's definitions, offered in a benchmark that asks in a way of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition, open_store
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import FunctionModel
from agentkit_bench import nestful_benchmark
from agentkit_bench.nestful import load_nestful
from agentkit_bench.nestful_benchmark import plannable

SAMPLE = Path(__file__).parent / "sample_nestful"


@pytest.fixture
def evolved():
    """NESTFUL's own tools with another summary, and schemas that take no references."""
    return Library(
        [
            replace(one, description=replace(one.description, summary=f"Evolved {one.name}."))
            for one in load_nestful(SAMPLE).definitions
        ],
        version=3,
    )


def gold_model(benchmark):
    """A model that answers each question with its gold calls."""
    gold = {task.request: task.expects[0].calls for task in benchmark.tasks}

    def answer(request):
        asked = next(m.text for m in reversed(request.messages) if m.text in gold)
        calls = enumerate(gold[asked])
        return AssistantMessage(
            tool_calls=tuple(
                ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
                for at, call in calls
            )
        )

    return FunctionModel(answer, name="gold")


@pytest.mark.parametrize("tools", ["given", "retrieved"])
async def test_plans_take_references_with_a_library_too(evolved, tools):
    """The model reads the library's words; its schemas take the references that a plan needs."""
    benchmark = nestful_benchmark(SAMPLE)
    model, store = gold_model(benchmark), open_store("memory:")
    settings = EvaluationSettings(tools=tools)
    await evaluate(benchmark, model=model, store=store, run="r", library=evolved, settings=settings)
    assert all(episode.verdict.passed for episode in store.select())
    assert all(
        tool.description.summary.startswith("Evolved ") and "Returns: " in tool.text
        for request in model.requests
        for tool in request.tools
    )
    assert {episode.library_version for episode in store.select()} == {3}


async def test_a_library_made_from_the_catalogue_is_not_adapted_twice(evolved):
    """Tools that come from the benchmark are offered as they came."""
    benchmark = nestful_benchmark(SAMPLE)
    model = gold_model(benchmark)
    library = Library(benchmark.definitions)
    await evaluate(benchmark, model=model, store=open_store("memory:"), run="r", library=library)
    own = {one.name: one for one in benchmark.definitions}
    assert all(tool == own[tool.name] for request in model.requests for tool in request.tools)


async def test_executed_questions_take_the_library_as_it_is(evolved):
    """Where calls run, a reference is no value, and schemas stay strict."""
    benchmark = nestful_benchmark(SAMPLE, asking="executed")
    assert benchmark.adapt is None
    model = FunctionModel(lambda _: "I can not.", name="silent")
    await evaluate(benchmark, model=model, store=open_store("memory:"), run="r", library=evolved)
    offered = [tool for request in model.requests for tool in request.tools]
    assert offered
    assert all(tool == evolved[tool.name].definition for tool in offered)


_PARTS = st.recursive(
    st.sampled_from(
        [
            *({"type": kind} for kind in ("string", "integer", "boolean", "null")),
            {"enum": ["a", 1], "description": "One of two."},
            {"type": ["number", "null"], "default": 1},
            {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
            {"type": "string", "format": "date"},
            {},
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(
            lambda parts: {"type": "object", "properties": parts}
        ),
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from("xyz"), _PARTS, max_size=3), st.lists(st.text(max_size=5)))
def test_a_definition_for_plans_stays_as_it_is(properties, fields):
    """Making it fit for plans a second time changes nothing."""
    plain = ToolDefinition.from_schema("t", "T.", {"type": "object", "properties": properties})
    once = plannable(plain, fields)
    assert plannable(once, ["other"]) == once
