"""What goes over the wire for each kind of parameter and body; the server tells what it saw."""

import json

import pytest

from agentkit import Agent
from agentkit.errors import ModelRetry
from agentkit.interop.openapi import CallPolicy, Env
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

LIST = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object", "additionalProperties": {"type": "integer"}}


async def test_each_place_gets_its_parameters(api, make):
    """Path, query, header and cookie, each in its style."""
    given = make.operation(
        path="/x/{id}/{many}",
        parameters=[
            make.parameter("id", "path", {"type": "integer"}),
            make.parameter("many", "path", LIST, style="matrix", explode=True),
            make.parameter("tag", "query", LIST),
            make.parameter("flat", "query", LIST, explode=False),
            make.parameter("piped", "query", LIST, style="pipeDelimited", explode=False),
            make.parameter("filter", "query", OBJECT, style="deepObject"),
            make.parameter("X-Trace", "header", LIST),
            make.parameter("session", "cookie"),
            {"name": "q", "in": "query", "content": {"application/json": {"schema": OBJECT}}},
        ],
    )
    seen = await api.call(
        given,
        id=7,
        many=["a", "b/c"],
        tag=["x", "y&z"],
        flat=["1", "2"],
        piped=["p", "q"],
        filter={"min": 3},
        X_Trace=["t1", "t2"],
        session="s;1",
        q={"n": 1},
    )
    assert seen["path"] == "/v1/x/7/;many=a;many=b%2Fc"
    assert seen["query"] == (
        "tag=x&tag=y%26z&flat=1,2&piped=p%7Cq&filter%5Bmin%5D=3&q=%7B%22n%22%3A1%7D"
    )
    assert seen["headers"]["x-trace"] == "t1,t2"
    assert seen["headers"]["cookie"] == "session=s%3B1"
    assert seen["headers"]["accept"] == "application/json, */*;q=0.1"


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
async def test_a_flat_body_is_put_together_again(api, make, body_of, version):
    """Arguments that came from the body's properties go back under their own names."""
    schema = {"type": "object", "properties": {"id": {}, "from": {}, "x-y": {"type": "string"}}}
    given = make.operation(
        "put",
        "/x/{id}",
        version=version,
        parameters=[make.parameter("id", "path")],
        requestBody={"required": True, "content": {"application/json": {"schema": schema}}},
    )
    seen = await api.call(given, id="1", body_id=2, from_="é", x_y="z")
    assert seen["path"] == "/v1/x/1"
    assert body_of(seen) == {"id": 2, "from": "é", "x-y": "z"}
    assert body_of(await api.call(given, id="1")) == {}  # a required body is sent when empty


@pytest.mark.parametrize("value", ["\ud800", float("nan"), "x" * 100_000])
async def test_what_can_not_be_sent_is_told(api, make, value):
    """Half a surrogate pair, NaN, or far too much for a URL: the model is asked for another value."""
    given = make.operation(parameters=[make.parameter("q", "query", {})])
    with pytest.raises(ModelRetry, match="the arguments can not be sent"):
        await api.call(given, q=value)


async def test_arguments_may_have_any_name(api, make):
    """Also those that Python uses for itself."""
    names = ["self", "cls", "plan", "arguments"]
    given = make.operation(parameters=[make.parameter(name, "query") for name in names])
    seen = await api.call(given, **dict.fromkeys(names, "x"))
    assert seen["query"] == "self=x&cls=x&plan=x&arguments=x"


async def test_an_optional_body_can_be_left_out(api, make):
    """Without arguments there is no body and no content type."""
    schema = {"type": "object", "properties": {"a": {}}}
    body = {"content": {"application/json": {"schema": schema}}}
    seen = await api.call(make.operation("post", requestBody=body))
    assert seen["body"] == ""
    assert "content-type" not in seen["headers"]


async def test_forms_are_urlencoded(api, make, body_of):
    """Lists repeat, and an encoding may ask for another style."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "l": LIST, "m": OBJECT, "none": {}},
    }
    media = {"schema": schema, "encoding": {"m": {"style": "deepObject", "explode": True}}}
    body = {"required": True, "content": {"application/x-www-form-urlencoded": media}}
    given = make.operation("post", requestBody=body)
    seen = await api.call(given, a="x y&", l=["1", "2"], m={"k": 1}, none=None)
    assert body_of(seen) == "a=x+y%26&l=1&l=2&m%5Bk%5D=1"
    assert seen["headers"]["content-type"] == "application/x-www-form-urlencoded"


FILES = {
    "type": "object",
    "required": ["photo"],
    "properties": {
        "photo": {"type": "string", "format": "binary", "description": "A picture."},
        "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "about": {"type": "object"},
        "title": {"type": "string"},
    },
}


async def test_multipart_sends_files_by_content(api, make):
    """A model gives what is in a file, as text or base64; it can not name a file to read."""
    media = {"schema": FILES, "encoding": {"photo": {"contentType": "image/png, image/jpeg"}}}
    body = {"required": True, "content": {"multipart/form-data": media}}
    given = make.operation("post", requestBody=body)
    (tool,) = api.tools(given)
    assert "path" not in json.dumps(tool.definition.signature.properties["photo"])
    seen = await tool(
        photo={"filename": "a.png", "base64": "iVBO"},
        more=[{"filename": "b.txt", "text": "hé", "content_type": "text/plain"}],
        about={"n": 1},
        title="T",
    )
    assert seen["form"] == [
        ["photo", "a.png", "image/png", "\x89PN"],
        ["more", "b.txt", "text/plain", "hÃ©"],
        ["about", '{"n":1}'],
        ["title", "T"],
    ]
    for bad in ({"filename": "x"}, {"filename": "x", "text": "", "base64": ""}):
        with pytest.raises(ModelRetry, match="either as `text` or as `base64`"):
            await tool(photo=bad)
    with pytest.raises(ModelRetry, match="must be base64"):
        await tool(photo={"filename": "x", "base64": "%%%"})
    with pytest.raises(ModelRetry, match="no line breaks"):
        await tool(photo={"filename": "x\r\nEvil: 1", "text": ""})


@pytest.mark.parametrize(
    ("media_type", "value", "sent"),
    [
        ("text/plain", "hé", b"h\xc3\xa9"),
        ("application/xml", "<a/>", b"<a/>"),
        ("image/png", "iVBO", b"\x89PN"),
    ],
)
async def test_text_and_binary_bodies(api, make, media_type, value, sent):
    """Text is sent as it is, anything else comes as base64."""
    import base64

    body = {"required": True, "content": {media_type: {"schema": {"type": "string"}}}}
    seen = await api.call(make.operation("post", requestBody=body), body=value)
    assert base64.b64decode(seen["body"]) == sent
    assert seen["headers"]["content-type"] == media_type


@pytest.mark.parametrize("value", [".", "..", ""])
async def test_a_path_value_can_not_change_the_address(api, make, value):
    """A model that writes dots, or nothing, is told; nothing is sent."""
    given = make.operation(path="/users/{id}/keys", parameters=[make.parameter("id", "path")])
    with pytest.raises(ModelRetry):
        await api.call(given, id=value)
    assert api.seen == []


@pytest.mark.parametrize(
    "value", ["../admin", "a/b", "a?b=c", "a#b", "a\\b", "//evil.test", "%2e%2e", "a\r\nb"]
)
async def test_path_values_are_one_segment(api, make, value):
    """Whatever a model writes stays within its segment, on the server that was chosen."""
    given = make.operation(path="/users/{id}/keys", parameters=[make.parameter("id", "path")])
    seen = await api.call(given, id=value)
    prefix, _, rest = seen["path"].partition("/users/")
    assert prefix == "/v1"
    assert rest.endswith("/keys")
    assert rest.count("/") == 1
    assert seen["query"] == ""
    assert seen["headers"]["host"] == "api.example.com"


async def test_a_header_value_can_not_start_another_header(api, make):
    """Line breaks are refused before anything is sent."""
    given = make.operation(parameters=[make.parameter("X-A", "header")])
    with pytest.raises(ModelRetry, match="may hold no line breaks"):
        await api.call(given, X_A="a\r\nHost: evil")
    assert (await api.call(given, X_A="é"))["headers"]["x-a"] == "Ã©"


async def test_fixed_headers_and_servers_of_operations(api, make, monkeypatch):
    """Headers of the caller's are always sent, and an operation may name its own server."""
    monkeypatch.setenv("TENANT", "t1")
    given = make.operation(servers=[{"url": "https://upload.example.com"}])
    options = {
        "headers": {"X-Version": "3", "X-Tenant": Env("TENANT")},
        "policy": CallPolicy(credential_hosts=("upload.example.com",)),
    }
    seen = await api.call(given, options=options)
    assert seen["headers"]["host"] == "upload.example.com"
    assert (seen["headers"]["x-version"], seen["headers"]["x-tenant"]) == ("3", "t1")
    seen = await api.call(given, options={"server": "http://localhost:1/mine"})
    assert (seen["headers"]["host"], seen["path"]) == ("localhost:1", "/mine/x")


async def test_an_agent_calls_an_api_over_a_real_socket(live, make, bound):
    """The tools are handed to an agent as they are, and each event loop gets its own client."""
    given = make.operation(parameters=[make.parameter("q", "query")])
    tools = bound(given, server=live.url)
    call = ToolCall(call_id="1", name="it", arguments={"q": "hello"})
    agent = Agent(ScriptedModel([[call], "Done."]), tools=tools)
    result = await agent.run("Say hello")
    assert result.output == "Done."
    (record,) = result.calls
    assert record.name == "it"
    assert live.seen[0][1].endswith("/x?q=hello")
    assert live.seen[0][2]["user-agent"].startswith("agentkit/")
