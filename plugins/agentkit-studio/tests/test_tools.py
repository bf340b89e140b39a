"""The tools in the browser: found with reasons, compared by version, pinned by operators."""

from __future__ import annotations

import pytest

from agentkit.evolution import ToolManager
from agentkit.testing import primitive_library


@pytest.fixture
def composite(store):
    """A library with a composite in it."""
    manager = ToolManager(store, tools=primitive_library())
    manager.register(primitive_library(), reason="the warm library")
    manager.insert(
        '''
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
'''
    )


def test_tools_are_listed_with_their_cost(studio):
    """A line each, with tokens and the sentence that models read."""
    page = studio().get("/tools").text
    assert "loan_offer" in page
    assert "Calculate the monthly instalment of a car loan." in page
    assert "tokens</span>" in page


def test_a_request_ranks_and_says_why(studio, composite):
    """The retriever's own reasons and the parts of each score."""
    page = studio().get("/tools", params={"q": "monthly instalment of a loan"}).text
    assert page.index("loan_offer") < page.index("lexical")
    assert "shares" in page
    assert "offered" in page


def test_what_nobody_can_find_is_told(studio):
    """The request stays in its field, as text."""
    page = studio().get("/tools", params={"q": "zzzz <b>"}).text
    assert "No tool matches." in page
    assert "zzzz &lt;b&gt;" in page


def test_one_tool_shows_card_schema_and_findings(studio):
    """What a model sees in a list, and in full."""
    page = studio().get("/tools/loan_offer").text
    assert "loan_offer(amount: number, periods: integer)" in page
    assert "&#34;periods&#34;: {" in page
    assert "What the doctor finds" in page


def test_two_versions_are_compared(studio, act, proposal_id):
    """The last two by default, or those that are chosen."""
    client = studio()
    act(client, "approve")
    page = client.get("/tools/loan_offer").text
    assert "<ins>periods must be one of 24, 36, 48.</ins>" in page
    back = client.get("/tools/loan_offer", params={"old": "2", "new": "1"}).text
    assert "<del>periods must be one of 24, 36, 48.</del>" in back


def test_composites_are_walked(studio, composite):
    """Each neighbour is a link."""
    client = studio()
    page = client.get("/tools/order_total").text
    assert 'href="/tools/mul"' in page
    assert 'href="/tools/order_total"' in client.get("/tools/mul").text


def test_an_operator_pins_and_takes_the_pin_off(studio, csrf, act, manager, proposal_id):
    """As ``agentkit rollback --pin`` does."""
    client = studio()
    act(client, "approve")
    form = {"csrf": csrf(client), "version": "1", "reason": "wait"}
    page = client.post("/tools/loan_offer/pin", data=form).text
    assert "loan_offer is pinned to version 1" in page
    manager.refresh()
    assert "one of 24" not in manager.served["loan_offer"].definition.text
    client.post("/tools/loan_offer/pin", data={"csrf": csrf(client)})
    manager.refresh()
    assert manager.ledger.pins == {}
    refused = studio("rita").post("/tools/loan_offer/pin", data=form)
    assert refused.status_code == 403


def test_a_tool_that_never_was_is_told(studio):
    """With its name."""
    answer = studio().get("/tools/nobody")
    assert answer.status_code == 409
    assert "no tool is called &#39;nobody&#39;" in answer.text
