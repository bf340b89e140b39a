"""What goes over the wire for each kind of parameter and body; values are held against RFC 6570."""

from __future__ import annotations

import json
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, strategies as st

from agentkit import Agent
from agentkit.errors import ModelRetry
from agentkit.interop.openapi import CallPolicy, Env
from agentkit.interop.openapi.requests import header_text, path_text, query_pairs
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


# RFC 6570, appendix A, as a table: first, separator, named, what an empty value adds.
OPERATORS = {
    "": ("", ",", False, ""),
    ".": (".", ".", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, "="),
}
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
scalars = st.one_of(texts, st.integers(), st.booleans())
values = st.one_of(
    scalars, st.lists(scalars, max_size=4), st.dictionaries(texts, scalars, max_size=4)
)


def expand(operator, name, value, *, explode):
    """``{operator name explode}`` expanded by the algorithm of RFC 6570, section 3.2."""

    def text(item):
        plain = item if isinstance(item, str) else str(item).lower()
        return quote(plain, safe="")

    def named(key, item):
        return f"{key}={item}" if item else f"{key}{empty}"

    first, separator, is_named, empty = OPERATORS[operator]
    key = quote(name, safe="")
    if isinstance(value, list | dict) and not value:
        return ""
    if isinstance(value, list):
        if not explode:
            joined = ",".join(map(text, value))
            return first + (named(key, joined) if is_named else joined)
        return first + separator.join(named(key, text(v)) if is_named else text(v) for v in value)
    if isinstance(value, dict):
        if not explode:
            joined = ",".join(f"{text(k)},{text(v)}" for k, v in value.items())
            return first + (named(key, joined) if is_named else joined)
        pairs = [(text(k), text(v)) for k, v in value.items()]
        made = [named(k, v) if is_named else f"{k}={v}" for k, v in pairs]
        return first + separator.join(made)
    return first + (named(key, text(value)) if is_named else text(value))


@pytest.mark.parametrize(("style", "operator"), [("simple", ""), ("label", "."), ("matrix", ";")])
@given(value=values, name=texts.filter(bool), explode=st.booleans())
def test_paths_are_expansions(style, operator, value, name, explode):
    """``simple``, ``label`` and ``matrix`` are ``{x}``, ``{.x}`` and ``{;x}`` of RFC 6570."""
    made = path_text(name, value, style=style, explode=explode)
    wanted = expand(operator, name, value, explode=explode)
    if style == "label" and not explode and isinstance(value, list | dict):
        # RFC 6570 joins the parts of {.x} by commas when it does not explode, as we do.
        wanted = expand("", name, value, explode=False)
        wanted = f".{wanted}" if value else ""
    assert made == wanted


@given(value=values, name=texts.filter(bool), explode=st.booleans())
def test_form_queries_are_expansions(value, name, explode):
    """``form`` is ``{?x}`` of RFC 6570, without its question mark."""
    made = "&".join("=".join(p) for p in query_pairs(name, value, style="form", explode=explode))
    assert made == expand("?", name, value, explode=explode).removeprefix("?")


@given(value=st.lists(texts, min_size=1, max_size=4))
def test_delimited_queries_are_one_value(value):
    """OpenAPI's own delimiters join the encoded parts of a list."""
    for style, delimiter in (("spaceDelimited", "%20"), ("pipeDelimited", "%7C")):
        pairs = list(query_pairs("q", value, style=style, explode=False))
        assert pairs == [("q", delimiter.join(quote(part, safe="") for part in value))]


@given(value=st.dictionaries(texts.filter(bool), scalars, max_size=4))
def test_deep_objects_name_each_property(value):
    """``deepObject`` writes ``name[property]=value`` for each property."""
    pairs = query_pairs("f", value, style="deepObject", explode=True)
    read = {unquote(name)[2:-1]: unquote(text) for name, text in pairs}
    assert read == {k: v if isinstance(v, str) else str(v).lower() for k, v in value.items()}


def test_deeper_objects_and_lists_go_on():
    """Beyond what OpenAPI defines, brackets and indexes are what servers read."""
    value = {"a": {"b": [1, {"c": True}]}, "none": None, "empty": []}
    pairs = list(query_pairs("f", value, style="deepObject", explode=True))
    assert [f"{unquote(k)}={v}" for k, v in pairs] == ["f[a][b][0]=1", "f[a][b][1][c]=true"]


@given(text=texts)
def test_reserved_characters_stay_only_where_they_are_harmless(text):
    """``allowReserved`` never lets a value end the query or begin another parameter."""
    ((_, made),) = query_pairs("q", text, style="form", explode=True, allow_reserved=True)
    assert unquote(made) == text
    assert not set(made) & set("#&+[] ")


def test_reserved_characters_are_allowed_when_asked():
    """A URL or a list of fields can be sent as it is."""
    pairs = query_pairs("q", "a/b:c?d=(e),f", style="form", explode=True, allow_reserved=True)
    assert list(pairs) == [("q", "a/b:c?d=(e),f")]


@pytest.mark.parametrize(
    ("value", "explode", "text"),
    [
        ("a b", False, "a b"),
        ([1, None, 2.5], False, "1,2.5"),
        ({"a": 1, "b": False}, True, "a=1,b=false"),
        ({"a": 1, "b": False}, False, "a,1,b,false"),
        ([{"x": 1}], False, '{"x":1}'),
        (None, False, ""),
    ],
)
def test_headers_are_not_percent_encoded(value, explode, text):
    """A header's value is ``simple`` without encoding; what is nested is JSON."""
    assert header_text(value, explode=explode) == text
