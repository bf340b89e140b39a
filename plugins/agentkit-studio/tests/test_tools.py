"""The tools in the browser: found with reasons, compared by version, pinned by operators."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from agentkit import Library, ToolDefinition, tool
from agentkit.cli.main import main
from agentkit.episodes import Evidence, Verdict
from agentkit.errors import ModelError
from agentkit.evaluation.doctor.catalogue import KINDS
from agentkit.evolution import ToolManager
from agentkit.evolution.observers import judged
from agentkit.retrieval.retriever import Hit, Retrieval
from agentkit.testing import primitive_library
from agentkit.tools.definition import Description, Origin
from agentkit_studio.figures import graph_around

from .conftest import studio_of


@pytest.fixture
def composite(store):
    """A library with a composite in it."""
    manager = ToolManager(store, tools=primitive_library())
    manager.register(primitive_library(), reason="the primitives")
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


def test_the_projects_own_retriever_ranks(store):
    """Its order and its reasons, as the project's agents have them."""

    class Own:
        """Finds every tool."""

        async def retrieve(self, query, library):
            hits = tuple(
                Hit(definition=one, score=0.5, reason="the project says so")
                for one in library.definitions
            )
            return Retrieval(query=query, hits=hits, offered=(), cards="", tokens=0)

    app = studio_of(store, retriever=Own())
    page = TestClient(app).get("/tools", params={"q": "x"}, headers={"x-user": "ann"}).text
    assert "the project says so" in page


def test_a_search_is_ready_when_the_studio_listens(store):
    """The index is made at the start, and episodes are counted; a retriever that fails is logged."""

    class Own:
        """Counts requests, and fails once."""

        asked = 0

        async def retrieve(self, query, library):
            self.asked += 1
            if self.asked == 1:
                raise ModelError("the planner is away")
            return Retrieval(query=query, hits=(), offered=(), cards="", tokens=0)

    own = Own()
    app = studio_of(store, retriever=own)
    with TestClient(app) as client:
        assert own.asked == 1
        page = client.get("/tools", params={"q": "x"}, headers={"x-user": "ann"})
        assert page.status_code == 200
        assert client.get("/health", headers={"x-user": "ann"}).status_code == 200
    assert app.state.studio.health.counted == 24


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
    assert "<ins>\nperiods must be one of 24, 36, 48.</ins>" in page
    back = client.get("/tools/loan_offer", params={"old": "2", "new": "1"}).text
    assert "<del>\nperiods must be one of 24, 36, 48.</del>" in back
    for strange, status in (("9", 404), ("x", 400), ("-1", 400)):
        answer = client.get("/tools/loan_offer", params={"old": strange, "new": "1"})
        assert answer.status_code == status


def test_composites_are_walked(studio, composite):
    """Each neighbour is a link."""
    client = studio()
    page = client.get("/tools/order_total").text
    assert 'href="/tools/mul"' in page
    assert 'href="/tools/order_total"' in client.get("/tools/mul").text


def test_an_operator_pins_and_takes_the_pin_off(studio, act, manager, proposal_id, post):
    """As ``agentkit rollback --pin`` does."""
    client = studio()
    act(client, "approve")
    page = post(client, "/tools/loan_offer/pin", version="1", reason="wait").text
    assert "loan_offer is pinned to version 1" in page
    manager.refresh()
    assert "one of 24" not in manager.served["loan_offer"].definition.text
    for strange in ("", "x", "-1"):
        answer = post(client, "/tools/loan_offer/pin", version=strange, reason="wait")
        assert answer.status_code == 400
        manager.refresh()
        assert manager.ledger.pins == {"loan_offer": 1}
    assert post(client, "/tools/loan_offer/pin", version="99").status_code == 404
    post(client, "/tools/loan_offer/pin", off="1")
    manager.refresh()
    assert manager.ledger.pins == {}
    assert post(studio("rita"), "/tools/loan_offer/pin", version="1").status_code == 403


def test_a_tool_that_never_was_is_told(studio):
    """With its name."""
    answer = studio().get("/tools/nobody")
    assert answer.status_code == 404
    assert "No tool is called &#39;nobody&#39;" in answer.text


@tool
def find_cars(make: str) -> list[str]:
    """Find <b>used</b> cars\u200b on the lot.

    Args:
        make: The <i>maker</i>.
    """
    return [make]


@pytest.fixture
def unclean(store):
    """A library with a tool whose texts hold markup and something invisible."""
    ToolManager(store).register([find_cars.definition])


def test_findings_are_listed_by_kind(studio, unclean):
    """The worst first, each with its tool, and with all of a kind on a page of its own."""
    client = studio("vera")
    page = client.get("/findings").text
    assert page.index("Invisible characters") < page.index("HTML in texts")
    assert 'href="/tools/find_cars"' in page
    assert "Propose to mend it" not in page  # a viewer proposes nothing
    assert "HTML in texts" not in client.get("/findings", params={"kind": "invisible"}).text
    assert client.get("/findings", params={"kind": "<b>"}).status_code == 404


@pytest.mark.parametrize(
    ("code", "summary"),
    [
        ("markup", "Find used cars\u200b on the lot."),
        ("invisible", "Find <b>used</b> cars on the lot."),
    ],
)
def test_one_click_proposes_what_mends_a_finding(studio, unclean, code, summary, proposals, post):
    """As a proposal of the person, which goes through the checks as any other."""
    client = studio("rita")
    page = post(client, "/tools/find_cars/mend", code=code)
    assert page.url.path.startswith("/inbox/person-")
    [record] = proposals().values()
    assert (record.author.kind, record.author.name) == ("person", "rita")
    assert record.candidate.description.summary == summary
    assert "the doctor found" in record.reason
    assert post(client, "/tools/find_cars/mend", code="no_description").status_code == 400


SENTENCE = "It takes what there is and gives what comes of it. "
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("code", "summary", "field", "opens_with"),
    [
        ("no_description", "", "summary", ""),
        ("echo_description", "Ship an order.", "summary", "Ship an order."),
        ("placeholder", "TODO", "summary", ""),
        ("long_description", SENTENCE * 30, "summary", (SENTENCE * 20).strip()),
        ("says_broken", "Deprecated: ships an order.", "summary", "Deprecated: ships an order."),
        ("no_parameter_text", "Sends what was bought.", "address", ""),
    ],
)
def test_a_finding_that_takes_words_opens_the_form(
    studio, manager, code, summary, field, opens_with, proposals, post
):
    """At the text that it is about, with what it suggests and why."""
    schema = {"properties": {"address": ADDRESS}}
    manager.register([ToolDefinition.from_schema("ship_order", summary, schema)])
    client = studio("rita")
    listed = client.get("/findings", params={"kind": code}).text
    link = f"/tools/ship_order?write={field}&amp;finding={code}#write"
    assert link in listed
    assert link not in studio("vera").get("/findings", params={"kind": code}).text
    page = client.get(link.replace("&amp;", "&")).text
    assert '<details class="write" id="write" open>' in page
    assert f'<option value="{field}" data-text' in page
    assert re.search(rf'<option value="{field}"[^>]* selected>', page)
    assert f"autofocus>{opens_with}</textarea>" in page
    assert f"the doctor found {KINDS[code].title}" in page
    form = {"field": "address.city", "text": "Where it goes.\r\n\r\n A town. "}
    assert "proposed" in post(client, "/tools/ship_order/suggest", **form).text
    [record] = proposals().values()
    assert record.candidate.description.parameters == {"address.city": "Where it goes.\n\nA town."}


def test_instructions_are_shown_and_changed_like_tools(studio, manager, proposals, post):
    """They keep their lines; they are no tools, so that the doctor says nothing of them."""
    words = Description(summary="You help customers.\n\nBe short.")
    origin = Origin(kind="instructions")
    name = "instructions/support"
    manager.register([ToolDefinition(name=name, description=words, origin=origin)])
    client = studio("rita")
    assert name in client.get("/tools").text
    page = client.get("/tools/instructions/support").text
    assert "You help customers.\n\nBe short." in page
    assert "untyped" not in page
    text = "You help customers.\r\n\r\nBe short and kind."
    form = {"field": "summary", "text": text}
    assert "<ins>" in post(client, "/tools/instructions/support/suggest", **form).text
    [record] = proposals().values()
    assert record.candidate.description.summary == text.replace("\r", "")


def test_a_person_proposes_a_text(studio, proposals, post):
    """Of the tool or of a parameter; one that says the same, or nothing, is refused."""
    client = studio("rita")
    form = {"field": "amount", "text": "Sum of the  loan in euros."}
    page = post(client, "/tools/loan_offer/suggest", **form)
    assert "<ins>" in page.text
    [record] = proposals().values()
    assert record.candidate.description.parameters["amount"] == "Sum of the loan in euros."
    empty = [
        {"field": field, "text": text} for field in ("amount", "summary") for text in ("", " \n")
    ]
    for strange in ({"field": "price"}, {"field": "amount", "text": "Sum of the loan."}, *empty):
        answer = post(client, "/tools/loan_offer/suggest", **form | strange)
        assert answer.status_code == 400
    assert post(studio("vera"), "/tools/loan_offer/suggest", **form).status_code == 403


def later_calls(store, wrong, right, prefix="9"):
    """Conversations with library version 2, some with a call that the tool refused."""
    kept = next(one for one in store.select() if one.results[0].status == "failed")
    taken = next(one for one in store.select() if one.results[0].status == "ok")
    for at in range(wrong + right):
        one = kept if at < wrong else taken
        name = f"{prefix}{at:015x}"
        store.append(replace(one, episode_id=name, library_version=2, session_id=None))


def test_pages_and_review_tell_the_same_worth(studio, act, store, proposal_id, tmp_path):
    """Of calls before and after, and of verdicts that were given later."""
    client = studio()
    act(client, "approve")
    assert "no traffic to tell yet" in client.get("/tools/loan_offer").text
    later_calls(store, 2, 6, prefix="f")
    judge = Evidence(kind="wrong_value", message="", tool="loan_offer", parameter="periods")
    right = store.get(f"f{7:015x}")
    store.append(judged(right, Verdict(passed=False, evidence=(judge,))))
    shown = CliRunner().invoke(
        main,
        ["review", "show", proposal_id, "--json", "--store", f"sqlite:///{tmp_path}/library.db"],
    )
    worth = json.loads(shown.stdout)["worth"]
    told = [worth[name] for name in ("control_wrong", "control", "later_wrong", "later")]
    assert told == [12, 24, 3, 8]
    for page in ("/tools/loan_offer", f"/inbox/{proposal_id}"):
        text = client.get(page).text
        assert "3 of 8" in text
        assert "12 of 24" in text
        assert f"{100 * worth['gain']['value']:+.1f}" in text


def test_a_change_that_is_promoted_while_one_looks_has_its_earlier_traffic(
    studio, act, store, proposal_id
):
    """Calls are kept of changed tools alone, and read again for a tool that changes now."""
    client = studio()
    client.get("/health")
    later_calls(store, 1, 3)
    judge = Evidence(kind="wrong_value", message="", tool="loan_offer", parameter="periods")
    right = store.get(f"9{3:015x}")
    store.append(judged(right, Verdict(passed=False, evidence=(judge,))))
    client.get("/health")
    act(client, "approve")
    text = client.get("/tools/loan_offer").text
    assert "2 of 4" in text
    assert "12 of 24" in text


def test_the_picture_of_composites_is_bounded(composite, manager):
    """Sixty boxes at most, whatever there is, and those that are missing are marked."""
    one = manager.refresh()["order_total"].definition
    library = Library([replace(one, name=f"order_{number:03}") for number in range(80)])
    graph = graph_around(library, "add")
    assert len(graph.boxes) == 60
    assert graph.is_cut
    assert [box.kind for box in graph.boxes if box.name == "add"] == ["missing"]
    assert graph_around(library, "nobody").boxes == ()
