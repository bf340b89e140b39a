"""Who gets in: keys, host names, kinds of bodies, origins."""

import logging

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

URL = "/v1/chat/completions"
KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "header",
    [None, "", KEY, f"Basic {KEY}", "Bearer", "Bearer sk-wrong-wrong-wrong", f"Bearer{KEY}"],
)
@pytest.mark.parametrize("path", [URL, "/v1/models", "/metrics", "/nowhere"])
async def test_without_a_good_key_nothing_is_shown(make_app, talk, keys, header, path):
    """Every path but the probes asks for a key, those that do not exist included."""
    headers = {} if header is None else {"authorization": header}
    async with talk(make_app(keys=keys)) as client:
        answer = await client.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "invalid_api_key"


async def test_probes_need_no_key(make_app, talk, keys):
    """Whoever watches the process has none."""
    async with talk(make_app(keys=keys)) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200


async def test_paths_are_those_below_the_mount(make_app, talk, keys, body):
    """In another application its probes are open, its other paths are not, and it counts them."""
    app = Starlette(routes=[Mount("/shop", make_app(keys=keys))])
    async with talk(app) as client:
        assert (await client.get("/shop/healthz")).status_code == 200
        assert (await client.get("/shop/metrics")).status_code == 401
        assert (await client.get("/shop/v1/models")).status_code == 401
    async with talk(app, KEY) as client:
        assert (await client.post(f"/shop{URL}", json=body("Hi"))).status_code == 200
        metrics = (await client.get("/shop/metrics")).text
    assert f'agentkit_requests_total{{route="{URL}",status="200",key="shop"}} 1' in metrics


async def test_metrics_can_be_opened(make_app, talk, keys):
    """A scraper without a key is let in when the owner says so."""
    async with talk(make_app(keys=keys, open_metrics=True)) as client:
        assert (await client.get("/metrics")).status_code == 200


@pytest.mark.parametrize("wrong", ["Bearer sk-wrong-wrong-wrong", "Basic eDp5", ""])
@pytest.mark.parametrize("good_first", [True, False])
async def test_two_authorizations_are_none(make_app, talk, keys, body, store, wrong, good_first):
    """Whoever stands in front of the server may have looked at the other one."""
    headers = [("authorization", f"Bearer {KEY}"), ("authorization", wrong)]
    async with talk(make_app(keys=keys)) as client:
        answer = await client.post(
            URL, json=body("Hi"), headers=headers if good_first else headers[::-1]
        )
    assert answer.status_code == 401
    assert list(store.select()) == []


async def test_keys_are_in_no_log(make_app, talk, keys, body, caplog):
    """At the most talkative level, neither a good nor a wrong key is written."""
    with caplog.at_level(logging.DEBUG):
        for key in (KEY, "sk-wrong-wrong-wrong"):
            async with talk(make_app(keys=keys), key) as client:
                await client.post(URL, json=body("Hi"))
    assert "key=shop" in caplog.text
    assert KEY not in caplog.text
    assert "sk-wrong" not in caplog.text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "[::2]:80"])
async def test_a_server_without_keys_answers_to_local_names_only(make_app, talk, host):
    """A web page can lead its own name to this machine; it does not get in."""
    async with talk(make_app()) as client:
        answer = await client.get("/v1/models", headers={"host": host})
    assert answer.status_code == 421


async def test_host_names_can_be_given(make_app, talk, keys):
    """``allowed_hosts`` replaces the rule; with keys any name is fine."""
    for options, host, status in [
        ({"allowed_hosts": ["agent.example"]}, "agent.example", 200),
        ({"allowed_hosts": ["agent.example"]}, "localhost", 421),
        ({"allowed_hosts": ["*"]}, "anything", 200),
        ({"keys": keys}, "anything", 200),
    ]:
        async with talk(make_app(**options), KEY) as client:
            answer = await client.get("/v1/models", headers={"host": host})
        assert answer.status_code == status


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_must_say_that_it_is_json(make_app, talk, store, kind):
    """The kinds that a web page may send without asking are refused."""
    async with talk(make_app()) as client:
        answer = await client.post(URL, content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


async def test_no_origin_is_let_in_by_default(make_app, talk):
    """A browser's question is answered without permission."""
    headers = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    async with talk(make_app()) as client:
        answer = await client.options(URL, headers=headers)
    assert "access-control-allow-origin" not in answer.headers
