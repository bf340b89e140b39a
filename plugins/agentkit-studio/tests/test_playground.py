"""Talking to the project's agent in the browser, and calls that wait for a person."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture
def say(csrf):
    """Says something, and gives the records that come back."""

    def send(client, text, path="say", **form):
        headers = {"x-csrf": csrf(client)}
        answer = client.post(
            f"/playground/{path}", data={"text": text, "session": "a", **form}, headers=headers
        )
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    return send


def kinds(records):
    """What happened, in order."""
    return [record["kind"] for record in records]


def test_calls_results_and_text_come_as_they_happen(studio, say, store):
    """The end names version, tokens and the episode, which is the user's."""
    records = say(studio(), "loan")
    assert kinds(records)[:3] == ["offered", "call", "result"]
    assert records[0]["text"] == "all 2 tools: loan_offer, sell_car"
    assert kinds(records)[-1] == "end"
    assert records[1]["text"] == "loan_offer(amount=9000, periods=36)"
    text = "".join(one["text"] for one in records if one["kind"] == "text")
    assert text == "It says: 250.0"
    episode = store.get(records[-1]["run"])
    assert (episode.session_id, episode.metadata["user"]) == ("studio/olga/a", "olga")


def test_a_version_and_a_model_can_be_chosen(studio, say, act, manager, proposal_id):
    """The agent is pinned; the newest has what was approved."""
    client = studio()
    act(client, "approve")
    newest = say(client, "hi")[-1]["version"]
    manager.refresh()
    assert newest == manager.library.version > 1
    assert say(client, "hi", session="b", version="1")[-1]["version"] == 1
    page = client.get("/playground?compare=1").text
    assert page.count('class="chat"') == 2
    assert f"<option>{newest}</option>" in page


def test_no_slash_reaches_the_conversation_of_another(studio, say, store):
    """The name of a user whom a proxy names may hold one, and so may what a form says."""
    end = say(studio(), "hi", session="b/c")[-1]
    assert store.get(end["run"]).session_id == "studio/olga/b-c"


def test_a_factory_that_gives_no_agent_is_told(studio, post):
    """In words, on the page."""
    client = studio()
    object.__setattr__(client.app.state.studio, "agents", lambda *_: None)
    answer = post(client, "/playground/say", text="hi")
    assert (answer.status_code, "agents gave no Agent: None" in answer.text) == (409, True)


def test_only_named_models_are_asked(studio, say, store, post):
    """A model's name may hold an address, and a provider's key would go there."""
    client = studio()
    records = say(client, "hi", model="other")
    assert store.get(records[-1]["run"]).model == "other"
    elsewhere = "openai-compatible:m@http://127.0.0.1:9"
    refused = post(client, "/playground/say", text="hi", model=elsewhere)
    assert refused.status_code == 400
    assert "asks no model" in refused.text


def test_a_failing_model_is_told_as_a_line(studio, say):
    """The page goes on."""
    records = say(studio(), "fail")
    assert kinds(records)[-1] == "error"
    assert "the model is away" in records[-1]["text"]


def test_a_waiting_call_is_decided_in_the_conversation(studio, say):
    """Approved, it runs; a second decision changes nothing."""
    client = studio()
    waits = say(client, "sell C-1")[-1]
    assert waits["waits"] == ['sell_car(number="C-1")']
    decided = say(client, "", path="decide", run=waits["run"], decision="approve")
    assert "C-1 is sold" in [one.get("text") for one in decided]
    again = say(client, "", path="decide", run=waits["run"], decision="approve")
    assert kinds(again) == ["error"]


def test_another_users_run_is_out_of_reach(studio, say, post):
    """Its id is not enough."""
    waits = say(studio("olga"), "sell C-1")[-1]
    other = studio("rita", roles={"rita": "operator"})
    answer = post(other, "/playground/decide", run=waits["run"], decision="approve")
    assert answer.status_code == 404
    assert "not one of yours" in answer.text


def test_talking_takes_an_operator_and_an_agent(studio, post):
    """The page says which of the two is missing."""
    assert "takes an operator" in studio("rita").get("/playground").text
    alone = studio("olga", has_agent=False)
    assert "agentkit studio --tools" in alone.get("/playground").text
    assert post(alone, "/playground/say", text="hi").status_code == 409


@pytest.mark.parametrize("text", ["", "x" * 20_001])
def test_a_message_has_bounds(studio, text, post):
    """An empty or an endless one begins no run."""
    assert post(studio(), "/playground/say", text=text).status_code == 400


@pytest.mark.parametrize("version", ["x", "-1", "1.0", "٣"])
def test_a_version_is_a_number_or_nothing(studio, version, post):
    """What is none is not read as the newest."""
    client = studio()
    for asked, status in ((version, 400), ("99", 404)):
        answer = post(client, "/playground/say", text="hi", version=asked)
        assert answer.status_code == status


@pytest.mark.parametrize(("decision", "last"), [("approve", "C-9 is sold"), ("reject", "too late")])
def test_the_queue_lists_and_decides(studio, say, store, decision, last, post):
    """A run of anybody goes on with the decision of an operator, and leaves the queue."""
    waits = say(studio("rita", roles={"rita": "operator"}), "sell C-9")[-1]
    client = studio("olga")
    page = client.get("/calls").text
    assert "sell_car(number=&#34;C-9&#34;)" in page
    for said in ({}, {"decision": "maybe"}):
        assert post(client, f"/calls/{waits['run']}", **said).status_code == 400
    decided = (client, f"/calls/{waits['run']}")
    form = {"decision": decision, "reason": "too late"}
    assert last in post(*decided, **form).text
    assert "No call waits." in client.get("/calls").text
    assert post(*decided, **form).status_code == 409


@pytest.mark.parametrize("kind", ["urlencoded", "multipart"])
@pytest.mark.parametrize("said", [["reject", "approve"], ["approve", "reject"], ["approve"] * 2])
def test_a_form_that_says_a_thing_twice_decides_nothing(studio, say, csrf, said, kind):
    """Of two decisions neither counts, on both pages that take them; the run waits on."""
    client = studio()
    run = say(client, "sell C-9")[-1]["run"]
    for address, named in ((f"/calls/{run}", {}), ("/playground/decide", {"run": run})):
        form = {"csrf": csrf(client), **named}
        fields = [*form.items(), *(("decision", one) for one in said)]
        if kind == "multipart":
            answer = client.post(address, files=[(name, (None, text)) for name, text in fields])
        else:
            answer = client.post(address, data={**form, "decision": said})
        assert (answer.status_code, "sent twice" in answer.text) == (400, True)
    assert "sell_car" in client.get("/calls").text


def test_the_queue_needs_an_operator(studio, say, post):
    """Others see what waits."""
    waits = say(studio("olga"), "sell C-9")[-1]
    client = studio("rita")
    assert "C-9" in client.get("/calls").text
    assert post(client, f"/calls/{waits['run']}", decision="approve").status_code == 403


def test_a_long_call_is_cut_and_says_so(studio, say):
    """Its arguments do not make a page of megabytes, in the queue or in the conversation."""
    client = studio()
    waits = say(client, "sell " + "C" * 19_970)[-1]["waits"]
    assert "(cut;" not in waits[0]
    waits = say(client, "sell " + "C" * 19_990, session="b")[-1]["waits"]
    assert waits[0].endswith("has its 20,009 characters)")
    page = client.get("/calls").text
    assert "has its 20,009 characters" in page
    (whole,) = re.findall(r'href="([^"]+/whole)"', page)
    assert "C" * 19_990 in client.get(whole).text
    assert ">Approve</button>" in page
    assert ">Approve</button>" not in studio(read_only=True).get("/calls").text
