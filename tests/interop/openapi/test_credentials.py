"""Secrets are named, read at the call, shown nowhere, and go to the API's own server."""

from __future__ import annotations

import base64
import json

import httpx
import pytest

from agentkit import Agent
from agentkit.errors import ToolFailed, UsageError
from agentkit.interop.openapi import Env, openapi_tools
from agentkit.interop.openapi.credentials import Secrets
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

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
