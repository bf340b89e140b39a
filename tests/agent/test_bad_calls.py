"""A call that can not run goes back to the model in words that help it recover."""

from __future__ import annotations

from agentkit import Agent, Tool, ToolDefinition
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


async def only_result(model_calls, *tools, **options):
    rounds = [model_calls] * (2 if "refine" in options else 1)
    model = ScriptedModel([*rounds, "done"])
    result = await Agent(model, tools=tools, **options).run("go")
    assert result.output == "done"
    return result.episode.results[0]


async def test_wrong_type(add, call):
    """The broken rule, the value and the schema are named; the tool does not run."""
    result = await only_result([call("add", a="three", b=2)], add)

    assert result.status == "failed"
    assert result.failure.kind == "invalid_arguments"
    assert result.failure.path == "a"
    assert "integer" in result.text
    assert "three" in result.text
    assert "Schema of a:" in result.text


async def test_a_clearly_meant_type_is_mended(add, call):
    """The text "3" for an integer is taken as 3, which saves a round trip."""
    result = await only_result([call("add", a="3", b=2)], add)

    assert result.value == 5


async def test_unknown_tool(add, call):
    """An unknown name is answered with the nearest one."""
    result = await only_result([call("ad", a=1, b=2)], add)

    assert result.failure.kind == "unknown_tool"
    assert result.failure.nearest == ("add",)


async def test_a_tool_that_was_not_offered_is_unknown(add, call):
    """The library may hold more than the model was offered; only the offered may be called."""
    from agentkit.retrieval.retriever import Retrieval

    class OffersNothing:
        async def retrieve(self, query, library):
            return Retrieval(query=query, hits=(), offered=(), cards="", tokens=0)

    result = await only_result([call("add", a=1, b=2)], add, retriever=OffersNothing())

    assert result.failure.kind == "unknown_tool"


async def test_malformed_json(add):
    """Argument text that is not a JSON object is shown back."""
    broken = ToolCall(call_id="1", name="add", malformed='{"a": 1, ')

    result = await only_result([broken], add)

    assert result.failure.kind == "malformed_arguments"
    assert '{"a": 1, ' in result.text


async def test_arguments_nested_without_end(add, call):
    """Absurdly deep arguments fail as malformed instead of exhausting the stack."""
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"a": deep}

    result = await only_result([call("add", a=deep, b=1)], add, refine="adaptive")

    assert result.failure.kind == "malformed_arguments"


async def test_a_broken_schema_fails_the_call_only(call):
    """A definition with an unusable schema is reported to the model as the tool's fault."""
    schema = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
    broken = Tool(definition=ToolDefinition.from_schema("odd", "", schema), function=print)

    result = await only_result([call("odd", a=1)], broken)

    assert result.failure.kind == "tool_error"
    assert not result.failure.retryable
