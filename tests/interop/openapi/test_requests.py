"""Calls of an API: what is sent, with which credentials, and what comes back."""

import asyncio
import base64
import gzip
import json
import socket
import time
import tracemalloc
from contextlib import asynccontextmanager
from urllib.parse import quote, quote_plus

import httpcore
import httpx
import pytest
from jsonschema import Draft202012Validator

from agentkit import Agent, ToolDefinition
from agentkit.errors import ModelRetry, ToolFailed, UsageError
from agentkit.interop.openapi import CallPolicy, Env, openapi_tools
from agentkit.interop.openapi.public_addresses import NotPublicError, is_public, public_transport
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
    found = api.tools(given)
    assert found["it"].definition.signature.required == ("id",)
    note = "the body parameter 'id' is the argument 'body_id'"
    assert note in found.report.operations[0].notes


@pytest.mark.parametrize("value", ["\ud800", float("nan"), "x" * 100_000])
async def test_what_can_not_be_sent_is_told(api, make, value):
    """Half a surrogate pair, NaN, or far too much for a URL: the model is asked for another value."""
    given = make.operation(parameters=[make.parameter("q", "query", {})])
    with pytest.raises(ModelRetry, match="the arguments cannot be sent"):
        await api.call(given, q=value)


async def test_forms_are_urlencoded(api, make, body_of):
    """Lists repeat, objects and null are written as a query would write them."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "l": LIST, "none": {}}}
    content = {"application/x-www-form-urlencoded": {"schema": schema}}
    given = make.operation("post", requestBody={"required": True, "content": content})
    seen = await api.call(given, a="x y&", l=["1", "2"], none=None)
    assert body_of(seen) == "a=x+y%26&l=1&l=2"
    assert seen["headers"]["content-type"] == "application/x-www-form-urlencoded"


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
    with pytest.raises(ModelRetry, match="no control characters"):
        await api.call(given, options=options, **{place: {f"{written}\0x": "of a model"}})
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
            "post", requestBody={"required": True, "content": media}, components={"schemas": CYCLIC}
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
    within = json.dumps({"said": f'{{"key": "{written}"}}'})
    assert json.loads(Secrets(values=[secret]).redacted(within)) == {
        "said": '{"key": "[redacted]"}'
    }


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


class Waits(list):
    """Keeps the seconds that would have been waited."""

    async def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def waits():
    """How long the caller would have waited."""
    return Waits()


@pytest.fixture
def ask(api, make, waits):
    """Calls an operation after which the API answers as planned."""

    async def call(*planned, method="get", security=None, **policy):
        api.planned = list(planned)
        given = make.operation(method)
        return await api.call(given, options={"policy": CallPolicy(sleep=waits, **policy)})

    return call


@pytest.mark.parametrize("charset", ["punycode", "hex", "latin-1", "none-such", "é"])
async def test_a_server_does_not_choose_the_codec(ask, answers, charset):
    """Whatever charset is declared, such as one that takes quadratic time, UTF-8 is read."""
    begun = time.process_time()
    for body in (b"a" * 400_000, b"a-\xff\x00"):
        told = await ask(answers.raw(body, media_type=f"text/plain; charset={charset}"))
        assert told == body.decode("utf-8", "replace")
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    "parameters", ['a="' + ";" * 98_000, 'a="' + '\\";' * 33_000, " " * 98_000, "charset=" * 12_000]
)
async def test_a_long_content_type_is_read_in_linear_time(ask, answers, parameters):
    """Python's own parser of that header would hold up the event loop for seconds."""
    begun = time.process_time()
    assert await ask(answers.raw("é".encode(), media_type=f"text/plain; {parameters}")) == "é"
    assert time.process_time() - begun < 0.5


async def test_values_by_media_type(ask, answers):
    """JSON is decoded, text is text, binary content is described and an empty answer told."""
    assert await ask(answers.json({"a": [1]})) == {"a": [1]}
    assert await ask(answers.raw(b'{"a":1}', media_type="application/vnd.x+json")) == {"a": 1}
    assert await ask(answers.raw(b"a,b", media_type="text/csv")) == "a,b"
    assert await ask(answers.raw(b"", status_code=204)) == {"status": 204}
    assert await ask(answers.raw(b"<no json>", media_type="application/json")) == "<no json>"
    assert await ask(answers.raw(b'{"a": NaN}', media_type="application/json")) == {"a": None}
    told = await ask(answers.raw(b"\x89PNG", media_type="image/png"))
    assert told == {
        "status": 200,
        "content_type": "image/png",
        "bytes": 4,
        "note": "the content is binary and is not shown",
    }


@pytest.mark.parametrize(
    ("status", "body", "signal", "words"),
    [
        (422, {"detail": "name is too long"}, ModelRetry, '{"detail":"name is too long"}'),
        (409, {"message": "taken"}, ModelRetry, "taken"),
        (404, {"message": "Not Found"}, ModelRetry, "look it up first"),
        (401, {"message": "Bad credentials"}, ToolFailed, "credentials do not allow"),
        (403, {}, ToolFailed, "credentials do not allow"),
        (405, {}, ToolFailed, "answered with 405"),
        (418, ["odd"], ToolFailed, '418: ["odd"]'),
    ],
)
async def test_errors_are_put_into_words(ask, answers, status, body, signal, words):
    """What the model can mend is a retry with the server's own reason; the rest is final."""
    with pytest.raises(signal) as caught:
        await ask(answers.json(body, status))
    assert words in caught.value.message
    assert caught.value.message.startswith("GET /x was answered with")


async def test_retry_after_is_kept_to(ask, answers, waits):
    """A wait beyond the time allowed is told instead of waited."""
    assert await ask(answers.json({}, 429, retry_after="3"), answers.json(1)) == 1
    assert waits == [3.0]
    with pytest.raises(ToolFailed, match="asks to wait 3600 s"):
        await ask(answers.json({}, 429, retry_after="3600"))
    assert len(waits) == 1
    assert await ask(answers.json({}, 429, retry_after="soon"), answers.json(1)) == 1


async def test_a_post_is_not_repeated_blindly(api, ask, answers, waits):
    """What may have been done is done again only when the server says that it was not."""
    with pytest.raises(ToolFailed, match="500"):
        await ask(answers.json({}, 500), method="post")
    assert len(api.seen) == 1
    assert await ask(answers.json({}, 429), answers.json(1), method="post") == 1
    assert await ask(answers.json({}, 503, retry_after="1"), answers.json(1), method="post") == 1


@pytest.mark.parametrize(
    "body",
    [b"[" * 300 + b"]" * 300, b"[" * 100_000, b"[" + b"[]," * 600_000 + b"[]]"],
    ids=["deep", "no end", "wide"],
)
@pytest.mark.parametrize("status", [200, 422])
async def test_an_answer_without_end_is_a_failure_in_words(ask, answers, body, status):
    """Few bytes that stand for many levels or values neither break a walk nor fill memory."""
    answer = answers.raw(body, media_type="application/json", status_code=status)
    with pytest.raises((ToolFailed, ModelRetry)) as caught:
        await ask(answer)
    assert "nested too deeply" in str(caught.value) or "values" in str(caught.value) or status > 200
    assert len(str(caught.value)) < 1_000


async def test_an_answer_that_is_too_long_is_cut_off(ask, answers):
    """The model is told to ask for less; nothing is kept of it."""
    with pytest.raises(ModelRetry, match="longer than the 1,000 bytes"):
        await ask(answers.text("x" * 1001), max_response_bytes=1000)
    assert await ask(answers.text("x" * 1000), max_response_bytes=1000) == "x" * 1000


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for piece in self.pieces:
            yield piece


def answering(make, pieces, **headers):
    """The tool of an API whose answers come in such pieces."""

    def answer(request):
        assert request.headers["accept-encoding"] == "gzip, deflate"
        return httpx.Response(200, headers=headers, stream=Pieces(pieces))

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return openapi_tools(make.operation(), client=client)["it"]


async def test_a_compressed_answer_is_unpacked_no_further_than_the_limit(make):
    """Few bytes that stand for very many take no memory; honest ones are read."""
    text = {"content_type": "text/plain", "content_encoding": "gzip"}
    headers = {name.replace("_", "-"): value for name, value in text.items()}
    assert await answering(make, [gzip.compress(b"hello")], **headers)() == "hello"
    tool = answering(make, [gzip.compress(b"0" * 200_000_000, 9)], **headers)
    tracemalloc.start()
    try:
        with pytest.raises(ModelRetry, match="longer than the 2,000,000 bytes"):
            await tool()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    for encoding, why in (("br", "not asked for: br"), ("gzip", "is damaged")):
        with pytest.raises(ToolFailed, match=why):
            await answering(make, [b"abc"], **{"content-encoding": encoding})()


@pytest.mark.parametrize(("count", "fits"), [(20_000, True), (200_000, False)])
async def test_an_answer_of_very_many_values_is_not_decoded(make, count, fits):
    """Few bytes, and fewer when they are packed, hold more values than anybody reads."""
    body = gzip.compress(json.dumps([[]] * count).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    tool = answering(make, [body], **headers)
    if fits:
        assert len(await tool()) == count
        return
    with pytest.raises(ModelRetry, match=r"more than the 100,000 values that are read; ask for"):
        await tool()


@asynccontextmanager
async def others():
    """Counts the turns that the event loop gives to others meanwhile."""
    turns = [0]

    async def take():
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(take())
    try:
        yield turns
    finally:
        beside.cancel()


async def test_an_answer_in_crumbs_does_not_hold_up_others(make):
    """Others get their turn, and soon nobody reads on; an answer in honest pieces is read."""
    async with others() as turns:
        with pytest.raises(ToolFailed, match=r"in more than 4,0.. pieces of a few bytes"):
            await answering(make, [b"1"] * 1_000_000, **{"content-type": "text/plain"})()
    assert turns[0] > 30
    pieces = [b"x" * 80] * 10_000
    told = await answering(make, pieces, **{"content-type": "text/plain"})()
    assert len(told) == 800_000


@pytest.mark.parametrize("secret", ["s3cr3t/tok+en", "two words&more", "naïve-schlüssel"])
def test_a_secret_is_redacted_however_a_url_writes_it(secret):
    """Servers encode more or less of it, with large or small digits."""
    every = "".join(f"%{byte:02x}" for byte in secret.encode())
    for form in (quote(secret), quote(secret, safe="").lower(), quote_plus(secret), every):
        for shown in (form, form.replace("%", r"\u0025")):
            told = Secrets(values=[secret]).redacted(f"/a?key={shown}&b=1")
            assert told == "/a?key=[redacted]&b=1"


async def test_answers_that_say_to_wait_do_not_hold_up_others(bound, make):
    """A server may send ``100 Continue`` by the thousand before its answer, and in one piece."""

    async def answers(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 \r\n\r\n" * 20_000)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
        writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        (get,) = bound(make.operation(), server=f"http://127.0.0.1:{port}")
        async with others() as turns:
            assert await get() == "done"
    assert turns[0] > 20_000 * 18 / 4_096


async def test_a_server_that_does_not_answer(live, make, bound):
    """After the time allowed the call fails in words."""
    live.planned = [1.0, 1.0]
    policy = CallPolicy(timeout_seconds=0.2)
    (get,) = bound(make.operation(), server=live.url, policy=policy)
    with pytest.raises(ToolFailed, match=r"did not answer within 0\.2 seconds$"):
        await get()
    (post,) = bound(make.operation("post"), server=live.url, policy=policy)
    with pytest.raises(ToolFailed, match="it may or may not have been done"):
        await post()


@pytest.mark.parametrize(("method", "tries"), [("get", 3), ("post", 1)])
async def test_a_request_without_an_answer_is_repeated_where_that_is_safe(
    make, waits, method, tries
):
    """What broke off may have been done, so that only what repeats safely is sent again."""
    sent = []

    def breaks_off(request):
        sent.append(request)
        raise httpx.ReadError("gone")

    client = httpx.AsyncClient(transport=httpx.MockTransport(breaks_off))
    tools = openapi_tools(make.operation(method), client=client, policy=CallPolicy(sleep=waits))
    with pytest.raises(ToolFailed, match="broke off"):
        await tools["it"]()
    assert len(sent) == tries


async def test_redirects_stay_on_the_host(live, another, make, answers, monkeypatch, bound):
    """On the same host they are followed; elsewhere never with credentials."""
    given = make.operation(
        security=[{"key": []}],
        components={"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    )
    from agentkit.interop.openapi import Env

    monkeypatch.setenv("KEY", "tops3cret")
    auth = {"key": Env("KEY")}
    (tool,) = bound(given, server=live.url, auth=auth)
    live.planned = [answers.to("/elsewhere", 302)]
    assert (await tool())["path"] == "/elsewhere"
    assert live.seen[-1][2]["authorization"] == "Bearer tops3cret"
    for target in (f"{another.url}/taken", "http://[bad", "http://a:999999/", "file:///etc/passwd"):
        live.planned = [answers.raw(b"", 302, headers={"Location": target})]
        with pytest.raises(ToolFailed, match="leads elsewhere, and that is not followed"):
            await tool()
    assert another.seen == []
    live.planned = [answers.to("/loop") for _ in range(9)]
    with pytest.raises(ToolFailed, match="not followed"):
        await tool()


async def test_cookies_are_not_kept(live, make, answers, bound):
    """What one call is told is not sent with the next, which may be for somebody else.

    Nor is it read: Python takes quadratic time for an old kind of cookie.
    """
    (tool,) = bound(make.operation(), server=live.url)
    live.planned = [answers.json(1, set_cookie="session=1", set_cookie2="a," * 30_000)]
    begun = time.process_time()
    await tool()
    assert time.process_time() - begun < 0.25
    await tool()
    assert "cookie" not in live.seen[1][2]


ONCE = CallPolicy(max_retries=0)
ELSEWHERE = "https://specs.example.com/api.json"


def sent_to(make, url):
    """A description whose calls go to ``url``."""
    return {**make.operation(), "servers": [{"url": url}]}


@pytest.mark.parametrize(
    "reference",
    [
        "ftp://docs.example.com/a",
        "s3://bucket/a",
        "git+https://github.com/x",
        "data:,x",
        "//docs.example.com/a",
        "https://docs.example.com\\@localhost/a",
        "HTTPS:docs.example.com",
    ],
)
async def test_whatever_is_no_file_is_a_description_of_others(make, live, bound, reference):
    """Only what has no scheme, or that of files, was lying on this machine."""
    with pytest.raises(ToolFailed, match="is not a public address"):
        await bound(sent_to(make, live.url), reference=reference)["it"]()
    assert live.seen == []


@pytest.mark.parametrize("written", ["127.0.0.1", "localhost", "0x7f.1", "2130706433"])
async def test_a_remote_description_may_not_name_a_private_server(make, live, bound, written):
    """However the address is written, nothing is sent there."""
    url = live.url.replace("127.0.0.1", written)
    tools = bound(sent_to(make, url), reference=ELSEWHERE)
    with pytest.raises(ToolFailed, match="is not a public address") as caught:
        await tools["it"]()
    assert f"can allow it with server='{url}'" in str(caught.value)
    assert live.seen == []


PRIVATE = """
    10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 169.254.169.254 0.0.0.0 224.0.0.1 255.255.255.255
    ::1 :: fe80::1%eth0 fd00::1 ff02::1 ::ffff:10.0.0.1 64:ff9b::7f00:1 2002:7f00:1::
    fec0::1 ::127.0.0.1 ::10.0.0.1 ::ffff:0:10.0.0.1 64:ff9b:1::7f00:1 64:ff9b:1::a00:1
    2001:0:7f00:1:: 2001:db8::1 5f00::1 100::1 3fff::1
    100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254 192.88.99.1 240.0.0.1
"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_for_special_purposes(address):
    """Those of the own network and of a cloud's inside, also wrapped into IPv6, are not public."""
    assert not is_public(address)


class Network(httpcore.AsyncMockBackend):
    """Connections that lead nowhere: what was connected to, and each says the same."""

    def __init__(self, answer, unreachable=()):
        super().__init__([answer])
        self.asked = []
        self.names = []
        self.unreachable = unreachable

    async def connect_tcp(self, host, port, *args, **kwargs):
        self.asked.append(host)
        if host in self.unreachable:
            raise httpcore.ConnectError("unreachable")
        stream = await super().connect_tcp(host, port, *args, **kwargs)
        return Noted(stream, self.names)


class Noted(httpcore.AsyncMockStream):
    """A stream that notes whose certificate is expected."""

    def __init__(self, stream, names):
        super().__init__(list(stream._buffer))
        self._names = names

    async def start_tls(self, ssl_context, server_hostname=None, **kwargs):
        self._names.append(server_hostname)
        return self


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@pytest.fixture
def addresses_of(monkeypatch):
    """What names lead to, one list of addresses after another; the last one stays."""
    queue = []

    def look_up(host, port, *args, **kwargs):
        addresses = queue.pop(0) if len(queue) > 1 else queue[0]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return queue


async def test_the_connection_goes_to_the_address_that_was_checked(addresses_of):
    """A name that leads elsewhere when it is asked again, does not lead there."""
    addresses_of += [["1.1.1.1"], ["127.0.0.1"]]
    network = Network(OK)
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        response = await client.get("https://rebind.example/x")
        assert (response.status_code, network.asked) == (200, ["1.1.1.1"])
        assert network.names == ["rebind.example"], "the certificate is still that of the name"
        assert response.request.headers["host"] == "rebind.example"
        with pytest.raises(NotPublicError, match=r"rebind.example is 127.0.0.1"):
            await client.get("https://rebind.example/x")
    assert network.asked == ["1.1.1.1"]


async def test_one_private_address_among_public_ones_refuses_the_name(addresses_of):
    """Nothing is tried out: a name with a private address is not connected to at all."""
    addresses_of += [["1.1.1.1", "10.0.0.1"]]
    network = Network(OK)
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        with pytest.raises(NotPublicError):
            await client.get("http://both.example/")
    assert network.asked == []


async def test_a_redirect_is_checked_like_a_call(addresses_of):
    """Whoever follows redirects through this transport is held to it at each step."""
    addresses_of += [["1.1.1.1"], ["169.254.169.254"]]
    away = b"HTTP/1.1 302 Found\r\nLocation: http://other.example/\r\nContent-Length: 0\r\n\r\n"
    network = Network(away)
    transport = public_transport(backend=network)
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
        with pytest.raises(NotPublicError, match=r"other.example is 169.254.169.254"):
            await client.get("http://first.example/")


async def test_a_proxy_is_not_asked(make, another, monkeypatch):
    """A proxy would look names up itself, so what needs a look connects past it."""
    monkeypatch.setenv("HTTP_PROXY", another.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    given = sent_to(make, "http://localhost:1")
    async with openapi_tools(given, reference=ELSEWHERE, policy=ONCE) as tools:
        with pytest.raises(ToolFailed, match="is not a public address"):
            await tools["it"]()
    assert another.seen == []
