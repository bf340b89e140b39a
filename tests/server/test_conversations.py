"""Conversations on a server: sessions, calls that wait, approvals, and what users say of answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import httpx
import pytest
from support.app_stage import ended
from support.unreliable_store import UnreliableStore

from agentkit import Agent, Episode, Library, Rewrite, Tool, guardrail, open_store, tool
from agentkit.agent import pending_approvals
from agentkit.agent.session import happened
from agentkit.episodes import Verdict
from agentkit.episodes.labels import as_imported, with_late_verdicts
from agentkit.errors import UsageError
from agentkit.evolution.learning import feedback_on
from agentkit.evolution.observers import judged
from agentkit.evolution.proposers.observed import observed
from agentkit.messages import ToolCall
from agentkit.server import create_app
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools import ToolDefinition

URL = "/v1/chat/completions"
SHOP, DESK = "sk-0123456789abcdef", "sk-fedcba9876543210"


def count_messages(request):
    """Says how many messages it read."""
    return f"{len(request.messages)} messages"


def text(answer):
    """The text of an answer."""
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


async def test_a_session_remembers(make_app, talk, body, store):
    """The client sends what is new; header and field name the same session."""
    async with talk(make_app(count_messages)) as client:
        first = await client.post(URL, json=body("One"), headers={"x-session-id": "s1"})
        second = await client.post(URL, json=body("Two", session_id="s1"))
        other = await client.post(URL, json=body("One", session_id="s2"))
    assert [text(a) for a in (first, second, other)] == ["1 messages", "3 messages", "1 messages"]
    assert {episode.session_id for episode in store.select()} == {"s1", "s2"}


async def test_no_key_reaches_the_sessions_of_another(make_app, talk, body, keys, store):
    """The same name is another conversation for another key."""
    app = make_app(count_messages, keys=keys)
    for key in (SHOP, DESK):
        async with talk(app, key) as client:
            assert text(await client.post(URL, json=body("Hi", session_id="s1"))) == "1 messages"
    assert {episode.session_id for episode in store.select()} == {"shop/s1", "desk/s1"}


async def test_one_request_of_a_session_at_a_time(make_app, talk, body, store):
    """A second one meanwhile is told to come back: both would go on from the same words."""
    async with talk(make_app()) as client:
        slow = asyncio.create_task(
            client.post(URL, json=body('call nap {"seconds": 0.2}', session_id="s1"))
        )
        await asyncio.sleep(0.05)
        meanwhile = await client.post(URL, json=body("Hi", session_id="s1"))
        await slow
        after = await client.post(URL, json=body("Hi", session_id="s1"))
    assert meanwhile.status_code == 409
    assert meanwhile.json()["error"]["code"] == "session_busy"
    assert meanwhile.headers["retry-after"] == "1"
    assert after.status_code == 200
    assert len(list(store.select())) == 2


async def test_sessions_need_a_store(make_app, talk, body):
    """Without one the client is told to keep the conversation."""
    async with talk(make_app(agent={"store": None})) as client:
        answer = await client.post(URL, json=body("Hi", session_id="s1"))
        without = await client.post(URL, json=body("Hi"))
    assert answer.json()["error"]["code"] == "no_sessions"
    assert without.status_code == 200


ASK = {"role": "user", "content": 'call desk.ask {"what": "price"}'}
WIPE = {"role": "user", "content": 'call wipe {"path": "notes.txt"}'}


def chat(*messages, **fields):
    """The body of a request."""
    return {"model": "agent", "messages": list(messages), **fields}


async def waiting(client, *messages, **fields):
    """Ask, and give the assistant's message with its one call."""
    answer = await client.post(URL, json=chat(*messages, **fields))
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    return choice["message"]


def result(message, content):
    """The tool message that answers the call of ``message``."""
    (call,) = message["tool_calls"]
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


async def test_a_call_without_code_is_answered_by_the_client(make_app, talk, store):
    """It comes as a tool call; the value goes into the run, which goes on."""
    before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    async with talk(make_app()) as client:
        message = await waiting(client, *before, ASK)
        call = message["tool_calls"][0]["function"]
        answer = await client.post(
            URL, json=chat(*before, ASK, message, result(message, '{"price": 3}'))
        )
    assert call == {"name": "desk_ask", "arguments": '{"what":"price"}'}
    assert answer.json()["choices"][0]["message"]["content"] == 'It gave: {"price":3}'
    newest, oldest = happened(store.select())
    assert newest.resumes == oldest.episode_id
    assert newest.results[0].value == {"price": 3}
    assert newest.history_length == oldest.history_length + 1 == 3


async def test_in_a_session_the_tool_message_is_enough(make_app, talk, store):
    """The server has the rest, and the conversation goes on after it."""
    async with talk(make_app()) as client:
        message = await waiting(client, ASK, session_id="s1")
        answer = await client.post(URL, json=chat(result(message, "3"), session_id="s1"))
        after = await client.post(
            URL, json=chat({"role": "user", "content": "Thanks"}, session_id="s1")
        )
    assert answer.json()["choices"][0]["message"]["content"] == "It gave: 3"
    assert after.status_code == 200
    assert next(store.select()).history_length == 4


async def test_a_chain_of_waiting_runs_keeps_its_words(make_app, talk, store):
    """A run that waits twice sees everything once: request, first call, first value."""
    seen = []

    def twice(request):
        seen.append([message.role for message in request.messages])
        if sum(message.role == "tool" for message in request.messages) < 2:
            from agentkit.messages import ToolCall

            return [ToolCall(call_id=f"c{len(seen)}", name="desk.ask", arguments={})]
        return "Done."

    ask = {"role": "user", "content": "Ask twice"}
    async with talk(make_app(twice)) as client:
        first = await waiting(client, ask)
        second = await waiting(client, ask, first, result(first, "1"))
        answer = await client.post(
            URL, json=chat(ask, first, result(first, "1"), second, result(second, "2"))
        )
    assert answer.json()["choices"][0]["message"]["content"] == "Done."
    assert seen[-1] == ["user", "assistant", "tool", "assistant", "tool"]


async def test_nothing_runs_twice(make_app, talk, store):
    """A second answer to the same call is refused, also while the first is under way."""
    async with talk(make_app()) as client:
        message = await waiting(client, ASK)
        answer = chat(ASK, message, result(message, "3 euros"))
        answers = await asyncio.gather(*(client.post(URL, json=answer) for _ in range(4)))
        late = await client.post(URL, json=answer)
    assert sorted(a.status_code for a in answers) == [200, 409, 409, 409]
    assert late.status_code == 409
    assert late.headers["x-should-retry"] == "false"
    ran = [r for e in store.select() for r in e.results if r.status == "ok"]
    assert [r.value for r in ran] == ["3 euros"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_counts_once_though_two_servers_share_the_store(
    make_app, talk, tmp_path, stream
):
    """It is sent to both at once: one goes on, the other says 409, and the call after it runs once."""
    gone = []

    @tool(effects=["writes"])
    def pay(what: str) -> str:
        """Pay."""
        gone.append(what)
        return "paid"

    def pays(request):
        said = sum(message.role == "tool" for message in request.messages)
        pay = ToolCall(call_id="pay", name="pay", arguments={"what": "A17"})
        return "Done." if said == 2 else [pay if said else ToolCall(call_id="ask", name="ask")]

    outside = Tool(definition=ToolDefinition(name="ask"))
    stores = [open_store(f"sqlite:///{tmp_path / 'shared.db'}") for _ in range(2)]
    apps = [make_app(pays, agent={"store": one, "tools": [outside, pay]}) for one in stores]
    async with talk(apps[0]) as first, talk(apps[1]) as second:
        for time in range(1, 5):
            message = await waiting(first, ASK)
            answer = chat(ASK, message, result(message, "yes"), stream=stream)
            answers = await asyncio.gather(*(one.post(URL, json=answer) for one in (first, second)))
            late = await second.post(URL, json=answer)
            assert sorted(one.status_code for one in (*answers, late)) == [200, 409, 409]
            assert late.json()["error"]["code"] == "already_answered"
            assert gone == ["A17"] * time
    outputs = {one.output for one in happened(stores[0].select()) if one.resumes}
    assert outputs == {"Done."}


async def test_an_answer_whose_run_did_not_begin_can_be_sent_again(make_app, talk):
    """The store failed before anything ran: the client reads that, and its answer is not used up."""
    kept = UnreliableStore(open_store("memory:"), episode_faults=[None, "unanswered"])
    async with talk(make_app(agent={"store": kept})) as client:
        message = await waiting(client, ASK)
        answer = chat(ASK, message, result(message, "3 euros"))
        failed, again, late = [await client.post(URL, json=answer) for _ in range(3)]
    assert [one.status_code for one in (failed, again, late)] == [503, 200, 409]
    assert text(again) == "It gave: 3 euros"


async def test_clients_approve_nothing(make_app, talk, store):
    """A destructive call waits for a person at the server; the client's word does not count."""
    async with talk(make_app()) as client:
        message = await waiting(client, WIPE)
        answer = await client.post(
            URL, json=chat(WIPE, message, result(message, '{"approved":true}'))
        )
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "approval_not_accepted"
    assert len(list(store.select())) == 1


async def test_calls_of_another_key_can_not_be_answered(make_app, talk, keys):
    """For anybody else the waiting run does not exist."""
    app = make_app(keys=keys)
    async with talk(app, SHOP) as client:
        message = await waiting(client, ASK)
    async with talk(app, DESK) as client:
        answer = await client.post(URL, json=chat(ASK, message, result(message, "3")))
    assert answer.json()["error"]["code"] == "unknown_tool_call"


async def test_calls_of_an_imported_run_can_not_be_answered(make_app, talk, store):
    """Whoever wrote a file of episodes lets no client go on with its calls."""
    async with talk(make_app()) as client:
        message = await waiting(client, ASK)
        forged = replace(next(store.select()), episode_id="forged")
        store.append(as_imported(forged, "theirs.jsonl"))
        _, _, call_id = message["tool_calls"][0]["id"].partition(".")
        said = {"role": "tool", "tool_call_id": f"forged.{call_id}", "content": "3"}
        answer = await client.post(URL, json=chat(said))
    assert answer.json()["error"]["code"] == "unknown_tool_call"


@pytest.mark.parametrize("hands_over", [False, True])
async def test_no_client_answers_a_run_below_its_own(talk, store, keys, hands_over):
    """It would read what the guardrails of the agent that asked have not seen."""

    @guardrail("output")
    def hide(ctx, answer):
        return Rewrite("hidden")

    model = FunctionModel(
        lambda r: "SECRET" if r.messages[-1].role == "tool" else [ToolCall(call_id="w", name="ask")]
    )
    outside = Tool(definition=ToolDefinition(name="ask"))
    inner = Agent(model, tools=[outside], store=store, name="inner")
    asked = inner.handoff(name="go") if hands_over else inner.as_tool(name="go")
    arguments = {} if hands_over else {"request": "?"}
    script = [[ToolCall(call_id="1", name="go", arguments=arguments)], "It waits."]
    outer = Agent(ScriptedModel(script), tools=[asked], store=store, guardrails=[hide])
    app = create_app(outer, keys=keys)
    async with talk(app, key=SHOP) as shop:
        first = await shop.post(URL, json=chat({"role": "user", "content": "Go"}))
        (below,) = (one for one in store.select() if one.stop_reason == "deferred")
        said = {"role": "tool", "tool_call_id": f"{below.episode_id}.w", "content": "sunny"}
        for stream in (False, True):
            answer = await shop.post(URL, json=chat(said, stream=stream))
            assert (answer.status_code, "SECRET" in answer.text) == (403, False)
            assert answer.json()["error"]["code"] == "run_of_other_agent"
    assert text(first) == "hidden"


async def test_each_call_needs_its_answer(make_app, talk):
    """A missing, a foreign or a made-up id is refused before anything runs."""
    async with talk(make_app()) as client:
        message = await waiting(client, ASK)
        episode_id = message["tool_calls"][0]["id"].partition(".")[0]
        for wrong in (f"{episode_id}.c9", "nobody.c1", "c1", "", "."):
            tool = {"role": "tool", "tool_call_id": wrong, "content": "3"}
            answer = await client.post(URL, json=chat(tool))
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] in {"unknown_tool_call", "unanswered_tool_call"}
        twice = [result(message, "3"), result(message, "4")]
        answer = await client.post(URL, json=chat(ASK, message, *twice))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "answered_twice")


APPROVALS = "/v1/approvals"
WIPE_TEXT = WIPE["content"]


PROGRAM = """call run_program {"program": "return wipe(path='notes.txt')"}"""


async def test_calls_inside_a_program_are_decided_by_themselves(make_app, talk, body, store, keys):
    """In code mode a desk sees the call that waits, and the program goes on."""
    code = {"code_mode": True}
    app = make_app(agent=code, keys=keys, approvers=["desk"])
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, PROGRAM, session_id="s1")
        (waiting_run,) = await listed(desk)
        decided = await desk.post(f"{APPROVALS}/{waiting_run['id']}", json={"approved": True})
    assert [one["name"] for one in waiting_run["calls"]] == ["wipe"]
    assert decided.json()["content"] == "It gave: notes.txt is gone"


@pytest.fixture
def app(make_app, keys):
    """A server where the key "desk" decides about the calls of all."""
    return make_app(keys=keys, approvers=["desk"])


@pytest.fixture
async def shop(app, talk):
    """A client with the key "shop"."""
    async with talk(app, key=SHOP) as client:
        yield client


@pytest.fixture
async def desk(app, talk):
    """A client with the key "desk"."""
    async with talk(app, key=DESK) as client:
        yield client


@pytest.fixture
async def address(shop, desk, body):
    """Where a decision about a call of the shop's goes."""
    await ask(shop, body, session_id="s1")
    (waits,) = await listed(desk)
    return f"{APPROVALS}/{waits['id']}"


async def ask(client, body, text=WIPE_TEXT, **fields):
    """Ask for what needs an approval."""
    answer = await client.post(URL, json=body(text, **fields))
    assert answer.json()["choices"][0]["finish_reason"] == "tool_calls"


async def listed(client):
    """What an approver is shown."""
    return (await client.get(APPROVALS)).json()["data"]


async def test_what_waits_is_listed_and_approved(shop, desk, body, store):
    """The approver sees who asked for what; the call runs, and the conversation goes on."""
    await ask(shop, body, session_id="s1", user="ann")
    (waiting,) = await listed(desk)
    decided = await desk.post(f"{APPROVALS}/{waiting['id']}", json={"approved": True})
    after = await shop.post(URL, json=body("Thanks", session_id="s1"))
    left = await listed(desk)
    assert (waiting["key"], waiting["user"], waiting["request"]) == ("shop", "ann", WIPE_TEXT)
    assert [(one["name"], one["arguments"]) for one in waiting["calls"]] == [
        ("wipe", {"path": "notes.txt"})
    ]
    assert decided.json()["content"] == "It gave: notes.txt is gone"
    assert decided.json()["stop_reason"] == "finished"
    assert after.status_code == 200
    assert left == []
    assert next(store.select()).history_length == 4


async def test_a_turn_of_client_and_desk_is_ended_by_both(make_app, talk, store, keys):
    """The client answers its own call, then the approver decides on the other one."""
    both = [
        ToolCall(call_id="1", name="wipe", arguments={"path": "a"}),
        ToolCall(call_id="2", name="desk.ask", arguments={}),
    ]
    model = ScriptedModel([both, "Done."])
    app = make_app(model, keys=keys, approvers=["desk"])
    question = {"role": "user", "content": "Wipe a"}
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        asked = chat(question, session_id="s1")
        message = (await shop.post(URL, json=asked)).json()["choices"][0]["message"]
        (own,) = (one for one in message["tool_calls"] if one["function"]["name"] != "wipe")
        told = {"role": "tool", "tool_call_id": own["id"], "content": "yes"}
        partly = await shop.post(URL, json=chat(question, message, told, session_id="s1"))
        (waits,) = await listed(desk)
        decided = await desk.post(f"{APPROVALS}/{waits['id']}", json={"approved": True})
    assert partly.status_code == 200
    assert (waits["request"], [one["name"] for one in waits["calls"]]) == ("Wipe a", ["wipe"])
    assert (decided.status_code, decided.json()["content"]) == (200, "Done.")


async def test_a_decision_is_carried_out_though_its_approver_is_gone(served, store, keys, no_tls):
    """A dropped connection uses no decision up: the call runs, once."""
    ran = []

    @tool(effects=["destructive"])
    async def wipe() -> str:
        """Delete it."""
        await asyncio.sleep(0.5)
        ran.append(1)
        return "gone"

    model = ScriptedModel([[ToolCall(call_id="1", name="wipe")], "Done."])
    agent = Agent(model, tools=[wipe], store=store)
    waits = (await agent.run("Wipe")).episode.episode_id
    app = create_app(agent, keys=keys, approvers=["desk"])
    with served(app) as url:
        head = {"authorization": f"Bearer {DESK}"}
        async with httpx.AsyncClient(verify=no_tls, base_url=url, headers=head) as desk:
            with pytest.raises(httpx.TimeoutException):
                await desk.post(f"{APPROVALS}/{waits}", json={"approved": True}, timeout=0.2)
        await ended(app)
    assert (ran, next(store.select()).output) == ([1], "Done.")


async def test_an_imported_run_is_neither_listed_nor_decided(desk, address, store):
    """Whoever wrote a file of episodes has no approver let its calls run."""
    forged = replace(next(store.select()), episode_id="forged")
    store.append(as_imported(forged, "theirs.jsonl"))
    assert len(await listed(desk)) == 1
    answer = await desk.post(f"{APPROVALS}/forged", json={"approved": True})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_approval")


async def test_only_who_may_decides(shop, desk, address, make_app, keys, talk):
    """Another key sees nothing, and its decision is answered like one about an unknown run."""
    assert await listed(shop) == []
    refused = await shop.post(address, json={"approved": True})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_approval")
    assert (await desk.post(f"{APPROVALS}/none", json={"approved": True})).status_code == 404
    async with talk(make_app(keys=keys), key=DESK) as nobody:
        assert (await nobody.get(APPROVALS)).status_code == 404
    with pytest.raises(UsageError, match="there is no key 'boss'"):
        make_app(keys=keys, approvers=["boss"])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("{}", "approved"),
        ('{"approved": "yes"}', "approved"),
        ('{"approved": true, "calls": {"none": true}}', "none"),
        ('{"approved": true, "denied": true}', "denied"),
        ('{"approved": false, "approved": true}', "'approved' is given twice"),
    ],
)
async def test_what_is_no_decision_is_refused(desk, address, store, said, told):
    """Nothing runs, and the run still waits."""
    headers = {"content-type": "application/json"}
    answer = await desk.post(address, content=said, headers=headers)
    assert (answer.status_code, told in answer.json()["error"]["message"]) == (400, True)
    assert len(await asyncio.to_thread(pending_approvals, store)) == 1


async def test_a_conversation_that_the_client_keeps_is_its_own(shop, desk):
    """What was said before is not in the store, so that only the client can go on."""
    before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    await shop.post(URL, json=chat(*before, WIPE))
    (waits,) = await listed(desk)
    answer = await desk.post(f"{APPROVALS}/{waits['id']}", json={"approved": True})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_session")


@pytest.mark.parametrize(("name", "is_known"), [("clerk", True), ("front", True), ("clerk", False)])
@pytest.mark.parametrize("hands_over", [True, False])
async def test_a_call_of_another_agent_runs_with_its_tools(
    talk, store, keys, name, is_known, hands_over
):
    """The agent that asked is named; it runs the call, and the server's own of that name never."""
    ran = []

    @tool(name="wipe", effects=["destructive"])
    def of_clerk(path: str) -> str:
        """Delete a file."""
        ran.append("clerk")
        return "gone"

    @tool(name="wipe", effects=["destructive"])
    def of_desk(path: str) -> str:
        """Delete a file."""
        ran.append("desk")
        return "gone"

    def orders(request):
        return [ToolCall(call_id="1", name="wipe", arguments={"path": "a"})]

    model = ScriptedModel([orders(None), "It is gone."])
    clerk = Agent(model, tools=[of_clerk], store=store, name=name)
    asked = clerk.handoff(name="ask") if hands_over else clerk.as_tool(name="ask")
    first = [ToolCall(call_id="1", name="ask", arguments={} if hands_over else {"request": "Go"})]
    desk = Agent(ScriptedModel([first, "Wait."]), tools=[asked, of_desk], store=store, name="front")
    await desk.run("Wipe a", metadata={"key": "shop"})
    app = create_app(
        desk if is_known else Agent(ScriptedModel([]), tools=[of_desk], store=store),
        keys=keys,
        approvers=["desk"],
    )
    async with talk(app, key=DESK) as client:
        (waits,) = (await client.get(APPROVALS)).json()["data"]
        decided = await client.post(f"{APPROVALS}/{waits['id']}", json={"approved": True})
        left = (await client.get(APPROVALS)).json()["data"]
    assert waits["agent"] == name
    if is_known:
        assert (decided.status_code, ran, left) == (200, ["clerk"], [])
    else:
        assert (decided.status_code, ran, left) == (409, [], [waits])
        assert "resume it with 'clerk'" in decided.json()["error"]["message"]


async def test_a_listing_of_what_waits_is_bounded(app, talk, store, monkeypatch):
    """Long requests and arguments are cut, pages end by their size, and one run is there whole."""
    long = "x" * 100_000
    call = ToolCall(call_id="1", name="wipe", arguments={"path": long})

    @tool(effects=["destructive"])
    def wipe(path: str) -> str:
        """Delete a file."""
        return path

    agent = Agent(FunctionModel(lambda _: [call]), tools=[wipe], store=store)
    for _ in range(3):
        await agent.run(long)
    monkeypatch.setattr("agentkit.server.approvals._PAGE_BYTES", 5_000)
    async with talk(app, key=DESK) as desk:
        listed = await desk.get(APPROVALS)
        page = listed.json()
        whole = (await desk.get(f"{APPROVALS}/{page['data'][0]['id']}")).json()
        rest = (await desk.get(APPROVALS, params={"after": page["data"][-1]["id"]})).json()
    assert len(listed.content) < 10_000
    assert (len(page["data"]), page["has_more"]) == (2, True)
    assert (len(rest["data"]), rest["has_more"]) == (1, False)
    assert "GET /v1/approvals/ID has it whole" in page["data"][0]["calls"][0]["arguments"]
    assert whole["calls"][0]["arguments"] == {"path": long}
    assert whole["request"] == long


FEEDBACK = "/v1/feedback"


@pytest.fixture
def answered(make_app, talk, body):
    """An application that has answered one request of the key ``shop``, and the episode's id."""

    async def answer(keys=None, text='call add {"a": 1, "b": 2}'):
        app = make_app(keys=keys)
        async with talk(app, SHOP) as client:
            done = await client.post("/v1/chat/completions", json=body(text))
        return app, done.json()["agentkit"]["episode_id"]

    return answer


@pytest.mark.parametrize("prefix", ["chatcmpl-", "resp_"])
async def test_a_thumb_is_the_latest_verdict(answered, talk, store, keys, prefix):
    """What a user says takes the place of the episode's own verdict, with where it came from."""
    app, episode_id = await answered(keys)
    async with talk(app, SHOP) as client:
        said = {"response_id": f"{prefix}{episode_id}", "thumbs": "down", "reason": "Too dear."}
        told = (await client.post(FEEDBACK, json=said)).json()
    assert told == {
        "object": "feedback",
        "id": told["id"],
        "episode_id": episode_id,
        "passed": False,
    }
    [episode] = with_late_verdicts(store.select())
    assert (episode.episode_id, episode.verdict.verifier) == (episode_id, "feedback")
    assert episode.verdict.details == {"source": "a user, key 'shop'", "reason": "Too dear."}


async def test_a_corrected_call_is_evidence_for_proposers(answered, talk, store, make_app):
    """Each argument that differs is what a verifier would have found; a user vouches for none."""
    app, episode_id = await answered()
    call = {"name": "add", "arguments": {"a": 1, "b": 3}}
    async with talk(app) as client:
        await client.post(FEEDBACK, json={"episode_id": episode_id, "corrected_call": call})
    [episode] = with_late_verdicts(store.select())
    [found] = episode.verdict.evidence
    assert (found.kind, found.tool, found.parameter) == ("wrong_value", "add", "b")
    assert (found.expected, found.actual) == (3, 2)
    library: Library = store.load()
    assert (episode_id, 3) not in observed([episode], library)["add"].right["b"]


async def test_the_same_said_twice_is_one_record(answered, talk, store):
    """A retry adds nothing, also at the same time; a change of mind does."""
    app, episode_id = await answered()
    down = {"episode_id": episode_id, "thumbs": "down"}
    async with talk(app) as client:
        both = await asyncio.gather(*(client.post(FEEDBACK, json=down) for _ in range(2)))
        await client.post(FEEDBACK, json={"episode_id": episode_id, "thumbs": "up"})
        await client.post(FEEDBACK, json=down)
    assert both[0].json() == both[1].json()
    assert [one.verdict.passed for one in feedback_on(store, episode_id)] == [False, True, False]


async def test_unknown_and_foreign_ids_are_refused_in_the_same_words(answered, talk, store, keys):
    """Nobody learns from the answer whether another key was given an episode of that id."""
    app, episode_id = await answered(keys)
    beside = judged(store.get(episode_id), Verdict(passed=True))
    store.append(beside)
    store.append(Episode(episode_id="of-nobody", request="Hi"))
    bodies = set()
    for key, asked in (
        (DESK, episode_id),
        (DESK, "0" * 24),
        (SHOP, beside.episode_id),
        (SHOP, "of-nobody"),
    ):
        async with talk(app, key) as client:
            answer = await client.post(FEEDBACK, json={"episode_id": asked, "thumbs": "up"})
        assert answer.status_code == 404
        bodies.add(answer.text)
    assert len(bodies) == 1
    assert list(feedback_on(store, episode_id)) == []
    async with talk(app) as client:
        asked = {"episode_id": episode_id, "thumbs": "up"}
        assert (await client.post(FEEDBACK, json=asked)).status_code == 401


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"thumbs": "up"}, "give episode_id or response_id"),
        ({"episode_id": "a"}, "give thumbs, rating or corrected_call"),
        ({"episode_id": "a", "thumbs": "up", "rating": 1}, "not thumbs and rating"),
        ({"episode_id": "a", "thumbs": "up", "mood": "good"}, "mood"),
        ({"episode_id": "a", "corrected_call": {"name": "b", "arguments": [1]}}, "arguments"),
        ({"episode_id": "a", "thumbs": "up", "corrected_call": {"name": "b"}}, "was not good"),
    ],
)
async def test_what_says_nothing_clear_is_refused(answered, talk, said, told):
    """Status 400 with the field; nothing is guessed."""
    app, _ = await answered()
    async with talk(app) as client:
        answer = await client.post(FEEDBACK, json=said)
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"{", 400),
        (b'{"episode_id": "a", "thumbs": "down", "reason": "\\ud800"}', 400),
        (b'{"episode_id": "a", "corrected_call": {"name": "b", "arguments": {"c": NaN}}}', 400),
        (b'{"episode_id": "a", "corrected_call": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001, 400),
        (
            b'{"episode_id": "a", "corrected_call": {"name": "b", "arguments": {"c": '
            + b"[" * 190
            + b"]" * 190
            + b"}}}",
            400,
        ),
        (json.dumps({"episode_id": "a", "reason": "x" * 70_000}).encode(), 413),
    ],
)
async def test_bodies_that_can_not_be_kept(answered, talk, sent, status):
    """Whatever is sent, the answer is a problem in our form, and nothing is kept."""
    app, _ = await answered()
    async with talk(app) as client:
        answer = await client.post(
            FEEDBACK, content=sent, headers={"content-type": "application/json"}
        )
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
