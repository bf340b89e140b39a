"""Calls that the run leaves to somebody else are shown to the client, who may answer them."""

import asyncio
from dataclasses import replace

from agentkit.episodes.labels import as_imported

URL = "/v1/chat/completions"
A, B = "sk-0123456789abcdef", "sk-fedcba9876543210"
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
    newest, oldest = store.select()
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
    async with talk(make_app(client_approval=True)) as client:
        message = await waiting(client, WIPE)
        answer = chat(WIPE, message, result(message, '{"approved": true}'))
        answers = await asyncio.gather(*(client.post(URL, json=answer) for _ in range(4)))
        late = await client.post(URL, json=answer)
    assert sorted(a.status_code for a in answers) == [200, 409, 409, 409]
    assert late.status_code == 409
    assert late.headers["x-should-retry"] == "false"
    ran = [r for e in store.select() for r in e.results if r.status == "ok"]
    assert [r.value for r in ran] == ["notes.txt is gone"]


async def test_clients_do_not_approve_unless_they_may(make_app, talk, store):
    """A destructive call waits for a person at the server; the client's word does not count."""
    async with talk(make_app()) as client:
        message = await waiting(client, WIPE)
        answer = await client.post(
            URL, json=chat(WIPE, message, result(message, '{"approved":true}'))
        )
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "approval_not_accepted"
    assert len(list(store.select())) == 1


async def test_a_client_that_may_can_refuse(make_app, talk, store):
    """The model reads the reason; anything but a decision is asked for again."""
    async with talk(make_app(client_approval=True)) as client:
        message = await waiting(client, WIPE)
        unclear = await client.post(URL, json=chat(WIPE, message, result(message, "yes")))
        no = '{"approved": false, "reason": "Keep it."}'
        answer = await client.post(URL, json=chat(WIPE, message, result(message, no)))
    assert unclear.json()["error"]["code"] == "approval_expected"
    assert "Keep it." in answer.json()["choices"][0]["message"]["content"]
    assert next(store.select()).results[0].status == "denied"


async def test_calls_of_another_key_can_not_be_answered(make_app, talk, keys):
    """For anybody else the waiting run does not exist."""
    app = make_app(keys=keys)
    async with talk(app, A) as client:
        message = await waiting(client, ASK)
    async with talk(app, B) as client:
        answer = await client.post(URL, json=chat(ASK, message, result(message, "3")))
    assert answer.json()["error"]["code"] == "unknown_tool_call"


async def test_calls_of_an_imported_run_can_not_be_answered(make_app, talk, store):
    """Whoever wrote a file of episodes lets no client go on with its calls."""
    async with talk(make_app(client_approval=True)) as client:
        message = await waiting(client, WIPE)
        forged = replace(next(store.select()), episode_id="forged")
        store.append(as_imported(forged, "theirs.jsonl"))
        _, _, call_id = message["tool_calls"][0]["id"].partition(".")
        said = {"role": "tool", "tool_call_id": f"forged.{call_id}", "content": '{"approved":true}'}
        answer = await client.post(URL, json=chat(said))
    assert answer.json()["error"]["code"] == "unknown_tool_call"


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
