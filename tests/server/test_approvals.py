"""Calls that wait for a person are listed and decided over HTTP, each once, by who may."""

import asyncio

import pytest

from agentkit import Agent, RunContext, tool
from agentkit.agent import pending_approvals
from agentkit.errors import UsageError
from agentkit.messages import ToolCall
from agentkit.server import Keys, create_app
from agentkit.testing import FunctionModel

CHAT, APPROVALS = "/v1/chat/completions", "/v1/approvals"
SHOP, DESK = "sk-0123456789abcdef", "sk-fedcba9876543210"
WIPE = 'call wipe {"path": "notes.txt"}'


@pytest.fixture
def app(make_app, keys):
    """A server where the key "desk" decides about the calls of all."""
    return make_app(keys=keys, approvers=["desk"])


async def ask(client, body, text=WIPE, **fields):
    """Ask for what needs an approval."""
    answer = await client.post(CHAT, json=body(text, **fields))
    assert answer.json()["choices"][0]["finish_reason"] == "tool_calls"


async def test_what_waits_is_listed_and_approved(app, talk, body, store):
    """The approver sees who asked for what; the call runs, and the conversation goes on."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, session_id="s1", user="ann")
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        decided = await desk.post(f"{APPROVALS}/{waiting['id']}", json={"approved": True})
        after = await shop.post(CHAT, json=body("Thanks", session_id="s1"))
        left = (await desk.get(APPROVALS)).json()["data"]
    assert (waiting["user"], waiting["request"]) == ("ann", WIPE)
    assert [(one["name"], one["arguments"]) for one in waiting["calls"]] == [
        ("wipe", {"path": "notes.txt"})
    ]
    assert decided.json()["content"] == "It gave: notes.txt is gone"
    assert decided.json()["stop_reason"] == "finished"
    assert after.status_code == 200
    assert left == []
    assert next(store.select()).history_length == 4


async def test_the_model_reads_why_not(app, talk, body, store):
    """A refusal runs nothing, and its reason goes into the run."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, session_id="s1")
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        said = {"approved": False, "reason": "Keep it."}
        decided = await desk.post(f"{APPROVALS}/{waiting['id']}", json=said)
    assert "Keep it." in decided.json()["content"]
    assert [result.status for result in next(store.select()).results] == ["denied"]


async def test_nothing_is_decided_twice(app, talk, body, store):
    """Of several decisions at once one counts, also when they say the same."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, session_id="s1")
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        url = f"{APPROVALS}/{waiting['id']}"
        found = await asyncio.gather(*(desk.post(url, json={"approved": True}) for _ in range(4)))
        late = await desk.post(url, json={"approved": True})
    assert sorted(one.status_code for one in found) == [200, 409, 409, 409]
    assert late.status_code == 409
    assert [r.status for e in store.select() for r in e.results].count("ok") == 1


async def test_only_who_may_decides(app, make_app, keys, talk, body):
    """Another key sees nothing, and its decision is answered like one about an unknown run."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, session_id="s1")
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        url = f"{APPROVALS}/{waiting['id']}"
        assert (await shop.get(APPROVALS)).json()["data"] == []
        refused = await shop.post(url, json={"approved": True})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_approval")
        assert (await desk.post(f"{APPROVALS}/none", json={"approved": True})).status_code == 404
    own = make_app(keys=keys, client_approval=True)
    async with talk(own, key=SHOP) as shop, talk(own, key=DESK) as desk:
        assert (await desk.post(url, json={"approved": True})).status_code == 404
        assert (await shop.post(url, json={"approved": True})).status_code == 200
    async with talk(make_app(keys=keys), key=DESK) as desk:
        assert (await desk.get(APPROVALS)).status_code == 404
    with pytest.raises(UsageError, match="there is no key 'boss'"):
        make_app(keys=keys, approvers=["boss"])


@pytest.mark.parametrize(
    "said",
    [{}, {"approved": "yes"}, {"approved": True, "calls": {"none": True}}, {"approve": True}],
)
async def test_what_is_no_decision_is_refused(app, talk, body, store, said):
    """Nothing runs, and the run still waits."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, session_id="s1")
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        answer = await desk.post(f"{APPROVALS}/{waiting['id']}", json=said)
    assert answer.status_code == 400
    assert len(await asyncio.to_thread(pending_approvals, store)) == 1


async def test_a_conversation_that_the_client_keeps_is_its_own(app, talk, body):
    """What was said before is not in the store, so that only the client can go on."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
        asked = {"model": "agent", "messages": [*messages, {"role": "user", "content": WIPE}]}
        await shop.post(CHAT, json=asked)
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        answer = await desk.post(f"{APPROVALS}/{waiting['id']}", json={"approved": True})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_session")


async def test_deps_are_those_of_the_run_that_waits(talk, body, store, keys):
    """The factory finds the run, and with it whom it is for, beside the request of the approver."""

    @tool(effects=["destructive"])
    def wipe(ctx: RunContext[str], path: str) -> str:
        """Wipe a file."""
        return f"{ctx.deps} wiped {path}"

    def deps_of(request):
        waiting = getattr(request.state, "waiting", None)
        return "nobody" if waiting is None else waiting.metadata["user"]

    def answer(request):
        last = request.messages[-1]
        if last.role == "tool":
            return last.text
        return [ToolCall(call_id="1", name="wipe", arguments={"path": "a"})]

    agent = Agent(FunctionModel(answer), tools=[wipe], deps_type=str, store=store)
    app = create_app(
        agent, keys=Keys({"shop": SHOP, "desk": DESK}), approvers=["desk"], deps_factory=deps_of
    )
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        await ask(shop, body, session_id="s1", user="ann")
        (waiting,) = (await desk.get(APPROVALS)).json()["data"]
        decided = await desk.post(f"{APPROVALS}/{waiting['id']}", json={"approved": True})
    assert decided.json()["content"] == "ann wiped a"


async def test_what_waits_longest_comes_first_and_nothing_is_lost(app, talk, body, store):
    """However much waits or was decided since, every run can be reached, a hundred at a time."""
    async with talk(app, key=SHOP) as shop, talk(app, key=DESK) as desk:
        for at in range(103):
            await ask(shop, body, session_id=f"s{at}", user=f"u{at}")
        first = (await desk.get(APPROVALS)).json()
        last = first["data"][-1]["id"]
        rest = (await desk.get(APPROVALS, params={"after": last})).json()
    users = [one["user"] for one in (*first["data"], *rest["data"])]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert users == [f"u{at}" for at in range(103)]
