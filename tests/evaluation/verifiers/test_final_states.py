"""The state of the world after a run: as data, and as gold calls reach it."""

from __future__ import annotations

import math

import pytest

from agentkit import tool
from agentkit.errors import ToolFailed
from agentkit.evaluation import FinalState, GoldCall
from agentkit.evaluation.verifiers import Scene, verifier_for
from agentkit.evaluation.verifiers.state import state_differences


class Shop:
    """A world with orders; one of its tools is async, one refuses, one is broken."""

    def __init__(self):
        self.orders = {"1": {"status": "open", "items": ["book", "lamp"]}}
        self.log = []

    def tools(self):
        @tool
        def cancel(order: str) -> str:
            """Cancel an order."""
            self.orders[order]["status"] = "cancelled"
            return "done"

        @tool
        async def count() -> int:
            """Count orders."""
            return len(self.orders)

        @tool
        def refuse() -> str:
            """Refuse."""
            raise ToolFailed("we are closed")

        @tool
        def report_error() -> dict[str, str]:
            """Return an error as a value, as BFCL's tools do."""
            return {"error": "no such order"}

        return [cancel, count, refuse, report_error]

    def state(self):
        return {"orders": self.orders, "log": self.log}


CANCEL = GoldCall(name="cancel", arguments={"order": "1"})


@pytest.fixture
def judge(episode):
    """Judges an agent's world under an expectation."""

    async def verdict(expected, world, reference=None, made=None, earlier=()):
        scene = Scene(environment=world, reference=reference, earlier=tuple(earlier))
        return await verifier_for(expected, scene).verify(made or episode(answer="Done."))

    return verdict


@pytest.fixture
def cancelled():
    """A world in which the order was cancelled."""
    shop = Shop()
    shop.orders["1"]["status"] = "cancelled"
    return shop


async def test_named_parts_of_a_state_are_compared(judge, cancelled):
    """Parts that the expected state does not name are free."""
    wanted = FinalState(state={"orders": {"1": {"status": "cancelled"}}})
    assert (await judge(wanted, cancelled)).passed
    verdict = await judge(wanted, Shop())
    (finding,) = verdict.evidence
    assert (finding.kind, finding.parameter) == ("state_differs", "orders.1.status")
    assert (finding.expected, finding.actual) == ("cancelled", "open")
    assert str(finding) == "orders.1.status is 'open', expected 'cancelled'"


async def test_gold_calls_lead_to_the_right_state(judge, cancelled):
    """The reference world is changed by the gold calls, and the two worlds have to be equal."""
    assert (await judge(FinalState(calls=(CANCEL,)), cancelled, Shop())).passed
    assert not (await judge(FinalState(calls=(CANCEL,)), Shop(), Shop())).passed
    cancelled.log.append("x")
    verdict = await judge(FinalState(calls=(CANCEL,)), cancelled, Shop())
    assert [one.parameter for one in verdict.evidence] == ["log[0]"]


async def test_gold_calls_of_later_turns_go_on_in_the_same_reference(judge, cancelled):
    """The reference lives as long as the attempt."""
    reference = Shop()
    assert (await judge(FinalState(calls=(CANCEL,)), cancelled, reference)).passed
    assert (await judge(FinalState(), cancelled, reference)).passed


async def test_a_verifier_runs_gold_calls_once(episode):
    """Judging twice gives the same verdict twice."""

    class Counter(Shop):
        def tools(self):
            @tool
            def note() -> str:
                """Note."""
                self.log.append("x")
                return "noted"

            return [note]

    world, reference = Counter(), Counter()
    world.log.append("x")
    expected = FinalState(calls=(GoldCall(name="note"),))
    verifier = verifier_for(expected, Scene(environment=world, reference=reference))
    assert (await verifier.verify(episode())).passed
    assert (await verifier.verify(episode())).passed
    assert reference.log == ["x"]


async def test_responses_have_to_be_obtained(judge, episode, call, returned):
    """What gold calls return has to be among what the attempt's calls returned."""
    expected = FinalState(calls=(GoldCall(name="count"),), responses=True)
    silent = await judge(expected, Shop(), Shop(), episode(answer="1"))
    assert [(one.kind, one.tool) for one in silent.evidence] == [("response_differs", "count")]
    made = episode([call("count")], results=[returned("count", 1)])
    assert (await judge(expected, Shop(), Shop(), made)).passed
    assert (await judge(expected, Shop(), Shop(), episode(answer="1"), earlier=[made])).passed


async def test_gold_calls_may_return_errors(judge):
    """An error that is a value, or that the tool's author raises, is what the agent gets too."""
    for name in ("report_error", "refuse"):
        verdict = await judge(FinalState(calls=(GoldCall(name=name),)), Shop(), Shop())
        assert (verdict.passed, verdict.fault) == (True, None)
    assert verdict.details == {"gold_refused": ["refuse"]}


@pytest.mark.parametrize(
    "expected",
    [
        FinalState(calls=(GoldCall(name="absent"),)),
        FinalState(calls=(GoldCall(name="cancel", arguments={"order": "7"}),)),
        FinalState(calls=(GoldCall(name="cancel", arguments={"number": "1"}),)),
    ],
)
async def test_gold_that_can_not_be_run_is_a_gold_error(judge, expected):
    """An absent tool, arguments that do not fit and a tool that breaks are the reference's fault."""
    verdict = await judge(expected, Shop(), Shop())
    assert (verdict.passed, verdict.fault) == (False, "gold_error")


async def test_a_world_that_breaks_is_a_checker_error(judge):
    """A state that cannot be read is reported, and ends nothing."""

    class Broken(Shop):
        def state(self):
            raise KeyError("orders")

    verdict = await judge(FinalState(state={"orders": {}}), Broken())
    assert verdict.fault == "checker_error"
    assert "KeyError: 'orders'" in str(verdict.evidence[0])


@pytest.mark.parametrize(
    ("actual", "expected", "paths"),
    [
        (True, 1, [""]),
        (0, False, [""]),
        (1, 1.0, []),
        (math.nan, math.nan, []),
        (math.nan, 1.0, [""]),
        ("1", 1, [""]),
        ([1, 2], [2, 1], ["[0]", "[1]"]),
        ([1], [1, 2], ["[1]"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a[0].b"]),
        ({"a": 1}, {}, ["a"]),
        ({}, {"a": None}, ["a"]),
        ("abc", ["a", "b", "c"], [""]),
    ],
)
def test_differences_are_placed(actual, expected, paths):
    """Booleans are no numbers, lists are ordered, and each difference has its path."""
    assert [one.parameter for one in state_differences(actual, expected)] == paths


async def test_no_gold_calls_mean_no_change(judge, cancelled):
    """An empty list of gold calls expects the world as it was."""
    assert (await judge(FinalState(), Shop(), Shop())).passed
    assert not (await judge(FinalState(), cancelled, Shop())).passed
