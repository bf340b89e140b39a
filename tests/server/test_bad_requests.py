"""Requests that cannot be answered are refused in OpenAI's form, and nothing runs."""

import json

import pytest

URL = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(messages, **fields):
    """A body with these messages."""
    return {"model": "agent", "messages": messages, **fields}


def called(**fields):
    """A message of an assistant with one call."""
    return {"role": "assistant", "tool_calls": [{**CALL, **fields}]}


HALF = b'{"model": "agent", "messages": [{"role": "user", "content": "\\ud800"}]}'
IMAGE = {"role": "user", "content": [{"type": "image_url"}]}


def part(kind, held, role="user"):
    """A message with one part beside its text."""
    return chat(
        [
            {"role": role, "content": [{"type": "text", "text": "?"}, {"type": kind, kind: held}]},
            USER,
        ]
    )


def image(url):
    """A message with an image."""
    return part("image_url", {"url": url})


CONTENT = "messages[0].content"
BAD = {
    "no json": (b"{", "invalid_json", None),
    "not utf-8": (b'{"model": "\xff"}', "invalid_json", None),
    "nan": (b'{"model": NaN}', "invalid_json", None),
    "wide": (b'{"x":[' + b"[]," * 600_000 + b"[]]}", "invalid_json", None),
    "nothing": ({}, "missing_model", "model"),
    "no messages": ({"model": "agent"}, "invalid_value", "messages"),
    "no role": (chat([{"content": "Hi"}]), "invalid_value", "messages[0].role"),
    "image": (chat([IMAGE]), "unsupported_content", "messages[0].content"),
    "image of a false type": (image("data:image/png;base64,R0lGODlh"), "invalid_value", CONTENT),
    "image of no type": (image("data:image/svg+xml;base64,PHN2Zy8+"), "invalid_value", CONTENT),
    "image in bad base64": (image("data:image/gif;base64,R0lG ODlh!"), "invalid_value", CONTENT),
    "image not in base64": (image("data:image/gif,GIF89a"), "invalid_value", CONTENT),
    "image on the web": (image("https://x.example/a.png"), "invalid_value", CONTENT),
    "image in our network": (image("http://169.254.169.254/"), "invalid_value", CONTENT),
    "image in a file": (image("file:///etc/passwd"), "invalid_value", CONTENT),
    "image of the system": (
        part("image_url", {"url": "data:image/gif;base64,R0lGODlh"}, "system"),
        "unsupported_content",
        CONTENT,
    ),
    "audio of a false type": (
        part("input_audio", {"data": "R0lGODlh", "format": "wav"}),
        "invalid_value",
        CONTENT,
    ),
    "file by its id": (part("file", {"file_id": "file-1"}), "unsupported_content", CONTENT),
    "file of a strange type": (
        part("file", {"file_data": "data:a b/c;base64,R0lGODlh"}),
        "invalid_value",
        CONTENT,
    ),
    "half a character": (HALF, "invalid_value", "messages[0].content"),
    "empty": (chat([{**USER, "content": " "}]), "invalid_value", "messages[0].content"),
    "assistant last": (chat([USER, called()]), "invalid_value", "messages[1].role"),
    "no id": (chat([called(id=None), USER]), "invalid_value", "messages[0].tool_calls[0].id"),
    "result of nothing": (
        chat([called(), {"role": "tool", "tool_call_id": "x"}]),
        "invalid_value",
        "messages[1].tool_call_id",
    ),
    "result for nobody": (
        chat([{"role": "tool", "tool_call_id": "x.y", "content": "1"}]),
        "unknown_tool_call",
        "messages",
    ),
    "many messages": (chat([USER] * 9), "too_many_messages", "messages"),
    "tools": (chat([USER], tools=[{}]), "unsupported_parameter", "tools"),
    "json": (
        chat([USER], response_format={"type": "json_object"}),
        "unsupported_value",
        "response_format",
    ),
    "user is a number": (chat([USER], user=3), "invalid_value", "user"),
    "session with a slash": (chat([USER], session_id="a/b"), "invalid_session", "session_id"),
    "session and history": (chat([USER] * 2, session_id="a"), "history_with_session", "messages"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_request_is_refused(make_app, talk, store, case):
    """The error names what is wrong and where; no run begins."""
    from agentkit.server import ServerLimits

    sent, code, param = BAD[case]
    content = sent if isinstance(sent, bytes) else json.dumps(sent)
    app = make_app(limits=ServerLimits(max_messages=8))
    async with talk(app) as client:
        answer = await client.post(
            URL, content=content, headers={"content-type": "application/json"}
        )
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert (error["code"], error["param"]) == (code, param), error
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert list(store.select()) == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", URL, 405), ("GET", "/", 404), ("POST", f"{URL}/", 404)],
)
async def test_other_paths_and_methods(make_app, talk, method, path, status):
    """They are errors in the same form, with an id."""
    async with talk(make_app()) as client:
        answer = await client.request(method, path, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]["code"] in {"not_found", "bad_method"}
    assert answer.json()["error"]["message"].endswith(f": {method} {path}")
    assert answer.headers["x-request-id"]


async def test_a_user_is_named_whatever_a_client_leaves_out(make_app, talk, body, store, keys):
    """Requests of one person never count as two witnesses: ``user``, the key, or anonymous."""
    for app, key in ((make_app(keys=keys), "sk-0123456789abcdef"), (make_app(), None)):
        async with talk(app, key) as client:
            await client.post(URL, json=body("Hi"))
            await client.post(URL, json=body("Hi", user="ann", metadata={"user": "bob"}))
    users = [(one.metadata["user"], one.metadata.get("client.user")) for one in store.select()]
    assert users[::-1] == [("shop", None), ("ann", "bob"), ("anonymous", None), ("ann", "bob")]


@pytest.mark.parametrize("user", ["", "   ", "\u200b", "\u200b \u200b", "\u00a0\u061c\t"])
async def test_a_user_in_whom_nobody_sees_anything_is_left_out(
    make_app, talk, body, store, keys, user
):
    """An empty, blank or invisible ``user`` is none, so that no client becomes two witnesses."""
    for app, key in ((make_app(keys=keys), "sk-0123456789abcdef"), (make_app(), None)):
        async with talk(app, key) as client:
            answer = await client.post(URL, json=body("Hi", user=user))
            assert answer.status_code == 200
    assert [one.metadata["user"] for one in store.select()] == ["anonymous", "shop"]


async def test_a_request_id_of_the_client_is_kept(make_app, talk, body, store):
    """A usable id comes back and is in the episode; any other is replaced."""
    async with talk(make_app()) as client:
        good = await client.post(URL, json=body("Hi"), headers={"x-request-id": "trace-7"})
        bad = await client.post(URL, json=body("Hi"), headers={"x-request-id": "a\tb" * 100})
    assert good.headers["x-request-id"] == "trace-7"
    assert bad.headers["x-request-id"].startswith("req_")
    assert [e.metadata["request_id"] for e in store.select()][-1] == "trace-7"
