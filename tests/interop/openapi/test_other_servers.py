"""Credentials go to the API's own server, and elsewhere only when the caller says so."""

import httpx
import pytest

from agentkit.errors import ToolFailed, UsageError
from agentkit.interop.openapi import CallPolicy, Env, openapi_tools

SECRET = "tops3cret"
AUTH = {"key": Env("KEY")}
KEYED = {
    "security": [{"key": []}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The variable that holds the secret."""
    monkeypatch.setenv("KEY", SECRET)


def host_of(url):
    """Host and port of a URL."""
    return url.removeprefix("http://")


@pytest.fixture
def with_other(make, live, another):
    """A description of ``live`` whose one operation names ``another`` as its server."""

    def written(**more):
        given = make.operation(servers=[{"url": another.url}], **more)
        return {**given, "servers": [{"url": live.url}]}

    return written


@pytest.mark.parametrize(
    "options", [{"auth": AUTH}, {"headers": {"X-Tenant": Env("KEY")}}, {"headers": {"X-V": "3"}}]
)
async def test_an_operation_can_not_have_keys_sent_elsewhere(with_other, another, options, bound):
    """Nothing is sent to a server that the operation names, and it is told who could allow it."""
    more = KEYED if "auth" in options else {}
    tools = bound(with_other(**more), **options)
    with pytest.raises(ToolFailed, match="credentials are for the API's own server") as caught:
        await tools["it"]()
    assert f"credential_hosts=('{host_of(another.url)}',)" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert another.seen == []


async def test_what_carries_nothing_goes_where_it_leads(with_other, another, bound):
    """An operation that wants no credentials is called wherever the description says."""
    await bound(with_other(security=[]), auth={})["it"]()
    assert len(another.seen) == 1


async def test_the_caller_may_name_further_hosts(with_other, another, bound):
    """Such as the host for uploads, which wants the same key."""
    policy = CallPolicy(credential_hosts=(host_of(another.url),))
    tools = bound(with_other(**KEYED), auth=AUTH, policy=policy)
    await tools["it"]()
    assert another.seen[0][2]["x-key"] == SECRET
    assert tools.report.notes == ()


async def test_a_server_of_the_callers_gets_every_call(with_other, live, another, bound):
    """A URL that the caller wrote counts for each operation, whatever the description says."""
    await bound(with_other(**KEYED), auth=AUTH, server=live.url)["it"]()
    assert (len(live.seen), another.seen) == (1, [])
    assert live.seen[0][2]["x-key"] == SECRET


def test_the_report_names_other_servers(with_other, another):
    """Whoever reads the report sees where calls would go."""
    (note,) = openapi_tools(with_other()).report.notes
    assert note.code == "other_server"
    assert note.message.startswith(
        f"1 operation goes to {another.url}, which the description names"
    )


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
        ("https://api.example.com", {"server": 0}, True),
        ("https://api.example.com", {"server": "https://mine.example.com"}, True),
        (
            "https://api.example.com",
            {"policy": CallPolicy(credential_hosts=("API.example.com",))},
            True,
        ),
    ],
)
async def test_a_description_from_a_public_url_names_no_host_for_keys(
    make, server, options, is_sent
):
    """Keys go to the host that the description came from, or to one that the caller chose."""
    given = {**make.operation(**KEYED), "servers": [{"url": server}]}
    seen = []

    def answer(request):
        seen.append(request.headers["x-key"])
        return httpx.Response(200, json=1)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        tools = openapi_tools(given, reference=REMOTE, auth=AUTH, client=client, **options)
        if is_sent:
            await tools["it"]()
        else:
            with pytest.raises(ToolFailed, match="credentials are for the API's own server"):
                await tools["it"]()
    assert seen == ([SECRET] if is_sent else [])


async def test_a_client_of_the_callers_keeps_its_own_to_itself(with_other, another):
    """Headers, cookies and credentials of a client go nowhere that only the description names."""
    own = {"headers": {"X-Own": SECRET}, "cookies": {"own": SECRET}, "auth": ("ann", SECRET)}
    async with httpx.AsyncClient(**own) as client:
        await openapi_tools(with_other(), client=client)["it"]()
    assert "x-own" not in another.seen[0][2]
    assert {"cookie", "authorization"}.isdisjoint(another.seen[0][2])


async def test_a_client_of_the_callers_is_redirected_without_its_own(make, live, another, answers):
    """A redirect that is followed to another host carries nothing of the client's either."""
    own = {"headers": {"Authorization": f"Bearer {SECRET}"}, "cookies": {"own": SECRET}}
    policy = CallPolicy(redirect_hosts=(host_of(another.url),))
    live.planned = [answers.to(f"{another.url}/taken")]
    async with httpx.AsyncClient(**own) as client:
        tools = openapi_tools(make.operation(), server=live.url, client=client, policy=policy)
        assert (await tools["it"]())["path"] == "/taken"
    assert live.seen[0][2]["authorization"] == f"Bearer {SECRET}"
    assert {"cookie", "authorization"}.isdisjoint(another.seen[0][2])


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
    with pytest.raises(UsageError, match="is no http or https URL"):
        openapi_tools({**make.operation(), "servers": [{"url": url}]})
