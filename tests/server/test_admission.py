"""Who gets in: keys, host names, kinds of bodies, origins."""

import logging

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from agentkit.errors import UsageError
from agentkit.server import Keys

URL = "/v1/chat/completions"
KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "header", [None, KEY, f"Basic {KEY}", "Bearer sk-wrong-wrong-wrong", f"Bearer{KEY}"]
)
@pytest.mark.parametrize("path", [URL, "/metrics", "/nowhere"])
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


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_must_say_that_it_is_json(make_app, talk, store, kind):
    """The kinds that a web page may send without asking are refused."""
    async with talk(make_app()) as client:
        answer = await client.post(URL, content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


A, B = "sk-aaaaaaaaaaaaaaaa", "sk-bbbbbbbbbbbbbbbb"


def test_each_key_has_its_name():
    """Several keys are good at a time; anything else is nobody's."""
    keys = Keys({"old": A, "new": B})
    assert (keys.holder(A), keys.holder(B)) == ("old", "new")
    for wrong in ("", "sk-", A[:-1], A + "x", A.upper(), "ключ", "\udcff", "x" * 100_000):
        assert keys.holder(wrong) is None


def test_a_key_is_never_shown():
    """Neither repr nor the object's state holds a key."""
    keys = Keys({"shop": A})
    assert repr(keys) == "Keys(shop)"
    assert A not in str(vars(keys))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"shop={A},desk={B}", ("shop", "desk")),
        (f" shop={A}\n desk={B} ", ("shop", "desk")),
        (A, ("default",)),
        ("c2VjcmV0c2VjcmV0c2VjcmV0==", ("default",)),
        ("me=c2VjcmV0c2VjcmV0c2VjcmV0==", ("me",)),
    ],
)
def test_keys_come_from_a_variable(monkeypatch, text, names):
    """Pairs between commas or blanks; one key may stand alone."""
    monkeypatch.setenv("SERVER_KEYS", text)
    assert Keys.from_environment("SERVER_KEYS").names == names


@pytest.mark.parametrize(
    "text",
    ["", ",", "short", "shop=short", f"a b={A}", f"a={A},a={B}", f"ü={A}", "a=ключключключключ"],
)
def test_unusable_keys_are_refused_without_showing_them(monkeypatch, text):
    """The message names the place and not the key."""
    monkeypatch.setenv("SERVER_KEYS", text)
    with pytest.raises(UsageError, match="SERVER_KEYS") as caught:
        Keys.from_environment("SERVER_KEYS")
    assert A not in str(caught.value)
    assert "short" not in str(caught.value)


def test_a_key_file_is_read_again_when_it_changes(tmp_path):
    """A key is added, then the old one is taken away, without a restart."""
    now = [0.0]
    path = tmp_path / "keys"
    path.write_text(f"# keys of the shop\nold={A}\n")
    keys = Keys.from_file(path, clock=lambda: now[0])
    assert (keys.holder(A), keys.holder(B)) == ("old", None)
    path.write_text(f"old={A}\nnew={B}  # since today\n")
    assert keys.holder(B) is None  # not looked at again yet
    now[0] = 2.0
    assert (keys.holder(A), keys.holder(B)) == ("old", "new")
    replacement = tmp_path / "keys.new"
    replacement.write_text(f"new={B}\n")
    replacement.replace(path)
    now[0] = 4.0
    assert (keys.holder(A), keys.holder(B)) == (None, "new")


def test_a_broken_key_file_changes_nothing(tmp_path, caplog):
    """While the file is absent or empty the known keys stay, and the log says so without them."""
    now = [0.0]
    path = tmp_path / "keys"
    path.write_text(f"old={A}\n")
    keys = Keys.from_file(path, clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for at, spoil in enumerate([lambda: path.write_text(f"{A} {A}"), path.unlink], start=1):
            spoil()
            now[0] = at * 2.0
            assert keys.holder(A) == "old"
    assert len(caplog.records) == 2
    assert A not in caplog.text
