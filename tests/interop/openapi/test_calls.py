"""Calls of an API: where arguments and credentials are sent, and what a model cannot change."""

from __future__ import annotations

import base64
import json

import httpx
import pytest
from jsonschema import Draft202012Validator

from agentkit import Agent, ToolDefinition
from agentkit.errors import ModelRetry, ToolFailed, UsageError
from agentkit.interop.openapi import Env, openapi_tools
from agentkit.interop.openapi.requests import Secrets
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
            components={"schemas": CYCLIC},
        )
    )
    signature = tool.definition.signature
    assert set(signature.parameters["$defs"]) == {"Node", "Other"}
    assert signature.required == ("name",)  # the id is only read, so a call does not give it
    assert set(signature.properties) == {"name", "secret", "children", "other"}
    Draft202012Validator.check_schema(signature.parameters)
    assert ToolDefinition.from_json(tool.definition.to_json()).digest == tool.definition.digest
    deep = {"name": "a", "children": [{"name": "b", "other": {"back": {"name": 3}}}]}
    (problem,) = validate_arguments(tool.definition, deep)
    assert "children[0].other.back.name" in problem.rule


OTHER = "https://example.com/schemas/pet.json"


def test_remote_references_are_refused(make):
    """Nothing is fetched: the operation is reported with what to do, the others are mapped."""
    given = make.operation(parameters=[make.parameter("a", "query", {"$ref": f"{OTHER}#/Pet"})])
    found = openapi_tools(given)
    (entry,) = found.report.unusable
    assert "is not fetched; bundle the description into one file" in entry.reason


SECRET = "s3cr3t/tok+en"
SCHEMES = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://a"},
    "tls": {"type": "mutualTLS"},
    "digest": {"type": "http", "scheme": "digest"},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The variables that hold secrets."""
    monkeypatch.setenv("TOKEN", f" {SECRET}\n")
    monkeypatch.setenv("PAIR", "ann:pässword")
    monkeypatch.delenv("UNSET", raising=False)


@pytest.fixture
def secured(make):
    """A document whose operation wants some of the schemes."""
    return lambda *security: make.operation(
        security=list(security), components={"securitySchemes": SCHEMES}
    )


@pytest.mark.parametrize(
    ("scheme", "credential", "where"),
    [
        ("header", Env("TOKEN"), ("x-key", SECRET)),
        ("bearer", Env("TOKEN"), ("authorization", f"Bearer {SECRET}")),
        ("oauth", Env("TOKEN"), ("authorization", f"Bearer {SECRET}")),
        ("oidc", Env("TOKEN"), ("authorization", f"Bearer {SECRET}")),
        (
            "basic",
            Env("PAIR"),
            ("authorization", f"Basic {base64.b64encode('ann:pässword'.encode()).decode()}"),
        ),
    ],
)
async def test_each_scheme_is_sent_in_its_place(live, secured, scheme, credential, where, bound):
    """Keys, bearer tokens and basic credentials arrive at the server, and only there."""
    auth = {scheme: credential}
    (tool,) = bound(secured({scheme: []}), server=live.url, auth=auth)
    told = json.dumps(await tool())
    name, value = where
    assert live.seen[0][2][name] == value
    assert SECRET not in told  # the server echoed it; what the model reads is redacted
    assert "[redacted]" in told


async def test_a_key_in_the_query_is_encoded_and_redacted(live, secured, bound):
    """The key is not part of what a model, an error or a repr shows."""
    tools = bound(secured({"query": []}), server=live.url, auth={"query": Env("TOKEN")})
    (tool,) = tools
    assert (await tool())["query"] == "api_key=[redacted]"
    assert live.seen[0][1].endswith("?api_key=s3cr3t%2Ftok%2Ben")
    assert SECRET not in repr((tools, tool, tool.function))
    assert SECRET not in json.dumps(tool.definition.to_json())


@pytest.mark.parametrize(
    "secret", ["s3cr3t/tok+en", 'quo"ted-key', r"back\slash-key", "naïve-schlüssel"]
)
@pytest.mark.parametrize("every", [1, 3, 100])
def test_a_secret_is_redacted_however_json_writes_it(secret, every):
    """Characters may be escaped in JSON, one or all of them, and slashes often are."""
    written = "".join(
        f"\\u{ord(char):04X}" if place % every == 0 else json.dumps(char)[1:-1].replace("/", r"\/")
        for place, char in enumerate(secret)
    )
    assert json.loads(f'"{written}"') == secret
    shown = Secrets(values=[secret]).redacted(f'{{"key": "{written}", "line": "a\\nb"}}')
    assert json.loads(shown) == {"key": "[redacted]", "line": "a\nb"}


async def test_a_media_type_repeats_no_secret(live, secured, answers, bound, monkeypatch):
    """The type of a binary answer reaches the model in lower case, which hides no secret."""
    monkeypatch.setenv("TOKEN", "tops3cretKEY9")
    (tool,) = bound(secured({"header": []}), server=live.url, auth={"header": Env("TOKEN")})
    for kind in ("image/tops3cretKEY9", "image/TOPS3CRETkey9"):
        live.planned = [answers.raw(b"\x00", media_type=kind)]
        assert (await tool())["content_type"] == "image/[redacted]"


async def test_an_episode_holds_no_secret(live, secured, bound):
    """What is recorded of a run can be shown to anybody."""
    tools = bound(secured({"header": []}), server=live.url, auth={"header": Env("TOKEN")})
    call = ToolCall(call_id="1", name="it", arguments={})
    result = await Agent(ScriptedModel([[call], "Done."]), tools=tools).run("?")
    assert live.seen[0][2]["x-key"] == SECRET
    assert SECRET not in json.dumps(result.episode.to_json())


async def test_alternatives_and_combinations(live, secured, bound):
    """All schemes of one alternative are sent; the first alternative whose variables are set wins."""
    wanted = secured({"header": [], "query": []}, {"bearer": []})
    auth = {"header": Env("TOKEN"), "query": Env("TOKEN"), "bearer": Env("TOKEN")}

    async def sent(**changes):
        live.seen.clear()
        (tool,) = bound(wanted, server=live.url, auth=auth | changes)
        await tool()
        _, url, headers = live.seen[0]
        return "x-key" in headers, "api_key" in url, "authorization" in headers

    assert await sent() == (True, True, False)
    assert await sent(query=Env("UNSET")) == (False, False, True)


async def test_a_missing_variable_is_named(api, secured):
    """The failure says which variable to set; no request is made."""
    with pytest.raises(ToolFailed, match="environment variable UNSET is not set"):
        await api.call(secured({"header": []}), options={"auth": {"header": Env("UNSET")}})
    assert api.seen == []


async def test_calls_without_credentials(live, api, secured, bound):
    """Nothing configured is a failure in words, unless the API or the caller's client allow it."""
    (tool,) = bound(secured({"header": []}, {"tls": []}), server=live.url)
    with pytest.raises(ToolFailed, match=r"header \(a key in the header X-Key\) or tls"):
        await tool()
    (tool,) = bound(
        secured({"header": [], "query": []}), server=live.url, auth={"query": Env("TOKEN")}
    )
    with pytest.raises(ToolFailed, match=r"X-Key\) with query"):  # half of it is nothing
        await tool()
    for security in ([], [{}], [{"header": []}, {}]):
        (tool,) = bound(secured(*security), server=live.url)
        assert (await tool())["path"] == "/x"
    assert (await api.call(secured({"header": []})))["path"] == "/v1/x"  # a client of the caller's


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ({"nothing": Env("TOKEN")}, "no security scheme 'nothing'; it has: header"),
        ({"tls": Env("TOKEN")}, "'tls' is not supported"),
        ({"digest": Env("TOKEN")}, "'digest' is not supported"),
        ({"header": SECRET}, "is a str; name the environment variable"),
    ],
)
def test_misuse_is_refused_without_showing_the_secret(secured, auth, why):
    """A secret given instead of its name is refused, and not repeated."""
    with pytest.raises(UsageError, match=why) as caught:
        openapi_tools(secured(), auth=auth)
    assert SECRET not in str(caught.value)


REMOTE = "https://specs.example.com/api.json"


@pytest.mark.parametrize(
    ("server", "options", "is_sent"),
    [
        ("https://specs.example.com/v1", {}, True),
        ("/v1", {}, True),
        ("https://api.example.com", {}, False),
        ("http://specs.example.com", {}, False),
        ("https://specs.example.com:444", {}, False),
        ("https://specs.example.com.evil.example", {}, False),
        ("//evil.example/v1", {}, False),
        ("https://api.example.com", {"server": "https://mine.example.com"}, True),
    ],
)
async def test_a_description_from_a_public_url_names_no_host_for_keys(
    secured, server, options, is_sent
):
    """Keys go to the host that the description came from, or to one that the caller chose."""
    given = {**secured({"header": []}), "servers": [{"url": server}]}
    seen = []

    def answer(request):
        seen.append(request.headers["x-key"])
        return httpx.Response(200, json=1)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        tools = openapi_tools(
            given, reference=REMOTE, auth={"header": Env("TOKEN")}, client=client, **options
        )
        if is_sent:
            await tools["it"]()
        else:
            with pytest.raises(ToolFailed, match="credentials are not sent"):
                await tools["it"]()
    assert seen == ([SECRET] if is_sent else [])
    is_told = any("credentials are sent there" in note for note in tools.report.notes)
    assert is_told is not is_sent


BROKEN = [
    "http://[bad",
    "https://a:999999",
    "https://a b",
    "https://a\\@b",
    "ftp://a",
]


@pytest.mark.parametrize("reference", ["", REMOTE])
@pytest.mark.parametrize("url", BROKEN)
def test_a_server_that_is_no_url_is_told(make, url, reference):
    """Of an operation it is the reason in the report; as the API's own the caller must mend it."""
    given = make.operation(servers=[{"url": url}])
    (entry,) = openapi_tools(given, reference=reference).report.operations
    assert entry.status == "unusable"
    with pytest.raises(UsageError, match="is not an http or https URL"):
        openapi_tools({**make.operation(), "servers": [{"url": url}]})
