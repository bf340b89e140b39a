"""Plans of a model, and later steps that are retrieved by what calls gave."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent, Library, ToolDefinition, tool
from agentkit.errors import ModelTimeoutError, UsageError
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse
from agentkit.retrieval import (
    CascadeRetriever,
    InHand,
    ModelPlanner,
    Plan,
    StepRetriever,
    SubGoal,
    estimate_tokens,
    values_in_hand,
)
from agentkit.retrieval.plan_parser import (
    MAX_INTENT,
    MAX_NAMES,
    MAX_STEPS,
    MAX_WORD,
    PlannedInput,
    parse_plan,
)
from agentkit.testing import FunctionModel, ScriptedModel

QUERY = "What is the weather in Oslo, and mail it to Ann"
PLAN = json.dumps(
    [
        {
            "intent": "look up the weather forecast",
            "inputs": {"city": "city", "day": "date"},
            "output": "list of numbers",
            "argument_names": ["city", "units"],
        },
        {"intent": "send a mail", "inputs": {"body": "gizmo"}, "argument_names": ["recipient"]},
    ]
)


def planner_of(answer):
    return ModelPlanner(FunctionModel(lambda _: answer))


async def test_a_plan_has_intents_types_and_argument_names():
    """Types are kept in the planner's words."""
    plan = await planner_of(PLAN)(QUERY)
    first, second = plan.goals
    assert (first.intent, second.intent) == ("look up the weather forecast", "send a mail")
    assert first.argument_names == ("city", "units", "day")
    assert [slot.name for slot in first.inputs] == ["city", "day"]
    assert [slot.type for slot in first.inputs] == ["city", "date"]
    assert first.output == "list of numbers"
    assert second.argument_names == ("recipient", "body")
    assert not any(slot.bound for slot in first.inputs)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I cannot help with that.", "no plan in the answer"),
        ("", "answered nothing"),
        ("<think>1. hmm\n2. hmm</think>", "answered nothing"),
        (ModelTimeoutError("no answer within 5 s"), "ModelTimeoutError: no answer within 5 s"),
        (ZeroDivisionError("a bug in the model"), "ZeroDivisionError"),
    ],
)
async def test_a_useless_model_gives_the_identity_plan_and_a_note(answer, reason):
    """The reason stands in the notes, and the request that was made is counted."""
    plan = await ModelPlanner(ScriptedModel([answer]))(QUERY)
    assert plan.goals == (SubGoal(intent=QUERY),)
    assert plan.usage.requests == 1
    (note,) = plan.notes
    assert note.startswith("not split: ")
    assert reason in note


async def test_what_planning_cost_is_counted():
    """Usage of the model is that of the plan, also of a useless answer."""
    usage = Usage(requests=1, prompt_tokens=300, completion_tokens=7)
    for text in (PLAN, "nonsense"):
        response = ModelResponse(message=AssistantMessage(text=text), usage=usage)
        assert (await planner_of(response)(QUERY)).usage == usage


async def test_too_many_steps_are_cut_and_noted():
    """At most eight steps are searched for."""
    answer = "\n".join(f"{number}. Do thing {number}" for number in range(1, 30))
    plan = await planner_of(answer)(QUERY)
    assert [goal.intent for goal in plan.goals[1:]] == [f"Do thing {n}" for n in range(1, 9)]
    assert plan.notes[0] == "only the first 8 steps were taken"


@pytest.mark.parametrize("count", [estimate_tokens, len])
async def test_the_prompt_stays_within_the_budget(count):
    """Of a request of 100 kB start and end are sent."""
    budget = count(" ") + 3000
    model = FunctionModel(lambda _: PLAN)
    query = "START " + "天气 weather " * 8000 + " END"
    plan = await ModelPlanner(model, token_budget=budget, count_tokens=count)(query)
    texts = [message.text for message in model.requests[0].messages]
    assert sum(map(count, texts)) <= budget
    assert texts[1].startswith("START")
    assert texts[1].endswith("END")
    assert len(plan.goals) == 2


def test_a_budget_without_room_is_refused():
    """The message repeats the value."""
    with pytest.raises(UsageError, match=r"token_budget=50 leaves"):
        ModelPlanner(FunctionModel(str), token_budget=50)


async def test_a_retriever_searches_for_each_step(catalogue):
    """Each step finds its tool; the model's use and its notes are in the result."""
    retriever = CascadeRetriever(planner=planner_of(PLAN))
    found = await retriever.retrieve(QUERY, catalogue)
    assert {"get_weather", "send_mail"} == {hit.definition.name for hit in found.hits[:2]}
    assert [goal.intent for goal in found.goals] == ["look up the weather forecast", "send a mail"]
    assert found.usage.requests == 1


async def test_a_function_that_fails_leaves_the_request_whole(catalogue):
    """Whatever a planner raises is a note, as with a model."""

    async def broken(query):
        raise ConnectionError("no route to the planner")

    retriever = CascadeRetriever(planner=broken)
    found = await retriever.retrieve("weather", catalogue)
    assert [hit.definition.name for hit in found.hits] == ["get_weather"]
    assert "ConnectionError: no route to the planner" in found.notes[0]


async def test_steps_that_find_nothing_leave_the_request_whole(catalogue):
    """A plan of nonsense costs its search, and the request is answered; in paper mode it is not."""
    nonsense = FunctionModel(lambda _request: '[{"intent": "zzz qqq", "inputs": {"a": "text"}}]')
    found = await CascadeRetriever(planner=ModelPlanner(nonsense)).retrieve("weather", catalogue)
    assert [hit.definition.name for hit in found.hits] == ["get_weather"]
    assert [goal.intent for goal in found.goals] == ["weather"]
    assert found.notes[0].startswith("no step of the plan found a tool")
    assert found.usage.requests == 1

    strict = CascadeRetriever(planner=ModelPlanner(nonsense), fall_back=False)
    assert not (await strict.retrieve("weather", catalogue)).hits


@pytest.mark.parametrize("plan", [None, ["mail"], [SubGoal(intent="mail")], Plan(goals=("mail",))])
async def test_what_is_no_plan_is_named(catalogue, plan):
    """The error says what a planner returns."""

    async def confused(query):
        return plan

    with pytest.raises(UsageError, match=r"gave .*; a planner is an async function"):
        await CascadeRetriever(planner=confused).retrieve("weather", catalogue)


async def test_no_more_steps_are_searched_than_can_be_shown(catalogue):
    """Ten thousand steps cost no more than a shortlist of them, and a note says so."""
    goals = tuple(SubGoal(intent=f"weather {n}") for n in range(10_000))

    async def endless(query):
        return Plan(goals=goals)

    found = await CascadeRetriever(planner=endless, shortlist=4).retrieve("weather", catalogue)
    assert found.goals == goals[:4]
    assert found.notes[0] == "of 10,000 steps the first 4 were searched: no more are shown"


STEP = '{"intent": "find flights", "inputs": {"from": "airport code"}, "output": "list of object"}'


def intents(text, **options):
    return [step.intent for step in parse_plan(text, **options)]


@pytest.mark.parametrize(
    "answer",
    [
        f"[{STEP}]",
        f"```json\n[{STEP}]\n```",
        f"Sure! Here is the plan:\n[{STEP},]\nAnything else?",
        STEP,
        f'{{"steps": [{STEP}]}}',
        f'{{"plan": {{"sub_goals": [{STEP}]}}}}',
        f"[{STEP}",  # cut off before the end
        f'[{STEP}, {{"intent": "and th',
        (
            "[{'intent': 'find flights', 'inputs': {'from': 'airport code'}, "
            "'output': 'list of object'}]"
        ),
        (
            "[{intent: 'find flights', inputs: [{name: 'from', type: 'airport code'}], "
            "output: {type: 'list of object'}}]"
        ),
        (
            '[{"Sub-Goal": "find flights", "input": ["from: airport code"], '
            '"returns": "list of object"}]'
        ),
        '[{"T_in": "(from: airport code)", "T_out": "list of object", "intent": "find flights"}]',
    ],
)
def test_sloppy_json_gives_the_same_step(answer):
    """Fences, prose, trailing commas, other quotes, other field names and cut ends are read."""
    (step,) = parse_plan(answer)
    assert step.intent == "find flights"
    assert step.inputs == (PlannedInput(name="from", type="airport code"),)
    assert step.output == "list of object"
    assert step.argument_names == ("from",)


def test_the_form_of_the_paper_is_read():
    """CoCoDA's own example (appendix H.1) has types without names."""
    answer = """[ {"T_in":"(int,float)", "T_out":"float", "intent":"cost of notebooks"},
                  {"T_in":"(list[int, int], float)", "T_out":"float", "intent":"total spend"} ]"""
    first, second = parse_plan(answer)
    assert first.inputs == (PlannedInput(type="int"), PlannedInput(type="float"))
    assert [one.type for one in second.inputs] == ["list[int, int]", "float"]
    assert (first.argument_names, first.output) == ((), "float")


@pytest.mark.parametrize(
    "answer",
    [
        "1. Find a flight\n2. **Book** it",
        "1) Find a flight\n2) Book it",
        "My plan:\n- Find a flight\n- Book it\nGood luck!",
        "Step 1: Find a flight\nStep 2: Book it",
        '["Find a flight", "Book it"]',
    ],
)
def test_plain_lists_are_read(answer):
    """A model that ignores the format often writes a list."""
    assert intents(answer) == ["Find a flight", "Book it"]


@pytest.mark.parametrize(
    "answer",
    ["", "   ", "I am sorry, I cannot do that.", "[]", "{}", "null", "42", "[1, 2, 3]", "[[[]]]",
     '{"intent": ""}', '[{"intent": "..."}]', '[{"intent": 5}]', "<<<>>>", "[" * 5000],
)  # fmt: skip
def test_an_answer_without_a_plan_is_none(answer):
    """Nothing is made up."""
    assert parse_plan(answer) == ()


def test_sizes_are_capped():
    """However much a model writes, steps, names and words stay small."""
    many = {f"argument_{number}" * 30: "x" * 500 for number in range(100)}
    step = {"intent": "long " * 1000, "inputs": many, "output": "y" * 1000}
    answer = json.dumps([step] + [{"intent": f"step {number}"} for number in range(50)])
    steps = parse_plan(answer)
    assert len(steps) == MAX_STEPS
    assert len(parse_plan(answer, limit=2)) == 2
    assert len(steps[0].intent) <= MAX_INTENT
    assert len(steps[0].inputs) == len(steps[0].argument_names[:1]) * MAX_NAMES == MAX_NAMES
    words = [word for one in steps[0].inputs for word in (one.name, one.type)]
    assert max(map(len, [*words, steps[0].output])) <= MAX_WORD


@given(
    st.one_of(
        st.text(max_size=300),
        st.lists(st.sampled_from(['{"intent":', '"a b"', "[", "]", "{", "}", ",", "1. x\n", "'"]))
        .map("".join),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda part: st.lists(part, max_size=4)
            | st.dictionaries(
                st.sampled_from(["intent", "inputs", "output", "steps", "args", "type", "x"]),
                part, max_size=4,
            ),
            max_leaves=20,
        ).map(json.dumps),
    )
)  # fmt: skip
def test_any_text_is_read_without_an_error(text):
    """Parsing never raises and keeps its bounds."""
    steps = parse_plan(text)
    assert len(steps) <= MAX_STEPS
    assert all(step.intent and len(step.intent) <= MAX_INTENT for step in steps)
    assert len({step.intent.casefold() for step in steps}) == len(steps)


@pytest.mark.parametrize("text", ["[" * 90_000, '{"a":' * 20_000, "1. " * 30_000, "- \n" * 30_000])
def test_hostile_answers_come_to_an_end(text):
    """Deep or endless answers hold no plan, or one of bounded size."""
    assert len(parse_plan(text)) <= 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=30,
)


def needing(name, text, **parameters):
    """A tool whose parameters are all required."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return ToolDefinition.from_schema(name, text, schema)


LIBRARY = Library(
    [
        needing("find_hotels", "Find hotels in a city.", city="string"),
        needing("hotel_rooms", "Rooms that are free.", hotelId="integer"),
        needing("room_price", "Price of rooms in hotels.", room="string", nights="integer"),
        needing("hotel_flag", "Whether a hotel is open.", hotelId="boolean"),
    ]
)


def names(found):
    return [hit.definition.name for hit in found.hits]


async def test_a_tool_that_takes_what_was_given_moves_up():
    """The name may be written otherwise; a value of a type that it cannot take does not count."""
    retriever = CascadeRetriever()
    assert isinstance(retriever, StepRetriever)
    before = await retriever.retrieve("hotels", LIBRARY)
    in_hand = values_in_hand([{"hotels": [{"hotel_id": 7, "name": "Ritz"}]}])
    after = await retriever.retrieve_next("hotels", LIBRARY, in_hand)
    gains = {hit.definition.name: hit.fields.get("in_hand", 0.0) for hit in after.hits}
    assert 0 < gains["hotel_rooms"] <= 0.3
    assert gains["hotel_flag"] == gains["find_hotels"] == 0.0
    assert names(after).index("hotel_rooms") <= names(before).index("hotel_rooms")
    hit = next(one for one in after.hits if one.definition.name == "hotel_rooms")
    assert "takes what earlier calls gave" in hit.reason


async def test_a_tool_gains_by_the_share_of_what_it_needs():
    """Half of what it needs is half of the weight; a name that several tools need tells less."""
    stage = [InHand(weight=0.5)]
    found = await CascadeRetriever(stages=stage).retrieve_next(
        "anything", LIBRARY, values_in_hand([{"room": "12a"}])
    )
    told = 1 - math.log(2) / math.log(5)  # of four tools one needs it
    assert [hit.definition.name for hit in found.hits] == ["room_price"]
    assert found.hits[0].score == pytest.approx(0.5 * told / 2)


WORDS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "value", "is_taken"),
    [
        ({"type": "integer"}, 7, True),
        ({"type": "number"}, 7, True),
        ({"type": "integer"}, "7", True),
        ({"type": "string"}, 7, True),
        (WORDS, "Oslo", True),
        (WORDS, ["Oslo"], True),
        ({"enum": ["km"]}, "mile", False),
        ({"enum": ["km"]}, "km", True),
        ({"type": "boolean"}, 7, False),
        ({"type": "integer"}, {"a": 1}, False),
    ],
)
async def test_a_value_is_taken_in_any_form_that_it_can_be_written_in(schema, value, is_taken):
    """A number as text, a text as a list of one; never a value of another kind, or beside an enum."""
    properties = {"properties": {"x": schema}, "required": ["x"]}
    tools = [ToolDefinition.from_schema(name, "", properties) for name in ("one", "two")]
    library = Library([*tools, *LIBRARY])
    found = await CascadeRetriever(stages=[InHand()]).retrieve_next(
        "x", library, values_in_hand([{"x": value}])
    )
    assert bool(found.hits) is is_taken


@settings(deadline=None)
@given(st.lists(json_values, max_size=4))
def test_any_results_give_few_slots(results):
    """Whatever tools return: at most 256 names, each once."""
    slots = values_in_hand(results)
    assert len({slot.name for slot in slots}) == len(slots) <= 256


def test_of_very_much_only_some_is_looked_at():
    """Wide and deep results end early."""
    deep = {"a": {}}
    for _ in range(50):
        deep = {"a": deep}
    wide = {f"field_{number}": number for number in range(10_000)}
    assert len(values_in_hand([deep, wide])) == 256


async def test_the_search_of_a_run_uses_what_its_calls_gave():
    """Asked for the same words, ``search_tools`` offers the tool that takes the result first."""

    @tool(effects=["reads"])
    def find_place(text: str) -> dict[str, str]:
        """Find a place."""
        return {"place_key": "ams"}

    fillers = [needing(f"trip_{n}", "Plan a trip.", day="string") for n in range(40)]
    wanted = needing("zz_trip", "Plan a trip.", place_key="string")
    library = Library([find_place, *fillers, wanted])
    model = ScriptedModel(
        [
            [ToolCall(call_id="1", name="find_place", arguments={"text": "Amsterdam"})],
            [ToolCall(call_id="2", name="search_tools", arguments={"query": "plan a trip"})],
            "Done.",
        ]
    )
    result = await Agent(model, library=library).run("find a place")
    (listing,) = [one.text for one in result.episode.results if one.name == "search_tools"]
    assert listing.splitlines()[1].startswith("zz_trip(")
