"""What goes over the wire for each kind of parameter and body."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.errors import ModelRetry
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

LIST = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object", "additionalProperties": {"type": "integer"}}


async def test_each_place_gets_its_parameters(api, make):
    """Path, query and header, each in its style; values are encoded where that is needed."""
    given = make.operation(
        path="/x/{id}/{many}",
        parameters=[
            make.parameter("id", "path", {"type": "integer"}),
            make.parameter("many", "path", LIST),
            make.parameter("tag", "query", LIST),
            make.parameter("flat", "query", LIST, explode=False),
            make.parameter("filter", "query", OBJECT, style="deepObject"),
            make.parameter("open", "query", OBJECT),
            make.parameter("self", "query", {"type": "boolean"}),
            make.parameter("X-Trace", "header", LIST),
            make.parameter("X-Map", "header", OBJECT),
        ],
    )
    seen = await api.call(
        given,
        id=7,
        many=["a", "b/c"],
        tag=["x", "y&z"],
        flat=["1", "2,3"],
        filter={"min": 3, "max": [4, 5]},
        open={"k": 1},
        self=True,
        X_Trace=["t1", "t2"],
        X_Map={"n": 1},
    )
    assert seen["path"] == "/v1/x/7/a,b%2Fc"
    assert seen["query"] == (
        "tag=x&tag=y%26z&flat=1,2%2C3&filter%5Bmin%5D=3&filter%5Bmax%5D=4&filter%5Bmax%5D=5"
        "&k=1&self=true"
    )
    assert (seen["headers"]["x-trace"], seen["headers"]["x-map"]) == ("t1,t2", "n,1")
    assert seen["headers"]["accept"] == "application/json, */*;q=0.1"


@pytest.mark.parametrize(
    "odd",
    [
        {"in": "cookie"},
        {"in": "query", "style": "pipeDelimited"},
        {"in": "query", "content": {"application/json": {"schema": {}}}},
    ],
)
async def test_a_parameter_that_can_not_be_sent(api, make, odd):
    """An optional one is left out with a note; an operation that needs it is not mapped."""
    given = make.operation(parameters=[{"name": "odd", "schema": {}, **odd}])
    found = api.tools(given)
    assert list(found["it"].definition.signature.properties) == []
    assert "the parameter 'odd'" in found.report.operations[0].notes[0].replace(
        "query parameter", "parameter"
    )
    given["paths"]["/x"]["get"]["parameters"][0]["required"] = True
    (entry,) = api.tools(given).report.unusable
    assert "'odd'" in entry.reason


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


async def test_an_optional_body_can_be_left_out(api, make):
    """Without arguments there is no body and no content type."""
    schema = {"type": "object", "properties": {"a": {}}}
    body = {"content": {"application/json": {"schema": schema}}}
    seen = await api.call(make.operation("post", requestBody=body))
    assert seen["body"] == ""
    assert "content-type" not in seen["headers"]


async def test_forms_are_urlencoded(api, make, body_of):
    """Lists repeat, objects and null are written as a query would write them."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "l": LIST, "none": {}}}
    content = {"application/x-www-form-urlencoded": {"schema": schema}}
    given = make.operation("post", requestBody={"required": True, "content": content})
    seen = await api.call(given, a="x y&", l=["1", "2"], none=None)
    assert body_of(seen) == "a=x+y%26&l=1&l=2"
    assert seen["headers"]["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("media_type", ["multipart/form-data", "application/xml", "image/png"])
def test_other_bodies_are_reported(api, make, media_type):
    """What is neither JSON nor a form can not be sent; JSON is chosen where there is a choice."""
    content = {media_type: {"schema": {"type": "object"}}}
    given = make.operation("post", requestBody={"content": content})
    (entry,) = api.tools(given).report.unusable
    assert f"its body is {media_type}" in entry.reason
    content["application/vnd.x+json"] = {"schema": {"type": "object"}}
    assert len(api.tools(given)) == 1


async def test_servers_of_operations(api, make):
    """Another path on the API's host is used; another host is reported, unless the caller names it."""
    given = make.operation(servers=[{"url": "https://api.example.com/v2/"}])
    assert (await api.call(given))["path"] == "/v2/x"
    given = make.operation(servers=[{"url": "https://upload.example.com"}])
    (entry,) = api.tools(given).report.unusable
    assert "a server of its own (https://upload.example.com)" in entry.reason
    seen = await api.call(given, options={"server": "http://localhost:1/mine"})
    assert (seen["headers"]["host"], seen["path"]) == ("localhost:1", "/mine/x")


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
