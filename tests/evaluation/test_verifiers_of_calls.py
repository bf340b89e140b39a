"""Verifiers of calls, and those without a reference of their own."""

import asyncio
import math

import pytest
from support.episodes import episode_of

from agentkit import ToolDefinition
from agentkit.episodes import Episode, Evidence, RetrievalTrace, Turn, Verdict
from agentkit.evaluation import AllowedCalls, AnyCall, ExactCalls, GoldCall, NoCall, TextAnswer
from agentkit.evaluation.verifiers import AllOf, Scene, guarded, verifier_for
from agentkit.messages import AssistantMessage, ToolFailure
from agentkit.metrics import AllowedCall

LAMP = ToolDefinition.from_schema(
    "set_lamp",
    "Switch a lamp.",
    {
        "type": "object",
        "properties": {
            "room": {"type": "string"},
            "state": {"type": "string", "enum": ["on", "off"], "default": "on"},
            "level": {"type": "integer"},
        },
        "required": ["room"],
    },
)
TIDE = ToolDefinition.from_schema(
    "tide_table",
    "High water.",
    {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]},
)
SCENE = Scene(definitions=(LAMP, TIDE))
KITCHEN = AllowedCall(name="set_lamp", allowed={"room": ["kitchen"], "state": ["off", ""]})
AKER = AllowedCall(name="tide_table", allowed={"harbour": ["Aker"]})


@pytest.fixture
def judge():
    """Judges an episode under an expectation."""

    async def verdict(expectation, episode, scene=SCENE):
        return await verifier_for(expectation, scene).verify(episode)

    return verdict


async def test_allowed_values_in_any_order_and_turn_pass(judge, episode, call):
    """The calls of all turns are judged together, in whatever order they were made."""
    made = episode([call("tide_table", harbour="aker")], [call("set_lamp", room="Kitchen")])
    verdict = await judge(AllowedCalls(calls=(KITCHEN, AKER)), made)
    assert (verdict.passed, verdict.score, verdict.evidence) == (True, 1.0, ())
    assert verdict.verifier == "allowed_calls"


async def test_a_wrong_value_is_placed(judge, episode, call):
    """A finding names turn, call, tool and argument, also when a model uses an id twice."""
    made = episode(
        [call("tide_table", "a", harbour="Aker")],
        [call("set_lamp", "a", room="kitchen", state="on")],
    )
    verdict = await judge(AllowedCalls(calls=(KITCHEN, AKER)), made)
    (finding,) = verdict.evidence
    assert (finding.kind, finding.turn, finding.call_id) == ("wrong_value", 1, "a")
    assert (finding.tool, finding.parameter, finding.actual) == ("set_lamp", "state", "on")
    assert verdict.score == 0.5
    assert verdict.metrics["right_tools"] == 1.0


@pytest.mark.parametrize("expects", [AllowedCalls(calls=()), ExactCalls(calls=()), NoCall()])
async def test_empty_gold_means_no_call(judge, episode, call, expects):
    """Without gold calls the right answer is words, and one call is one too many."""
    assert (await judge(expects, episode(answer="I cannot."))).passed
    verdict = await judge(expects, episode([call("set_lamp", room="x")]))
    assert (verdict.passed, verdict.score) == (False, 0.0)
    assert verdict.evidence[0].kind == "unexpected_call"
    assert (verdict.evidence[0].turn, verdict.evidence[0].call_id) == (0, "set_lamp")


@pytest.mark.parametrize("expects", [AllowedCalls(calls=()), ExactCalls(calls=()), NoCall()])
@pytest.mark.parametrize("reason", ["error", "cancelled"])
async def test_a_run_that_broke_off_is_no_abstention(judge, episode, expects, reason):
    """A model that cannot be reached is not credited with having called nothing."""
    verdict = await judge(expects, episode(stop_reason=reason, error="no connection"))
    assert (verdict.passed, verdict.score) == (False, 0.0)
    assert verdict.evidence[0].kind == "missing_answer"
    assert "no connection" in str(verdict.evidence[0])


async def test_equal_under_the_schema_is_exact(judge, episode, call):
    """Order, a number as text and a default left out make no difference."""
    gold = GoldCall(name="set_lamp", arguments={"room": "hall", "state": "on", "level": 3})
    made = episode([call("set_lamp", level="3", room="hall")])
    assert (await judge(ExactCalls(calls=(gold,)), made)).passed
    other = episode([call("set_lamp", level=True, room="hall")])
    assert not (await judge(ExactCalls(calls=(gold,)), other)).passed


async def test_differences_of_exact_calls_are_told_apart(judge, episode, call):
    """An argument may be missing, unexpected, of a wrong type or of a wrong value."""
    gold = GoldCall(name="set_lamp", arguments={"room": "hall", "level": 3})
    made = episode([call("set_lamp", room="attic", level="high")])
    found = (await judge(ExactCalls(calls=(gold,)), made)).evidence
    assert [(one.kind, one.parameter) for one in found] == [
        ("wrong_type", "level"),
        ("wrong_value", "room"),
    ]
    made = episode([call("set_lamp", level=3, colour="red")])
    found = (await judge(ExactCalls(calls=(gold,)), made)).evidence
    assert [(one.kind, one.parameter) for one in found] == [
        ("missing_argument", "room"),
        ("unexpected_argument", "colour"),
    ]
    assert found[0].expected == "hall"


async def test_left_over_calls_are_paired_for_the_fewest_differences(judge, episode, call):
    """Evidence is about the nearest calls, not about those that happen to stand side by side."""
    gold = tuple(
        GoldCall(name="set_lamp", arguments={"room": room, "level": level})
        for room, level in [("hall", 1), ("attic", 2)]
    )
    made = episode(
        [call("set_lamp", "a", room="attic", level=3), call("set_lamp", "b", room="hall", level=4)]
    )
    found = (await judge(ExactCalls(calls=gold), made)).evidence
    assert [(one.call_id, one.parameter, one.expected) for one in found] == [
        ("b", "level", 1),
        ("a", "level", 2),
    ]


async def test_another_tool_is_a_wrong_tool(judge, episode, call):
    """A call in the place of a gold call is a wrong tool, not one missing and one too many."""
    gold = GoldCall(name="set_lamp", arguments={"room": "hall"})
    made = episode([call("tide_table", harbour="Aker")])
    found = (await judge(ExactCalls(calls=(gold,)), made)).evidence
    assert [(one.kind, one.tool, one.actual) for one in found] == [
        ("wrong_tool", "set_lamp", "tide_table")
    ]


@pytest.mark.parametrize(
    "expects",
    [
        AllowedCalls(calls=(AKER,)),
        ExactCalls(calls=(GoldCall(name="tide_table", arguments={"harbour": "Aker"}),)),
        AnyCall(),
    ],
)
async def test_unreadable_arguments_fail_with_the_reason(judge, episode, call, expects):
    """A call whose arguments are not a JSON object is a finding of its own."""
    verdict = await judge(expects, episode([call("tide_table", malformed='{"harbour": ')]))
    assert [one.kind for one in verdict.evidence] == ["malformed_arguments"]
    assert (verdict.evidence[0].turn, verdict.evidence[0].tool) == (0, "tide_table")


@pytest.mark.parametrize(
    "gold",
    [
        AllowedCalls(calls=(AllowedCall(name="absent", allowed={}),)),
        AllowedCalls(calls=(AllowedCall(name="tide_table", allowed={"harbour": "Aker"}),)),
        AllowedCalls(calls=(AllowedCall(name="tide_table", allowed={"harbour": []}),)),
        AllowedCalls(calls=(AllowedCall(name="tide_table", allowed={"harbour": 3}),)),
        AllowedCalls(calls=(AllowedCall(name="tide_table", allowed=None),)),
        ExactCalls(calls=(GoldCall(name="absent"),)),
    ],
)
async def test_broken_gold_is_a_gold_error(judge, episode, call, gold):
    """What cannot be right is a verdict with a reason, and says nothing about the agent."""
    for made in (episode(answer="No."), episode([call("tide_table", harbour="Aker")])):
        verdict = await judge(gold, made)
        assert (verdict.passed, verdict.fault) == (False, "gold_error")
        assert verdict.evidence[0].kind == "gold_error"
        assert str(verdict.evidence[0])


async def test_searches_for_tools_are_no_calls(judge, call):
    """Asking for more tools is part of how they are offered, not of what is done with them."""
    search = call("search_tools", query="lamps")
    trace = RetrievalTrace(query="lamps", shortlist=(), offered=())
    made = Episode(
        episode_id="1",
        request="",
        turns=(Turn(message=AssistantMessage(tool_calls=(search,)), searches=(trace,)),),
        output="There is none.",
    )
    assert (await judge(NoCall(), made)).passed
    assert not (await judge(AnyCall(), made)).passed
    assert (await judge(ExactCalls(calls=()), made)).passed


@pytest.mark.parametrize(
    "expectation",
    [
        ExactCalls(calls=(GoldCall(name="tide_table", arguments={"harbour": "Aker"}),)),
        AllowedCalls(calls=(AKER,)),
        AnyCall(),
    ],
    ids=["exact", "allowed", "any"],
)
async def test_a_gold_call_that_a_learned_rule_refused_does_not_count(judge, expectation):
    """A rule that locks a tool loses its tasks; a call refused for another reason still counts."""

    def refused(cause):
        failure = ToolFailure(kind="contract_violated", rule="call wipe first", cause=cause)
        return episode_of(("tide_table", {"harbour": "Aker"}, failure))

    locked = await judge(expectation, refused("call_before"))
    assert (locked.passed, locked.score) == (False, 0.0)
    assert (await judge(expectation, refused(None))).passed


@pytest.mark.parametrize("expects", [AllowedCalls, ExactCalls])
async def test_more_or_fewer_calls_fail(judge, episode, call, expects):
    """A missing and an unexpected call are findings, and the score is the share of right calls."""
    lamp = call("set_lamp", room="kitchen")
    gold = {
        AllowedCalls: KITCHEN,
        ExactCalls: GoldCall(name="set_lamp", arguments={"room": "kitchen", "state": "on"}),
    }[expects]
    none = await judge(expects(calls=(gold,)), episode(answer="Done."))
    assert [(one.kind, one.tool) for one in none.evidence] == [("missing_call", "set_lamp")]
    assert none.score == 0
    twice = await judge(expects(calls=(gold,)), episode([lamp, call("tide_table", harbour="x")]))
    assert [(one.kind, one.tool) for one in twice.evidence] == [("unexpected_call", "tide_table")]
    assert twice.score == 0.5


async def test_any_call_needs_one_call(judge, episode, call):
    """Whatever is called will do, and nothing will not."""
    assert (await judge(AnyCall(), episode([call("set_lamp", room=1)]))).passed
    assert (await judge(AnyCall(), episode(answer="No."))).evidence[0].kind == "missing_call"


class Says:
    """A verifier that gives what it is told to."""

    def __init__(self, verdict):
        self._verdict = verdict

    async def verify(self, episode):
        if isinstance(self._verdict, BaseException):
            raise self._verdict
        return self._verdict


PASS = Verdict(passed=True, score=1.0, metrics={"x": 1.0})
FAIL = Verdict(passed=False, score=0.5, evidence=(Evidence(kind="other", message="No."),))
GOLD = Verdict(
    passed=False, fault="gold_error", evidence=(Evidence(kind="gold_error", message="?"),)
)
BREAKS = RuntimeError("boom")


@pytest.mark.parametrize(
    ("answer", "expected", "passes"),
    [
        (" Oslo\n", TextAnswer(text="oslo"), True),
        ("In Oslo.", TextAnswer(text="oslo"), False),
        ("In Oslo.", TextAnswer(text="oslo", match="contains"), True),
        ("stra\u00dfe", TextAnswer(text="STRASSE"), True),
        ("cafe\u0301", TextAnswer(text="caf\u00e9"), True),
        ("\u041eslo", TextAnswer(text="Oslo"), False),
        ({"city": "Oslo"}, TextAnswer(text='"oslo"', match="contains"), True),
        (5, TextAnswer(text="5"), True),
    ],
)
async def test_text_answers(episode, answer, expected, passes):
    """Case, surrounding space and forms of one letter do not count; look-alikes do."""
    verdict = await verifier_for(expected, Scene()).verify(episode(answer=answer))
    assert verdict.passed is passes
    if not passes:
        assert (verdict.evidence[0].kind, verdict.evidence[0].turn) == ("wrong_answer", 0)


async def test_no_text_is_missing(episode):
    """Without a final answer there is nothing to compare."""
    verdict = await verifier_for(TextAnswer(text="x"), Scene()).verify(
        episode(stop_reason="step_limit")
    )
    assert verdict.evidence[0].kind == "missing_answer"
    assert "step_limit" in str(verdict.evidence[0])


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (BREAKS, "RuntimeError: boom"),
        (SystemError(), "SystemError"),
        (TimeoutError("late"), "TimeoutError: late"),
        (None, "not a Verdict"),
        (True, "not a Verdict"),
        (Verdict(passed=True, score=math.nan), "the score nan"),
        (Verdict(passed=True, score=1.5), "the score 1.5"),
    ],
)
async def test_a_guarded_verifier_never_raises(episode, verdict, told):
    """What it raises, and what is no verdict, is a checker error with type and text."""
    result = await guarded(Says(verdict)).verify(episode())
    assert (result.passed, result.fault, result.verifier) == (False, "checker_error", "Says")
    assert told in str(result.evidence[0])


async def test_cancellation_passes_through_the_guard(episode):
    """Ctrl-C is no verdict."""
    with pytest.raises(asyncio.CancelledError):
        await guarded(Says(asyncio.CancelledError())).verify(episode())


async def test_a_fault_never_passes(episode):
    """A verdict with a fault says nothing, so it does not say that the agent passed."""
    verdict = await guarded(Says(Verdict(passed=True, score=1.0, fault="gold_error"))).verify(
        episode()
    )
    assert not verdict.passed


@pytest.mark.parametrize(
    ("parts", "passed", "score", "fault"),
    [
        ([PASS, PASS], True, 1.0, None),
        ([PASS, FAIL], False, 0.75, None),
        ([FAIL, GOLD], False, 0.25, "gold_error"),
        ([BREAKS, PASS], False, 0.5, "checker_error"),
        ([BREAKS, GOLD], False, 0.0, "gold_error"),
    ],
)
async def test_all_parts_have_to_pass(episode, parts, passed, score, fault):
    """A fault of a part is a fault of the whole."""
    verdict = await AllOf(Says(part) for part in parts).verify(episode())
    assert (verdict.passed, verdict.score, verdict.fault) == (passed, score, fault)
    assert bool(verdict.evidence) is not passed
    assert len(verdict.details["parts"]) == len(parts)
