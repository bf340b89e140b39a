"""Arguments become requests, and schemas of a description arguments."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from agentkit import Agent, ToolDefinition
from agentkit.errors import ModelRetry
from agentkit.interop.openapi import Env, openapi_tools
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.validation import validate_arguments

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
            make.parameter("X-Request-ID", "header", LIST),
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
        X_Request_ID=["t1", "t2"],
    )
    assert seen["path"] == "/v1/x/7/a,b%2Fc"
    assert seen["query"] == (
        "tag=x&tag=y%26z&flat=1%2C2%2C3&filter%5Bmin%5D=3&filter%5Bmax%5D=4&filter%5Bmax%5D=5"
        "&k=1&self=true"
    )
    assert seen["headers"]["x-request-id"] == "t1,t2"
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
    assert "parameter 'odd' cannot be sent" in found.report.operations[0].notes[0]
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
    with pytest.raises(ModelRetry, match="the arguments cannot be sent"):
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
    """What is neither JSON nor a form cannot be sent; JSON is chosen where there is a choice."""
    content = {media_type: {"schema": {"type": "object"}}}
    given = make.operation("post", requestBody={"content": content})
    (entry,) = api.tools(given).report.unusable
    assert f"its body is {media_type}" in entry.reason
    content["application/vnd.x+json"] = {"schema": {"type": "object"}}
    assert len(api.tools(given)) == 1


@pytest.mark.parametrize("written", ["key", "KEY", "key[]", "key[a]", " key"])
@pytest.mark.parametrize("place", ["query", "body"])
async def test_no_object_holds_the_name_of_a_key(api, make, monkeypatch, place, written):
    """A model that chooses names cannot send a key of its own with, or instead of, the caller's."""
    monkeypatch.setenv("KEY", "of the caller")
    content = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
    given = make.operation(
        "post",
        parameters=[make.parameter("query", "query", {}), make.parameter("key[a]", "query")],
        requestBody={"content": content},
        security=[{"it": []}],
        components={"securitySchemes": {"it": {"type": "apiKey", "in": "query", "name": "key"}}},
    )
    options = {"auth": {"it": Env("KEY")}}
    assert list(api.tools(given)["it"].definition.signature.properties) == ["query", "body"]
    with pytest.raises(ModelRetry, match="carries a key of the API"):
        await api.call(given, options=options, **{place: {written: "of a model"}})
    assert api.seen == []


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


@pytest.mark.parametrize(
    ("path", "value"),
    [("/%2{id}%2{id}/admin", "e"), ("/{id}%2e/admin", "."), ("/x%2{id}..%2{id}..%2{id}admin", "f")],
)
async def test_a_path_and_its_values_make_no_dots_together(api, make, path, value):
    """What a description begins to encode and a value ends does not lead out of the server's path."""
    given = make.operation(path=path, parameters=[make.parameter("id", "path")])
    with pytest.raises(ModelRetry, match="would change which address"):
        await api.call(given, id=value)
    assert api.seen == []


async def test_a_header_value_can_not_start_another_header(api, make):
    """Line breaks are refused before anything is sent."""
    given = make.operation(parameters=[make.parameter("Prefer", "header")])
    with pytest.raises(ModelRetry, match="may hold no line breaks"):
        await api.call(given, Prefer="a\r\nHost: evil")
    assert (await api.call(given, Prefer="é"))["headers"]["prefer"] == "Ã©"


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


@pytest.fixture
def argument(make):
    """The schema of the argument ``a``, after a parameter's schema was converted."""

    def convert(schema, *, version="3.0.3", **schemas):
        given = make.operation(
            parameters=[make.parameter("a", "query", schema)],
            version=version,
            components={"schemas": schemas},
        )
        (tool,) = openapi_tools(given)
        whole = tool.definition.signature.parameters
        Draft202012Validator.check_schema(whole)
        return whole["properties"]["a"]

    return convert


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"type": "string", "example": "x"}, {"type": "string", "examples": ["x"]}),
        (
            {"type": "integer", "format": "int64", "xml": {}, "x-mine": 1, "externalDocs": {}},
            {"type": "integer", "format": "int64"},
        ),
    ],
)
def test_the_dialect_of_3_0(argument, old, new):
    """``nullable``, boolean exclusive bounds and annotations become what 2020-12 has."""
    assert argument(old) == new


def test_references_in_a_tuple_are_followed(argument):
    """Before 3.1 a list of schemas could say what the first entries of a list are."""
    pair = {"type": "array", "items": [{"$ref": "#/components/schemas/Name"}]}
    assert argument(pair, Name={"type": "string"}) == {
        "type": "array",
        "prefixItems": [{"type": "string"}],
    }


def test_3_1_is_kept_as_it_is(argument):
    """OpenAPI 3.1 writes JSON Schema 2020-12 already."""
    schema = {"type": ["string", "null"], "exclusiveMinimum": 3, "const": "x"}
    assert argument(schema, version="3.1.0") == schema


NODE = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "secret": {"type": "string", "writeOnly": True},
        "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "other": {"$ref": "#/components/schemas/Other"},
    },
}
CYCLIC = {
    "Node": NODE,
    "Other": {"type": "object", "properties": {"back": {"$ref": "#/components/schemas/Node"}}},
}


def test_recursion_stays_a_reference(make):
    """A schema that holds itself is kept under ``$defs`` once, and calls are checked at any depth."""
    media = {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}
    (tool,) = openapi_tools(
        make.operation(
            "post",
            requestBody={"required": True, "content": media},
            responses={"200": {"content": media}},
            components={"schemas": CYCLIC},
        )
    )
    signature = tool.definition.signature
    assert set(signature.parameters["$defs"]) == {"Node", "Other"}
    assert signature.required == ("name",)  # the id is only read, so a call does not give it
    assert set(signature.properties) == {"name", "secret", "children", "other"}
    assert set(signature.result["properties"]) == {"id", "name", "children", "other"}
    Draft202012Validator.check_schema(signature.result)
    assert ToolDefinition.from_json(tool.definition.to_json()).digest == tool.definition.digest
    deep = {"name": "a", "children": [{"name": "b", "other": {"back": {"name": 3}}}]}
    (problem,) = validate_arguments(tool.definition, deep)
    assert "children[0].other.back.name" in problem.rule


def test_far_schemas_are_cut(make):
    """A result that reaches half of the API keeps what is near and allows anything beyond."""
    schemas = {
        f"S{at}": {
            "type": "object",
            "properties": {
                "next": {"$ref": f"#/components/schemas/S{at + 1}"},
                **{f"p{number}": {"type": "string"} for number in range(10)},
            },
        }
        for at in range(50)
    } | {"S50": {"type": "object"}}
    responses = make.answered({"$ref": "#/components/schemas/S0"})
    (tool,) = openapi_tools(make.operation(responses=responses, components={"schemas": schemas}))
    result = tool.definition.signature.result
    assert 3 < len(result["$defs"]) < 15
    Draft202012Validator(result).validate({"next": {"next": {"p1": "x"}}})


OTHER = "https://example.com/schemas/pet.json"


def test_remote_references_are_refused(make):
    """Nothing is fetched: the operation is reported with what to do, the others are mapped."""
    given = make.operation(parameters=[make.parameter("a", "query", {"$ref": f"{OTHER}#/Pet"})])
    given["paths"]["/y"] = {"get": {"responses": make.answered({"$ref": OTHER})}}
    found = openapi_tools(given)
    (entry,) = found.report.unusable
    assert "is not fetched; bundle the description into one file" in entry.reason
    assert "the result stays undeclared" in found.report.mapped[0].notes[0]
