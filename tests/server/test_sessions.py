"""Conversations that the server keeps."""

import asyncio

URL = "/v1/chat/completions"
A, B = "sk-0123456789abcdef", "sk-fedcba9876543210"


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
    for key in (A, B):
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
