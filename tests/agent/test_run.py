"""What a run answers, within which settings and limits, and in which shape."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agentkit import Agent, RunContext
from agentkit.agent import RefineSettings, ToolPolicy
from agentkit.agent.types import Limits
from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.messages import (
    AssistantMessage,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models.base import ModelResponse, ModelSettings
from agentkit.testing import FunctionModel, ScriptedModel


async def test_call_then_answer(add, call):
    """A call is executed and its result shown to the model, which then answers."""
    model = ScriptedModel([[call("add", a=1, b=2)], "It is 3."])

    result = await Agent(model, tools=[add]).run("1 + 2?")

    assert result.output == "It is 3."
    assert [r.value for r in result.episode.results] == [3]
    assert model.requests[1].messages[-1] == ToolMessage(call_id="add", name="add", text="3")


async def test_instructions_come_first_and_are_not_part_of_the_conversation():
    """The system message leads each request but is left out of the messages that are kept."""
    model = ScriptedModel(["a"])

    result = await Agent(model, instructions="Be brief.").run("Hi")

    assert model.requests[0].messages == (SystemMessage(text="Be brief."), UserMessage(text="Hi"))
    assert result.messages == (UserMessage(text="Hi"), AssistantMessage(text="a"))


async def test_instructions_are_made_for_each_run():
    """Functions, sync and async, see the run; texts come first, and what is empty is left out."""

    def session(ctx: RunContext) -> str:
        return f"Session {ctx.session_id}." if ctx.session_id else ""

    async def user(ctx: RunContext) -> str:
        return f"User {ctx.deps}."

    model = ScriptedModel(["a", "b"])
    agent = Agent(model, instructions=[session, "Be brief.", user, "Be kind."], store="memory:")
    await agent.run("Hi", deps="Ada")
    await agent.run("Hi", deps="Bob", session_id="chat")

    assert [request.messages[0].text for request in model.requests] == [
        "Be brief.\n\nBe kind.\n\nUser Ada.",
        "Be brief.\n\nBe kind.\n\nSession chat.\n\nUser Bob.",
    ]


async def test_instructions_that_fail_end_the_run_and_are_recorded(store):
    """What a function raises, or another value than a text, is an error of the run."""

    def broken(ctx: RunContext) -> str:
        raise OSError("no profile")

    for function, expected in ((broken, OSError), (lambda _: 3, UsageError)):
        agent = Agent(ScriptedModel(["never"]), instructions=function, store=store)
        with pytest.raises(expected):
            await agent.run("Hi")
    assert [episode.stop_reason for episode in store.select()] == ["error", "error"]
    with pytest.raises(UsageError, match="texts and functions"):
        Agent(ScriptedModel([]), instructions=["Be brief.", 3])


async def test_history_goes_before_the_request():
    """The messages of one result are the history of the next run."""
    model = ScriptedModel(["a", "b"])
    agent = Agent(model)

    first = await agent.run("one")
    second = await agent.run("two", history=first.messages)

    assert [m.text for m in model.requests[1].messages] == ["one", "a", "two"]
    assert second.episode.history_length == 2


async def test_the_same_tools_tuple_is_offered_each_turn(add, call):
    """Adapters may key a cache on the identity of the offered tools."""
    model = ScriptedModel([[call("add", a=1, b=2)], "3", "hello"])
    agent = Agent(model, tools=[add])

    await agent.run("1 + 2?")
    await agent.run("hi")

    assert len({id(request.tools) for request in model.requests}) == 1


async def test_a_forced_call_is_forced_once(add, call):
    """With tool_choice="required" the model must call first and may answer afterwards."""
    model = ScriptedModel([[call("add", a=1, b=2)], "3"])

    await Agent(model, tools=[add], tool_policy=ToolPolicy(choice="required")).run("1 + 2?")

    assert [request.tool_choice for request in model.requests] == ["required", "auto"]


async def test_run_sync_inside_a_loop_says_what_to_do():
    """Blocking a running loop is refused with the way out."""
    with pytest.raises(UsageError, match=r"await agent\.run"):
        Agent(ScriptedModel(["Hello."])).run_sync("Hi")


async def test_the_settings_of_a_run_lie_over_those_of_the_agent():
    """What the run says holds for it alone; what it leaves open is as the agent has it."""
    seen = []

    def note(request):
        seen.append(request.settings)
        return "Yes."

    own = ModelSettings(temperature=0.5, max_tokens=100, extra={"a": 1, "b": 2})
    agent = Agent(FunctionModel(note), settings=own)
    given = ModelSettings(temperature=0, seed=7, extra={"b": 3})
    await agent.run("Is it?", settings=given)
    async for _ in agent.stream("Is it?", settings=given):
        pass
    await agent.run("Is it?")
    both = ModelSettings(temperature=0, max_tokens=100, seed=7, extra={"a": 1, "b": 3})
    assert seen == [both, both, own]


def policy(**options):
    """An agent's options with this policy for its tools."""
    return lambda: {"tool_policy": ToolPolicy(**options)}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (policy(contracts="allways"), "contracts is 'allways'; use 'always' or 'off'"),
        (lambda: {"refine": "adaptiv"}, "refine is 'adaptiv'; use one of none, vanilla, adaptive"),
        (
            lambda: {"refine": RefineSettings(mode="adaptive", max_refinements=-1)},
            "max_refinements is -1; use 0 or more",
        ),
        (lambda: {"retriever": "all"}, "retriever is 'all'; use 'auto'"),
        (policy(timeout_seconds=0), "a call may take 0 seconds.*give more than 0"),
        (policy(retries=-1), "a tool has -1 retries; give 0 or more"),
        (policy(repeats=-1), "a call has -1 repeats; give 0 or more"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(options, advice):
    """A slip in a setting is an error at once, and no check that is silently left out."""
    with pytest.raises(UsageError, match=advice):
        Agent(ScriptedModel([]), **options())


async def test_steps(add, call):
    """A model that never stops calling is stopped after max_steps turns."""
    forever = FunctionModel(
        lambda request: AssistantMessage(tool_calls=(call("add", a=1, b=len(request.messages)),))
    )

    result = await Agent(forever, tools=[add], limits=Limits(max_steps=3)).run("go")

    assert (result.stop_reason, len(result.episode.turns), result.output) == ("step_limit", 3, None)


async def test_calls(add, call):
    """Calls beyond max_calls are answered with the limit, and the model can still conclude."""
    calls = [call("add", id=str(i), a=i, b=i) for i in range(3)]

    result = await Agent(
        ScriptedModel([calls, "done"]), tools=[add], limits=Limits(max_calls=2)
    ).run("go")

    statuses = [r.status for r in result.episode.results]
    assert sorted(statuses) == ["failed", "ok", "ok"]
    assert result.output == "done"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(max_tokens=100), "token_limit"), (Limits(max_cost_usd=0.5), "cost_limit")],
)
async def test_tokens_and_cost(add, call, limits, reason):
    """Spending is checked after each turn."""

    def answer(request):
        message = AssistantMessage(tool_calls=(call("add", a=1, b=2),))
        usage = Usage(requests=1, prompt_tokens=90, completion_tokens=20, cost_usd=0.6)
        return ModelResponse(message=message, usage=usage)

    result = await Agent(FunctionModel(answer), tools=[add], limits=limits).run("go")

    assert (result.stop_reason, len(result.episode.turns)) == (reason, 1)


class Car(BaseModel):
    make: str
    year: int


def test_a_wrong_answer_to_a_bare_schema_is_sent_back():
    """It gives plain data, and is held against the answer, too."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    agent = Agent(ScriptedModel(['{"n": "four"}', '{"n": 4}']), output_type=schema)
    result = agent.run_sync("How many?")
    assert result.output == {"n": 4}
    assert "`n` must be an integer" in result.episode.turns[0].correction


async def test_a_wrong_answer_is_sent_back_with_the_reason():
    """The model reads what is wrong and answers again with a value of the type; the record has both."""
    model = ScriptedModel(['{"make": "Toyota"}', "not json", '{"make": "Toyota", "year": 2020}'])

    result = await Agent(model, output_type=Car).run("?")

    assert result.output == Car(make="Toyota", year=2020)
    assert result.episode.output == {"make": "Toyota", "year": 2020}
    assert "year" in model.requests[1].messages[-1].text
    assert "not JSON" in model.requests[2].messages[-1].text
    assert [m.role for m in result.episode.messages()] == [m.role for m in result.messages]


async def test_an_answer_that_never_fits_ends_the_run():
    """After two corrections the run stops without an output, and the text is still there."""
    result = await Agent(ScriptedModel(["no"] * 3), output_type=Car).run("?")

    assert (result.stop_reason, result.output, result.text) == ("output_invalid", None, "no")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"[{'[],' * 400_000}[]]", "1,200,004 characters, more than 1,000,000"),
        (f"[{'1,' * 150_000}1]", "150,002 values, more than 100,000"),
        (f"[{'[],' * 2_000}[]]", "does not fit, in 2,001 places"),
    ],
)
async def test_an_answer_larger_than_models_write_holds_up_nobody(text, why):
    """It is counted before it is built, and what is wrong with it is not listed."""
    model = ScriptedModel([text, "[1]"])
    assert (await Agent(model, output_type=list[int]).run("?")).output == [1]
    assert why in model.requests[1].messages[-1].text


def answer(reason, text="The answer is", calls=()):
    """What a model says, and why it stopped."""
    message = AssistantMessage(text=text, tool_calls=calls)
    return ModelResponse(message=message, finish_reason=reason)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_the_turn_says_why(reason):
    """The run ends as ever; its last turn, and the record that is kept, say what cut it."""
    episode = (await Agent(ScriptedModel([answer(reason)])).run("Hi")).episode
    assert (episode.stop_reason, episode.output) == ("finished", "The answer is")
    assert episode.turns[-1].finish_reason == reason
    record = episode.to_json()
    assert (record["format"], record["turns"][0]["finish_reason"]) == (3, reason)
    assert Episode.from_json(record) == episode
